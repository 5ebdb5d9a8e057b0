"""Builds one small lakehouse with real tables of every format and variant that discovery must recognise."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from executors.engine.sql_names import string_literal
from pii_tracer.config.catalogs import Catalog, CatalogType, DeclaredTable
from pii_tracer.config.estate_file import Estate, Relocation, Spark
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from tests.sparksession import HAS_HUDI

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HUDI_TABLES = ("hudi/trips", "hudi/rides") if HAS_HUDI else ()
ROWS = [(i, f"name {i}", f"98{i:08d}") for i in range(1, 21)]


@dataclass(frozen=True)
class Lake:
    """The lakehouse's estate, the folder of its estate file."""

    estate: Estate
    base: Path

    @property
    def warehouse(self) -> Path:
        return self.base / "warehouse"


def estate_of(conf: dict[str, str] | None = None) -> Estate:
    """The estate file's content: an Iceberg catalog, declared tables, a relocation, a development root."""
    declared = (
        DeclaredTable(name="prod.wallets", format=DELTA, location="warehouse/delta/wallets"),
        *(DeclaredTable(name="prod.trips", format=HUDI, location=f"warehouse/{p}") for p in HUDI_TABLES[:1]),
        DeclaredTable(name="prod.gone", format=DELTA, location="warehouse/delta/gone"),
    )
    return Estate(
        version=1,
        estate="discovery",
        environment="local",
        spark=Spark(conf=conf or {}),
        catalogs={
            "lake": Catalog(type=CatalogType.ICEBERG_HADOOP, warehouse="warehouse/lake"),
            "session": Catalog(type=CatalogType.DECLARED, tables=declared),
        },
        roots=("warehouse",),
        dev_roots=("warehouse/dev",),
        relocations=(Relocation.model_validate({"from": "/lakehouse/warehouse", "to": "warehouse"}),),
        lineage=LineageSources(),
        subjects=(Subject(name="customer", source="lake.prod.payments", key="uid"),),
    )


def build(spark: SparkSession, base: Path) -> Lake:
    """Write every table below `base`."""
    lake = Lake(estate_of(), base)
    catalog = "discovery_lake"
    spark.conf.set(f"spark.sql.catalog.{catalog}", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"spark.sql.catalog.{catalog}.type", "hadoop")
    spark.conf.set(f"spark.sql.catalog.{catalog}.warehouse", str(lake.warehouse / "lake"))
    spark.conf.set(f"spark.sql.catalog.{catalog}.cache-enabled", "false")
    rows = frame_of_rows(spark, ROWS, "uid bigint, name string, phone string").coalesce(1)
    rows.createOrReplaceTempView("discovery_rows")
    _iceberg(spark, catalog)
    _delta(spark, lake.warehouse)
    if HUDI_TABLES:
        _hudi(spark, lake.warehouse)
    _folders(spark, lake.warehouse)
    return lake


def _iceberg(spark: SparkSession, catalog: str) -> None:
    payments, riders = f"{catalog}.prod.payments", f"{catalog}.prod.riders"
    spark.sql(
        f"CREATE TABLE {payments} (uid bigint, name string, amount decimal(12,2), day date,"
        " rider struct<id:bigint,phone:string>, tags array<string>, extra map<string,int>, at timestamp)"
        " USING iceberg PARTITIONED BY (day) TBLPROPERTIES ('format-version'='2')"
    )
    for day in ("2026-01-01", "2026-01-02"):
        spark.sql(
            f"INSERT INTO {payments} SELECT uid, name, CAST(uid AS decimal(12,2)), DATE '{day}',"
            " named_struct('id', uid, 'phone', phone), array(name), map('a', 1), TIMESTAMP '2026-01-01 00:00:00'"
            " FROM discovery_rows"
        )
    spark.sql(
        f"CREATE TABLE {riders} USING iceberg TBLPROPERTIES ('format-version'='2',"
        " 'write.delete.mode'='merge-on-read') AS SELECT * FROM discovery_rows"
    )
    spark.sql(f"ALTER TABLE {riders} CREATE TAG quarter")
    spark.sql(f"ALTER TABLE {riders} CREATE BRANCH audit")
    spark.sql(f"DELETE FROM {riders} WHERE uid = 7")
    vectors = f"{catalog}.prod.vectors"
    spark.sql(
        f"CREATE TABLE {vectors} USING iceberg TBLPROPERTIES ('format-version'='3',"
        " 'write.delete.mode'='merge-on-read') AS SELECT * FROM discovery_rows"
    )
    spark.sql(f"DELETE FROM {vectors} WHERE uid = 7")


