"""PDF: what its compressed streams show (ISO 32000-1, section 7).

Never clean: its fonts may write text in codes of their own.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

from pii_tracer.scan.decode.compressed_streams import PackedError
from pii_tracer.scan.decode.file_kind import FileKind, Part
from pii_tracer.scan.decode.table_metadata import Role
from pii_tracer.scan.hit_collector import Collector

_STREAM = re.compile(rb"stream\r?\n")
_PIECE = 1 << 20
_SHOWN = re.compile(rb"\((?:[^()\\]|\\.)*\)|[\[\]]|T[*dDmjJ]\b", re.DOTALL)
_LITERAL = re.compile(rb"\\([nrtbf()\\]|[0-7]{1,3}|\r?\n)")
_LONGEST = 1 << 26


def decode(data: memoryview, collector: Collector, role: Role) -> None:
    """Search the bytes as they stand."""
    collector.raw(data, "raw bytes")
    collector.unread("a PDF, whose fonts may encode text in their own way")


def parts(data: memoryview) -> Iterator[Part]:
    """Streams that Flate packs: their content, and the text that it shows."""
    for found in _STREAM.finditer(data):
        body = data[found.end() :]
        if bytes(body[:1]) in (b"x", b"h", b"X", b"H", b"8", b"\x18") and (content := _inflated(body)):
            yield Part("stream", (content,), own=True)
            yield Part("text", (_text(content),), own=True)


def _inflated(body: memoryview) -> bytes:
    decoder = zlib.decompressobj()
    try:
        content = decoder.decompress(body[:_LONGEST], _LONGEST)
    except zlib.error:
        return b""
    if not decoder.eof and len(content) >= _LONGEST:
        raise PackedError("a PDF stream that is too large when unpacked")
    return content


def _text(content: bytes) -> bytes:
    """Strings as they are shown: kerning parts words, and operators part lines."""
    shown = []
    for match in _SHOWN.finditer(content):
        piece = match.group()
        if piece.startswith(b"("):
            shown.append(_LITERAL.sub(_plain, piece[1:-1]))
        elif piece.startswith(b"T"):
            shown.append(b"\n")
    return b"".join(shown)


def _plain(match: re.Match[bytes]) -> bytes:
    sign = match.group(1)
    if sign[:1].isdigit():
        return bytes([int(sign, 8) & 255])
    return {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"", b"f": b""}.get(sign, b"" if b"\n" in sign else sign)


KIND = FileKind(
    name="pdf",
    rank=12,
    fits=lambda data: b"%PDF-" in bytes(data[:1024]),
    starts=(b"%PDF-",),
    decode=decode,
    errors=(PackedError,),
    parts=parts,
)
