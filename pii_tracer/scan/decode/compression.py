"""Compressed files: what is inside, whole. Truncated or overlong content is an error, never a shorter text."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pii_tracer.scan.decode.streams import DECODERS, STARTS, ZLIB, Beside, PackedError, by_magic

if TYPE_CHECKING:
    from pii_tracer.scan.hit_collector import Collector

LIMIT = 2 * 1024**3
"""A file that unpacks to more bytes than this, and is no text that can be read in blocks, is reported as unread."""


_NAMED = {".snappy": "snappy", ".deflate": "deflate", ".lz4": "lz4", ".br": "brotli", ".lzma": "lzma"}
_SUFFIXES = (".gz", ".gzip", ".bz2", ".xz", ".zst", ".zstd", ".sz", ".zz", ".zlib", *_NAMED)


def opened(
    name: str, data: memoryview, size: int, beside: Beside | None = None
) -> tuple[str, str, Iterator[bytes]] | None:
    """(codec, name without its suffix, content in pieces of about `size` bytes) of a compressed file; else None.

    The codec is told by the bytes first; by the name (which may be empty) where bytes do not tell. beside: gets what is
    no content; without it, bytes behind the content are an error.

    The pieces raise `PackedError` where the content is cut short, corrupt, or larger than `LIMIT`.
    """
    codec = by_magic(data) or next((c for s, c in _NAMED.items() if name.lower().endswith(s)), None)
    if codec is None:
        return None
    other = Beside()
    pieces = DECODERS[codec](data, size, other if beside is None else beside)
    return codec, inner_name(name), pieces if beside is not None else _alone(codec, pieces, other)


def inner_name(name: str) -> str:
    """A compressed file's name without its suffix."""
    return next((name[: -len(s)] for s in _SUFFIXES if name.lower().endswith(s)), name)


def _alone(codec: str, pieces: Iterator[bytes], beside: Beside) -> Iterator[bytes]:
    yield from pieces
    if beside.foreign:
        raise PackedError(f"{codec} content with other bytes behind it")


def unpack(name: str, data: memoryview) -> tuple[str, str, bytes] | None:
    """(codec, name without its suffix, whole content) of a compressed file; None when it is none that is known.

    Raises:
        PackedError: cut short, corrupt, or larger than `LIMIT`.
    """
    found = opened(name, data, 1 << 20)
    return (found[0], found[1], whole(found[0], found[2])) if found else None


CELL = 64 * 1024**2
"""A cell that unpacks to more bytes than this is reported as unread."""


_FOREIGN = (
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old document of Office"),
    (b"\x89LZO\0", "an LZO stream"),
    (b"SQLite format 3\0", "a SQLite database"),
)
"""Containers that no decoder here reads."""
FOREIGN_STARTS = frozenset(start[:2] for start, _ in _FOREIGN)


def cell(value: bytes) -> bytes | None:
    """What a cell of bytes holds that is itself a compressed stream; None where it is none that can be unpacked, as any
    hash may begin like one.

    Raises:
        PackedError: it is larger than `CELL`.
    """
    if value[:2] not in STARTS:
        return None
    try:
        found = opened("", memoryview(value), 1 << 20, Beside())
        pieces = found[2] if found else ()
        out = bytearray()
        for piece in pieces:
            out += piece
            if len(out) > CELL:
                break
    except (PackedError, zlib.error):
        return None
    if len(out) > CELL:
        raise PackedError(f"a compressed cell larger than {CELL} bytes")
    return bytes(out) or None


_TELLING = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"\x04\x22\x4d\x18", b"BZh", b"PK\x03\x04", b"PAR1")
_MOST_ZLIB = 64


def begin_within(data: bytes) -> bool:
    """Whether a compressed stream seems to begin somewhere in bytes that nothing explains."""
    if any(start in data for start in _TELLING):
        return True
    starts = [at for start in ZLIB for at in _places(data, start)]
    return any(cell(data[at:]) is not None for at in starts[:_MOST_ZLIB])


def _places(data: bytes, part: bytes) -> Iterator[int]:
    at = data.find(part)
    while at >= 0:
        yield at
        at = data.find(part, at + 1)


LEAST_FILE = 64
"""No file of a kind that is told by its bytes, and that holds a value, has fewer."""


def search_cell(value: bytes, where: str, column: str | None, collector: Collector) -> None:
    """What a cell holds beside its own bytes. It is no cell of the column."""
    if len(value) >= LEAST_FILE and collector.search_file is not None:
        collector.search_file(collector, value)
    for start, what in _FOREIGN:
        if value.startswith(start):
            collector.unread(f"a cell that is {what}")
    try:
        content = cell(value)
    except PackedError as error:
        collector.unread(str(error))
        return
    if content is None:
        return
    try:
        collector.string(content.decode(), where, column, known=False)
    except UnicodeDecodeError:
        collector.binary(content, where, column)


def first(pieces: Iterator[bytes], size: int) -> bytes:
    """The first pieces, until there are so many bytes or no more."""
    out = bytearray()
    while len(out) < size and (piece := next(pieces, None)) is not None:
        out += piece
    return bytes(out)


def whole(codec: str, pieces: Iterable[bytes]) -> bytes:
    """All pieces together.

    Raises:
        PackedError: larger than `LIMIT`, or what a piece raises.
    """
    out = bytearray()
    for piece in pieces:
        out += piece
        if len(out) > LIMIT:
            raise PackedError(f"{codec} content larger than {LIMIT} bytes")
    return bytes(out)
