"""Iceberg tables as other engines write them: equality deletes, deletion vectors, compactions that forget deletes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from executors.registry import build
from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG,
    ICEBERG_DELETE_ROWS,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_REWRITE_REF,
)
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from tests.executors.formats.iceberg.icebergjava import compact_ignoring_deletes, equality_delete
from tests.executors.formats.iceberg.test_iceberg import (
    DELETE,
    EXPIRE,
    MANIFESTS,
    ORPHANS,
    REWRITE,
    SEQUENCE,
    make,
)
from tests.executors.world import UID, Steps, bystanders, context, frame, residue, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FAR = "older_than => TIMESTAMP '2099-01-01 00:00:00', retain_last => 1"


def test_equality_deletes_of_another_engine(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Hazard I5: no row is left to delete, and data file and delete file both hold the key."""
    steps = make(spark, spark_estate, "equality", "merge-on-read", alone=False)
    assert steps.table
    equality_delete(spark, steps.table, steps.location, "uid", [UID, 1007])
    others = bystanders(spark.table(steps.table))
    assert len(others) == spark.table(steps.table).count() == 36, "the delete took the person and one other"
    spark.sql("CALL lake.system.rewrite_data_files(table => 'iceberg.equality')")
    spark.sql(f"CALL lake.system.expire_snapshots(table => 'iceberg.equality', {FAR})")
    left = [f for f in residue(steps.location) if f.endswith(".parquet")]
    assert {Path(f).name.startswith("equality-") for f in left} == {True, False}, "data files and the delete file"
    assert steps.once(ICEBERG_DELETE_ROWS)["rows_deleted"] == 0
    steps.all(REWRITE, MANIFESTS, EXPIRE, ORPHANS)
    assert residue(steps.location) == []
    assert bystanders(spark.table(steps.table)) == others


@pytest.mark.slow
def test_equality_deletes_beside_files_that_they_cannot_concern(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """By its bounds such a file holds none of the keys, so it has no deletes, and still it keeps the delete file."""
    steps = make(spark, spark_estate, "equality_beside", "merge-on-read", alone=False)
    assert steps.table
    frame(spark, rows(900, 5)).writeTo(steps.table).append()
    equality_delete(spark, steps.table, steps.location, "uid", [UID])
    others = bystanders(spark.table(steps.table))
    steps.all(REWRITE, MANIFESTS, EXPIRE, ORPHANS)
    assert residue(steps.location) == []
    assert bystanders(spark.table(steps.table)) == others


@pytest.mark.slow
def test_equality_deletes_below_a_tag(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "equality_tag", "merge-on-read", alone=False)
    assert steps.table
    equality_delete(spark, steps.table, steps.location, "uid", [UID, 1007])
    spark.sql(f"ALTER TABLE {steps.table} CREATE TAG v1")
    others = bystanders(spark.table(steps.table))
    steps.once(ICEBERG_DELETE_ROWS)
    steps.all(REWRITE, (ICEBERG_REWRITE_REF, {"ref": "v1", "kind": "tag"}), MANIFESTS, EXPIRE, ORPHANS)
    assert residue(steps.location) == []
    assert bystanders(spark.table(steps.table)) == others
    assert bystanders(spark.sql(f"SELECT * FROM {steps.table}.tag_v1")) == others


def test_a_compaction_that_forgets_deletes_brings_the_person_back(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    """Hazard I8: new files with newer sequence numbers, to which older equality deletes do not apply."""
    steps = make(spark, spark_estate, "revived", "merge-on-read", alone=False)
    assert steps.table
    others = bystanders(spark.table(steps.table))
    equality_delete(spark, steps.table, steps.location, "uid", [UID])
    steps.once(ICEBERG_DELETE_ROWS)
    compact_ignoring_deletes(spark, steps.table, steps.location)
    assert spark.table(steps.table).where(f"uid = {UID}").count() == 3, "back again"
    assert steps.probe(ICEBERG_DELETE_ROWS) is Progress.PARTIAL
    steps.all(*SEQUENCE, repeat=True)
    assert residue(steps.location) == []
    assert bystanders(spark.table(steps.table)) == others


def test_deletion_vectors_of_format_version_3(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Hazard I9: the vector in its Puffin file marks the row; the row stays in the data file."""
    table = "lake.iceberg.vectors"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, uid BIGINT, email STRING, amount INT) USING iceberg TBLPROPERTIES ("
        "'format-version'='3', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')"
    )
    for made in (rows(0, 20, (3, 4)), rows(20, 20, (31,))):
        frame(spark, made).writeTo(table).append()
    location = spark_estate.base / "warehouse/lake/iceberg/vectors"
    steps = Steps(context(spark_estate), "iceberg", table, location, ICEBERG)
    spark.sql(f"DELETE FROM {table} WHERE id = 7")
    spark.sql(f"UPDATE {table} SET amount = 70000 WHERE id = 8")
    others = bystanders(spark.table(table))
    steps.all(DELETE)
    assert list(location.rglob("*.puffin"))
    spark.sql("CALL lake.system.rewrite_data_files(table => 'iceberg.vectors')")
    spark.sql(f"CALL lake.system.expire_snapshots(table => 'iceberg.vectors', {FAR})")
    assert [f for f in residue(location) if f.endswith(".parquet")], "the naive way erases nothing"
    steps.all(REWRITE, MANIFESTS, EXPIRE, ORPHANS)
    assert residue(location) == []
    assert not list(location.rglob("*.puffin"))
    assert bystanders(spark.table(table)) == others


def test_a_table_that_may_share_its_files_is_left_alone(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Hazard I7: `snapshot` makes a table over another one's files and forbids removal; that word is kept."""
    steps = make(spark, spark_estate, "shared", "copy-on-write", alone=False)
    spark.sql(f"ALTER TABLE {steps.table} SET TBLPROPERTIES ('gc.enabled'='false')")
    with pytest.raises(RunError, match=r"gc\.enabled"):
        steps.once(ICEBERG_EXPIRE_SNAPSHOTS, older_than=None, retain_last=1)
    step = steps.step(ICEBERG_DELETE_ROWS)
    with pytest.raises(RunError, match="share"):
        build(steps.ctx)["iceberg"].check(step, steps.copy)
    assert spark.table(str(steps.table)).count() == 40


@pytest.mark.slow
def test_the_person_as_partition_value(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """The folder of the partition is named by the value; it goes with its last file."""
    table, folder = "lake.iceberg.by_person", spark_estate.base / "warehouse/lake/iceberg/by_person"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, uid BIGINT, email STRING, amount INT) USING iceberg PARTITIONED BY (uid)"
    )
    frame(spark, rows(0, 6, (3, 4))).writeTo(table).append()
    steps = Steps(context(spark_estate), "iceberg", table, folder, ICEBERG)
    others = bystanders(spark.table(table))
    steps.all(DELETE, EXPIRE)
    named = [p for p in folder.rglob("*") if str(UID) in p.name]
    assert named, "expiring removes the files and leaves the folder"
    steps.all(*SEQUENCE, repeat=True)
    assert residue(folder) == []
    assert [p for p in folder.rglob("*") if str(UID) in p.name] == []
    assert bystanders(spark.table(table)) == others
