"""The tail of an ORC file, read and mended: what Arrow's reader does not show and its writer does not write.

Layout: https://orc.apache.org/specification/ORCv1/, "File Tail" and "Stripe Footer". Messages are Protocol Buffers:
https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import cramjam
import pyarrow as pa

from executors.formats.plain_files.arrow_match import BY_HAND, RowsError
from executors.formats.plain_files.compression import unsnapped
from executors.formats.plain_files.stored_file import Stored

_NONE, _ZLIB, _SNAPPY, _LZ4, _ZSTD = 0, 1, 2, 4, 5
_TYPES, _USER, _CALENDAR = 4, 5, 11
_TIMESTAMP = 9
_LZ4_RATIO = 255  # no byte of LZ4 stands for more
_UTC = frozenset({b"", b"UTC", b"GMT", b"Etc/UTC", b"Z"})

Field = tuple[int, int, bytes]
"""Number, value of a number field (or 0), and the field's bytes with its tag."""


@dataclass(frozen=True)
class Tail:
    """What a footer says. types, user, calendar: the fields' bytes. zones: the stripes' time zones."""

    types: tuple[bytes, ...]
    user: tuple[bytes, ...]
    calendar: tuple[bytes, ...]
    zones: frozenset[bytes]
    dictionaries: bool

    @property
    def safe_timestamps(self) -> bool:
        """Arrow writes in UTC: wall-clock times of another zone would move."""
        stamped = any(v == _TIMESTAMP for t in self.types for n, v, _ in _fields(_body(t)) if n == 1)
        return not stamped or self.zones <= _UTC


def read_tail(path: Stored) -> Tail:
    """Footer and stripe footers of a file.

    Raises:
        RowsError: the tail cannot be read.
    """
    data = _Mapped(path)
    footer = list(_fields(data.footer()))
    zones: set[bytes] = set()
    dictionaries = False
    for number, _, raw in footer:
        if number != 3:
            continue
        sizes = {n: v for n, v, _ in _fields(_body(raw))}
        start = sizes.get(1, 0) + sizes.get(2, 0) + sizes.get(3, 0)
        stripe = data.section(start, sizes.get(4, 0))
        for n, _, part in _fields(stripe):
            if n == 3:
                zones.add(_body(part))
            elif n == 2:
                dictionaries |= any(m == 1 and v in (1, 3) for m, v, _ in _fields(_body(part)))
    return Tail(
        types=tuple(_type(raw) for n, _, raw in footer if n == _TYPES),
        user=tuple(raw for n, _, raw in footer if n == _USER),
        calendar=tuple(raw for n, _, raw in footer if n == _CALENDAR),
        zones=frozenset(zones),
        dictionaries=dictionaries,
    )


def _type(raw: bytes) -> bytes:
    """A type without the lengths of nothing that one writer leaves out and another writes (fields 4 to 6)."""
    tag, _ = _varint(raw, 0)
    body = b"".join(part for n, v, part in _fields(_body(raw)) if v or n not in (4, 5, 6))
    return _varint_bytes(tag) + _varint_bytes(len(body)) + body


def put_notes(path: Stored, old: Tail) -> None:
    """Give a file the user metadata and the calendar of another; the footer is stored as it is, not compressed.

    Arrow copies days and times as the numbers they are, so that the calendar they are counted in stays the old one's.
    """
    data = _Mapped(path)
    plain = b"".join(raw for n, _, raw in _fields(data.footer()) if n not in (_USER, _CALENDAR))
    footer = plain + b"".join((*old.user, *old.calendar))
    chunks = b""
    limit = min(data.block, (1 << 23) - 1)
    if data.kind == _NONE:
        chunks = footer
    else:
        for start in range(0, len(footer), limit):
            part = footer[start : start + limit]
            chunks += (len(part) * 2 + 1).to_bytes(3, "little") + part
    script = b"".join(_with(raw, n, len(chunks)) for n, _, raw in _fields(data.script))
    if len(script) > 255:
        raise RowsError("the ORC file's postscript cannot be written back", todo=BY_HAND)
    with path.open("r+b") as stream:
        stream.truncate(data.footer_start)
        stream.seek(data.footer_start)
        stream.write(chunks + script + bytes([len(script)]))


def _with(raw: bytes, number: int, length: int) -> bytes:
    """The postscript's field 1 is the footer's length."""
    return b"\x08" + _varint_bytes(length) if number == 1 else raw


class _Mapped:
    """Sections of a file, read when asked for."""

    def __init__(self, path: Stored) -> None:
        self._path = path
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - 257))
            end = stream.read()
        length = end[-1]
        self.script = end[-1 - length : -1]
        values = {n: v for n, v, _ in _fields(self.script)}
        self.kind, self.block = values.get(2, _NONE), values.get(3, 256 * 1024)
        self._footer = values.get(1, 0)
        self.footer_start = size - 1 - length - self._footer
        if self._footer <= 0 or self.footer_start < 3:
            raise RowsError("the ORC file's tail cannot be read", todo=BY_HAND)

    def footer(self) -> bytes:
        """The footer, unpacked."""
        return self.section(self.footer_start, self._footer)

    def section(self, start: int, length: int) -> bytes:
        """A compressed section, unpacked."""
        with self._path.open("rb") as stream:
            stream.seek(start)
            data = stream.read(length)
        if self.kind == _NONE:
            return data
        out, position = b"", 0
        while position < len(data):
            head = int.from_bytes(data[position : position + 3], "little")
            chunk = data[position + 3 : position + 3 + (head >> 1)]
            out += chunk if head & 1 else self._chunk(chunk)
            position += 3 + (head >> 1)
        return out

    def _chunk(self, chunk: bytes) -> bytes:
        if self.kind == _ZLIB:
            return zlib.decompress(chunk, wbits=-15)
        if self.kind == _ZSTD:
            with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
                return bytes(stream.read())
        if self.kind == _SNAPPY:
            return unsnapped(chunk)
        if self.kind == _LZ4:
            out = memoryview(bytearray(_LZ4_RATIO * len(chunk)))
            return bytes(out[: cramjam.lz4.decompress_block_into(chunk, out, output_len=len(out))])
        raise RowsError("the ORC file's codec is not supported", todo=BY_HAND)


def _fields(data: bytes) -> Iterator[Field]:
    position = 0
    while position < len(data):
        start = position
        tag, position = _varint(data, position)
        value = 0
        if tag & 7 == 0:
            value, position = _varint(data, position)
        elif tag & 7 == 2:
            length, position = _varint(data, position)
            position += length
        elif tag & 7 in (1, 5):
            position += 8 if tag & 7 == 1 else 4
        else:
            raise RowsError("the ORC file's tail cannot be read", todo=BY_HAND)
        yield tag >> 3, value, data[start:position]


def _body(raw: bytes) -> bytes:
    """Content of a field that has a length."""
    _, position = _varint(raw, 0)
    _, position = _varint(raw, position)
    return raw[position:]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


def _varint_bytes(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])
