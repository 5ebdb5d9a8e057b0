"""Delta tables as others build them: every variant shows the person after the naive way, and none after the sequence."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pii_tracer.lake.formats.delta.vocabulary import DELTA, DELTA_PURGE
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.run.executor_protocol import Progress
from tests.executors.formats.delta.test_delta import (
    CLEAN,
    DELETE,
    PURGE,
    SEQUENCE,
    VACUUM,
    make,
    read,
)
from tests.executors.world import EMAIL, UID, Steps, bystanders, context, residue
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_column_mapping_by_name(spark: SparkSession, spark_estate: SparkEstate) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    steps = make(spark, spark_estate, "v_name_mapping", **properties)
    spark.sql(f"ALTER TABLE delta.`{steps.location}` RENAME COLUMN amount TO paise")
    spark.sql(f"ALTER TABLE delta.`{steps.location}` ADD COLUMN city STRING")
    erase_and_compare(spark, steps)


def erase_and_compare(spark: SparkSession, steps: Steps) -> None:
    others, schema = bystanders(read(spark, steps)), read(spark, steps).schema
    steps.all(DELETE, VACUUM)
    assert residue(steps.location), "deleting and vacuuming alone leaves the person"
    steps.all(PURGE, VACUUM, CLEAN)
    assert residue(steps.location) == []
    assert bystanders(read(spark, steps)) == others
    assert read(spark, steps).schema == schema


def test_a_dropped_column_stays_in_the_files_of_others(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """A remark about the person in somebody else's row, in a column that was dropped: no key leads there."""
    steps = make(spark, spark_estate, "v_dropped", **{"delta.columnMapping.mode": "name"})
    table = f"delta.`{steps.location}`"
    spark.sql(f"ALTER TABLE {table} ADD COLUMN remark STRING")
    row = [(80, 5, "b80@example.net", 1, f"referred by {EMAIL}")]
    noted = frame_of_rows(spark, row, "id BIGINT, uid BIGINT, email STRING, amount INT, remark STRING").coalesce(1)
    noted.write.format("delta").mode("append").save(str(steps.location))
    spark.sql(f"ALTER TABLE {table} DROP COLUMN remark")
    others = bystanders(read(spark, steps))
    steps.all(DELETE, VACUUM)
    assert [f for f in residue(steps.location) if not f.startswith("_delta_log")]
    assert steps.probe(DELTA_PURGE) is not Progress.DONE
    steps.all(PURGE, VACUUM, CLEAN)
    assert residue(steps.location) == []
    assert bystanders(read(spark, steps)) == others


@pytest.mark.nightly
def test_engines_that_read_by_symlink_manifests_lose_nothing(spark: SparkSession, spark_estate: SparkEstate) -> None:
    def make_it(name: str) -> Steps:
        steps = make(spark, spark_estate, name)
        spark.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{steps.location}`")
        return steps

    def named(steps: Steps) -> list[Path]:
        text = (steps.location / "_symlink_format_manifest" / "manifest").read_text()
        return [Path(line.removeprefix("file:")) for line in text.splitlines()]

    naive = make_it("v_symlink_naive")
    naive.all(DELETE, PURGE)
    theirs = spark.read.parquet(*[str(path) for path in named(naive)])
    assert theirs.where(f"uid = {UID}").count() == 3, "other engines go on reading the person"
    spark.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    spark.sql(f"VACUUM delta.`{naive.location}` RETAIN 0 HOURS")
    spark.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = true")
    assert not all(path.exists() for path in named(naive)), "the engine's VACUUM breaks them"

    steps = make_it("v_symlink")
    steps.all(*SEQUENCE)
    assert named(steps)
    assert all(path.exists() for path in named(steps))
    ids = spark.read.parquet(*[str(path) for path in named(steps)]).where(f"uid != {UID}").count()
    assert ids == read(spark, steps).count() == 37
    assert residue(steps.location) == []


@pytest.mark.nightly
def test_days_before_the_gregorian_calendar_and_times_before_1900(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    """`0001-01-01` is many a system's "since ever". Spark refuses such values unless it is told which calendar they are in."""
    folder = spark_estate.folder("delta/v_ancient")
    ancient = datetime(1753, 1, 1, 0, 0, 0, 123456, tzinfo=timezone.utc)
    columns = {"uid": [UID, 7, 8], "since": [date(1, 1, 1), date(1, 1, 1), date(1582, 10, 10)], "at": [ancient] * 3}
    write_deltalake(str(folder), pa.table(columns))
    spark.sql(f"INSERT INTO delta.`{folder}` SELECT * FROM delta.`{folder}` WHERE uid = 8")
    steps = Steps(context(spark_estate), "delta", None, folder, DELTA)
    steps.all(*SEQUENCE)
    left = sorted(DeltaTable(str(folder)).to_pyarrow_table().to_pylist(), key=lambda row: row["uid"])
    assert [tuple(row.values()) for row in left] == [
        (7, date(1, 1, 1), ancient),
        (8, date(1582, 10, 10), ancient),
        (8, date(1582, 10, 10), ancient),
    ]
    assert residue(folder) == []