def _delta(spark: SparkSession, warehouse: Path) -> None:
    wallets, feed, clone = (
        f"delta.`{warehouse / 'delta' / 'wallets'}`",
        f"delta.`{warehouse / 'delta' / 'feed'}`",
        f"delta.`{warehouse / 'dev' / 'wallets clone'}`",
    )
    spark.sql(
        f"CREATE TABLE {wallets} (uid bigint, name string, phone string, profile struct<id:bigint,tags:array<string>>)"
        " USING delta TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
    )
    spark.sql(f"INSERT INTO {wallets} SELECT *, named_struct('id', uid, 'tags', array(name)) FROM discovery_rows")
    spark.sql(f"DELETE FROM {wallets} WHERE uid = 7")
    spark.sql(
        f"CREATE TABLE {feed} (uid bigint, name string, phone string, day date) USING delta PARTITIONED BY (day)"
        " TBLPROPERTIES ('delta.enableChangeDataFeed'='true', 'delta.columnMapping.mode'='name',"
        " 'delta.checkpointInterval'='2', 'delta.enableDeletionVectors'='false')"
    )
    for day in ("2026-01-01", "2026-01-02"):
        spark.sql(f"INSERT INTO {feed} SELECT *, DATE '{day}' FROM discovery_rows")
    spark.sql(f"DELETE FROM {feed} WHERE uid = 7")
    spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {wallets}")
    _checkpoints(spark, warehouse)


def _checkpoints(spark: SparkSession, warehouse: Path) -> None:
    """Tables whose checkpoint is one of version 2 with sidecars, and one of several parts."""
    parts = "spark.databricks.delta.checkpoint.partSize"
    for name, properties, part_size in (
        ("sidecars", ", 'delta.checkpointPolicy'='v2'", None),
        ("parts", "", "1"),
    ):
        table = f"delta.`{warehouse / 'delta' / name}`"
        spark.sql(
            f"CREATE TABLE {table} (uid bigint, name string) USING delta PARTITIONED BY (name)"
            f" TBLPROPERTIES ('delta.checkpointInterval'='2', 'delta.enableDeletionVectors'='false'{properties})"
        )
        if part_size:
            spark.conf.set(parts, part_size)
        for first, last in ((1, 2), (3, 4), (5, 5)):
            spark.sql(f"INSERT INTO {table} SELECT uid, name FROM discovery_rows WHERE uid BETWEEN {first} AND {last}")
        spark.conf.unset(parts)


def _hudi(spark: SparkSession, warehouse: Path) -> None:
    (warehouse / "hudi").mkdir(parents=True, exist_ok=True)
    spark.sql("CREATE DATABASE IF NOT EXISTS discovery")
    for name, kind in (("trips", "cow"), ("rides", "mor")):
        spark.sql(f"DROP TABLE IF EXISTS discovery.{name}")
        location = string_literal(str(warehouse / "hudi" / name))
        spark.sql(
            f"CREATE TABLE discovery.{name} (uid bigint, name string, phone string, ts bigint) USING hudi"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'uid', preCombineField = 'ts') LOCATION {location}"
        )
        spark.sql(f"INSERT INTO discovery.{name} SELECT uid, name, phone, uid AS ts FROM discovery_rows")
        spark.sql(f"DELETE FROM discovery.{name} WHERE uid = 7")
    instant = spark.sql("CALL show_commits(table => 'discovery.trips')").collect()[-1]["commit_time"]
    spark.sql(f"CALL create_savepoint(table => 'discovery.trips', commit_time => '{instant}')")


def _folders(spark: SparkSession, warehouse: Path) -> None:
    export = warehouse / "exports" / "daily"
    spark.sql("SELECT *, DATE '2026-01-01' AS day FROM discovery_rows").write.partitionBy("day").parquet(str(export))
    shutil.copytree(export, warehouse / "dev" / "daily copy")
    csv = warehouse / "exports" / 'Kunden\'s "listé"'
    csv.mkdir(parents=True)
    lines = ["uid,name,phone", *(f"{uid},{name},{phone}" for uid, name, phone in ROWS)]
    with gzip.GzipFile(csv / "part-0.csv.gz", "wb", mtime=0) as stream:
        stream.write("\n".join(lines).encode() + b"\n")
    broken = warehouse / "delta" / "broken" / "_delta_log"
    broken.mkdir(parents=True)
    (broken / "00000000000000000000.json").write_text("{not json", encoding="utf-8")
