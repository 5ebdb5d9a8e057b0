"""Objects of which a part is read: the same is found, wherever it stands, and bytes of two versions never mix."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_tracer.scan.scan_ledger import END
from pii_tracer.scan.shapes.objects_read_before import Outline
from tests.scan.wide_objects import (
    HER,
    HIM,
    LARGE,
    ROWS,
    Known,
    Stored,
    columns,
    parquet,
    patterns_of,
    plain,
    small,
)

WAYS: dict[str, dict[str, Any]] = {
    "snappy": {},
    "none": {"compression": "none"},
    "zstd": {"compression": "zstd"},
    "pages v2": {"data_page_version": "2.0", "compression": "gzip"},
    "page index": {"write_page_index": True},
    "page checksums": {"write_page_checksum": True},
}


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Known:
    small(monkeypatch)
    return Known(tmp_path)


def in_parts(known: Known, data: bytes) -> Stored:
    """Another person's search of a part finds what a search of all bytes finds."""
    stored = Stored(data)
    assert known.read_whole(stored) == plain(data, HIM)
    assert known.read(stored) == plain(data)
    assert not known.told
    return stored


@pytest.mark.parametrize("way", WAYS)
def test_a_part_is_read_of_an_object_that_holds_nothing_of_her(known: Known, way: str) -> None:
    stored = in_parts(known, parquet(**WAYS[way]))
    assert stored.bytes_read < len(stored.data) / 1.5
    assert len(stored.read) <= 5


def test_little_is_read_of_a_large_object(tmp_path: Path) -> None:
    large = {"row_group_size": LARGE, "data_page_size": 1 << 22, "compression": "none"}
    stored = in_parts(Known(tmp_path), parquet(columns(LARGE), **large))
    assert stored.bytes_read < len(stored.data) / 6


def test_of_a_small_object_nothing_is_written_down(tmp_path: Path) -> None:
    known, stored = Known(tmp_path), Stored(parquet())
    known.read_whole(stored)
    assert known.read(stored) is None
    assert not stored.read


@pytest.mark.parametrize("cell", [("mail", 7), ("mail", ROWS - 1), ("first", 3), ("second", ROWS - 1)])
@pytest.mark.parametrize("way", ["snappy", "none", "pages v2"])
def test_the_chunk_that_holds_her_is_read(known: Known, way: str, cell: tuple[str, int]) -> None:
    column, row = cell
    stored = in_parts(known, parquet(columns(**{column: {row: f"of {HER}"}}), **WAYS[way]))
    found = plain(stored.data)
    assert column in {hit.column for hit in found.hits}
    assert stored.bytes_read < len(stored.data)


