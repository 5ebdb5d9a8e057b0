"""Delta: what the naive way leaves, and that the sequence leaves nothing, loses nobody and breaks no clone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pii_tracer.lake.formats.delta.vocabulary import (
    DELTA,
    DELTA_CLEAN_LOG,
    DELTA_DELETE_ROWS,
    DELTA_PURGE,
    DELTA_REBUILD,
    DELTA_VACUUM,
)
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from tests.executors.world import BY_ANY, BY_UID, EMAIL, UID, Steps, bystanders, context, frame, held, residue, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

DELETE = (DELTA_DELETE_ROWS, {"materialise": False})
PURGE = (DELTA_PURGE, {})
VACUUM = (DELTA_VACUUM, {"retain_hours": 0})
CLEAN = (DELTA_CLEAN_LOG, {})
SEQUENCE = (DELETE, PURGE, VACUUM, CLEAN)
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"

VARIANTS = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "checkpoint_v2": {"delta.checkpointPolicy": "v2", "delta.enableDeletionVectors": "true"},
}


_LONE = "7d3f3c3e-6a53-4bd6-8b29-5a9b1b1f0c11"
LEFTOVERS = (
    f".{1:020}.json.{_LONE}.tmp",
    f"_commit_{_LONE}.json.tmp",
    f"{1:020}.checkpoint.parquet.tmp",
    f"_commits/{1:020}.{_LONE}.json",
    f"_staged_commits/{1:020}.{_LONE}.json",
)
"""What writers that died, or a coordinator of commits, left in the log."""


def make(spark: SparkSession, world: SparkEstate, name: str, match=BY_UID, **properties: str) -> Steps:
    """Two files, the person in both."""
    folder = world.folder(f"delta/{name}")
    listed = ", ".join(f"'{k}'='{v}'" for k, v in properties.items())
    spark.sql(
        f"CREATE TABLE delta.`{folder}` (id BIGINT, uid BIGINT, email STRING, amount INT) USING delta"
        + (f" TBLPROPERTIES ({listed})" if listed else "")
    )
    for made in (rows(0, 20, (3, 4)), rows(20, 20, (31,))):
        append(spark, folder, made)
    return Steps(context(world), "delta", None, folder, DELTA, match)


def append(spark: SparkSession, folder: object, made: list[tuple[int, int, str, int]]) -> None:
    frame(spark, made).write.format("delta").mode("append").save(str(folder))


def read(spark: SparkSession, steps: Steps) -> DataFrame:
    return spark.read.format("delta").load(str(steps.location))


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param("plain", marks=pytest.mark.nightly),
        "vectors",
        "feed",
        pytest.param("checkpoint_v2", marks=pytest.mark.nightly),
    ],
)
def test_variants(spark: SparkSession, spark_estate: SparkEstate, variant: str) -> None:
    steps = make(spark, spark_estate, variant, **VARIANTS[variant])
    others = bystanders(read(spark, steps))
    hidden = steps.location / ".crashed" / "part.parquet"
    hidden.parent.mkdir()
    hidden.write_bytes(EMAIL.encode())
    log = steps.location / "_delta_log"
    left = [log / name for name in LEFTOVERS]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"add": {"path": "a", "stats": json.dumps({"minValues": {"email": EMAIL}})}}))

    facts = steps.all(DELETE, VACUUM)
    assert facts[DELTA_DELETE_ROWS]["rows_deleted"] == 3
    assert residue(steps.location), "deleting and vacuuming alone leaves the person in the log, or under a vector"
    steps.all(PURGE, VACUUM, CLEAN)
    assert residue(steps.location) == []
    assert not any(path.exists() for path in left)
    assert bystanders(read(spark, steps)) == others
    assert read(spark, steps).count() == 37
    if variant == "vectors":
        steps.all(*SEQUENCE, repeat=True)
        assert bystanders(read(spark, steps)) == others
    append(spark, steps.location, rows(900, 2))
    assert read(spark, steps).count() == 39
    assert spark.conf.get(CHECK, "true") == "true"


def test_any_of_several_keys_and_rows_that_match_twice(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "several", BY_ANY)
    append(spark, steps.location, [(70, 5, EMAIL, 1), (71, UID, "x@example.net", 2), (72, 6, "y@example.net", 3)])
    assert steps.once(*DELETE[:1], materialise=False)["rows_deleted"] == 5
    assert read(spark, steps).where("id >= 70").count() == 1
    steps.all(PURGE, VACUUM, CLEAN)
    assert residue(steps.location) == []


def test_a_shallow_clone_first_then_its_source(spark: SparkSession, spark_estate: SparkEstate) -> None:
    source = make(spark, spark_estate, "source", **{"delta.enableDeletionVectors": "true"})
    spark.sql(f"DELETE FROM delta.`{source.location}` WHERE id = 25")
    folder = spark_estate.folder("delta/clone")
    spark.sql(f"CREATE TABLE delta.`{folder}` SHALLOW CLONE delta.`{source.location}`")
    clone = Steps(context(spark_estate), "delta", None, folder, DELTA)
    others = bystanders(read(spark, clone))
    assert len(others) == 36

    delete = (DELTA_DELETE_ROWS, {"materialise": True})
    clone.all(delete, PURGE, VACUUM, CLEAN)
    assert residue(clone.location) == []
    assert len(read(spark, source).where(f"uid = {UID}").collect()) == 3, "the clone's erasure leaves the source alone"
    source.all(*SEQUENCE)
    assert residue(source.location) == []
    spark.catalog.clearCache()
    assert bystanders(read(spark, clone)) == others
    assert bystanders(read(spark, source)) == others


def test_vacuum_of_the_source_alone_breaks_a_clone(spark: SparkSession, spark_estate: SparkEstate) -> None:
    source = make(spark, spark_estate, "source_first")
    folder = spark_estate.folder("delta/clone_last")
    spark.sql(f"CREATE TABLE delta.`{folder}` SHALLOW CLONE delta.`{source.location}`")
    source.all(DELETE, PURGE)
    assert spark.read.format("delta").load(str(folder)).where(f"uid = {UID}").count() == 3, "by the source's files"
    source.all(VACUUM)
    with pytest.raises(Exception, match=r"(?i)not.*exist|FILE_NOT_FOUND"):
        spark.read.format("delta").load(str(folder)).collect()
    assert held(folder / "_delta_log", "*.json"), "the source's statistics, in the clone's log"


def test_partition_values_that_need_escaping(spark: SparkSession, spark_estate: SparkEstate) -> None:
    folder = spark_estate.folder("delta/escaped")
    made = frame(spark, rows(0, 6, (3,))).selectExpr("*", "concat('a b:', id % 2, '/é%') AS part")
    made.write.format("delta").partitionBy("part").option("delta.enableDeletionVectors", "true").save(str(folder))
    spark.sql(f"DELETE FROM delta.`{folder}` WHERE id = 0")
    steps = Steps(context(spark_estate), "delta", None, folder, DELTA)
    steps.all(DELETE, VACUUM)
    assert read(spark, steps).count() == 4
    steps.all(PURGE, VACUUM, CLEAN)
    assert residue(folder) == []
    assert sorted(r.id for r in read(spark, steps).collect()) == [1, 2, 4, 5]


def test_vacuum_keeps_what_the_window_keeps(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "window")
    steps.all(DELETE)
    steps.once(DELTA_VACUUM, retain_hours=200)
    assert spark.read.format("delta").option("versionAsOf", 2).load(str(steps.location)).count() == 40


def test_the_sweep_keeps_foreign_hidden_folders_and_refuses_nested_tables(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    steps = make(spark, spark_estate, "kept")
    manifest = steps.location / "_symlink_format_manifest" / "manifest"
    stream = steps.location / "_checkpoints" / "offsets" / "0"
    for path in (manifest, stream):
        path.parent.mkdir(parents=True)
        path.write_text("state of somebody else")
    steps.all(DELETE, VACUUM)
    assert manifest.exists()
    assert stream.exists()
    make(spark, spark_estate, "kept/inner")
    with pytest.raises(RunError, match="a different table"):
        steps.once(DELTA_VACUUM, retain_hours=0)


def test_the_log_is_not_cut_when_the_head_commit_removes_files(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """The removal's own log entry holds the removed file's statistics: it has to lie below the checkpoint."""
    steps = make(spark, spark_estate, "head", **{"delta.enableDeletionVectors": "true"})
    steps.all(DELETE, PURGE)
    spark.conf.set("spark.databricks.delta.vacuum.logging.enabled", "false")
    try:
        steps.all(VACUUM, CLEAN)
    finally:
        spark.conf.unset("spark.databricks.delta.vacuum.logging.enabled")
    assert residue(steps.location) == []


def test_probe_before_and_after(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "probes", **{"delta.enableDeletionVectors": "true"})
    for action, parameters in (DELETE, PURGE, VACUUM, CLEAN):
        assert steps.probe(action, **parameters) is not Progress.DONE, action
        steps.once(action, **parameters)
        assert steps.probe(action, **parameters) is Progress.DONE, action


def test_rebuild_from_the_recorded_statement(spark: SparkSession, spark_estate: SparkEstate) -> None:
    source = make(spark, spark_estate, "rebuild_source")
    folder = spark_estate.folder("delta/totals")
    query = f"SELECT amount % 5 AS slot, max(email) AS best FROM delta.`{source.location}` GROUP BY amount % 5"
    spark.sql(f"CREATE TABLE delta.`{folder}` USING delta AS {query}")
    totals = Steps(context(spark_estate), "delta", None, folder, DELTA, None)
    assert totals.probe(DELTA_REBUILD, sql=query) is Progress.DONE
    source.once(*DELETE[:1], materialise=False)
    spark.sql(f"INSERT INTO delta.`{folder}` VALUES (99, '{EMAIL}')")
    assert totals.probe(DELTA_REBUILD, sql=query) is not Progress.DONE
    totals.once(DELTA_REBUILD, sql=query)
    totals.all(PURGE, VACUUM, CLEAN)
    assert residue(folder) == []


@pytest.mark.nightly
def test_a_rebuild_by_insert_fills_the_columns_in_their_order(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """What the query calls its columns means nothing to INSERT: `max(email)` has no name that a table could have."""
    source = make(spark, spark_estate, "placed_source")
    folder = spark_estate.folder("delta/placed")
    query = f"SELECT amount % 5, max(email) FROM delta.`{source.location}` GROUP BY 1"
    spark.sql(f"CREATE TABLE delta.`{folder}` (slot INT, best STRING) USING delta")
    placed = Steps(context(spark_estate), "delta", None, folder, DELTA, None)
    job = f"INSERT OVERWRITE delta.`{folder}` {query}"
    spark.sql(job)
    assert placed.probe(DELTA_REBUILD, sql=job) is Progress.DONE
    source.once(*DELETE[:1], materialise=False)
    spark.sql(f"INSERT INTO delta.`{folder}` VALUES (99, '{EMAIL}')")
    assert placed.probe(DELTA_REBUILD, sql=job) is not Progress.DONE
    placed.once(DELTA_REBUILD, sql=job)
    assert placed.probe(DELTA_REBUILD, sql=job) is Progress.DONE
    placed.all(PURGE, VACUUM, CLEAN)
    assert residue(folder) == []
    with pytest.raises(
        RunError, match="returns the columns"
    ):  # a list of columns, or no INSERT: names do mean something
        placed.once(DELTA_REBUILD, sql=query)


def test_a_file_that_several_keys_match_is_written_once(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """One statement a key wrote it once for each: some of its rows hold the one alone, others the other."""
    steps = make(spark, spark_estate, "once", BY_ANY)
    append(spark, steps.location, [(70, 5, EMAIL, 1), (71, UID, "x@example.net", 2), (72, 6, "y@example.net", 3)])
    steps.once(*DELETE[:1], materialise=False)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{steps.location}`").collect()
    merged = [row["operationMetrics"] for row in history if row["operation"] == "MERGE"]
    assert [m["numTargetFilesRemoved"] for m in merged] == ["3"]
    assert [m["numTargetRowsDeleted"] for m in merged] == ["5"]
    assert read(spark, steps).where("id >= 70").count() == 1


def test_a_key_that_is_null_beside_one_that_matches(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "nulls", BY_ANY)
    append(spark, steps.location, [(70, None, EMAIL, 1), (71, UID, None, 2), (72, None, None, 3), (73, 8, None, 4)])
    assert steps.once(*DELETE[:1], materialise=False)["rows_deleted"] == 5
    assert sorted(r.id for r in read(spark, steps).where("id >= 70").collect()) == [72, 73]
