"""Fields of structs as Spark reads them: Hudi tables, and Delta tables whose columns and fields are mapped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from executors.engine.sql_names import string_literal
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.rows.current_rows import read_spots
from pii_tracer.model.column_paths import find_spot
from tests.lake.s3_lakehouse import estate_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SELECT = """SELECT id, IF(id = 2, NULL, named_struct('no', 100L + id, 'home', named_struct('mail', concat('m', id)))) AS who
FROM range(4)"""
KINDS = {
    "hudi": "USING hudi TBLPROPERTIES (primaryKey = 'id')",
    "delta": "USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
}


@pytest.mark.parametrize("kind", KINDS)
def test_fields_are_read_as_spark_reads_them(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS spots")
    spark.sql(f"DROP TABLE IF EXISTS spots.{kind}")
    (tmp_path / "warehouse").mkdir()
    columns = "(id bigint, who struct<no:bigint,home:struct<mail:string>>)"
    place = string_literal(str(tmp_path / "warehouse" / "t"))
    spark.sql(f"CREATE TABLE spots.{kind} {columns} {KINDS[kind]} LOCATION {place}")
    spark.sql(f"INSERT INTO spots.{kind} {SELECT}")
    estate = estate_of()
    (state,) = discover(estate, tmp_path).tables
    names = ["who.no", "who.home.mail"]
    found = read_spots(state, {n: find_spot(n, state.columns, "t") for n in names}, EstatePaths(estate, tmp_path))
    rows = spark.sql(f"SELECT {', '.join(names)} FROM spots.{kind}").collect()
    assert sorted(zip(*found.values(), strict=True), key=str) == sorted(((r[0], r[1]) for r in rows), key=str)
    assert (None, None) in zip(*found.values(), strict=True)
    spark.sql(f"DROP TABLE spots.{kind}")
