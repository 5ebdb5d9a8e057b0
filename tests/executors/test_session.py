from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_iceberg_tables_lie_in_the_estates_warehouse(spark: SparkSession, spark_estate: SparkEstate) -> None:
    spark.sql("CREATE TABLE lake.session.t (id BIGINT) USING iceberg")
    assert (spark_estate.base / "warehouse/lake/session/t/metadata").is_dir()
