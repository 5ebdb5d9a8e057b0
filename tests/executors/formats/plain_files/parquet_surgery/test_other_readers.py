"""What is put together of row groups is read by DuckDB and by Spark as the whole rewrite is, filters by indexes too."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from executors.formats.plain_files import parquet_rewrite
from executors.formats.plain_files.parquet_surgery.recipe import Recipe
from pii_tracer.model.datasets import Format, Match, MatchTerm
from tests.executors.formats.plain_files.alone import drop_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = Path(__file__).parent / "data" / "spark-3.5.parquet"
MATCH = Match(terms=(MatchTerm(column="uid", key_set="uid", type="bigint"),))
KEYS = {"uid": frozenset({"5", "800", "801"})}
KEPT, GONE = "p2000@example.in", "p800@example.in"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The same rows by surgery, and by a whole rewrite."""
    data = SPARK.read_bytes()
    kept = drop_rows(data, Format.PARQUET, MATCH, KEYS, frozenset())
    assert isinstance(kept.made, Recipe)
    assert kept.made.made == (0, 1)
    assert kept.data is not None
    surgery, whole = tmp_path / "surgery.parquet", tmp_path / "whole.parquet"
    surgery.write_bytes(kept.data)
    with whole.open("w+b") as sink:
        parquet_rewrite.write(lambda **options: pq.ParquetFile(io.BytesIO(data), **options), sink, MATCH, KEYS)
    return surgery, whole


def test_duckdb(files: tuple[Path, Path]) -> None:
    duckdb: Any = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    surgery, whole = (duckdb.sql(f"SELECT mail, CAST(t AS VARCHAR) FROM '{path}' t").fetchall() for path in files)
    assert surgery == whole
    assert len(surgery) == 2997
    for mail, count in ((KEPT, 1), (GONE, 0)):
        assert len(duckdb.sql(f"SELECT uid FROM '{files[0]}' WHERE mail = '{mail}'").fetchall()) == count


@pytest.mark.spark
def test_spark(files: tuple[Path, Path], spark: SparkSession) -> None:
    """By page indexes and bloom filters Spark passes over what they leave out: the moved ones must be the right ones."""
    surgery, whole = (spark.read.parquet(str(path)) for path in files)
    rows = [str(row) for row in surgery.orderBy("uid").collect()]
    assert rows == [str(row) for row in whole.orderBy("uid").collect()]
    assert len(rows) == 2997
    assert [surgery.where(f"mail = '{mail}'").count() for mail in (KEPT, GONE)] == [1, 0]
    assert surgery.where("uid BETWEEN 735 AND 760 AND score > 0").count() == 26
