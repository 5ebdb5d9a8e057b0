from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from executors.engine.rebuild_from_query import answer
from executors.engine.spark_session import open_session
from executors.engine.table_registration import register_tables
from executors.engine.version_profiles import installed_profile
from pii_tracer.config.catalogs import Catalog, CatalogType, DeclaredTable
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import RunError
from tests.executors.world import context
from tests.sparksession import HAS_HUDI, SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRACKED = "spark.sql.hive.manageFilesourcePartitions"


@pytest.mark.spark
def test_iceberg_tables_lie_in_the_estates_warehouse(spark: SparkSession, spark_estate: SparkEstate) -> None:
    spark.sql("CREATE TABLE lake.session.t (id BIGINT) USING iceberg")
    assert (spark_estate.base / "warehouse/lake/session/t/metadata").is_dir()


@pytest.mark.spark
def test_a_process_whose_engine_runs_waits_for_no_other_that_starts(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    told = spark_estate.estate.spark.model_copy(update={"conf": {**spark_estate.estate.spark.conf, "spark.sql.x": "1"}})
    other = spark_estate.estate.model_copy(update={"spark": told})
    opening = Thread(target=open_session, args=(other, spark_estate.base), daemon=True)
    with (Path.home() / installed_profile().ivy / ".pii-tracer.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # as one that fetches jars holds it
        opening.start()
        opening.join(60)
        assert not opening.is_alive()


@pytest.mark.spark
def test_a_folder_that_spark_cannot_read_does_not_stop_the_session(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    """Avro, of which the session has no reader, and types that Spark refuses. Only who reads them by name is refused."""
    folder = spark_estate.folder("declared")
    tables = []
    for kind in (Format.PARQUET, Format.ORC, Format.CSV, Format.JSON, DELTA):
        spark.range(3).write.format(kind.value).save(str(folder / kind.value))
        tables.append(DeclaredTable(name=f"gym.{kind}", format=kind, location=str(folder / kind.value)))
    (folder / "plans").mkdir()
    with (folder / "plans" / "a.avro").open("wb") as stream:
        fastavro.writer(
            stream, {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}, [{"id": 7}]
        )
    (folder / "times").mkdir()
    pq.write_table(pa.table({"at": pa.array([1], pa.time64("ns"))}), folder / "times" / "a.parquet")
    tables.append(DeclaredTable(name="spark_catalog.gym.Plans", format=Format.AVRO, location=str(folder / "plans")))
    tables.append(DeclaredTable(name="gym.times", format=Format.PARQUET, location=str(folder / "times")))
    catalogs = {"spark_catalog": Catalog(type=CatalogType.DECLARED, tables=tuple(tables))}
    estate = spark_estate.estate.model_copy(update={"catalogs": spark_estate.estate.catalogs | catalogs})

    for _ in range(2):  # a session is asked for again and again
        register_tables(spark, estate, spark_estate.base)
    # other tests of this session leave views of their own, which belong to every database
    names = {row.tableName for row in spark.sql("SHOW TABLES IN gym").collect() if not row.isTemporary}
    assert names == {"parquet", "orc", "csv", "json", "delta"}

    ctx = context(SparkEstate(estate, spark_estate.base))
    assert answer(ctx, "INSERT INTO gym.orc SELECT id FROM gym.parquet").count() == 3
    for name in ("gym.Plans", "gym.times"):
        with pytest.raises(RunError, match=f"reads {name}, which Spark cannot read here") as told:
            answer(ctx, f"INSERT INTO gym.orc WITH a AS (SELECT * FROM {name}) SELECT * FROM a")
        assert told.value.todo


@pytest.mark.spark
@pytest.mark.parametrize("kind", [Format.PARQUET, Format.ORC, Format.CSV, Format.JSON])
def test_a_declared_folder_of_partitions_has_the_rows_of_the_partitions_that_are_there(
    spark: SparkSession, spark_estate: SparkEstate, kind: Format
) -> None:
    """Spark's catalog would know of no partition; while a run goes on, they come and go."""
    folder = spark_estate.folder(f"declared/parts_{kind}")
    frame = spark.range(9).selectExpr("id", "CAST(id % 3 AS INT) AS side")
    frame.write.partitionBy("side").format(kind.value).save(str(folder))
    name = f"halls.parts_{kind}"
    tables = (DeclaredTable(name=name, format=kind, location=str(folder)),)
    catalogs = {"spark_catalog": Catalog(type=CatalogType.DECLARED, tables=tables)}
    estate = spark_estate.estate.model_copy(update={"catalogs": spark_estate.estate.catalogs | catalogs})
    spark.conf.set(TRACKED, "true")
    register_tables(spark, estate, spark_estate.base)
    assert spark.conf.get(TRACKED) == "true", "tables that jobs make in this session are tracked as they were"

    ctx = context(SparkEstate(estate, spark_estate.base))
    per_side = f"INSERT INTO gym.x SELECT side, count(*) AS n FROM {name} GROUP BY side"

    def sides() -> dict[int, int]:
        return {row.side: row.n for row in answer(ctx, per_side).collect()}

    assert sides() == {0: 3, 1: 3, 2: 3}
    shutil.copytree(folder / "side=1", folder / "side=7")
    shutil.rmtree(folder / "side=0")
    assert sides() == {1: 3, 2: 3, 7: 3}
    assert answer(ctx, f"INSERT INTO gym.x SELECT * FROM {name} WHERE side = 0").count() == 0


@pytest.mark.spark
def test_a_session_is_told_once_of_the_same_tables(
    spark: SparkSession, spark_estate: SparkEstate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step asks for it several times, and an estate has thousands of names; a table that comes later is told."""
    tables = []
    for name in ("first", "later"):
        tables.append(
            DeclaredTable(name=f"gym.{name}", format=DELTA, location=str(spark_estate.folder(f"told/{name}")))
        )
    catalogs = {"spark_catalog": Catalog(type=CatalogType.DECLARED, tables=tuple(tables))}
    estate = spark_estate.estate.model_copy(update={"catalogs": spark_estate.estate.catalogs | catalogs})
    spark.range(1).write.format("delta").save(tables[0].location)
    ctx = context(SparkEstate(estate, spark_estate.base))
    assert ctx.spark.table("gym.first").count() == 1
    with monkeypatch.context() as patched:
        patched.setattr(type(spark), "sql", lambda *words: pytest.fail("Spark is asked again"))
        assert ctx.spark is not None
    spark.range(2).write.format("delta").save(tables[1].location)
    assert ctx.spark.table("gym.later").count() == 2


@pytest.mark.spark
@pytest.mark.skipif(HAS_HUDI, reason="this Spark has a bundle of Hudi")
def test_a_table_of_a_format_without_a_bundle_does_not_stop_the_session(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    folder = spark_estate.folder("declared/hudi")
    (folder / ".hoodie").mkdir(parents=True)
    tables = (DeclaredTable(name="gym.boats", format=HUDI, location=str(folder)),)
    catalogs = {"spark_catalog": Catalog(type=CatalogType.DECLARED, tables=tables)}
    estate = spark_estate.estate.model_copy(update={"catalogs": spark_estate.estate.catalogs | catalogs})
    register_tables(spark, estate, spark_estate.base)
    with pytest.raises(RunError, match=r"reads gym\.boats, which Spark cannot read here"):
        answer(context(SparkEstate(estate, spark_estate.base)), "INSERT INTO gym.orc SELECT id FROM gym.boats")


@pytest.mark.spark
def test_a_table_that_cannot_be_registered_is_named(spark: SparkSession, spark_estate: SparkEstate) -> None:
    folder = spark_estate.folder("declared/broken")
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "_delta_log" / f"{0:020}.json").write_text("no log\n")
    tables = (DeclaredTable(name="gym.broken", format=DELTA, location=str(folder)),)
    catalogs = {"spark_catalog": Catalog(type=CatalogType.DECLARED, tables=tables)}
    with pytest.raises(RunError, match=r"delta table gym\.broken"):
        register_tables(spark, spark_estate.estate.model_copy(update={"catalogs": catalogs}), spark_estate.base)


@pytest.mark.spark
@pytest.mark.parametrize("kind", [Format.PARQUET, DELTA])
def test_a_name_by_which_spark_knows_another_table_is_refused(
    spark: SparkSession, spark_estate: SparkEstate, kind: Format
) -> None:
    """The steps would erase from the other one: catalogs of servers are shared."""
    theirs, ours = spark_estate.folder(f"taken/{kind}_theirs"), spark_estate.folder(f"taken/{kind}_ours")
    for folder in (theirs, ours):
        spark.range(1).write.format(kind.value).save(str(folder))
    spark.sql("CREATE DATABASE IF NOT EXISTS taken")
    spark.sql(f"CREATE TABLE taken.{kind} USING {kind} LOCATION '{theirs}'")
    tables = (DeclaredTable(name=f"taken.{kind}", format=kind, location=str(ours)),)
    catalogs = {"spark_catalog": Catalog(type=CatalogType.DECLARED, tables=tables)}
    with pytest.raises(RunError, match=f"a different table with the name taken.{kind}"):
        register_tables(spark, spark_estate.estate.model_copy(update={"catalogs": catalogs}), spark_estate.base)
