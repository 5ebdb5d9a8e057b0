"""Hazards of Hudi one by one, as in test_hazards_alone.py."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from executors.registry import build
from pii_tracer.app.planning.unmatched_rows.shared_row_keys import refuse_shared_keys
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.model.errors import EstateError, RunError
from tests.executors.formats.hudi.test_hudi import (
    CLEAN,
    COMPACT,
    DELETE,
    SAVEPOINTS,
)
from tests.executors.world import EMAIL, UID, Steps, bystanders, context, frame, residue, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def make(spark: SparkSession, world: SparkEstate, name: str, kind: str = "cow", **options: str) -> Steps:
    """One commit with the person among others. Without a metadata table: that is a hazard of its own."""
    folder, table = world.folder(f"hudi/{name}"), f"hudi_alone.{name}"
    told = {"type": kind, "primaryKey": "id", "preCombineField": "amount", "hoodie.metadata.enable": "false"} | options
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in told.items())
    spark.sql("CREATE DATABASE IF NOT EXISTS hudi_alone")
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, uid BIGINT, email STRING, amount INT) USING hudi"
        f" TBLPROPERTIES ({listed}) LOCATION '{folder}'"
    )
    frame(spark, rows(0, 10, (3,))).createOrReplaceTempView(f"made_{name}")
    spark.sql(f"INSERT INTO {table} SELECT * FROM made_{name}")
    return Steps(context(world), "hudi", table, folder, HUDI)


def data(steps: Steps) -> list[str]:
    """Files of rows in which the person is."""
    return [name for name in residue(Path(steps.location)) if not name.startswith(".hoodie")]


def cleaned(spark: SparkSession, steps: Steps) -> None:
    """As the step cleans, and whatever else the table has: the engine's own call."""
    told = "clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1, trigger_max_commits => 0"
    spark.sql(f"CALL run_clean(table => '{steps.table}', {told})")


def test_h1_and_h3_older_slices_and_a_savepoint_that_keeps_them(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "h1_h3")
    others = bystanders(spark.table(str(steps.table)))
    instant = spark.sql(f"CALL show_commits(table => '{steps.table}', limit => 1)").first()[0]  # type: ignore[index]
    steps.once(*DELETE[:1])
    spark.sql(f"CALL run_clean(table => '{steps.table}')")
    old = data(steps)
    assert len(old) == 1, "an older slice: nothing keeps it, and the default keeps ten commits"
    spark.sql(f"CALL create_savepoint(table => '{steps.table}', commit_time => '{instant}')")
    cleaned(spark, steps)
    assert data(steps) == old, "the savepoint's"
    step = steps.step(*CLEAN[:1])
    assert build(steps.ctx)["hudi"].verify(step, steps.copy).findings == ("the table still has 1 older file slices",)
    steps.once(*SAVEPOINTS[:1])
    assert data(steps) == old, "without its savepoint the slice is still there"
    steps.once(*CLEAN[:1])
    assert data(steps) == []
    assert bystanders(spark.table(str(steps.table))) == others


def test_h2_log_blocks(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "h2", "mor")
    spark.sql(f"UPDATE {steps.table} SET amount = 500 WHERE id = 3")
    others = bystanders(spark.table(str(steps.table)))
    steps.once(*DELETE[:1])
    assert spark.sql(f"CALL run_compaction(op => 'scheduleAndExecute', table => '{steps.table}')").count() == 0
    cleaned(spark, steps)
    assert [name for name in data(steps) if ".log." in name], "compaction waits for five commits, and cleaning for it"
    steps.once(*COMPACT[:1])
    assert [name for name in data(steps) if ".log." in name], "compacted, the log of before lies beside it"
    steps.once(*CLEAN[:1])
    assert data(steps) == []
    assert bystanders(spark.table(str(steps.table))) == others


INSERT = {"hoodie.spark.sql.insert.into.operation": "insert"}
"""It does not look for keys that are there already."""


