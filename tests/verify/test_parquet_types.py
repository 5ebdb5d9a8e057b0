"""Parquet folders with types that Spark refuses: what pandas, DuckDB and Trino write."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.model.datasets import (
    Format,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.verify.formats.plain_files.parquet_beyond_spark import beyond_spark, rows
from pii_tracer.verify.row_checks import Verifier, compare
from tests.sparksession import SparkEstate
from tests.verify.conftest import a_copy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERS, HIS = UUID(int=7 << 100), UUID(int=8 << 100)
MATCH = Match(terms=(MatchTerm(column="sid", key_set="sid", type="extension<arrow.uuid>"),))
REFUSED: dict[str, pa.Array] = {
    "sid": pa.array([HERS.bytes, HIS.bytes], pa.uuid()),
    "at": pa.array([1, 1_700_000_000_123_456_789], pa.timestamp("ns")),
    "zoned": pa.array([1, None], pa.timestamp("ns", "UTC")),
    "time": pa.array([5, 86_399_999_999], pa.time64("us")),
    "short": pa.array([5, None], pa.time32("ms")),
    "half": pa.array([1.5, None], pa.float16()),
    "nothing": pa.nulls(2),
    "long": pa.array([Decimal(10) ** 40, None], pa.decimal256(50, 2)),
}
READ: dict[str, pa.Array] = {
    "n": pa.array([1, 2], pa.int32()),
    "u": pa.array([1, 2**64 - 1], pa.uint64()),
    "flag": pa.array([True, None]),
    "score": pa.array([0.5, float("nan")]),
    "name": pa.array(["a", "é"]).dictionary_encode(),
    "due": pa.array([Decimal("12.50"), None]),
    "day": pa.array([date(2026, 1, 2), None]),
    "raw": pa.array([b"\0x", None]),
    "plain": pa.array([1, 2], pa.timestamp("us")),
    "tags": pa.array([["x"], None], pa.list_(pa.string())),
    "who": pa.array([{"x": 1, "y": [0.5]}, None]),
    "more": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    "lasted": pa.array([5, None], pa.duration("us")),
    "view": pa.array(["a", None]).cast(pa.string_view()),
    "bytes": pa.array([b"x", None]).cast(pa.binary_view()),
    "doc": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None])),
    "bit": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())),
}


def written(path: Path, columns: dict[str, pa.Array], wanted: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    pq.write_table(table if wanted is None else table.slice(wanted, 1), path, version="2.6")
    return path


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_spark_refuses_is_known(tmp_path: Path, name: str) -> None:
    fine = written(tmp_path / "a.parquet", READ)
    assert not beyond_spark([fine])
    assert beyond_spark([fine, written(tmp_path / "b.parquet", {name: REFUSED[name]})])
    assert beyond_spark([written(tmp_path / "c.parquet", {"s": pa.StructArray.from_arrays([REFUSED[name]], ["x"])})])
    (tmp_path / "d.parquet").write_bytes(b"PAR1 is no table")
    assert not beyond_spark([tmp_path / "d.parquet"])


@pytest.mark.parametrize("other", [pa.int64(), pa.int8(), pa.float64(), pa.float32(), pa.uint32()])
def test_numbers_that_two_files_have_in_two_widths_are_beyond_spark(tmp_path: Path, other: pa.DataType) -> None:
    """pandas writes whole numbers on days in which nobody lacks one, and floating ones on the others."""
    files = [written(tmp_path / "a.parquet", READ), written(tmp_path / "b.parquet", READ)]
    assert not beyond_spark(files)
    assert beyond_spark([*files, written(tmp_path / "c.parquet", READ | {"n": READ["n"].cast(other)})])


def test_a_codec_that_spark_has_no_library_for(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet", compression="BROTLI")
    assert beyond_spark([tmp_path / "a.parquet"])


def test_rows_keep_what_tells_them_apart(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", REFUSED | READ)
    first, second = rows((str(path), ("east",), tuple(REFUSED | READ)))
    told: dict[str, Any] = dict(zip((*REFUSED, *READ), first, strict=False))
    assert told == {
        "sid": str(HERS),
        "at": "1",
        "zoned": "1",
        "time": "5",
        "short": "5",
        "half": 1.5,
        "nothing": None,
        "long": f"1{'0' * 40}.00",
        "n": 1,
        "u": "1",
        "flag": True,
        "score": 0.5,
        "name": "a",
        "due": Decimal("12.50"),
        "day": "2026-01-02",
        "raw": bytearray(b"\0x"),
        "plain": "1",
        "tags": ["x"],
        "who": (1, [0.5]),
        "more": {"k": 1},
        "lasted": "5",
        "view": "a",
        "bytes": bytearray(b"x"),
        "doc": "{}",
        "bit": 1,
    }
    assert first[-1] == second[-1] == "east"
    assert second[:3] == (str(HIS), "1700000000123456789", None)


@pytest.mark.spark
@pytest.mark.slow
def test_such_a_folder_is_counted_before_and_after(spark_estate: SparkEstate, spark: SparkSession) -> None:
    folder = spark_estate.folder("bare/refused")
    file = written(folder / "city=A" / "a.parquet", REFUSED | READ)
    written(folder / "city=B" / "b.parquet", REFUSED | READ, wanted=1)
    keys = KeySet(name="sid", origin="sid", weak=False, values=(("s", str(HERS)),))
    verifier, copy = Verifier(spark, [keys]), a_copy(Format.PARQUET, folder, match=MATCH)
    assert verifier.rows(copy).rows_left == 1
    before = verifier.baseline(copy)
    assert [(s.rows_total, s.rows_person) for s in before.states] == [(3, 1)]
    written(file, REFUSED | READ, wanted=1)
    assert verifier.rows(copy).rows_left == 0
    assert compare(before, verifier.baseline(copy)).equal
    written(file, REFUSED | READ | {"at": pa.array([1, 1_700_000_000_123_456_788], pa.timestamp("ns"))}, wanted=1)
    assert not compare(before, verifier.baseline(copy)).equal
