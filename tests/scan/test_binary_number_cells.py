"""A whole cell of bytes that is nothing but a number key is the person, as a typed number is."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.forms.binary_number_cells import PackedNumbers
from pii_tracer.scan.hits import FileScan, Form
from pii_tracer.scan.value_forms import Patterns
from tests.scan import drawn_cells

HERS = 48211973
"""No number of a float: it has 26 bits."""
OTHERS = tuple(struct.pack(">q", HERS + n) for n in (-65536, -256, -1, 1, 2, 256, 65536))
WRITINGS = {
    "HBase long": struct.pack(">q", HERS),
    "HBase int": struct.pack(">i", HERS),
    "little long": struct.pack("<q", HERS),
    "little int": struct.pack("<i", HERS),
    "double": struct.pack(">d", HERS),
    "little double": struct.pack("<d", HERS),
    "Phoenix long": struct.pack(">Q", HERS + 2**63),
    "Phoenix int": struct.pack(">I", HERS + 2**31),
    "five bytes": HERS.to_bytes(5, "big"),
}


def her(value: int | str = HERS, *, weak: bool = True) -> Patterns:
    return drawn_cells.patterns_of((str(value), weak))


def parquet(*cells: bytes, kind: pa.DataType | None = None, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"b": pa.array(cells, kind or pa.binary())}), sink, **options)
    return sink.getvalue()


def as_orc(*cells: bytes) -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.table({"b": pa.array(cells, pa.binary())}), sink)
    return sink.getvalue()


def avro(*cells: bytes) -> bytes:
    sink = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "b", "type": "bytes"}]}
    fastavro.writer(sink, fastavro.parse_schema(schema), [{"b": cell} for cell in cells])
    return sink.getvalue()


def forms(scan: FileScan) -> set[tuple[Form, str | None, bool]]:
    return {(hit.form, hit.column, hit.weak) for hit in scan.hits}


@pytest.mark.parametrize("written", WRITINGS, ids=str)
@pytest.mark.parametrize(("name", "file"), [("x.parquet", parquet), ("x.orc", as_orc), ("x.avro", avro)])
def test_it_is_found_in_every_format_and_her_neighbours_are_not(written: str, name: str, file: object) -> None:
    assert callable(file)
    cell = WRITINGS[written]
    assert forms(scan_bytes(name, file(*OTHERS, cell), her())) == {(Form.NUMBER, "b", True)}
    assert scan_bytes(name, file(*OTHERS, cell + b"\1", b"\1" + cell), her()).hits == ()


@pytest.mark.parametrize("coded", [True, False])
@pytest.mark.parametrize("fixed", [True, False])
def test_among_many_rows_of_parquet(coded: bool, fixed: bool) -> None:
    cells = [struct.pack(">q", n * 7919) for n in range(5000)]
    kind = pa.binary(8) if fixed else pa.binary()
    assert scan_bytes("x.parquet", parquet(*cells, kind=kind, use_dictionary=coded), her()).hits == ()
    cells[4321] = WRITINGS["HBase long"]
    found = scan_bytes("x.parquet", parquet(*cells, kind=kind, use_dictionary=coded, write_statistics=False), her())
    assert [(hit.where, hit.count) for hit in found.hits] == [("data", 1)]


def test_a_strong_number_and_a_phone_count_as_such() -> None:
    for value, weak in (("7340219981", False), ("+91 98450 12345", False)):
        number = int("".join(filter(str.isdigit, value)))
        found = scan_bytes("x.parquet", parquet(struct.pack(">q", number)), her(value, weak=weak))
        assert forms(found) == {(Form.NUMBER, "b", False)}


def test_short_numbers_and_letters_of_codes() -> None:
    """As typed numbers count, so do four bytes and more; in fewer, letters and small numbers are none."""
    assert scan_bytes("x.parquet", parquet(struct.pack(">i", 4711)), her(4711)).weak
    assert not scan_bytes("x.parquet", parquet(struct.pack(">h", 4711)), her(4711)).hits
    assert scan_bytes("x.parquet", parquet(struct.pack(">H", 40_123)), her(40_123)).weak
    letters = int.from_bytes(b"DE", "big")
    assert not scan_bytes("x.parquet", parquet(b"DE", b"FR"), her(letters)).hits


def test_a_column_of_another_systems_numbers_is_left_out_and_counted() -> None:
    patterns = her(7340219981, weak=False).leaving_out({"b": {"key0"}})
    found = scan_bytes("x.avro", avro(struct.pack(">q", 7340219981)), patterns)
    assert (found.hits, [hit.count for hit in found.left]) == ((), [1])


NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.integers(0, 2**17) | st.integers(0, 2**33)


@given(st.lists(NUMBERS, max_size=4), st.data())
def test_a_column_shows_what_its_cells_show(numbers: Sequence[int], data: st.DataObject) -> None:
    """Cells that are looked at all at once, or one by one."""
    near = [c for n in numbers for c in (struct.pack(">Q", n % 2**64), struct.pack("<d", n), struct.pack("<i", n % 99))]
    drawn = st.sampled_from(near) | st.binary(max_size=9) if near else st.binary(max_size=9)
    cells = data.draw(st.lists(drawn, max_size=12))
    packed = PackedNumbers(numbers)
    borders = np.cumsum([0, *map(len, cells)]).astype(np.int64)
    places = packed.places(np.frombuffer(b"".join(cells), np.uint8), borders).tolist()
    seen = [n for n, cell in enumerate(cells) if packed.in_cell(cell)]
    assert set(seen) <= set(places)
    assert all(len(cells[n]) < 4 for n in set(places) - set(seen))


@given(st.integers(10_000, 2**63 - 1), st.sampled_from(["big", "little"]), st.integers(0, 5))
def test_every_whole_number_is_itself_in_its_bytes(number: int, order: str, more: int) -> None:
    size = min(8, max(4, (number.bit_length() + 7) // 8 + more))
    assert order in ("big", "little")
    assert number in PackedNumbers([number]).in_cell(number.to_bytes(size, order))  # type: ignore[arg-type]
