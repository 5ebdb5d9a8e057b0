"""Hudi: what the naive way leaves, and that the sequence leaves nothing and loses nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_tracer.lake.formats.hudi.vocabulary import (
    HUDI,
    HUDI_CLEAN,
    HUDI_COMPACT,
    HUDI_DELETE_ROWS,
    HUDI_DELETE_SAVEPOINTS,
    HUDI_REBUILD,
    HUDI_REBUILD_METADATA,
)
from pii_tracer.run.executor_protocol import Progress
from tests.executors.world import BY_ANY, UID, Steps, bystanders, context, frame, residue, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SAVEPOINTS = (HUDI_DELETE_SAVEPOINTS, {})
DELETE = (HUDI_DELETE_ROWS, {})
COMPACT = (HUDI_COMPACT, {})
CLEAN = (HUDI_CLEAN, {})
METADATA = (HUDI_REBUILD_METADATA, {})


def make(spark: SparkSession, world: SparkEstate, name: str, kind: str) -> Steps:
    """Two commits, the person in both; the second updates one of the person's rows; then a savepoint."""
    folder = world.folder(f"hudi/{kind}_{name}")
    table = f"hudi_{kind}.{name}"
    spark.sql(f"CREATE DATABASE IF NOT EXISTS hudi_{kind}")
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, uid BIGINT, email STRING, amount INT) USING hudi "
        f"TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'amount', "
        f"'hoodie.metadata.index.column.stats.enable' = 'true') LOCATION '{folder}'"
    )
    for number, made in enumerate((rows(0, 20, (3, 4)), rows(20, 10, (23,)))):
        frame(spark, made).createOrReplaceTempView(f"made_{number}")
        spark.sql(f"INSERT INTO {table} SELECT * FROM made_{number}")
    spark.sql(f"UPDATE {table} SET amount = 100 WHERE id IN (3, 5)")
    instant = spark.sql(f"CALL show_commits(table => '{table}', limit => 1)").first()[0]
    spark.sql(f"CALL create_savepoint(table => '{table}', commit_time => '{instant}')")
    return Steps(context(world), "hudi", table, folder, HUDI, BY_ANY)


@pytest.mark.parametrize("kind", [pytest.param("cow", marks=pytest.mark.nightly), "mor"])
def test_variants(spark: SparkSession, spark_estate: SparkEstate, kind: str) -> None:
    steps = make(spark, spark_estate, "t", kind)
    others = bystanders(spark.table(steps.table))
    steps.all(DELETE)
    spark.sql(f"CALL run_clean(table => '{steps.table}')")
    assert [f for f in residue(steps.location) if ".hoodie" not in f], "deleting and cleaning alone leaves old slices"
    for action, parameters in (SAVEPOINTS, CLEAN):
        assert steps.probe(action, **parameters) is not Progress.DONE
    compact = (COMPACT,) if kind == "mor" else ()
    facts = steps.all(SAVEPOINTS, *compact, CLEAN)
    assert facts[HUDI_DELETE_SAVEPOINTS]["savepoints_deleted"] == 1
    left = residue(steps.location)
    assert left
    assert all(f.startswith(".hoodie/metadata") for f in left), left
    steps.all(METADATA)
    assert residue(steps.location) == []
    assert bystanders(spark.table(steps.table)) == others
    assert spark.table(steps.table).count() == len(others) == 27
    steps.all(SAVEPOINTS, DELETE, *compact, CLEAN, METADATA, repeat=True)
    assert bystanders(spark.table(steps.table)) == others
    spark.sql(f"INSERT INTO {steps.table} VALUES (900, 1900, 'new@example.net', 1)")
    assert spark.table(steps.table).count() == 28
    assert spark.table(steps.table).where(f"uid = {UID}").count() == 0
    assert residue(steps.location) == []


@pytest.mark.nightly
def test_rebuild_from_the_recorded_statement(spark: SparkSession, spark_estate: SparkEstate) -> None:
    source = make(spark, spark_estate, "source", "cow")
    folder = spark_estate.folder("hudi/totals")
    spark.sql(
        "CREATE TABLE hudi_cow.totals (slot INT, best STRING, top INT) USING hudi "
        f"TBLPROPERTIES (type = 'cow', primaryKey = 'slot', preCombineField = 'top') LOCATION '{folder}'"
    )
    query = f"SELECT amount % 5 AS slot, max(email) AS best, max(amount) AS top FROM {source.table} GROUP BY amount % 5"
    spark.sql(f"INSERT INTO hudi_cow.totals {query}")
    spark.sql(f"INSERT INTO hudi_cow.totals SELECT 77, max(email), 1 FROM {source.table} WHERE uid = {UID}")
    totals = Steps(context(spark_estate), "hudi", "hudi_cow.totals", folder, HUDI, None)
    source.all(DELETE)
    assert totals.probe(HUDI_REBUILD, sql=query) is not Progress.DONE
    facts = totals.once(HUDI_REBUILD, sql=query)
    assert (facts["rows_before"], facts["rows_after"]) == (6, 5)
    totals.all(CLEAN, METADATA)
    assert residue(folder) == []
    assert spark.table("hudi_cow.totals").count() == 5
