"""What an Iceberg table says of itself: columns, snapshots, refs, properties, through its metadata tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from executors.base import Target
from executors.spark import quote_table, string_literal
from pii_tracer.enums import StrEnum
from pii_tracer.errors import RunError
from pii_tracer.inventory import RefKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAIN = "main"


class WriteMode(StrEnum):
    """How Iceberg applies a row-level operation."""

    COPY_ON_WRITE = "copy-on-write"
    MERGE_ON_READ = "merge-on-read"


@dataclass(frozen=True)
class IcebergTable:
    """A table in an Iceberg catalog of the session. `parts`: catalog, namespaces, name, unquoted."""

    spark: SparkSession
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """Quoted, with catalog."""
        return quote_table(".".join(self.parts))

    @property
    def catalog(self) -> str:
        return self.parts[0]

    @property
    def argument(self) -> str:
        """As a procedure's `table` argument: a literal, without catalog, its parts quoted."""
        return string_literal(quote_table(".".join(self.parts[1:])))

    def columns(self) -> list[str]:
        return list(self.spark.table(self.name).columns)

    def refs(self) -> dict[str, tuple[RefKind, int]]:
        """Branches and tags by name, with the snapshot each points at."""
        rows = self.spark.sql(f"SELECT name, lower(type), snapshot_id FROM {self.name}.refs").collect()
        return {row[0]: (RefKind(row[1]), int(row[2])) for row in rows}

    def tag_retention_days(self, tag: str) -> int | None:
        """The tag's own maximum age in days, rounded up; None when it has none."""
        rows = self.spark.sql(f"SELECT name, max_reference_age_in_ms FROM {self.name}.refs").collect()
        millis = next((row[1] for row in rows if row[0] == tag), None)
        return None if millis is None else -(-int(millis) // 86_400_000)

    def snapshots(self) -> dict[int, tuple[int | None, int]]:
        """Every snapshot: id to (parent, committed at in ms)."""
        rows = self.spark.sql(
            f"SELECT snapshot_id, parent_id, unix_millis(committed_at) FROM {self.name}.snapshots"
        ).collect()
        return {int(row[0]): (row[1], int(row[2])) for row in rows}

    def properties(self) -> dict[str, str]:
        return {row[0]: row[1] for row in self.spark.sql(f"SHOW TBLPROPERTIES {self.name}").collect()}

    def java(self) -> Any:
        """The `org.apache.iceberg.Table`, freshly loaded.

        Raises:
            RunError: the session is a Spark Connect one, which has no JVM to reach.
        """
        jvm = getattr(self.spark, "_jvm", None)
        if jvm is None:
            raise RunError(
                "this step needs an Iceberg action that only Java has, and Spark Connect does not reach it",
                todo="run with a classic Spark session",
            )
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, self.name)  # type: ignore[attr-defined]


def open_table(at: Target) -> IcebergTable:
    """The step's table.

    Raises:
        RunError: no name, no such table, or a table of another format.
    """
    if at.table is None or at.table.count(".") < 2:
        raise RunError(
            f"step {at.step.id} needs an Iceberg table named `catalog.schema.table`",
            where=at.location,
            todo="add its catalog to the estate file, then plan again",
        )
    table = IcebergTable(at.spark, tuple(at.table.split(".")))
    if not at.spark.catalog.tableExists(table.name):
        raise RunError("the table does not exist (any more)", where=at.table, todo="plan again")
    provider = at.spark.conf.get(f"spark.sql.catalog.{table.catalog}", "") or ""
    if not provider.startswith("org.apache.iceberg"):
        raise RunError("the table's catalog is not an Iceberg one", where=at.table, todo="correct the estate file")
    return table
