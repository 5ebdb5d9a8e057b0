"""The branches and tags of an Iceberg table, as the engine reads the table's metadata.

The engine's Java interface reads one metadata file. A query of the metadata table `refs` says the same and starts a
Spark job; Spark Connect has that query alone. https://iceberg.apache.org/docs/latest/branching/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from executors.context import ExecutionContext

BRANCH, TAG = "BRANCH", "TAG"


@dataclass(frozen=True)
class Reference:
    """A branch or tag. kind: `BRANCH` or `TAG`; snapshot: its head; keep_ms: how long it is kept, in milliseconds."""

    kind: str
    snapshot: int
    keep_ms: int | None


def references(ctx: ExecutionContext, table: str) -> Mapping[str, Reference]:
    """Every reference by its name; none where the table has no snapshot. table: quoted."""
    spark: Any = ctx.spark
    if ctx.estate.spark.remote is not None:
        query = f"SELECT name, type, snapshot_id, max_reference_age_in_ms FROM {table}.refs"
        return {row[0]: Reference(row[1], int(row[2]), row[3]) for row in spark.sql(query).collect()}
    loaded = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    return {
        str(name): Reference(BRANCH if ref.isBranch() else TAG, int(ref.snapshotId()), ref.maxRefAgeMs())
        for name, ref in dict(loaded.refs()).items()
    }
