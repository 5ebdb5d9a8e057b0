"""Hudi tables with the indexes, services and writers that others use: nothing of the person is left, nobody is lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_tracer.lake.formats.hudi.vocabulary import HUDI, HUDI_DELETE_ROWS
from pii_tracer.model.errors import RunError
from tests.executors.formats.hudi.test_hudi import (
    CLEAN,
    COMPACT,
    DELETE,
    METADATA,
)
from tests.executors.race import racing
from tests.executors.world import BY_ANY, EMAIL, UID, Steps, bystanders, context, frame, residue, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]

OCC = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}


def make(
    spark: SparkSession, world: SparkEstate, name: str, kind: str = "cow", part: str = "", **options: str
) -> Steps:
    """Keyed by the person's own key and the row's; two commits, the person in both."""
    folder = world.folder(f"hudi/{name}")
    table = f"hudi_index.{name}"
    spark.sql("CREATE DATABASE IF NOT EXISTS hudi_index")
    listed = "".join(f", '{k}' = '{v}'" for k, v in options.items())
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, uid BIGINT, email STRING, amount INT, slot INT) USING hudi "
        f"TBLPROPERTIES (type = '{kind}', primaryKey = 'uid,id', preCombineField = 'amount'{listed}) "
        f"PARTITIONED BY (slot) LOCATION '{folder}'"
    )
    for number, made in enumerate((rows(0, 20, (3, 4)), rows(20, 10, (23,)))):
        frame(spark, made).createOrReplaceTempView(f"made_{number}")
        spark.sql(f"INSERT INTO {table} SELECT *, id % 2 FROM made_{number}")
    return Steps(context(world), "hudi", table, folder, HUDI, BY_ANY)


def erase(spark: SparkSession, steps: Steps, kind: str = "cow") -> None:
    others = bystanders(spark.table(str(steps.table)))
    steps.all(DELETE)
    spark.sql(f"CALL run_clean(table => '{steps.table}')")
    assert residue(steps.location), "deleting and cleaning alone leaves the person"
    steps.all(*((COMPACT,) if kind == "mor" else ()), CLEAN, METADATA)
    assert residue(steps.location) == []
    assert bystanders(spark.table(str(steps.table))) == others
    spark.sql(f"INSERT INTO {steps.table} VALUES (900, 1900, 'new@example.net', 1, 0)")
    spark.sql(f"UPDATE {steps.table} SET amount = 7 WHERE id = 5")
    spark.catalog.refreshTable(str(steps.table))
    assert spark.table(str(steps.table)).count() == len(others) + 1, "the key was not lost and is in no index twice"
    assert residue(steps.location) == []


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        ("BLOOM", "mor"),
        ("RECORD_INDEX", "cow"),
        pytest.param("BLOOM", "cow", marks=pytest.mark.nightly),
        pytest.param("RECORD_INDEX", "mor", marks=pytest.mark.nightly),
    ],
)
def test_indexes(spark: SparkSession, spark_estate: SparkEstate, index: str, kind: str) -> None:
    """SIMPLE is Spark's default: every other test of Hudi has it."""
    options = {"hoodie.index.type": index}
    if index == "RECORD_INDEX":
        options |= {
            "hoodie.metadata.record.index.enable": "true",
            "hoodie.metadata.global.record.level.index.enable": "true",
        }
    if index == "BLOOM":
        options |= {"hoodie.metadata.index.bloom.filter.enable": "true"}
    steps = make(spark, spark_estate, f"{index.lower()}_{kind}", kind, **options)
    if index == "RECORD_INDEX":
        assert (steps.location / ".hoodie/metadata/record_index").is_dir()
    erase(spark, steps, kind)


def test_replaced_file_groups(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "clustered")
    spark.sql(f"CALL run_clustering(table => '{steps.table}', op => 'scheduleAndExecute', order => 'email')")
    spark.catalog.refreshTable(str(steps.table))
    assert list((steps.location / ".hoodie" / "timeline").glob("*.replacecommit"))
    erase(spark, steps)


