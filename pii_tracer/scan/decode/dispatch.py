"""One file in, its hits out: the format is told by the bytes first, by the name only where bytes don't tell."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from pii_tracer.scan.decode import compression, streaming_state, text
from pii_tracer.scan.decode.cells import cell_search
from pii_tracer.scan.decode.compressed_streams import SKIPPING, Beside, PackedError
from pii_tracer.scan.decode.file_kind import FileKind, file_kinds, own_errors
from pii_tracer.scan.decode.table_metadata import Role, role_of
from pii_tracer.scan.hit_collector import Collector

_OWN_ERRORS = (PackedError, streaming_state.StateError)
BLOCK = 32 * 1024 * 1024
"""Text of more bytes is read in such blocks of lines, so that memory does not follow the file."""

_DEPTH = 4
_MAGIC = 4
"""A header's own first bytes are no stream that begins in it."""
TOTAL = 4 * 1024**3
"""So many bytes are unpacked of what lies in containers of one file."""
MEMBERS = 100_000
"""Parts of more files than that are unread."""


@dataclass
class _Nest:
    """How deep a part lies in its file, and what may still be unpacked of the file, with all others of its parts."""

    depth: int = 0
    left: list[int] = field(default_factory=lambda: [TOTAL, MEMBERS])

    def deeper(self) -> _Nest:
        """For what lies in a part.

        Raises:
            PackedError: it lies too deep.
        """
        if self.depth >= _DEPTH:
            raise PackedError("nested in too many archives")
        return _Nest(self.depth + 1, self.left)

    def drawn(self, pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
        """The same pieces, as long as they are not too much. The first layer is only as large as its file."""
        for piece in pieces:
            if self.depth:
                self.left[0] -= len(piece)
                if self.left[0] < 0:
                    raise PackedError(f"its files unpack to more than {TOTAL} bytes")
            yield bytes(piece)


def search(name: str, data: memoryview, collector: Collector) -> str:
    """Decode and search one file's bytes; returns the formats it was read as. Never raises for bad content.

    Every byte is decoded, searched as it stands, or named as unread.

    name: path of the file inside its table's folder, or its object key.
    """
    collector.search_file = partial(_search_cell, 0)
    return _guarded(name, data, collector, role_of(name), _Nest()) or "unreadable"


def _search_cell(depth: int, collector: Collector, value: bytes) -> bool:
    """A cell that may be a whole file, as it may in such a file. Returns whether it is one."""
    data = memoryview(value)
    if not any(kind.fits(data) for kind in file_kinds()):
        return False
    if depth >= _DEPTH:
        collector.unread("files in cells that are nested too deeply")
        return True
    before, collector.search_file = collector.search_file, partial(_search_cell, depth + 1)
    try:
        _guarded("", data, collector, Role.DATA, _Nest())
    finally:
        collector.search_file = before
    return True


def _guarded(name: str, data: memoryview, collector: Collector, role: Role, nest: _Nest) -> str | None:
    try:
        return _search(name, data, collector, role, nest)
    except Exception as error:  # a hostile or corrupt file may fail anywhere in a decoder: unread, never clean
        collector.raw(data, "raw bytes")
        _unread(error, collector)
        return None


def _unread(error: Exception, collector: Collector) -> None:
    known = isinstance(error, (*_OWN_ERRORS, *own_errors()))
    # other libraries' messages may repeat content of the file, so only their type is kept
    collector.unread(str(error) if known else f"cannot be decoded: {type(error).__name__}")


def _search(name: str, data: memoryview, collector: Collector, role: Role, nest: _Nest) -> str:
    """What the bytes tell goes before what the name tells."""
    if not len(data):
        return "empty"
    try:
        if read_as := _by_bytes(name, data, collector, role, nest):
            return read_as
    except Exception:
        # the first cell of a text may begin as another format does
        if collector.columns is None or text.as_text(data) is None:
            raise
        return _text(name, data, collector, role)
    if streaming_state.is_state(name):
        streaming_state.decode(data, collector)
        return "streaming state"
    if streaming_state.is_schema(name):
        collector.raw(data, "raw bytes")
        return "streaming state's schema"
    beside = Beside()
    if unpacked := compression.opened(name, data, BLOCK, beside):
        try:
            read_as = _unpacked(name, unpacked, beside, collector, role, nest)
            if unpacked[0] in SKIPPING:
                collector.rest(data, "raw bytes", packed=[range(len(data))])
            return read_as
        except PackedError:  # it may only be called so
            if text.as_text(data) is None:
                raise
    return _text(name, data, collector, role)


def _by_bytes(name: str, data: memoryview, collector: Collector, role: Role, nest: _Nest) -> str | None:
    """Decode what the bytes tell; None where they tell nothing."""
    beside = Beside()
    if unpacked := compression.opened("", data, BLOCK, beside):
        return _unpacked(name, unpacked, beside, collector, role, nest)
    kind = next((kind for kind in file_kinds() if kind.fits(data)), None)
    return _of_kind(kind, data, collector, role, nest) if kind else None


def _unpacked(
    name: str,
    unpacked: tuple[str, str, Iterator[bytes]],
    beside: Beside,
    collector: Collector,
    role: Role,
    nest: _Nest,
) -> str:
    codec, _, pieces = unpacked
    inner, deeper = compression.inner_name(name), nest.deeper()
    read_as = _pieces(inner, codec, nest.drawn(pieces), collector, role, deeper)
    for own in beside.own:
        _own(own, collector)
    for free in beside.free:
        if compression.opened("", free, BLOCK) or any(kind.fits(free) for kind in file_kinds() if len(free)):
            beside.foreign.append(free)
        else:
            _own(free, collector)
    for foreign in beside.foreign:
        _guarded("", foreign, collector, Role.DATA, deeper)
    return f"{codec} > {read_as}"


def _pieces(name: str, what: str, pieces: Iterator[bytes], collector: Collector, role: Role, nest: _Nest) -> str:
    """A file that comes in pieces. what: what it comes from, as errors call it."""
    first = compression.first(pieces, BLOCK)
    if len(first) >= BLOCK and role is Role.DATA and (kind := text.in_blocks(name, first, collector)):
        return text.decode_blocks(kind, itertools.chain((first,), pieces), collector)
    content = compression.whole(what, itertools.chain((first,), pieces))
    return _guarded(name, memoryview(content), collector, role, nest) or "unreadable"


def _of_kind(kind: FileKind, data: memoryview, collector: Collector, role: Role, nest: _Nest) -> str:
    if kind.decode is not None:
        kind.decode(data, collector, role)
    for part in kind.parts(data) if kind.parts is not None else ():
        if part.own:
            for piece in part.pieces:
                _own(memoryview(piece), collector)
            continue
        deeper = nest.deeper()
        nest.left[1] -= 1
        if nest.left[1] < 0:
            raise PackedError(f"it contains more than {MEMBERS} files")
        try:
            _pieces(part.name, kind.name, deeper.drawn(part.pieces), collector, role_of(part.name), deeper)
        except Exception as error:  # the others are read all the same
            _unread(error, collector)
    return kind.name


def _own(data: memoryview, collector: Collector) -> None:
    """A container's own bytes: names and comments stand in them."""
    content = text.as_single_bytes(bytes(data).replace(b"\0", b"\n"))
    cell_search.search_unexplained(bytes(data[_MAGIC:]), "raw bytes", collector)
    collector.raw(data, "raw bytes", lines=content is not None)
    if content is not None:
        collector.text(content, "raw bytes", strong=False)


def _text(name: str, data: memoryview, collector: Collector, role: Role) -> str:
    base = name.rsplit("/", 1)[-1]
    if base.endswith(".crc") and _is_checksums(data):
        collector.raw(data, "raw bytes")
        return "hadoop checksum"
    if len(data) > BLOCK and role is Role.DATA and (kind := text.in_blocks(base, bytes(data[:BLOCK]), collector)):
        pieces = (bytes(data[start : start + BLOCK]) for start in range(0, len(data), BLOCK))
        return text.decode_blocks(kind, pieces, collector)
    content = text.as_text(data)
    if content is not None:
        return text.decode(base, content, collector, role)
    collector.raw(data, "raw bytes")
    if base.startswith("deletion_vector_") and base.endswith(".bin") and _is_vectors(data):
        return "deletion vector"  # Roaring bitmaps of row positions
    content = text.as_single_bytes(data)
    if content is not None:
        return text.decode(base, content, collector, role)
    collector.unread("a format that no decoder knows")
    return "raw"


_BITMAPS = 1681511377
_CHUNK = range(1, 1 << 20)


def _is_checksums(data: memoryview) -> bool:
    """Whether it is laid out as Hadoop's checksums: bytes of each chunk, then four bytes a chunk, none a stream's start
    (https://github.com/apache/hadoop, `ChecksumFileSystem`)."""
    if bytes(data[:4]) != b"crc\0" or len(data) % 4 or int.from_bytes(data[4:8], "big") not in _CHUNK:
        return False
    return not cell_search.begin_within(bytes(data[8:]))


def _is_vectors(data: memoryview) -> bool:
    """Whether it is a file of Delta's deletion vectors from end to end: size, bitmaps of row positions, CRC-32
    (https://github.com/delta-io/delta/blob/master/PROTOCOL.md#deletion-vector-file-storage-format)."""
    position = 1
    while data[0] == 1 and position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        body = data[position + 4 : position + 4 + size]
        checksum = int.from_bytes(data[position + 4 + size : position + 8 + size], "big")
        if int.from_bytes(body[:4], "little") != _BITMAPS or zlib.crc32(body) != checksum:
            return False
        position += 8 + size
    return data[0] == 1 and position == len(data)
