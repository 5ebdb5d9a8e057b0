"""Sets what a branch or tag keeps, through Iceberg's own API.

There is no SQL that changes only a reference's retention: `REPLACE BRANCH … AS OF VERSION` would move its head back
over a commit that came in between. https://iceberg.apache.org/javadoc/latest/org/apache/iceberg/ManageSnapshots.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FIELDS = {
    "max_ref_age_ms": "setMaxRefAgeMs",
    "max_snapshot_age_ms": "setMaxSnapshotAgeMs",
    "min_snapshots_to_keep": "setMinSnapshotsToKeep",
}


def set_reference(spark: SparkSession, table: str, ref: str, field: str, value: int) -> None:
    """Set one field of a reference; the commit is tried again by Iceberg when another one came first."""
    java: Any = spark
    loaded = java._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(java._jsparkSession, table)
    manage = loaded.manageSnapshots()
    getattr(manage, _FIELDS[field])(ref, value).commit()
