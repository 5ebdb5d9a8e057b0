"""One file in, its hits out: the format is told by the bytes first, by the name only where bytes don't tell."""

from __future__ import annotations

import itertools

from pii_tracer.scan.decode import compression, streaming_state, text
from pii_tracer.scan.decode.file_kind import file_kinds, own_errors
from pii_tracer.scan.decode.table_metadata import Role, role_of
from pii_tracer.scan.hit_collector import Collector

_OWN_ERRORS = (compression.PackedError, streaming_state.StateError)
BLOCK = 32 * 1024 * 1024
"""Text of more bytes is read in such blocks of lines, so that memory does not follow the file."""

_DEPTH = 4


def search(name: str, data: memoryview, collector: Collector) -> str:
    """Decode and search one file's bytes; returns the formats it was read as. Never raises for bad content.

    name: path of the file inside its table's folder, or its object key.
    """
    try:
        return _search(name, data, collector, role_of(name), 0)
    except Exception as error:  # a hostile or corrupt file may fail anywhere in a decoder: unread, never clean
        collector.raw(data, "raw bytes")
        known = isinstance(error, (*_OWN_ERRORS, *own_errors()))
        # other libraries' messages may repeat content of the file, so only their type is kept
        collector.unread(str(error) if known else f"cannot be decoded: {type(error).__name__}")
        return "unreadable"


def _search(name: str, data: memoryview, collector: Collector, role: Role, depth: int) -> str:
    if not len(data):
        return "empty"
    unpacked = compression.opened(name, data, BLOCK)
    if unpacked is not None:
        codec, inner, pieces = unpacked
        if depth >= _DEPTH:
            raise compression.PackedError("compressed more often than is sensible")
        first = compression.first(pieces, BLOCK)
        if len(first) >= BLOCK and role is Role.DATA and (kind := text.in_blocks(inner, first)):
            return f"{codec} > " + text.decode_blocks(kind, itertools.chain((first,), pieces), collector)
        content = compression.whole(codec, itertools.chain((first,), pieces))
        return f"{codec} > " + _search(inner, memoryview(content), collector, role, depth + 1)
    if streaming_state.is_state(name):
        streaming_state.decode(data, collector)
        return "streaming state"
    if streaming_state.is_schema(name):
        collector.raw(data, "raw bytes")
        return "streaming state's schema"
    return _binary(data, collector, role) or _text(name, data, collector, role)


def _binary(data: memoryview, collector: Collector, role: Role) -> str | None:
    for kind in file_kinds():
        if kind.fits(data):
            kind.decode(data, collector, role)
            return kind.name
    return None


def _text(name: str, data: memoryview, collector: Collector, role: Role) -> str:
    base = name.rsplit("/", 1)[-1]
    if bytes(data[:4]) == b"crc\0" and base.endswith(".crc"):
        collector.raw(data, "raw bytes")
        return "hadoop checksum"
    if len(data) > BLOCK and role is Role.DATA and (kind := text.in_blocks(base, bytes(data[:BLOCK]))):
        pieces = (bytes(data[start : start + BLOCK]) for start in range(0, len(data), BLOCK))
        return text.decode_blocks(kind, pieces, collector)
    content = text.as_text(data)
    if content is not None:
        return text.decode(base, content, collector, role)
    collector.raw(data, "raw bytes")
    if base.startswith("deletion_vector_") and base.endswith(".bin") and data[0] == 1:
        return "deletion vector"  # Roaring bitmaps of row positions
    content = text.as_single_bytes(data)
    if content is not None:
        return text.decode(base, content, collector, role)
    collector.unread("a format that no decoder knows")
    return "raw"
