"""VARIANT, the encoding of semi-structured values in two cells of bytes: names of fields, and the value.

https://github.com/apache/parquet-format/blob/master/VariantEncoding.md, and VariantShredding.md for the columns beside.
A number in it is no text, and stands between other bytes, so that a search of the bytes does not see it.
"""

from __future__ import annotations

import itertools
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pii_tracer.scan.decode.cells.json_members import member

if TYPE_CHECKING:
    from pii_tracer.scan.hit_collector import Collector

_METADATA, _VALUE, _TYPED = "metadata", "value", "typed_value"
UNREAD = "a value of VARIANT that cannot be decoded"
_SHORT_TEXT, _OBJECT = 1, 2
_INTEGERS = {3: 1, 4: 2, 5: 4, 6: 8}
_DECIMALS = {8: 4, 9: 8, 10: 16}
_FLOATS = {7: ("<d", 8), 14: ("<f", 4)}
_NOTHING = {0: 0, 1: 0, 2: 0, 12: 8, 13: 8, 17: 8, 18: 8, 19: 8}
"""Null, true, false, and moments, which are no identifiers, as everywhere; with their bytes."""
_DATE, _BYTES, _TEXT, _UUID = 11, 15, 16, 20
_SCALE = 38
_DIGITS = 10**38
_NAMED_DEPTH = 40
_AT_ONCE = 50_000

_INTEGER, _WIDE, _FLOAT = pa.int64(), pa.decimal128(38, 0), pa.float64()
_OF_TEXT, _OF_BYTES, _OF_DAYS, _OF_UUIDS = pa.large_string(), pa.large_binary(), pa.date32(), pa.binary(16)


class Part(NamedTuple):
    """A scalar in a value: its path (`.payer.phone`), its type, and what it is. kind: None where it is not decoded."""

    path: str
    kind: pa.DataType | None
    value: Any


class _Broken(ValueError):
    """Bytes that are not what the encoding says."""


def names(metadata: bytes) -> tuple[str, ...] | None:
    """The names of fields; None where the bytes are no metadata of VARIANT."""
    if not metadata or metadata[0] & 15 != 1:
        return None
    size = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + size], "little")
    start = 1 + size * (count + 2)
    if start > len(metadata):
        return None
    ends = _numbers(metadata, 1 + size, size, count + 1)
    if ends[0] or ends[-1] != len(metadata) - start or any(a > b for a, b in itertools.pairwise(ends)):
        return None
    text = metadata[start:]
    return tuple(text[a:b].decode("utf-8", "surrogateescape") for a, b in itertools.pairwise(ends))


def scalars(value: bytes, fields: Sequence[str]) -> Iterator[Part]:
    """All scalars in a value. What is not decoded is given as such, and the rest is decoded all the same.

    No byte belongs to two parts of a value, so that they take no more than all its bytes together.
    """
    left = len(value)
    open_ = [(0, "", 0)]
    while open_:
        at, path, depth = open_.pop()
        try:
            kind, content, inner, used = _read(value, at)
        except _Broken:
            yield Part(path, None, None)
            continue
        left -= used
        if left < 0:
            yield Part(path, None, None)
            return
        if kind is not None:
            yield Part(path, kind, content)
        for start, field in inner:
            name = fields[field] if field is not None and field < len(fields) else None
            longer = field is not None and depth < _NAMED_DEPTH
            open_.append((start, f"{path}.{member(name)}" if longer else path, depth + longer))


_Elements = list[tuple[int, int | None]]
"""Where the elements of an array or object begin, and the numbers of their names."""


def _read(value: bytes, at: int) -> tuple[pa.DataType | None, Any, _Elements, int]:
    """Type and content of a scalar, or the elements; and how many bytes that takes without the elements' own."""
    if at >= len(value):
        raise _Broken
    if value[at] & 3 <= _SHORT_TEXT:
        kind, content, used = _scalar(value, at)
        return kind, content, [], used
    return None, None, *_elements(value, at)


def _scalar(value: bytes, at: int) -> tuple[pa.DataType | None, Any, int]:
    """Type, content and bytes of one; no type where it means no person."""
    head, start = value[at] >> 2, at + 1
    if value[at] & 3 == _SHORT_TEXT:
        return _OF_TEXT, _bytes(value, start, head), 1 + head
    if head in _NOTHING:
        return None, _bytes(value, start, _NOTHING[head]), 1 + _NOTHING[head]
    if head in _INTEGERS:
        size = _INTEGERS[head]
        return _INTEGER, int.from_bytes(_bytes(value, start, size), "little", signed=True), 1 + size
    if head in _FLOATS:
        form, size = _FLOATS[head]
        return _FLOAT, struct.unpack(form, _bytes(value, start, size))[0], 1 + size
    if head in _DECIMALS:
        return *_decimal(_bytes(value, start, 1 + _DECIMALS[head])), 2 + _DECIMALS[head]
    if head == _DATE:
        return _OF_DAYS, int.from_bytes(_bytes(value, start, 4), "little", signed=True), 5
    if head in (_BYTES, _TEXT):
        size = int.from_bytes(_bytes(value, start, 4), "little")
        return (_OF_TEXT if head == _TEXT else _OF_BYTES), _bytes(value, start + 4, size), 5 + size
    if head == _UUID:
        return _OF_UUIDS, _bytes(value, start, 16), 17
    raise _Broken


