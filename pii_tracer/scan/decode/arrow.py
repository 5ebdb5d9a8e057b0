"""Search Arrow columns: a fast look at the whole column first, cell by cell only where something was seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pii_tracer.model.datasets import WHOLE_NUMBER
from pii_tracer.scan.decode import compressed_streams
from pii_tracer.scan.decode.cells import cell_search, small_cells, variant
from pii_tracer.scan.decode.file_kind import file_kinds
from pii_tracer.scan.decode.table_metadata import Role, walk
from pii_tracer.scan.forms import escape_free_text, text_bytes_decoding
from pii_tracer.scan.hit_collector import Collector


def search_batch(batch: pa.RecordBatch | pa.Table, collector: Collector, where: str) -> None:
    """Every column of a batch, nested ones down to their leaves."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for label, leaf in leaf_arrays(column, name, as_bytes=True):
            search_leaf(leaf, collector, where, label)


def search_rows(
    batches: Iterable[pa.RecordBatch], collector: Collector, role: Role, where: str, *, positions: bool
) -> None:
    """Rows of a file, by columns, or as documents where they are an engine's notes.

    positions: they are positions of rows in other files, which mean no person.
    """
    for batch in batches:
        if positions:
            batch = batch.drop_columns(["pos"])
        if role is Role.DATA:
            search_batch(batch, collector, where)
        else:
            for row in batch.to_pylist():
                walk(row, collector, where)


def _seen(array: Any, collector: Collector, label: str) -> Any:
    """Of a dictionary array the values whose entries may hold something: an entry is looked at once for all of them."""
    entries = array.dictionary
    if not _is_text(entries.type):
        return array
    large = _large(entries)
    found = _suspects(large, collector, label)
    if not pa.types.is_large_string(large.type):
        found = np.union1d(np.union1d(found, _packed(large)), _numbers(large, collector))
    suspects = pa.array(found, array.indices.type)
    return array.filter(pc.is_in(array.indices, value_set=suspects)) if len(suspects) else array.slice(0, 0)


def unused_entries(array: Any, label: str) -> Iterator[tuple[str, Any]]:
    """Entries of the dictionaries below a column to which no value points."""
    for leaf, values in leaf_arrays(array, label):
        if pa.types.is_dictionary(values.type) and len(values.dictionary):
            used = pc.is_in(pa.array(range(len(values.dictionary)), values.indices.type), value_set=values.indices)
            yield leaf, values.dictionary.filter(pc.invert(used))


def leaf_arrays(array: Any, label: str, *, as_bytes: bool = False) -> Iterator[tuple[str, Any]]:
    """The scalars below a column, nested ones too, with the labels that their hits have.

    as_bytes: lists of numbers come a second time, as bytes, and a VARIANT comes whole. Whoever counts a column's values
    wants them once.
    """
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    for chunk in chunks:
        yield from _leaves(chunk, label, as_bytes)


def _leaves(array: Any, label: str, as_bytes: bool) -> Iterator[tuple[str, Any]]:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from _leaves(array.storage, label, as_bytes)
    elif pa.types.is_struct(kind) and not (as_bytes and variant.is_variant(kind)):
        for field, child in zip(kind, array.flatten(), strict=True):
            yield from _leaves(child, f"{label}.{field.name}", as_bytes)
    elif pa.types.is_map(kind):
        yield from _leaves(array.keys, f"{label}.key", as_bytes)
        yield from _leaves(array.items, f"{label}.value", as_bytes)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        values = array.flatten()
        yield from _leaves(values, label, as_bytes)
        if as_bytes and pa.types.is_integer(values.type) and len(values):
            yield label, _as_bytes(array, values)
    else:
        yield label, array


def _as_bytes(array: Any, values: Any) -> Any:
    """Lists of numbers of a byte's range (a `Buffer` in JSON becomes `array<bigint>`) as the bytes that they are.

    values: of all lists, end to end. Lists with a null or another number are left out.
    """
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    wrong = (numbers < -128) | (numbers > 255)
    if values.null_count:
        wrong |= values.is_null().to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths, dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(wrong)))
    whole = before[ends] == before[ends - lengths]
    content = numbers[np.repeat(whole, lengths)].astype(np.uint8).tobytes()
    borders = np.concatenate(([0], np.cumsum(lengths[whole], dtype=np.int64)))
    buffers = [None, pa.py_buffer(borders.tobytes()), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_binary(), int(whole.sum()), buffers)