def owned(spark: SparkSession, steps: Steps, where: str) -> int:
    spark.catalog.refreshTable(str(steps.table))
    return spark.table(str(steps.table)).where(where).count()


@pytest.mark.parametrize("kind", [pytest.param("cow", marks=pytest.mark.nightly), "mor"])
def test_h6_rows_of_one_record_key(spark: SparkSession, spark_estate: SparkEstate, kind: str) -> None:
    """A DELETE takes one row of each key; in a log of merge-on-read the next ones may take none."""
    steps = make(spark, spark_estate, f"h6_{kind}", kind, **INSERT)
    for amount in (70, 80, 90):
        spark.sql(f"INSERT INTO {steps.table} VALUES (3, {UID}, '{EMAIL}', {amount})")
    others, mine = bystanders(spark.table(str(steps.table))), f"uid = {UID}"
    assert owned(spark, steps, mine) == 4
    spark.sql(f"DELETE FROM {steps.table} WHERE {mine}")
    assert owned(spark, steps, mine) == 3
    facts = steps.once(*DELETE[:1])
    assert (facts["rows_deleted"], facts["statements"] > 1) == (3, True)
    assert owned(spark, steps, mine) == 0
    for action, parameters in (COMPACT, CLEAN) if kind == "mor" else (CLEAN,):
        steps.once(action, **parameters)
    assert data(steps) == []
    assert bystanders(spark.table(str(steps.table))) == others


def planned_alone(steps: Steps, world: SparkEstate, *, kept: bool = False) -> None:
    """What planning looks at before anybody approves the step."""
    estate = world.estate.model_copy(update={"roots": (str(steps.location),)})
    states = {state.location: state for state in discover(estate, world.base).tables}
    assert steps.copy.match is not None
    keys = {term.key_set: steps.ctx.keyring.key_set(term.key_set) for term in steps.copy.match.terms}
    paths = EstatePaths(estate, world.base)
    refuse_shared_keys(states[str(steps.location)], steps.copy.match, keys, paths, kept=kept)


def test_h6_a_record_key_that_others_have_too(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Of two rows of one key in a file the first goes, whatever the condition says."""
    both = f"VALUES (60, 5555, 'someone.else@example.net', 1), (60, {UID}, '{EMAIL}', 2)"
    naive = make(spark, spark_estate, "h6_naive", **INSERT)
    spark.sql(f"INSERT INTO {naive.table} {both}")
    spark.sql(f"DELETE FROM {naive.table} WHERE uid = {UID}")
    assert (owned(spark, naive, "uid = 5555"), owned(spark, naive, f"uid = {UID}")) == (0, 1)

    steps = make(spark, spark_estate, "h6_shared", **INSERT)
    spark.sql(f"INSERT INTO {steps.table} {both}")
    with pytest.raises(RunError, match="1 record key of the person is also in other people's rows"):
        steps.once(*DELETE[:1])
    with pytest.raises(EstateError, match="1 record key of the person is in other people's rows"):
        planned_alone(steps, spark_estate)
    with pytest.raises(EstateError, match="in several rows: an update would leave one of each"):
        planned_alone(steps, spark_estate, kept=True)
    planned_alone(naive, spark_estate)
    assert (owned(spark, steps, "uid = 5555"), owned(spark, steps, f"uid = {UID}")) == (1, 2)


def test_h8_file_groups_that_were_replaced(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "h8")
    (replaced,) = data(steps)
    spark.sql(f"CALL run_clustering(table => '{steps.table}', op => 'scheduleAndExecute', order => 'email')")
    spark.catalog.refreshTable(str(steps.table))
    others = bystanders(spark.table(str(steps.table)))
    steps.once(*DELETE[:1])
    spark.sql(f"CALL run_clean(table => '{steps.table}')")
    assert replaced in data(steps)
    steps.once(*CLEAN[:1])
    assert data(steps) == []
    assert bystanders(spark.table(str(steps.table))) == others
