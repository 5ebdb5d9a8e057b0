"""Values in Arrow's buffers that no row shows: below nulls, between lists, behind the last row, in unions' other arms.

A writer that blanks a cell clears a bit of the mask, and the value itself stays in the buffer
(https://arrow.apache.org/docs/format/Columnar.html#validity-bitmaps).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pii_tracer.scan.decode.arrow import is_never_searched, search_leaf
from pii_tracer.scan.decode.cells import variant
from pii_tracer.scan.hit_collector import Collector

_PADDING = 64
"""Writers fill a buffer up to a multiple of so many bytes."""


def search_hidden(batch: pa.RecordBatch, collector: Collector) -> None:
    """Search all buffers of a batch as they are. What its rows show already is not counted again."""
    hidden = Collector(collector.patterns)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for label, leaf, data in _below(column, name, masked=False):
            if leaf is not None:
                search_leaf(leaf, hidden, "hidden cell", label)
            if data is not None:
                hidden.raw(data, "hidden cell", label)
    collector.merge(hidden, unless_seen_in=collector)


Hidden = tuple[str, Any, Any]
"""A label, cells that are not masked, and bytes without cells; one of the two may be None."""


def _below(array: Any, label: str, *, masked: bool) -> Iterator[Hidden]:
    """masked: rows above do not show all that is here."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from _below(array.storage, label, masked=masked)
        return
    masked = masked or array.null_count > 0
    if pa.types.is_dictionary(kind):
        yield from _below(array.dictionary, label, masked=True)
    elif pa.types.is_run_end_encoded(kind):
        yield from _below(array.values, label, masked=True)
    elif pa.types.is_struct(kind):
        for number, field in enumerate(kind):
            yield from _below(array.field(number), f"{label}.{field.name}", masked=masked)
        if variant.is_variant(kind) and (masked or any(array.field(number).null_count for number in range(len(kind)))):
            yield label, pa.StructArray.from_arrays(list(_unmasked(array)), fields=list(kind)), None
    elif pa.types.is_union(kind):
        for number in range(kind.num_fields):
            yield from _below(array.field(number), f"{label}.{kind.field(number).name}", masked=True)
    elif kind.num_fields:  # maps and lists of all layouts
        yield from _of_lists(array.values, label)
    elif not is_never_searched(kind):
        yield from _leaf(array, label, masked=masked)


def _unmasked(array: Any) -> Iterator[Any]:
    """The columns of a VARIANT, those of bytes without their masks."""
    for number, field in enumerate(array.type):
        column = array.field(number)
        if variant.is_bytes(field.type):
            buffers = [None, *column.buffers()[1:]]
            column = pa.Array.from_buffers(field.type, len(column), buffers, offset=column.offset)
        yield column


def _of_lists(values: Any, label: str) -> Iterator[Hidden]:
    """Numbers may be bytes of a text, too."""
    yield from _below(values, label, masked=True)
    if pa.types.is_integer(values.type):
        numbers = np.frombuffer(values.buffers()[1] or b"", values.type.to_pandas_dtype())
        yield label, None, np.where((numbers < -128) | (numbers > 255), 0, numbers).astype(np.uint8).tobytes()


def _leaf(array: Any, label: str, *, masked: bool) -> Iterator[Hidden]:
    kind, buffers = array.type, array.buffers()
    cells = array.offset + len(array)
    width = _width(kind)
    if width:
        size = buffers[1].size if buffers[1] is not None else 0
        if masked or array.offset or size - cells * width >= _PADDING:
            yield label, pa.Array.from_buffers(kind, size // width, [None, buffers[1]]), None
    elif masked or array.offset or (kind.id in _VIEWS and len(buffers) > 2):
        yield label, pa.Array.from_buffers(kind, cells, [None, *buffers[1:]]), None
        for data in buffers[2:]:
            yield label, None, data
    elif len(buffers) > 2 and buffers[2] is not None and buffers[2].size - _end(array) >= _PADDING:
        yield label, None, buffers[2]


_VIEWS = frozenset({pa.string_view().id, pa.binary_view().id})


def _width(kind: pa.DataType) -> int:
    """Bytes of each cell; none where they differ."""
    try:
        return int(kind.bit_width) // 8
    except ValueError:
        return 0


def _end(array: Any) -> int:
    """Where the last cell ends in the bytes."""
    wide = np.int64 if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type) else np.int32
    borders = np.frombuffer(array.buffers()[1] or b"", wide)
    return int(borders[array.offset + len(array)]) if len(borders) else 0