def search_leaf(array: Any, collector: Collector, where: str, label: str) -> None:
    """One array of scalars, or of VARIANT."""
    kind = array.type
    if is_never_searched(kind) or len(array) == 0:
        return
    if pa.types.is_dictionary(kind):
        search_leaf(_seen(array, collector, label).dictionary_decode(), collector, where, label)
    elif pa.types.is_struct(kind):
        _search_variant(array, collector, where, label)
    elif _is_text(kind):
        _search_texts(_large(array), collector, where, label, fixed=pa.types.is_fixed_size_binary(kind))
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        _search_numbers(array, collector, where, label)
    elif pa.types.is_date(kind):
        for value in day_texts(array):
            collector.leaf(value, where, label)
    else:
        for value in array.to_pylist():
            collector.cell(value, where, label)


def _search_variant(array: Any, collector: Collector, where: str, label: str) -> None:
    """What it holds, and its columns as they stand. What both show is counted once."""
    found, plain = collector.inner(), collector.inner()
    for place, cells in variant.cells(array, label, found.unread):
        search_leaf(cells, found, where, place)
    for field, child in zip(array.type, array.flatten(), strict=True):
        for place, leaf in leaf_arrays(child, f"{label}.{field.name}", as_bytes=True):
            search_leaf(leaf, plain if variant.is_bytes(leaf.type) else found, where, place)
    found.merge(plain, unless_seen_in=found)
    collector.merge(found)


def is_never_searched(kind: pa.DataType) -> bool:
    """Whether nothing of the type stands for a person: an instant is no identifier, and its number is not its text."""
    instant = pa.types.is_temporal(kind) and not pa.types.is_date(kind)
    return instant or pa.types.is_null(kind) or pa.types.is_boolean(kind)


def day_texts(array: Any) -> list[str | None]:
    """The days in an array as the texts that are searched, each once."""
    return list(pc.cast(pc.unique(array), pa.string()).to_pylist())


def _is_text(kind: pa.DataType) -> bool:
    """Text and bytes, in any layout."""
    views = (pa.types.is_string_view, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    plain = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in (*plain, *views))


def _large(array: Any) -> Any:
    """The array with its values end to end, with a border of eight bytes for each: views and fixed sizes copied."""
    kind = array.type
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return array
    text = pa.types.is_string(kind) or pa.types.is_string_view(kind)
    return array.cast(pa.large_string() if text else pa.large_binary(), safe=False)


def _search_texts(array: Any, collector: Collector, where: str, label: str, *, fixed: bool) -> None:
    text = pa.types.is_large_string(array.type)
    found = _suspects(array, collector, label)
    if not text:
        found = np.union1d(found, _numbers(array, collector))
    for some in _together(array, found):
        cells = _cells(array, some)
        if text:
            collector.strings(cells, where, label)
        for value in () if text else cells:
            collector.binary(value, where, label, fixed=fixed)
    for index in () if text else np.setdiff1d(_packed(array, fixed=fixed), found):
        cell = array[int(index)]
        if cell.is_valid:
            cell_search.search_cell(cell.as_buffer().to_pybytes(), where, label, collector, fixed=fixed)


_TOGETHER = 4096
_BYTES_TOGETHER = 1 << 22
"""Cells that are looked at together, and bytes of them."""


def _together(array: Any, indexes: Any) -> Iterator[Any]:
    """Some cells of an array in parts that are not too large."""
    import pyarrow.compute as pc

    sizes = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False)[indexes]
    first, held = 0, 0
    for at, size in enumerate(sizes.tolist()):
        if at > first and (held + size > _BYTES_TOGETHER or at - first >= _TOGETHER):
            yield indexes[first:at]
            first, held = at, 0
        held += size
    yield indexes[first:]


def _cells(array: Any, indexes: Any) -> list[bytes]:
    """The bytes of some cells of a `large_string` or `large_binary` array, without nulls."""
    some = array.take(pa.array(indexes, pa.int64())).drop_null()
    plain = pa.Array.from_buffers(pa.large_binary(), len(some), some.buffers(), offset=some.offset)
    return list(plain.to_pylist())


def _suspects(array: Any, collector: Collector, label: str) -> Any:
    """Indexes of the cells of a `large_string` or `large_binary` array in which something may be found."""
    if array.buffers()[2] is None or not len(array):
        return np.empty(0, np.int64)
    apart = _apart(array)
    _, borders, data = apart.buffers()
    ends = np.frombuffer(borders, np.int64, len(apart) + 1, apart.offset * 8)
    here = memoryview(data)[ends[0] : ends[-1]]
    spots = np.union1d(collector.patterns.spots(here, label), text_bytes_decoding.places(here, ends[:-1] - ends[0]))
    found = np.unique(np.searchsorted(ends, spots + ends[0], side="right") - 1)
    if not collector.patterns.has_tiny:
        return found
    return np.union1d(found, _tiny(array, collector))


