"""The references of an Iceberg table by the engine's own interface are those of its metadata table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from executors.formats.iceberg.reference_reading import Reference, references
from tests.executors.world import context
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_they_are_those_of_the_metadata_table(spark: SparkSession, spark_estate: SparkEstate) -> None:
    table, ctx = "lake.iceberg.references", context(spark_estate)
    spark.sql(f"CREATE TABLE {table} (id INT) USING iceberg")
    assert references(ctx, table) == {}
    spark.sql(f"INSERT INTO {table} VALUES (1)")
    spark.sql(f"ALTER TABLE {table} CREATE TAG v1 RETAIN 90 DAYS")
    spark.sql(f"ALTER TABLE {table} CREATE BRANCH dev")
    spark.sql(f"INSERT INTO {table} VALUES (2)")
    rows = spark.sql(f"SELECT name, type, snapshot_id, max_reference_age_in_ms FROM {table}.refs").collect()
    found = references(ctx, table)
    assert found == {row[0]: Reference(row[1], row[2], row[3]) for row in rows}
    assert {name: (one.kind, one.keep_ms) for name, one in found.items()} == {
        "main": ("BRANCH", None),
        "dev": ("BRANCH", None),
        "v1": ("TAG", 90 * 86_400_000),
    }
    assert found["main"].snapshot != found["v1"].snapshot == found["dev"].snapshot