def test_the_archived_timeline(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Commits that were archived keep the statistics of files that are gone; none of them may hold a key."""
    options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    steps = make(spark, spark_estate, "archived", **options)
    for n in range(40, 46):
        spark.sql(f"INSERT INTO {steps.table} VALUES ({n}, {UID}, '{EMAIL}', {n}, 0)")
    spark.sql(
        f"CALL archive_commits(table => '{steps.table}', min_commits => 2, max_commits => 3, retain_commits => 1)"
    )
    assert list((steps.location / ".hoodie/timeline/history").glob("*.parquet"))
    erase(spark, steps)


def test_a_writer_with_concurrency_control_beside_the_delete(
    spark: SparkSession, spark_estate: SparkEstate, tmp_path: Path
) -> None:
    """Its row of the person comes in while DELETE runs, and DELETE is tried again; its row of another stays."""
    steps = make(spark, spark_estate, "occ", **OCC)
    others = bystanders(spark.table(str(steps.table)))
    late = f"INSERT INTO {steps.table} VALUES (777, {UID}, '{EMAIL}', 1, 1), (778, 1778, 'b778@x.example', 1, 1)"
    with racing(spark, steps.ctx, "uid", tmp_path / "race", lambda: spark.sql(late)) as race:
        steps.once(HUDI_DELETE_ROWS)
    assert (race.written, race.failures) == (1, [])
    spark.catalog.refreshTable(str(steps.table))
    assert bystanders(spark.table(str(steps.table))) == sorted([*others, (778, 1778, "b778@x.example", 1, 1)])
    steps.all(CLEAN, METADATA)
    assert residue(steps.location) == []


def test_a_writer_without_it_loses_nothing_unseen(
    spark: SparkSession, spark_estate: SparkEstate, tmp_path: Path
) -> None:
    """Without concurrency control one of two writers is rolled back: either is told, none is half there."""
    steps = make(spark, spark_estate, "single_writer")
    others = bystanders(spark.table(str(steps.table)))
    late = f"INSERT INTO {steps.table} VALUES (777, {UID}, '{EMAIL}', 1, 1), (778, 1778, 'b778@x.example', 1, 1)"
    told: RunError | None = None
    with racing(spark, steps.ctx, "uid", tmp_path / "race", lambda: spark.sql(late)) as race:
        try:
            steps.once(HUDI_DELETE_ROWS)
        except RunError as error:
            told = error
    assert race.written + len(race.failures) == 1
    if told:
        assert EMAIL not in str(told)
        steps.once(HUDI_DELETE_ROWS)
    spark.catalog.refreshTable(str(steps.table))
    written = [(778, 1778, "b778@x.example", 1, 1)] if race.written else []
    assert bystanders(spark.table(str(steps.table))) == sorted([*others, *written])
    steps.all(CLEAN, METADATA)
    assert residue(steps.location) == []


def test_the_timeline_goes_on_naming_a_partition(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Why the plan blocks a table that is partitioned by a key: after every step its timeline still holds the value."""
    folder = spark_estate.folder("hudi/by_person")
    spark.sql("CREATE DATABASE IF NOT EXISTS hudi_index")
    spark.sql(
        "CREATE TABLE hudi_index.by_person (id BIGINT, email STRING, amount INT, uid BIGINT) USING hudi "
        f"TBLPROPERTIES (primaryKey = 'id', preCombineField = 'amount') PARTITIONED BY (uid) LOCATION '{folder}'"
    )
    frame(spark, rows(0, 4, (3,))).createOrReplaceTempView("made_by_person")
    spark.sql("INSERT INTO hudi_index.by_person SELECT id, email, amount, uid FROM made_by_person")
    steps = Steps(context(spark_estate), "hudi", "hudi_index.by_person", folder, HUDI, BY_ANY)
    steps.all(DELETE, CLEAN, METADATA)
    assert [name for name in residue(folder) if "timeline" in name]
