"""Bare folders whose names Hadoop would take for a pattern are read as they are called."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pii_tracer.model.datasets import Format
from pii_tracer.model.locations import read_path
from pii_tracer.model.plan import Copy
from pii_tracer.verify.formats.plain_files.folder_reader import FolderReader


@pytest.mark.parametrize("name", ["a[1]{b,c}", "a*b?c", "back\\slash", "a b,c%20d"])
def test_a_name_is_no_pattern(spark: SparkSession, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    for day in ("1", "2"):
        (folder / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"n": [1]}), folder / f"day={day}" / "a.parquet")
    copy = Copy.model_construct(location=str(folder), format=Format.PARQUET, facts={})
    (state,) = FolderReader().states(spark, copy)
    assert sorted((row["n"], row["day"]) for row in state.load().collect()) == [(1, 1), (1, 2)]


def test_only_what_is_a_pattern_is_escaped() -> None:
    assert read_path("/lake/a b,c%20d=1") == "/lake/a b,c%20d=1"
    assert read_path("s3://lake/a[1]") == "s3a://lake/a\\[1\\]"
