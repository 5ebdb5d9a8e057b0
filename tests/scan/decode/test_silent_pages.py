"""Pages of text are searched as they unpack; only what may hold somebody is taken apart by the reader."""

from __future__ import annotations

import io
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.decode import parquet as decoder
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.support import BOTH, OTHER_PHONE, OTHER_USER, PHONE, PHONES, USER, USERS, parquet, places, scan

FILLER = [f"nobody {n}" for n in range(300)]
PLACES: dict[str, Any] = {
    "text": lambda v: ([v, None, *FILLER], pa.string()),
    "large text": lambda v: ([v, None, *FILLER], pa.large_string()),
    "view": lambda v: ([v, None, *FILLER], pa.string_view()),
    "bytes": lambda v: ([v.encode(), None, *(f.encode() for f in FILLER)], pa.binary()),
    "list": lambda v: ([[f, v] for f in FILLER], pa.list_(pa.string())),
    "struct": lambda v: ([{"a": f, "b": v} for f in FILLER], pa.struct([("a", pa.string()), ("b", pa.string())])),
    "map key": lambda v: ([[(v, f)] for f in FILLER], pa.map_(pa.string(), pa.string())),
    "map value": lambda v: ([[(f, v)] for f in FILLER], pa.map_(pa.string(), pa.string())),
    "map of numbers": lambda v: ([[(n, v)] for n in range(300)], pa.map_(pa.int32(), pa.string())),
    "JSON": lambda v: ([f'{{"n": {{"x": "{v}"}}}}', *FILLER], pa.string()),
}
WRITERS: dict[str, dict[str, Any]] = {
    "plain": {"use_dictionary": False},
    "coded": {},
    "coded, then plain": {"dictionary_pagesize_limit": 512, "data_page_size": 512, "write_batch_size": 16},
    "delta lengths": {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"},
    "delta": {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
}


def chunks(data: bytes) -> list[Any]:
    view = memoryview(data)
    return list(decoder._chunks(view, pq.read_metadata(io.BytesIO(data))))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_a_person_anywhere_is_found_and_a_twin_is_silent(version: str, writer: str, codec: str) -> None:
    """Each place alone; and whether the reader was spared is seen at the chunks themselves."""
    for name, cells in PLACES.items():
        for value, red in ((PHONE, True), (OTHER_PHONE, False)):
            options = WRITERS[writer] | {"data_page_version": version, "compression": codec, "write_statistics": False}
            if "numbers" in name:
                options = {**options, "column_encoding": None}
            data = parquet(pa.table({"c": pa.array(*cells(value))}), row_group_size=100, **options)
            result = scan("a.parquet", data)
            assert bool(result.hits) is red, name
            assert not result.unread
            if red:
                assert any(where == "data" for _, where, _ in places(result)), name
            texts = [chunk for chunk in chunks(data) if chunk.is_text]
            silent = [chunk.is_silent(memoryview(data), Collector(BOTH)) for chunk in texts]
            # of DELTA_BYTE_ARRAY the values share their beginnings, so no page tells anything as it stands
            # bytes that are not called text may be compressed, cell by cell
            plain = name != "bytes" and (writer != "delta" or "numbers" in name)
            assert all(silent) is (not red and plain), name


@given(st.data())
def test_the_reader_finds_nothing_that_the_pages_did_not_tell(data: st.DataObject) -> None:
    """The same hits, number by number, as when everything is taken apart."""
    values = st.sampled_from([PHONE, OTHER_PHONE, str(USER), str(OTHER_USER), f"{PHONE}1", f"x{USER}.5", "", None])
    rows = data.draw(st.lists(st.tuples(values, values, st.sampled_from([USER, 7, None])), min_size=1, max_size=40))
    table = pa.table(
        {
            "a": pa.array([row[0] for row in rows], pa.string()),
            "b": pa.array([None if row[1] is None else [row[1], "z"] for row in rows], pa.list_(pa.string())),
            "n": pa.array([row[2] for row in rows], pa.int64()),
        }
    )
    file = parquet(
        table,
        row_group_size=data.draw(st.integers(1, 50)),
        use_dictionary=data.draw(st.booleans()),
        data_page_version=data.draw(st.sampled_from(["1.0", "2.0"])),
        compression=data.draw(st.sampled_from(["none", "zstd"])),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoder._Chunk, "is_silent", lambda *_: False)
        expected = scan("a.parquet", file)
    assert scan("a.parquet", file) == expected


def test_two_columns_of_one_name_are_both_read() -> None:
    for first, second in ((PHONE, "z"), ("z", PHONE)):
        arrays = [pa.array([first]), pa.array([second]), pa.array([3])]
        data = parquet(pa.table(arrays, names=["c", "c", "d"]), compression="snappy", write_statistics=False)
        assert places(scan("a.parquet", data)) == {("phone", "data", "c")}


def test_a_tiny_number_leaves_no_page_silent() -> None:
    """It counts as a whole cell only, which no page tells as it stands."""
    tiny = build_patterns([PHONES, USERS.model_copy(update={"name": "pin", "values": (("subj_1", "7"),)})])
    data = parquet(pa.table({"c": ["7", *FILLER]}), write_statistics=False)
    assert {hit.key_set for hit in scan("a.parquet", data, tiny).hits} == {"pin"}
    assert not scan("a.parquet", parquet(pa.table({"c": ["77", *FILLER]})), tiny).hits


def test_what_a_page_calls_its_levels_is_searched_too() -> None:
    for value, silent in ((PHONE, False), (OTHER_PHONE, True)):
        data = parquet(pa.table({"c": [value]}), use_dictionary=False, data_page_version="2.0", compression="none")
        (chunk,) = chunks(data)
        (page,) = chunk.pages
        told = replace(chunk, pages=(replace(page, levels=len(page.body)),))
        assert told.is_silent(memoryview(data), Collector(BOTH)) is silent


def test_a_page_that_does_not_unpack_is_left_to_the_reader() -> None:
    data = bytearray(parquet(pa.table({"c": FILLER * 9}), use_dictionary=False, compression="zstd"))
    (chunk,) = chunks(bytes(data))
    body = chunk.pages[0].body
    data[body.start : body.start + 12] = bytes(12)
    assert scan("a.parquet", bytes(data)).unread


def decimals(numbers: list[int], coded: bool) -> bytes:
    """A column of decimals as bytes of any length, as writers from Avro leave them: pyarrow reads those and writes
    none, so that the footer of a column of bytes is told that they are DECIMAL(18, 2).
    """
    cells = [(n * 100).to_bytes(8, "big", signed=True) for n in numbers]
    data = parquet(
        pa.table({"id": pa.array(cells, pa.binary())}), store_schema=False, use_dictionary=coded, write_statistics=False
    )
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8]
    name = footer.index(b"\x18\x02id\x00") + 4
    footer = footer[:name] + b"\x25\x0a\x15\x04\x15\x24" + footer[name:]
    return data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize("coded", [True, False])
def test_decimals_of_any_length_are_compared_as_numbers(coded: bool) -> None:
    for number, red in ((USER, True), (OTHER_USER, False)):
        data = decimals([number, 5, 5, 6], coded)
        assert pq.read_table(pa.BufferReader(data))["id"][0].as_py() == Decimal(number)
        result = scan("a.parquet", data)
        assert places(result) == ({("user_id", "data", "id")} if red else set())
        assert not result.unread


def test_decimals_of_any_length_in_a_dictionary_that_no_row_uses_are_found() -> None:
    for number, red in ((USER, True), (OTHER_USER, False)):
        data = decimals([number, *[5] * 7], coded=True)
        (chunk,) = chunks(data)
        body = chunk.pages[1].body
        page = bytes(pa.decompress(data[body.start : body.stop], chunk.pages[1].plain_size, "snappy"))
        assert page.count(b"\x03\xfe") == 1
        packed = bytes(pa.compress(page.replace(b"\x03\xfe", b"\x03\xff"), "snappy"))
        assert len(packed) == len(body)
        data = data[: body.start] + packed + data[body.stop :]
        assert pq.read_table(pa.BufferReader(data))["id"].to_pylist() == [Decimal(5)] * 8
        result = scan("a.parquet", data)
        assert places(result) == ({("user_id", "dictionary page of numbers", "id")} if red else set())
        assert not result.unread


@pytest.mark.parametrize("kind", [pa.float16(), pa.decimal32(8, 2), pa.decimal64(12, 2)])
@pytest.mark.parametrize("inner", [lambda kind: kind, pa.list_])
def test_numbers_of_types_that_arrow_does_not_compare_are_read(kind: pa.DataType, inner: Any) -> None:
    """Beside a key they left the whole file unread, and a run that had erased it could not be verified."""
    patterns = build_patterns([KeySet(name="n", origin="n", weak=True, values=(("s", "1234"), ("t", "99999999")))])
    for number, hits in ((1234, {("n", "data", "v")}), (1235, set())):
        values = pa.array([1, number, None], pa.float32() if kind == pa.float16() else pa.decimal128(12, 2)).cast(kind)
        column = values if inner(kind) == kind else pa.ListArray.from_arrays([0, 1, 3, 3], values)
        result = scan("a.parquet", parquet(pa.table({"v": column}), write_statistics=False), patterns)
        assert (result.unread, places(result)) == ((), hits)