def _gap(text: bytes, codec: str = "snappy", **changed: dict[int, str]) -> bytes:
    """Bytes between the row groups."""
    sink, made = pa.BufferOutputStream(), pa.table(columns(**changed))
    with pq.ParquetWriter(sink, made.schema, use_dictionary=False, compression=codec) as writer:
        writer.write_table(made.slice(0, ROWS // 2))
        sink.write(text)
        writer.write_table(made.slice(ROWS // 2))
    return bytes(sink.getvalue())


def _behind(text: bytes) -> bytes:
    """Bytes between the last chunk and the footer."""
    data = parquet()
    footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    return data[:footer] + text + data[footer:]


def _in_footer(text: bytes) -> bytes:
    table = pa.table(columns()).replace_schema_metadata({"note": text})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=ROWS // 2, use_dictionary=False, compression="snappy")
    return bytes(sink.getvalue())


def _unused_entry(text: bytes) -> bytes:
    """An entry of a dictionary that no row uses."""
    kept = pa.DictionaryArray.from_arrays([0] * ROWS, ["nobody", text.decode()])
    made: dict[str, Any] = columns() | {"kind": kept}
    return parquet(made, use_dictionary=["kind"])


def _statistics(text: bytes) -> bytes:
    """Bounds in the footer that no row has any more."""
    data = parquet(columns(mail={5: "zz" + "z" * (len(HER) - 2)}), compression="none", write_page_index=True)
    footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    return data[:footer] + data[footer:].replace(b"zz" + b"z" * (len(HER) - 2), HER.encode())


PLACES: dict[str, Callable[[bytes], bytes]] = {
    "gap between chunks": _gap,
    "behind the chunks": _behind,
    "key-value metadata": _in_footer,
    "entry that no row uses": _unused_entry,
    "statistics": _statistics,
}


@pytest.mark.parametrize("place", PLACES)
def test_what_no_column_chunk_covers_is_searched_each_time(known: Known, place: str) -> None:
    data = PLACES[place](HER.encode())
    assert plain(data).hits, "she stands there"
    stored = in_parts(known, data)
    assert stored.bytes_read < len(data)


def test_a_value_that_goes_on_behind_a_page_is_found(known: Known) -> None:
    """Its column holds no more than the beginning of it, and is left out."""
    begin, end = HER[:12], HER[12:]
    data = _gap(end.encode(), "none", second={ROWS // 2 - 1: f"of {begin}"})
    assert [hit.where for hit in plain(data).hits] == ["raw bytes"]
    stored = in_parts(known, data)
    assert stored.bytes_read < len(data) / 1.5


def test_a_number_in_a_dictionary_is_looked_at_though_its_column_is_left_out(known: Known) -> None:
    made = columns() | {"at": pa.array([8_841_302_001] + [5] * (ROWS - 1), pa.timestamp("us"))}
    data = parquet(made, use_dictionary=["at"], write_statistics=False)
    stored = Stored(data)
    known.read_whole(stored)
    assert plain(data, "8841302001").hits
    assert known.read(stored, "8841302001") == plain(data, "8841302001")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    column=st.sampled_from(["mail", "first", "second"]),
    row=st.integers(0, ROWS - 1),
    before=st.sampled_from(["", "x", " ", "-", "9"]),
    way=st.sampled_from(sorted(WAYS)),
)
def test_a_part_shows_the_same_as_all_bytes(known: Known, column: str, row: int, before: str, way: str) -> None:
    data = parquet(columns(**{column: {row: before + HER + before}}), **WAYS[way])
    stored = Stored(data, told=f"{column}{row}{before}{way}")
    known.read_whole(stored)
    found = known.read(stored)
    assert found == plain(data)


class Replaced(Stored):
    """Another version comes between two reads; the store gives what is there, whatever was asked for."""

    def __init__(self, data: bytes, then: bytes, after: int) -> None:
        super().__init__(data)
        self.then, self.after = then, after

    def part(self, first: int, at_most: int) -> bytes:
        if len(self.read) == self.after:
            self.data = self.then
        return super().part(first, at_most)


@pytest.mark.parametrize("after", range(4))
def test_bytes_of_two_versions_are_never_searched_as_one(known: Known, after: int) -> None:
    data = parquet(columns(first={3: f"of {HER}"}))
    known.read_whole(Stored(data))
    whole = Stored(data)
    assert known.read(whole) == plain(data)
    assert after < len(whole.read)
    assert known.read(Replaced(data, bytes(byte ^ 1 for byte in data), after)) is None, "it is read whole"


@pytest.mark.parametrize("change", [0, 300, 60_000, 100_000, 170_000, -90_000, -60_000, -30])
def test_other_bytes_than_were_read_before_are_read_whole(known: Known, change: int) -> None:
    """One byte, wherever it is read."""
    data = parquet(columns(first={3: f"of {HER}"}, second={ROWS - 1: f"of {HER}"}), compression="none")
    known.read_whole(Stored(data))
    outline = known.keeper().outline_of(Stored(data).told, memoryview(data[-END:]))
    assert outline is not None
    changed = bytearray(data)
    changed[change] ^= 1
    read_it = Stored(bytes(changed))
    left = {place for place in outline.hollow if not patterns_of(HER).sought.fits(outline.shapes[place])}
    unread = [hole for place in left for hole in outline.hollow[place]]
    found = known.read(read_it)
    if any(change % len(data) in hole for hole in unread):
        assert found == plain(data), "the store's word"
    else:
        assert found is None


def test_short_and_long_answers_are_none(known: Known) -> None:
    data = parquet()
    known.read_whole(Stored(data))
    for wrong in (lambda part: part[:-1], lambda part: b"", lambda part: data, lambda part: part + b"x"):

        class Wrong(Stored):
            def part(self, first: int, at_most: int, wrong: Callable[[bytes], bytes] = wrong) -> bytes:
                given = super().part(first, at_most)
                return given if len(self.read) == 1 else wrong(given)

        assert known.read(Wrong(data)) is None


def test_another_identity_is_another_object(known: Known) -> None:
    data = parquet()
    known.read_whole(Stored(data))
    other = Stored(data, told="place\0another")
    assert known.read(other) is None
    assert not other.read, "nothing is known of it, so nothing is asked for"


def test_nothing_is_left_out_where_chunks_share_bytes(known: Known) -> None:
    """A footer may say so: what one chunk does not need, another one is read from."""
    data = parquet(columns(second={1: f"of {HER}"}), compression="none", row_group_size=ROWS)
    meta = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    first, second = (meta.column(index).data_page_offset for index in (3, 4))
    shared = data.replace(_varint(first), _varint(second))
    assert shared != data
    stored = Stored(shared)
    known.read_whole(stored)
    outline = known.keeper().outline_of(stored.told, memoryview(shared[-END:]))
    assert outline is not None
    assert not outline.hollow
    assert known.read(stored) is None


def _varint(number: int) -> bytes:
    zigzag, out = number << 1, bytearray()
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    return bytes([*out, zigzag])


def test_what_is_known_of_an_object_opens_only_with_its_own_end(known: Known) -> None:
    data = parquet(columns(first={1: f"of {HER}"}))
    known.read_whole(Stored(data))
    kept = known.file.read_bytes()
    assert not re.search(rb"[0-9a-f]{64}", kept), "no digest of the object, either"
    with_other_end = memoryview(data[-END:-1] + b"?")
    assert known.ledger.shapes(with_other_end, Stored(data).told) is None


def test_an_outline_is_written_and_read(known: Known) -> None:
    data = parquet()
    known.read_whole(Stored(data))
    outline = known.keeper().outline_of(Stored(data).told, memoryview(data[-END:]))
    assert outline is not None
    assert Outline.read(outline.written()) == outline
