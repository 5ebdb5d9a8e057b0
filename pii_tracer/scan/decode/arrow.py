"""Search Arrow columns: a fast look at the whole column first, cell by cell only where something was seen."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pii_tracer.scan.collect import Collector


def search_batch(batch: pa.RecordBatch | pa.Table, collector: Collector, where: str) -> None:
    """Every column of a batch, nested ones down to their leaves."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for label, leaf in leaves(column, name):
            _search_leaf(leaf, collector, where, label)


def leaves(array: Any, label: str) -> Iterator[tuple[str, Any]]:
    """Leaf arrays with labels: `payer.phone` (struct), `tags` (list items), `attributes.key` and `.value` (map)."""
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    for chunk in chunks:
        yield from _leaves(chunk, label)


def _leaves(array: Any, label: str) -> Iterator[tuple[str, Any]]:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from _leaves(array.storage, label)
    elif pa.types.is_struct(kind):
        for field, child in zip(kind, array.flatten(), strict=True):
            yield from _leaves(child, f"{label}.{field.name}")
    elif pa.types.is_map(kind):
        yield from _leaves(array.keys, f"{label}.key")
        yield from _leaves(array.items, f"{label}.value")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _leaves(array.flatten(), label)
    elif pa.types.is_dictionary(kind):
        yield from _leaves(array.dictionary_decode(), label)
    else:
        yield label, array


def _search_leaf(array: Any, collector: Collector, where: str, label: str) -> None:
    kind = array.type
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or len(array) == 0:
        return
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        _search_strings(array, collector, where, label)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        _search_numbers(array, collector, where, label)
    elif pa.types.is_date(kind):
        _search_strings(pc.cast(array, pa.string()), collector, where, label)
    elif pa.types.is_temporal(kind):
        return  # an instant is no identifier, and its number is not its text
    else:
        for value in array.to_pylist():
            collector.cell(value, where, label)


def _search_strings(array: Any, collector: Collector, where: str, label: str) -> None:
    if not collector.patterns.has_tiny:
        offsets = pa.array([0, len(array)], pa.int64())
        listed = pa.LargeListArray.from_arrays(offsets, pc.fill_null(array, ""))
        joined = pc.binary_join(listed, "\0")[0].as_buffer()
        if not collector.terms(joined.to_pybytes()):
            return
    for value in array.to_pylist():
        if value is not None:
            collector.string(value, where, label)


def _search_numbers(array: Any, collector: Collector, where: str, label: str) -> None:
    wanted = _as_type(collector.patterns.ints, array.type)
    if wanted is None or len(wanted) == 0:
        return
    matched = pc.filter(array, pc.is_in(array, value_set=wanted))
    for value in matched.to_pylist():
        if value is not None:
            collector.number(value, where, label)


def _as_type(values: Any, kind: pa.DataType) -> Any:
    """The key values as an Arrow array of a column's type, those that fit."""
    if pa.types.is_integer(kind):
        low = -(2 ** (kind.bit_width - 1)) if pa.types.is_signed_integer(kind) else 0
        high = 2 ** (kind.bit_width - (1 if low else 0)) - 1
        return pa.array([v for v in values if low <= v <= high], kind)
    if pa.types.is_floating(kind):
        exact = 2 ** {16: 11, 32: 24, 64: 53}[kind.bit_width]
        return pa.array([float(v) for v in values if abs(v) <= exact], pa.float64()).cast(kind)
    whole = kind.precision - kind.scale
    return pa.array([Decimal(v) for v in values if abs(v) < 10**whole], kind)
