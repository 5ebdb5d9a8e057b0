"""Thrift's compact protocol, in which Parquet writes footers and page headers
(https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_DEPTH = 8
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_UUID = 13

_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_heads = b"".join(b"\\x%x%x" % (step, kind) for step in range(1, 16) for kind in (_I16, _I32, _I64))
_truths = b"".join(b"\\x%x%x" % (step, kind) for step in range(1, 16) for kind in (_TRUE, _FALSE))
_NUMBERS = re.compile(rb"(?:[" + _heads + rb"]" + _VARINT + rb"|[" + _truths + rb"])*", re.DOTALL)
"""A run of fields that hold numbers and truth values: most of a footer, passed over at once."""


Fields = dict[int, tuple[int, Any]]
"""A structure with all that its bytes say: kind and value by number of the field, in the order in which they stand.

Values by kind: numbers as numbers, doubles and texts as bytes, a truth value by its kind alone, a structure as
`Fields`, a list as the kind of its items and the items.
"""
SHORT, INTEGER, BINARY, LIST, STRUCT = _I16, _I64, _BINARY, _LIST, _STRUCT
"""Kinds of values, for who makes fields."""


class ThriftError(ValueError):
    """The bytes are no structure in this protocol."""


class Thrift:
    """Reads the structure that begins some bytes. position: how far it has read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def struct(self) -> dict[int, Any]:
        """Fields by number.

        Raises:
            ThriftError: it is none, or it is cut short.
        """
        try:
            return self._struct(0)
        except (IndexError, ValueError, TypeError):
            raise ThriftError("no structure of Thrift") from None

    def numbers(self) -> frozenset[int]:
        """Numbers of its fields alone; what they hold is passed over, which is several times as fast.

        Raises:
            ThriftError: it is none, or it is cut short.
        """
        found, number = set(), 0
        try:
            for head in iter(self._byte, _STOP):
                number = number + (head >> 4) if head >> 4 else self._zigzag()
                found.add(number)
                self._pass(head & 15, 0)
        except (IndexError, ValueError, TypeError):
            raise ThriftError("no structure of Thrift") from None
        return frozenset(found)

    def fields(self) -> Fields:
        """Fields with their kinds, known or not, so that `written` gives back the same bytes.

        Raises:
            ThriftError: it is none, it is cut short, or a field is there twice.
        """
        try:
            return self._fields(0)
        except (IndexError, ValueError, TypeError):
            raise ThriftError("no structure of Thrift") from None

    def _fields(self, depth: int) -> Fields:
        if depth > _DEPTH:
            raise ValueError("nested too deep")
        found: Fields = {}
        number = 0
        for head in iter(self._byte, _STOP):
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            if number in found:
                raise ValueError("a field that is there twice")
            found[number] = (head & 15, self._kept(head & 15, depth))
        return found

    def _kept(self, kind: int, depth: int) -> Any:
        if kind == _STRUCT:
            return self._fields(depth + 1)
        if kind not in (_LIST, _SET):
            return self._value(kind, depth)
        head = self._byte()
        count, kind = self._varint() if head >> 4 == 15 else head >> 4, head & 15
        # in lists a truth value has a byte of its own
        one = self._byte if kind in (_TRUE, _FALSE) else lambda: self._kept(kind, depth)
        return kind, [one() for _ in range(count)]

    def _struct(self, depth: int) -> dict[int, Any]:
        if depth > _DEPTH:
            raise ValueError("nested too deep")
        fields: dict[int, Any] = {}
        number = 0
        for head in iter(self._byte, _STOP):
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return self._zigzag()
        if kind in (_DOUBLE, _BINARY):
            return self._bytes(8 if kind == _DOUBLE else self._varint())
        if kind in (_LIST, _SET):
            return list(self._items(depth))
        if kind == _STRUCT:
            return self._struct(depth + 1)
        raise ValueError("a type that Parquet does not have")

    def _items(self, depth: int) -> Iterator[Any]:
        head = self._byte()
        count = self._varint() if head >> 4 == 15 else head >> 4
        for _ in range(count):
            # in lists a truth value has a byte of its own
            yield self._byte() == 1 if head & 15 in (_TRUE, _FALSE) else self._value(head & 15, depth)

    def _pass(self, kind: int, depth: int) -> None:
        """Go behind a value."""
        if kind == _BINARY:
            self._skip(self._varint())
        elif kind == _STRUCT:
            self._pass_struct(depth + 1)
        elif kind in (_LIST, _SET):
            head = self._byte()
            count, kind = self._varint() if head >> 4 == 15 else head >> 4, head & 15
            if kind in (_TRUE, _FALSE, _BYTE):
                self._skip(count)
                return
            for _ in range(count):
                self._pass(kind, depth)
        else:
            self._value(kind, depth)

    def _pass_struct(self, depth: int) -> None:
        if depth > _DEPTH:
            raise ValueError("nested too deep")
        data, run = self._data, _NUMBERS.match
        while True:
            at = run(data, self.position).end()  # type: ignore[union-attr]  # nothing is a run, too
            head, self.position = data[at], at + 1
            if head == _STOP:
                return
            if not head >> 4:
                self._zigzag()
            self._pass(head & 15, depth)

    def _byte(self) -> int:
        self.position += 1
        return self._data[self.position - 1]

    def _skip(self, size: int) -> None:
        self.position += size
        if self.position > len(self._data):
            raise ValueError("the Thrift data is truncated")

    def _bytes(self, size: int) -> bytes:
        self._skip(size)
        return self._data[self.position - size : self.position]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("a number without an end")

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


def written(fields: Fields) -> bytes:
    """The structure's bytes, each number as short as it can be."""
    out = bytearray()
    _write_fields(out, fields)
    return bytes(out)


def _write_fields(out: bytearray, fields: Fields) -> None:
    last = 0
    for number, (kind, value) in fields.items():
        if 0 < number - last < 16:
            out.append(number - last << 4 | kind)
        else:
            out.append(kind)
            _write_zigzag(out, number)
        last = number
        _write_value(out, kind, value)
    out.append(_STOP)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (_I16, _I32, _I64):
        _write_zigzag(out, value)
    elif kind == _BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == _DOUBLE:
        out += value
    elif kind == _BYTE:
        out.append(value)
    elif kind == _STRUCT:
        _write_fields(out, value)
    elif kind in (_LIST, _SET):
        inner, items = value
        out.append(min(len(items), 15) << 4 | inner)
        if len(items) >= 15:
            _write_varint(out, len(items))
        for item in items:
            _write_value(out, _BYTE if inner in (_TRUE, _FALSE) else inner, item)


def _write_zigzag(out: bytearray, value: int) -> None:
    _write_varint(out, value << 1 if value >= 0 else -value * 2 - 1)


def _write_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


class PlacedBytes(bytes):
    """Bytes that know where they stand."""

    at: int


class PlacedThrift(Thrift):
    """As `Thrift`; its bytes are `PlacedBytes`. start: where the data stands in what `at` counts from."""

    def __init__(self, data: bytes, start: int) -> None:
        super().__init__(data)
        self._start = start

    def _bytes(self, size: int) -> bytes:
        found = PlacedBytes(super()._bytes(size))
        found.at = self._start + self.position - size
        return found
