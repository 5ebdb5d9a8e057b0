"""A data file of a table that became corrupt: the step fails and names it, nobody loses a row, mended it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from executors.engine.spark_session import open_session
from executors.registry import build
from pii_tracer.model.errors import RunError
from tests.executors.test_readers import made, read
from tests.executors.world import EMAIL, UID, residue
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PASSING_OVER = {"spark.sql.files.ignoreCorruptFiles": "true", "spark.sql.files.ignoreMissingFiles": "true"}


@pytest.mark.parametrize("kind", ["delta", "iceberg", pytest.param("hudi", marks=pytest.mark.slow)])
def test_a_corrupt_data_file_stops_the_step_whatever_spark_is_told_to_pass_over(
    spark: SparkSession, spark_estate: SparkEstate, kind: str
) -> None:
    """With these settings Spark reads a broken file as far as it can, and a statement writes just that again."""
    steps, (delete, *more), files = made(spark, spark_estate, kind, "corrupt")
    others = sorted(tuple(row) for row in read(spark, steps).where(f"uid != {UID}").collect())
    settings = spark_estate.estate.spark
    lax = settings.model_copy(update={"conf": {**settings.conf, **PASSING_OVER}})
    open_session(spark_estate.estate.model_copy(update={"spark": lax}), spark_estate.base)
    broken = next(path for path in data_files(steps.location) if UID in pq.read_table(path)["uid"].to_pylist())
    whole = broken.read_bytes()
    broken.write_bytes(whole[:4] + bytes(200) + whole[204:])
    before = {path: path.read_bytes() for path in data_files(steps.location)}
    spark.catalog.clearCache()
    step = steps.step(delete[0], **delete[1])
    with pytest.raises(RunError, match="the engine failed") as caught:
        build(steps.ctx)[steps.executor].run(step, steps.copy)
    assert caught.value.where == broken.name
    assert EMAIL not in str(caught.value)
    assert {path: path.read_bytes() for path in before} == before
    broken.write_bytes(whole)
    steps.all(delete, *more, *files)
    spark.catalog.clearCache()
    assert residue(steps.location) == []
    assert sorted(tuple(row) for row in read(spark, steps).collect()) == others


def data_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*.parquet")) if not {"_delta_log", ".hoodie"} & set(path.parts)]