def _apart(array: Any) -> Any:
    """The same cells with a zero byte behind each, where the end of one may change what the next is read as: `100%`
    before `ada%40mail.example`, a letter before a value that goes on in its next line.
    """
    _, borders, data = array.buffers()
    ends = np.frombuffer(borders, np.int64, len(array) + 1, array.offset * 8)
    if escape_free_text.are_all(bytes(memoryview(data)[ends[0] : ends[-1]])):
        return array
    return pc.binary_join_element_wise(array, *pa.array([b"", b"\0"], pa.large_binary()).cast(array.type))


def _numbers(array: Any, collector: Collector) -> Any:
    """Indexes of the cells of a `large_binary` array that are nothing but the bytes of a number."""
    _, borders, data = array.buffers()
    if data is None or not len(array):
        return np.empty(0, np.int64)
    ends = np.frombuffer(borders, np.int64, len(array) + 1, array.offset * 8)
    return collector.patterns.packed.places(np.frombuffer(data, np.uint8), ends)


_ODD = np.array([byte >= 127 or (byte < 32 and byte not in b"\t\n\r\x1b") for byte in range(256)], np.uint8)
_DIGEST = 64
_MANY = 1000
"""So many cells of one size, that of a digest, are digests or numbers of things."""


def _packed(array: Any, *, fixed: bool = False) -> Any:
    """Indexes of the cells that are no plain text; of digests, of those that begin as streams or files do."""
    _, borders, data = array.buffers()
    if data is None or not len(array):
        return np.empty(0, np.int64)
    ends, data = np.frombuffer(borders, np.int64, len(array) + 1, array.offset * 8), np.frombuffer(data, np.uint8)
    sizes = ends[1:] - ends[:-1]
    long = np.flatnonzero(sizes > 1)
    if not len(long):
        return long
    starts, lengths = ends[long], sizes[long]
    if not fixed and not (len(long) >= _MANY and lengths.max() <= _DIGEST and lengths.min() == lengths.max()):
        odd = np.maximum.reduceat(_ODD[data[starts[0] : ends[-1]]], starts - starts[0])
        long, starts, lengths = long[odd > 0], starts[odd > 0], lengths[odd > 0]
        small = lengths < small_cells.SMALL
        held = ~small
        held[small] = small_cells.may_hold(data, starts[small], lengths[small])
        return long[held]
    heads = data[starts].astype(np.uint16) << 8 | data[starts + 1]
    known = {
        *compressed_streams.STARTS,
        *cell_search.FOREIGN_STARTS,
        *(start[:2] for kind in file_kinds() for start in kind.starts),
    }
    begins = np.isin(heads, [int.from_bytes(start, "big") for start in known])
    padded = (data[starts + lengths - 1] == 0) & (data[starts + lengths - 2] == 0) & (lengths > _DIGEST)
    return long[begins | padded]


def _tiny(array: Any, collector: Collector) -> Any:
    """Tiny numbers count only as whole cells, and as members of cells that are JSON: the indexes of such cells."""
    cells = pa.array([cell.encode("utf-8", "surrogateescape") for cell in collector.patterns.cells], pa.large_binary())
    try:
        trimmed = pc.utf8_trim_whitespace(_as_text(array))
    except pa.ArrowInvalid:  # not all of it is text
        return np.arange(len(array))
    whole = pc.replace_substring_regex(trimmed, WHOLE_NUMBER, r"\1")
    wanted = pc.or_(pc.is_in(trimmed, value_set=_as_text(cells)), pc.is_in(whole, value_set=_as_text(cells)))
    for opening in ("{", "["):
        wanted = pc.or_(wanted, pc.starts_with(trimmed, opening))
    return np.flatnonzero(pc.fill_null(wanted, False).to_numpy(zero_copy_only=False))


def _as_text(array: Any) -> Any:
    """The same bytes, called text."""
    return pa.Array.from_buffers(pa.large_string(), len(array), array.buffers(), offset=array.offset)


def _search_numbers(array: Any, collector: Collector, where: str, label: str) -> None:
    wanted = _as_type(collector.patterns.ints, array.type)
    if (wide := _computable(array.type)) != array.type:
        array, wanted = array.cast(wide), wanted.cast(wide)
    extremes = pc.min_max(array)
    least, most = extremes["min"], extremes["max"]
    if least.is_valid:  # none of a few numbers within the bounds is the rule
        inside = pc.and_(pc.greater_equal(wanted, least), pc.less_equal(wanted, most))
        wanted = pc.filter(wanted, inside)
    if len(wanted) == 0:
        return
    matched = pc.filter(array, pc.is_in(array, value_set=wanted))
    for value in matched.to_pylist():
        if value is not None:
            collector.number(value, where, label)


def _computable(kind: pa.DataType) -> pa.DataType:
    """A type that has every value of this one as it is, and that Arrow compares.

    Of half floats and short decimals it has neither the smallest nor a set of values
    (https://arrow.apache.org/docs/cpp/compute.html, "Aggregations").
    """
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return kind


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
