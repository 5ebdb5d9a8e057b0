"""What Iceberg needs of Spark: https://iceberg.apache.org/docs/latest/spark-configuration/; versions: docs/stack.md."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executors.context import ExecutionContext
from executors.engine.rebuild_from_query import refuse_one_plan
from executors.engine.version_profiles import SPARK_3_5, SPARK_4_1
from executors.formats.base import Build, Sharers, SparkSupport
from executors.formats.iceberg import catalog_settings
from executors.formats.iceberg.orphan_files import read_by
from executors.formats.iceberg.table_sweep import IcebergSweep
from executors.sweep.format_sweep import FormatSweep
from executors.sweep.sweep_stores import Store
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_EXPIRE_SNAPSHOTS
from pii_tracer.model.plan import Step
from pii_tracer.retention.sweep_rules import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_REFERENCE_FIELDS = {
    "max_ref_age_ms": "setMaxRefAgeMs",
    "max_snapshot_age_ms": "setMaxSnapshotAgeMs",
    "min_snapshots_to_keep": "setMinSnapshotsToKeep",
}
_EXTENSIONS = ("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",)


class IcebergOnSpark(SparkSupport):
    """Iceberg's tables are found in catalogs of their own."""

    formats = frozenset({ICEBERG})
    rank = 20
    builds = {
        SPARK_3_5.name: Build(("org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",), _EXTENSIONS),
        SPARK_4_1.name: Build(("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",), _EXTENSIONS),
    }
    in_catalogs = True
    conflicts = ("CommitFailedException", "ValidationException")

    def catalog_conf(self, estate: Estate, base: Path) -> Mapping[str, str]:
        return catalog_settings.catalog_conf(estate, base)

    def catalog_packages(self, estate: Estate) -> Mapping[str, str]:
        return catalog_settings.catalog_packages(estate)

    def needs_jvm(self, step: Step) -> str | None:
        """Whether a step takes snapshots out of a table's metadata and leaves all files (hazard I7)."""
        if step.action is not ICEBERG_EXPIRE_SNAPSHOTS or not (
            "sharing" in step.parameters or step.executor == "nessie"
        ):
            return None
        return (
            "the step must expire snapshots of a table that may share files without removing files, and no SQL "
            "statement does that"
        )

    def set_reference(self, spark: SparkSession, table: str, ref: str, field: str, value: int) -> None:
        """By Iceberg's own API: `REPLACE BRANCH … AS OF VERSION`, the only SQL, would move the branch's head back over
        a commit that came in between. Iceberg tries the commit again when another one came first.

        https://iceberg.apache.org/javadoc/latest/org/apache/iceberg/ManageSnapshots.html
        """
        java: Any = spark
        loaded = java._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(java._jsparkSession, table)
        manage = loaded.manageSnapshots()
        getattr(manage, _REFERENCE_FIELDS[field])(ref, value).commit()

    def rebuild_sides(self, ctx: ExecutionContext, step: Step) -> tuple[DataFrame, DataFrame]:
        """As every table's; the write must be one that the session can do."""
        sides = super().rebuild_sides(ctx, step)
        refuse_one_plan(ctx, step.parameters["sql"], "an Iceberg table")
        return sides

    def files_read(self, ctx: ExecutionContext, sharing: Sharers) -> set[str] | None:
        return read_by(ctx, sharing)

    def sweep(self, spark: SparkSession, target: Target, store: Store, now: datetime) -> FormatSweep:
        return IcebergSweep(spark, target, store, now)
