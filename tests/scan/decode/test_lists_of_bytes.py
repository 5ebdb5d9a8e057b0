"""Bytes that a column keeps as lists of numbers, as Spark reads a `Buffer` of JSON: they are searched as bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.support import avro, scan

MAIL = "asha@x.example"
PATTERNS = build_patterns([KeySet(name="c.mail", origin="mail", weak=False, values=(("s", MAIL),))])
HERS = list(MAIL.encode())
SIGNED = [n - 256 if n > 127 else n for n in "Zoë ".encode() + MAIL.encode()]


def hits(base: Path, column: Any, kind: str = "parquet") -> list[tuple[str, str | None]]:
    file = base / f"a.{kind}"
    (pq if kind == "parquet" else orc).write_table(pa.table({"m": column}), file)
    return [(h.where, h.column) for f in scan_tree(base, PATTERNS).files for h in f.hits]


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.list_(n) for n in (pa.uint8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64())),
        pa.large_list(pa.int32()),
        pa.large_list(pa.uint8()),
        pa.list_(pa.int64(), len(HERS)),
        pa.list_(pa.uint8(), len(HERS)),
    ],
    ids=str,
)
def test_numbers_of_any_width(tmp_path: Path, kind: pa.DataType) -> None:
    assert ("data", "m") in hits(tmp_path, pa.array([HERS], kind))


def test_among_other_lists(tmp_path: Path) -> None:
    """Empty ones, nulls, lists with a null and lists of larger numbers stand around it."""
    column = pa.array([None, [], [1, None], [70_000, 97], HERS, [5], None], pa.list_(pa.int64()))
    assert ("data", "m") in hits(tmp_path, column)
    assert ("data", "m") in hits(tmp_path, column.slice(3, 3))
    assert hits(tmp_path, column.slice(0, 4)) == []


@pytest.mark.parametrize("kind", ["int", "long"])
def test_in_avro(kind: str) -> None:
    """Also with signs and inside another list; somebody else's bytes are no hit."""
    items = {"type": "array", "items": {"type": "array", "items": kind}}
    schema = {"type": "record", "name": "r", "fields": [{"name": "m", "type": items}]}
    for numbers, found in ((HERS, True), (SIGNED, True), ([*HERS[:-1], 102], False), ([300, *HERS], False)):
        file = avro(schema, [{"m": [[1], numbers]}], codec="deflate")
        assert bool(scan("a.avro", file, PATTERNS).hits) is found


def test_inside_of_structs_and_with_signs(tmp_path: Path) -> None:
    column = pa.array([{"x": [[5], SIGNED]}], pa.struct([("x", pa.list_(pa.list_(pa.int32())))]))
    assert ("data", "m.x") in hits(tmp_path, column)
    assert ("data", "m") in hits(tmp_path, pa.array([HERS], pa.list_(pa.int64())), "orc")


def test_lists_next_to_each_other_are_not_one_text(tmp_path: Path) -> None:
    assert hits(tmp_path, pa.array([HERS[:7], HERS[7:]], pa.list_(pa.int64()))) == []
