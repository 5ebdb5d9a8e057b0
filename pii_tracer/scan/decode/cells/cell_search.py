"""What a cell, a field or a written piece of bytes holds that its own bytes do not show: files and compressed streams.

Bytes that are neither and look random may be packed or encrypted in a way that nobody here knows. They are unverified.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pii_tracer.scan.decode.cells import markup_text
from pii_tracer.scan.decode.cells.opaque_bytes import are_random_letters, is_opaque
from pii_tracer.scan.decode.cells.unmarked_streams import unmarked
from pii_tracer.scan.decode.compressed_streams import DECODERS, STARTS, Beside, PackedError, by_magic
from pii_tracer.scan.forms.text_bytes_decoding import Written, written

if TYPE_CHECKING:
    from pii_tracer.scan.hit_collector import Collector

CELL = 64 * 1024**2
"""A cell that unpacks to more bytes than this is reported as unread."""
LEAST_FILE = 64
"""No file of a kind that is told by its bytes, and that holds a value, has fewer."""
DEPTH = 6
"""Layers of streams, base64 and hex in one cell."""

_FOREIGN = (
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document in the old format (.doc, .xls, .ppt)"),
    (b"\x89LZO\0", "an LZO stream"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\x1f\x9d\x90", "a file of the program compress (.Z)"),
    (b"\x89PNG\r\n\x1a\n", "a picture"),
)
"""Containers that no decoder here reads."""
FOREIGN_STARTS = frozenset(start[:2] for start, _ in _FOREIGN)

_SURE = re.compile(
    rb"\x1f\x8b\x08[\x00-\x1f]|BZh[1-9]1AY&SY|\xfd7zXZ\0\0|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18[\x40-\x7f]|LZ4Block[\x10-\x2f]"
    rb"|\xff\x06\0\0sNaPpY|PK\x03\x04[\x0a-\x3f]\0"
)
"""Where a stream begins for certain."""
_PERHAPS = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_MOST = 64
_SHORTEST = 16


def cell(value: bytes) -> bytes | None:
    """What a cell of bytes holds that is itself a compressed stream; None where it is none that can be unpacked, as any
    hash may begin like one.

    Raises:
        PackedError: it is larger than `CELL`.
    """
    return _unpacked(memoryview(value))[0] if value[:2] in STARTS or value[1:4] == b"\x2a\x4d\x18" else None


def _unpacked(data: memoryview) -> tuple[bytes | None, int]:
    """The content of the streams that bytes begin with, and how many bytes they are."""
    out, beside = bytearray(), Beside()
    try:
        codec = by_magic(data)
        for piece in DECODERS[codec](data, 1 << 20, beside) if codec is not None else ():
            out += piece
            if len(out) > CELL:
                break
    except (PackedError, zlib.error):
        return None, 0
    if len(out) > CELL:
        raise PackedError(f"a compressed cell larger than {CELL} bytes")
    return bytes(out) or None, len(data) - sum(map(len, beside.foreign))


def search_cell(
    value: bytes,
    where: str,
    column: str | None,
    collector: Collector,
    *,
    fixed: bool = False,
    judged: bool = True,
) -> None:
    """What a cell holds beside its own bytes. It is no cell of the column.

    fixed: every cell of the column has as many bytes, so that it holds no stream but one that is padded. judged: bytes
    that look random are unread.
    """
    if fixed and value.endswith(b"\0\0"):
        value, fixed = value.rstrip(b"\0"), False  # padded
    if len(value) < _LEAST_CELL:
        return
    if len(value) >= LEAST_FILE and collector.search_file is not None and collector.search_file(collector, value):
        return
    for start, what in _FOREIGN:
        if value.startswith(start):
            collector.unread(f"a cell that is {what}")
            return
    try:
        _search(value, where, column, collector, fixed=fixed, judged=judged)
    except PackedError as error:
        collector.unread(str(error))


_LEAST_CELL = 8


def search_unexplained(data: bytes, where: str, collector: Collector) -> None:
    """Bytes of a file or a container that no reader gives: streams that begin in them, and what a text writes down."""
    try:
        _search(data, where, None, collector)
    except PackedError as error:
        collector.unread(str(error))
    collector.written(data, where)


def _search(
    value: bytes, where: str, column: str | None, collector: Collector, *, fixed: bool = False, judged: bool = True
) -> None:
    content, end = _unpacked(memoryview(value)) if value[:2] in STARTS or value[1:4] == b"\x2a\x4d\x18" else (None, 0)
    if content is not None:
        search_content(content, where, column, collector)
        if end < len(value) and value[end:].strip(b"\0"):
            search_cell(value[end:], where, column, collector, fixed=fixed, judged=judged)
        return
    if _is_text(value):
        return  # whoever has the cell searches its text
    explained = []
    for part, content in _within(value, collector):
        explained.append(part)
        search_content(content, where, column, collector)
    if not explained and not fixed and (content := unmarked(value, CELL)) is not None:
        search_content(content, where, column, collector)
    elif not fixed and judged and is_opaque(value, explained):
        collector.unread("random-looking bytes in a cell, which may be compressed or encrypted with an unknown method")


def _is_text(value: bytes) -> bool:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return False
    return not _CONTROL.search(value) or text.isprintable()


_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def _within(value: bytes, collector: Collector) -> Iterator[tuple[range, bytes]]:
    """Streams that begin somewhere in bytes: where they lie, and what they hold."""
    done = 0
    for found in _SURE.finditer(value):
        if found.start() < done:
            continue
        if value.startswith(b"PK", found.start()):
            if found.start() and collector.search_file is not None:
                collector.search_file(collector, value[found.start() :])
                done = len(value)
            continue
        content, size = _unpacked(memoryview(value)[found.start() :])
        if content is not None:
            done = found.start() + size
            yield range(found.start(), done), content
        elif len(value) - found.start() >= _SHORTEST:
            collector.unread("a compressed stream in a cell that cannot be unpacked")
    for number, found in enumerate(_PERHAPS.finditer(value)):
        if number >= _MOST:
            break
        decoder = zlib.decompressobj()
        try:
            content = decoder.decompress(value[found.start() :], CELL)
        except zlib.error:
            continue
        if decoder.eof and content:
            yield range(found.start(), len(value) - len(decoder.unused_data)), content


def search_content(content: bytes, where: str, column: str | None, collector: Collector) -> None:
    """What came out of a stream: a text, or bytes that may hold more."""
    with collector.deeper() as inside:
        if not inside:
            return
        try:
            text = content.decode()
        except UnicodeDecodeError:
            collector.binary(content, where, column)
            return
        collector.string(text, where, column, known=False)
        if not text.isprintable() and _CONTROL.search(content):
            collector.binary(content, where, column)


def search_written(text: bytes, where: str, column: str | None, collector: Collector) -> None:
    """Bytes that a text writes down, and what marks of a document part in it."""
    marks = set()
    for piece in written(text):
        if piece.reason:
            collector.unread(piece.reason)
        elif piece.mark:
            marks.add(piece.mark)
        elif piece.data is not None:
            _search_piece(piece, piece.data, where, column, collector)
    if marks:
        with collector.deeper() as inside:
            if inside:
                markup_text.search(text, marks, where, column, collector)


def _search_piece(piece: Written, data: bytes, where: str, column: str | None, collector: Collector) -> None:
    with collector.deeper() as inside:
        if not inside:
            return
        if _is_text(data):
            collector.string(data.decode(), where, column, known=False)
        elif piece.whole:
            collector.binary(data, where, column, fixed=True)
        elif piece.letters and not are_random_letters(piece.letters):
            search_cell(data, where, column, collector, judged=False)  # words and paths look like base64
        else:
            search_cell(data, where, column, collector, fixed=piece.sized)


_TELLING = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"\x04\x22\x4d\x18", b"BZh", b"PK\x03\x04", b"PAR1")
_MOST_ZLIB = 64


def begin_within(data: bytes) -> bool:
    """Whether a compressed stream seems to begin somewhere in bytes that nothing explains."""
    if any(start in data for start in _TELLING):
        return True
    starts = [found.start() for found in _PERHAPS.finditer(data)]
    return any(cell(data[at:]) is not None for at in starts[:_MOST_ZLIB])
