"""The order of a bare folder's columns is told by its files, or by nobody: never by which file comes first."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.lake.formats.plain_files.insert_column_order import table_order
from tests.lake.formats.test_folders import (
    look,
    only,
    warehouse,
    write,
)

__all__ = ["warehouse"]

ORDERS = st.lists(st.permutations("abc").flatmap(lambda p: st.integers(1, 3).map(lambda n: tuple(p[:n]))), max_size=4)


def nobody(number: int) -> bool:
    return False


@given(ORDERS, st.sets(st.integers(0, 3)))
def test_an_order_that_is_told_has_every_column_and_contradicts_no_file_that_counts(
    orders: list[tuple[str, ...]], by_spark: set[int]
) -> None:
    told = table_order(orders, by_spark.__contains__)
    whole = table_order(orders, nobody)
    if whole is not None:
        assert told == whole
    if told is None:
        return
    assert sorted(told) == sorted({name for order in orders for name in order})
    counted = orders if whole is not None else [o for n, o in enumerate(orders) if n in by_spark]
    for order in counted:
        assert [name for name in told if name in order] == list(order)


def test_columns_that_no_file_has_all_of_have_no_order() -> None:
    assert table_order([("a", "c"), ("a", "b")], nobody) is None
    assert table_order([("a", "c"), ("a", "b", "c")], nobody) == ("a", "b", "c")


def spark_file(path: Path, *names: str) -> None:
    fields = b",".join(b'{"name":"%s","type":"long","nullable":true,"metadata":{}}' % n.encode() for n in names)
    schema = pa.schema([(n, pa.int64()) for n in names]).with_metadata(
        {b"org.apache.spark.sql.parquet.row.metadata": b'{"type":"struct","fields":[%s]}' % fields}
    )
    write(path, pa.table([[1]] * len(names), schema=schema))


def test_files_that_disagree(warehouse: Path) -> None:
    write(warehouse / "t" / "2026-backfill.parquet", pa.table({"referrer": [1], "member": [2]}))
    write(warehouse / "t" / "part-0.parquet", pa.table({"member": [1], "referrer": [2]}))
    assert only(look(warehouse)).loose
    spark_file(warehouse / "t" / "part-1.parquet", "member", "referrer")
    state = only(look(warehouse))
    assert (state.loose, [c.name for c in state.columns]) == (False, ["member", "referrer"]), "Spark's own order counts"


def test_files_that_agree(warehouse: Path) -> None:
    write(warehouse / "t" / "a.parquet", pa.table({"member": [1]}))
    write(warehouse / "t" / "b.parquet", pa.table({"member": [1], "referrer": [2]}))
    assert not only(look(warehouse)).loose


@pytest.mark.parametrize("lines", ['{"b":1}\n{"a":2,"b":3}\n', '{"a":2,"b":3}\n'])
def test_records_of_json_tell_no_order(warehouse: Path, lines: str) -> None:
    """A record lacks what is NULL."""
    (warehouse / "t").mkdir()
    (warehouse / "t" / "part-0.json").write_text(lines)
    assert only(look(warehouse)).loose


def test_headers_that_disagree(warehouse: Path) -> None:
    (warehouse / "t").mkdir()
    (warehouse / "t" / "a.csv").write_text("tier,member\ngold,1\n")
    (warehouse / "t" / "b.csv").write_text("member,tier\n1,gold\n")
    assert only(look(warehouse)).loose
