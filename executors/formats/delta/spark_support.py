"""What Delta needs of Spark: https://docs.delta.io/latest/quick-start.html; versions: docs/stack.md."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from executors.engine.sql_names import quote
from executors.engine.version_profiles import SPARK_3_5, SPARK_4_1
from executors.formats.base import Build, SparkSupport
from executors.formats.delta.table_sweep import DeltaSweep
from executors.sweep.format_sweep import FormatSweep
from executors.sweep.sweep_stores import Store
from pii_tracer.config.estate_file import Spark
from pii_tracer.lake.formats.delta.vocabulary import DELTA, DELTA_PURGE
from pii_tracer.model.locations import engine_path
from pii_tracer.model.plan import Step
from pii_tracer.retention.sweep_rules import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXTENSIONS = ("io.delta.sql.DeltaSparkSessionExtension",)


class DeltaOnSpark(SparkSupport):
    """Delta keeps Spark's own catalog; Delta refuses to be read in one plan with the write of another engine's table
    (`Cannot work with a non-pinned table snapshot`).
    """

    formats = frozenset({DELTA})
    rank = 10
    builds = {
        SPARK_3_5.name: Build(("io.delta:delta-spark_2.12:3.3.3",), _EXTENSIONS),
        SPARK_4_1.name: Build(("io.delta:delta-spark_4.1_2.13:4.4.0",), _EXTENSIONS),
    }
    settings = {
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # small tables: without this every Delta command plans 50 tasks
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    conflicts = (
        "ConcurrentAppend",
        "ConcurrentDelete",
        "ConcurrentModification",
        "ConcurrentTransaction",
        "ConcurrentWrite",
        "MetadataChanged",
        "DELTA_CONCURRENT",
    )
    pinned_scans = ("PreparedDelta", "TahoeLog")

    def unfit(self, step: Step, spark: Spark) -> tuple[str, str] | None:
        """Delta 4.4.0 looks for a session on executors, where there is none (docs/stack.md)."""
        if step.action is DELTA_PURGE and spark.is_cluster and spark.profile == SPARK_4_1.name:
            what = "Delta's REORG fails on a cluster of Spark 4.1: deleted rows would remain in files"
            return what, "set a `local` master, or use the profile 3.5"
        return None

    def place_name(self, location: str) -> str | None:
        return f"delta.{quote(engine_path(location))}"

    def sweep(self, spark: SparkSession, target: Target, store: Store, now: datetime) -> FormatSweep:
        return DeltaSweep(spark, target, store, now)
