"""Values that stay in Arrow's buffers where no row shows them: below nulls, in gaps of lists, in arms of unions."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.support import scan

KEY, TWIN, MAIL, OTHER = 8841302211, 8841302212, "asha.raovich@example.org", "asha.raovick@example.org"
PATTERNS = build_patterns(
    [
        KeySet(name="c.id", origin="id", weak=False, values=(("s", str(KEY)),)),
        KeySet(name="c.mail", origin="mail", weak=False, values=(("s", MAIL),)),
    ]
)
Make = Callable[[int, str], Any]


def _blanked(key: int, _: str) -> Any:
    cells = pa.array([key, 5])
    return pc.if_else(pc.equal(cells, key), pa.scalar(None, pa.int64()), cells)


def _pandas(key: int, _: str) -> Any:
    frame = pd.DataFrame({"k": pd.array([key, 5], dtype="Int64")})
    frame.loc[0, "k"] = pd.NA
    return pa.Table.from_pandas(frame)["k"].chunk(0)


def _below_null(values: Any) -> Any:
    return pa.Array.from_buffers(values.type, len(values), [pa.py_buffer(b"\x02"), *values.buffers()[1:]])


def _lists(kind: Any, end: int, values: Any) -> Any:
    """The first list is null, and has the values up to an end."""
    borders = pa.py_buffer(np.array([0, end, end + 1], np.int32))
    return pa.Array.from_buffers(kind, 2, [pa.py_buffer(b"\x02"), borders], 1, 0, [values])


def _views(key: int, _: str) -> Any:
    sizes = pa.py_buffer(np.array([1, 1], np.int32))
    starts = pa.py_buffer(np.array([0, 2], np.int32))
    child = pa.array([1, key, 3])
    return pa.Array.from_buffers(pa.list_view(pa.int64()), 2, [None, starts, sizes], 0, 0, [child])


def _union(key: int, _: str) -> Any:
    return pa.UnionArray.from_sparse(pa.array([1, 1], pa.int8()), [pa.array([key, 1]), pa.array(["a", "b"])])


def _struct(key: int, _: str) -> Any:
    child = pa.array([key, 1])
    return pa.Array.from_buffers(pa.struct([("x", pa.int64())]), 2, [pa.py_buffer(b"\x02")], 1, 0, [child])


def _fixed(key: int, _: str) -> Any:
    kind = pa.list_(pa.int64(), 1)
    return pa.Array.from_buffers(kind, 2, [pa.py_buffer(b"\x02")], 1, 0, [pa.array([key, 1])])


PLACES: dict[str, Make] = {
    "blanked by if_else": _blanked,
    "blanked by pandas": _pandas,
    "double below a null": lambda key, _: _below_null(pa.array([float(key), 1.0])),
    "decimal below a null": lambda key, _: _below_null(pa.array([key, 1], pa.decimal128(20, 0))),
    "null struct": _struct,
    "gap of a list": lambda key, _: _lists(pa.list_(pa.int64()), 1, pa.array([key, 2])),
    "text in a gap": lambda _, mail: _lists(pa.list_(pa.string()), 1, pa.array([mail, "b"])),
    "text below a null": lambda _, mail: _below_null(pa.array([mail, "b"])),
    "view below a null": lambda _, mail: _below_null(pa.array([mail, "b"], pa.string_view())),
    "bytes in a gap": lambda _, m: _lists(pa.list_(pa.int32()), len(m), pa.array([*m.encode(), 7], pa.int32())),
    "gap of a list view": _views,
    "null list of a fixed size": _fixed,
    "arm of a union": _union,
    "entry of no row": lambda key, _: pa.DictionaryArray.from_arrays([1], pa.array([key, 1])),
    "null entry": lambda key, _: pa.DictionaryArray.from_arrays([1], _below_null(pa.array([key, 1]))),
    "null run": lambda key, _: pa.RunEndEncodedArray.from_arrays([1, 2], _below_null(pa.array([key, 1]))),
}


def packed(array: Any, compression: str | None, *, stream: bool) -> bytes:
    sink = io.BytesIO()
    table = pa.RecordBatch.from_arrays([array], ["k"])
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(table)
    return sink.getvalue()


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
@pytest.mark.parametrize("place", PLACES)
def test_what_no_row_shows(place: str, compression: str | None) -> None:
    """In streams and files; a twin's value in the same place is nobody's here."""
    for stream in (True, False):
        found = scan("a.arrow", packed(PLACES[place](KEY, MAIL), compression, stream=stream), PATTERNS)
        assert found.hits, (place, stream)
        other = scan("a.arrow", packed(PLACES[place](TWIN, OTHER), compression, stream=stream), PATTERNS)
        assert not other.hits


def test_what_a_row_shows_counts_once() -> None:
    found = scan("a.arrow", packed(pa.array([KEY, None]), None, stream=True), PATTERNS)
    assert [(hit.where, hit.count) for hit in found.hits] == [("data", 1)]


@pytest.mark.parametrize("version", [1, 2])
def test_feather(version: int) -> None:
    sink = io.BytesIO()
    feather.write_feather(pa.table({"k": _blanked(KEY, "")}), sink, version=version)
    found = scan("a.feather", sink.getvalue(), PATTERNS)
    assert found.hits or found.unread
