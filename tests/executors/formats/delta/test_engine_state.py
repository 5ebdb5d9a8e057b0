"""The engine's own picture of a Delta table says what its statements say, after commits of other writers, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
import pytest

from executors.formats.delta.engine_state import live_files, newest_version
from pii_tracer.model.errors import RunError
from tests.executors.world import context
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_it_is_what_the_statements_say_after_each_commit_of_another_writer(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    folder, ctx = spark_estate.folder("delta/engine_state"), context(spark_estate)
    table = f"delta.`{folder}`"
    for version in range(3):
        deltalake.write_deltalake(str(folder), pa.table({"id": [version]}), mode="append")
        assert newest_version(ctx, table, folder) == version
        assert live_files(ctx, table, folder) == version + 1
    assert spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()["version"] == 2
    assert spark.sql(f"DESCRIBE DETAIL {table}").first()["numFiles"] == 3


def test_a_folder_without_a_table_has_no_version(spark: SparkSession, spark_estate: SparkEstate) -> None:
    folder, ctx = spark_estate.folder("delta/no_table"), context(spark_estate)
    folder.mkdir()
    for ask in (newest_version, live_files):
        with pytest.raises(RunError, match="this place has no Delta table"):
            ask(ctx, f"delta.`{folder}`", folder)