def _decimal(data: bytes) -> tuple[pa.DataType | None, Any]:
    """A whole number; others are no keys."""
    if data[0] > _SCALE:
        raise _Broken
    number, rest = divmod(int.from_bytes(data[1:], "little", signed=True), 10 ** data[0])
    if rest:
        return None, None
    if -(1 << 63) <= number < 1 << 63:
        return _INTEGER, number
    if abs(number) >= _DIGITS:
        raise _Broken
    return _WIDE, Decimal(number)


def _elements(value: bytes, at: int) -> tuple[_Elements, int]:
    """The elements of an array or object, and the bytes in front of them."""
    head, named = value[at] >> 2, value[at] & 3 == _OBJECT
    size, ids = (head & 3) + 1, (head >> 2 & 3) + 1 if named else 0
    wide = 4 if head >> (4 if named else 2) & 1 else 1
    count = int.from_bytes(_bytes(value, at + 1, wide), "little")
    start = at + 1 + wide
    fields = start + count * ids + (count + 1) * size
    if fields > len(value):
        raise _Broken
    offsets = _numbers(value, start + count * ids, size, count)
    numbers: Sequence[int | None] = _numbers(value, start, ids, count) if named else [None] * count
    return [(fields + offset, number) for offset, number in zip(offsets, numbers, strict=True)], fields - at


def _numbers(data: bytes, at: int, size: int, count: int) -> list[int]:
    return [int.from_bytes(data[n : n + size], "little") for n in range(at, at + size * count, size)]


def _bytes(value: bytes, at: int, size: int) -> bytes:
    if at + size > len(value):
        raise _Broken
    return value[at : at + size]


def is_variant(kind: pa.DataType) -> bool:
    """Whether a struct has the fields of a VARIANT, with an annotation or without."""
    fields = {field.name: field.type for field in kind}
    return (
        _METADATA in fields
        and 1 < kind.num_fields == len(fields)
        and fields.keys() <= {_METADATA, _VALUE, _TYPED}
        and all(is_bytes(fields[name]) for name in (_METADATA, _VALUE) if name in fields)
    )


def is_bytes(kind: pa.DataType) -> bool:
    """Whether cells are bytes of any length."""
    return any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view))


def cells(array: Any, label: str, unread: Callable[[str], None]) -> Iterator[tuple[str, Any]]:
    """The scalars in a column of VARIANT, as arrays with the labels that their hits have; none where it is no VARIANT.

    unread: called with a reason where a value is not decoded.
    """
    columns = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    about = columns[_METADATA]
    known = {data: names(data) for data in about.unique().to_pylist() if data}
    if not any(found is not None for found in known.values()):
        return
    keys = {name.encode("utf-8", "surrogateescape") for found in known.values() for name in found or ()}
    yield from _arrays({(f"{label}.$.(key)", _OF_TEXT): list(keys)})
    made: dict[tuple[str, pa.DataType], list[Any]] = defaultdict(list)
    count = 0
    for place, rows, values in _values(columns, np.arange(len(array)), label):
        for data, value in zip(about.take(pa.array(rows)).to_pylist(), values.to_pylist(), strict=True):
            fields = known.get(data)
            if value and fields is None:
                unread(UNREAD)
            for part in scalars(value, fields or ()) if value else ():
                if part.kind is None:
                    unread(UNREAD)
                    continue
                made[(f"{place}.${part.path}" if part.path else place, part.kind)].append(part.value)
                count += 1
            if count >= _AT_ONCE:
                yield from _arrays(made)
                made.clear()
                count = 0
    yield from _arrays(made)


def _values(columns: dict[str, Any], rows: Any, label: str) -> Iterator[tuple[str, Any, Any]]:
    """Columns of encoded values below a struct: labels, the rows of the VARIANT that the cells are in, and cells."""
    for name, column in columns.items():
        if name == _VALUE and is_bytes(column.type):
            yield label, rows, column
        elif name != _METADATA:
            yield from _shredded(column, rows, f"{label}.{name}")


def _shredded(array: Any, rows: Any, label: str) -> Iterator[tuple[str, Any, Any]]:
    kind = array.type
    if pa.types.is_struct(kind):
        yield from _values(dict(zip((f.name for f in kind), array.flatten(), strict=True)), rows, label)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        parents = pc.list_parent_indices(array).to_numpy(zero_copy_only=False)
        yield from _shredded(array.flatten(), rows[parents], label)


def _arrays(made: dict[tuple[str, pa.DataType], list[Any]]) -> Iterator[tuple[str, Any]]:
    for (label, kind), values in made.items():
        if kind != _OF_TEXT:
            yield label, pa.array(values, kind)
            continue
        array = pa.array(values, _OF_BYTES)
        try:
            yield label, array.cast(_OF_TEXT)
        except pa.ArrowInvalid:  # not all of it is text
            yield label, array


def is_row(value: dict[str, Any]) -> bool:
    """Whether a struct that comes as fields by their names has those of a VARIANT."""
    return value.keys() == {_METADATA, _VALUE} and all(isinstance(item, bytes) for item in value.values())


def search_row(row: dict[str, bytes], where: str, column: str, collector: Collector) -> None:
    """One VARIANT, as what it holds and as bytes. What both show is counted once."""
    found, plain = collector.inner(), collector.inner()
    array = pa.array([row], pa.struct([(name, _OF_BYTES) for name in (_METADATA, _VALUE)]))
    for label, content in cells(array, column, found.unread):
        texts = content.cast(pa.string()) if content.type == _OF_DAYS else content
        for value in texts.to_pylist():
            found.leaf(value, where, label)
    for name, data in row.items():
        plain.binary(data, where, f"{column}.{name}")
    found.merge(plain, unless_seen_in=found)
    collector.merge(found)
