"""Streams of compressed bytes: decoders that say what they have not read. Truncated content is an error."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import cramjam
import pyarrow as pa
import zstandard

_INPUT = 64 * 1024
_LITTLE = 4 * 1024
"""Four bytes of a zstd frame can stand for 128 KiB, and what they give comes at once."""

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"LZ4Block", "lz4 blocks"),
    (b"\xff\x06\0\0sNaPpY", "snappy frames"),
)
ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")

_MOST = 2 * 1024**3
"""No chunk unpacks to more bytes."""


class PackedError(ValueError):
    """The content cannot be had whole; the message says why."""


SKIPPING = frozenset({"brotli"})
"""Codecs with blocks inside a stream that readers pass over (RFC 7932, section 9.2): their bytes are searched, too."""


def stream_of(data: memoryview) -> pa.NativeFile:
    """Bytes as a stream, without a copy of them: they may be a mapped file's that is larger than memory."""
    return pa.BufferReader(pa.py_buffer(data))


@dataclass
class Beside:
    """Bytes of a compressed file that no stream of its codec holds, filled as the content is drawn.

    own: of the codec's own, such as a header's file name; free: what readers pass over, which may be a file or numbers
    of the program that wrote it; foreign: what stands behind the last stream.
    """

    own: list[memoryview] = field(default_factory=list)
    free: list[memoryview] = field(default_factory=list)
    foreign: list[memoryview] = field(default_factory=list)


Decoder = Callable[[memoryview, int, Beside], Iterator[bytes]]

_LZ4_BLOCK = b"LZ4Block"
_LZ4_HEADER = 21
_LZ4_RATIO = 255
"""A byte of LZ4 stands for that many at the most: a length that goes on
(https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md)."""
_SKIPPED = b"\x2a\x4d\x18"
"""Behind a first byte of 0x50 to 0x5f: a frame that readers of zstd and LZ4 pass over, with anything in it
(RFC 8878, section 3.1.2)."""


STARTS = frozenset({*(magic[:2] for magic, _ in _MAGIC), *ZLIB})
"""The first two bytes of what may be compressed; frames that are passed over come on top."""


def by_magic(data: memoryview) -> str | None:
    """The codec that the first bytes tell.

    Raises:
        PackedError: cut short where that is to be told.
    """
    head = bytes(data[:10])
    for magic, codec in _MAGIC:
        if head.startswith(magic):
            return codec
    if head[1:4] == _SKIPPED and head[0] & 0xF0 == 0x50:
        return _skipping(data)
    return "zlib" if head.startswith(ZLIB) and _is_zlib(data) else None


def _skipping(data: memoryview) -> str | None:
    """The codec of a file that begins with frames that are passed over."""
    position = 0
    while end := _skipped(data, position):
        position = end
    head = bytes(data[position : position + 4])
    return next((codec for magic, codec in _MAGIC if codec in ("zstd", "lz4") and head == magic), None)


def _skipped(data: memoryview, position: int) -> int | None:
    """Where a frame ends that is passed over; None where none begins."""
    head = bytes(data[position : position + 8])
    if len(head) < 8 or head[1:4] != _SKIPPED or head[0] & 0xF0 != 0x50:
        return None
    end = position + 8 + int.from_bytes(head[4:], "little")
    if end > len(data):
        raise PackedError("a skippable frame is truncated")
    return end


def _is_zlib(data: memoryview) -> bool:
    try:
        return bool(zlib.decompressobj().decompress(data[:_INPUT], 1)) or len(data) <= _INPUT
    except zlib.error:
        return False


def _streams(
    codec: str,
    new: Callable[[], Any],
    magic: bytes,
    own: Callable[[memoryview], int] = lambda data: 0,
) -> Decoder:
    """Decodes streams that follow each other. own: how long a stream's header is, where text may stand in it."""

    def decode(data: memoryview, size: int, beside: Beside) -> Iterator[bytes]:
        position = 0
        while position == 0 or bytes(data[position : position + len(magic)]) == magic:
            if header := own(data[position:]):
                beside.own.append(data[position : position + header])
            decoder = new()
            while not decoder.eof:
                rest: Any = data[position : position + _INPUT]
                position += len(rest)
                while True:
                    try:
                        piece = decoder.decompress(rest, size)
                    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
                        kind = type(error).__name__
                        raise PackedError(f"{codec} content that cannot be unpacked: {kind}") from None
                    if piece:
                        yield piece
                    rest = getattr(decoder, "unconsumed_tail", b"")
                    if decoder.eof or not (
                        rest or len(piece) >= size or (piece and not getattr(decoder, "needs_input", True))
                    ):
                        break
                if position >= len(data) and not decoder.eof and not rest:
                    raise PackedError(f"{codec} content is truncated")
            position -= len(decoder.unused_data)
            position += _zeros(data, position) if codec in _PADDED else 0
            if position >= len(data):
                return
        beside.foreign.append(data[position:])

    return decode


_PADDED = frozenset({"gzip", "xz"})
"""Their readers pass over zeros behind a stream."""


def _zeros(data: memoryview, position: int) -> int:
    start = position
    while position < len(data) and (piece := bytes(data[position : position + _INPUT])):
        rest = piece.lstrip(b"\0")
        position += len(piece) - len(rest)
        if rest:
            break
    return position - start


def _gzip_header(data: memoryview) -> int:
    """The length of a header: ten bytes, then what its flags say: extra field, name, comment, checksum (RFC 1952)."""
    flags, position = data[3] if len(data) > 3 else 0, 10
    if flags & 4:
        position += 2 + int.from_bytes(data[position : position + 2], "little")
    for flag in (8, 16):
        if flags & flag:
            while position < len(data) and data[position]:
                position += 1
            position += 1
    return min(len(data), position + (2 if flags & 2 else 0))


def _frames(data: memoryview, size: int, beside: Beside) -> Iterator[bytes]:
    """zstd, several frames in a row. Its stream reader ends silently in a cut frame; this says whether it ended."""
    position = 0
    while position < len(data):
        if end := _skipped(data, position):
            beside.free.append(data[position + 8 : end])
            position = end
            continue
        if bytes(data[position : position + 4]) != b"\x28\xb5\x2f\xfd":
            beside.foreign.append(data[position:])
            return
        decoder = zstandard.ZstdDecompressor().decompressobj()
        while not decoder.eof:
            rest = bytes(data[position : position + _LITTLE])
            if not rest:
                raise PackedError("zstd content is truncated")
            position += len(rest)
            try:
                piece = decoder.decompress(rest)
            except zstandard.ZstdError:
                raise PackedError("zstd content that cannot be unpacked: ZstdError") from None
            for begin in range(0, len(piece), size):
                yield piece[begin : begin + size]
        position -= len(decoder.unused_data)


def _lz4_frames(data: memoryview, size: int, beside: Beside) -> Iterator[bytes]:
    """LZ4 frames in a row (https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md)."""
    position = 0
    while position < len(data):
        if end := _skipped(data, position):
            beside.free.append(data[position + 8 : end])
        elif bytes(data[position : position + 4]) == b"\x04\x22\x4d\x18":
            end = _lz4_end(data, position)
            yield from _read("lz4", data[position:end], size)
        else:
            beside.foreign.append(data[position:])
            return
        position = end


def _lz4_end(data: memoryview, position: int) -> int:
    flags = data[position + 4] if len(data) > position + 4 else 0
    at = position + 7 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
    while True:
        word = bytes(data[at : at + 4])
        if len(word) < 4:
            raise PackedError("lz4 content is truncated")
        at += 4
        length = int.from_bytes(word, "little") & 0x7FFFFFFF
        if not length:
            return at + (4 if flags & 4 else 0)
        at += length + (4 if flags & 16 else 0)


def _read(codec: str, data: memoryview, size: int) -> Iterator[bytes]:
    try:
        with pa.CompressedInputStream(stream_of(data), codec) as stream:
            while piece := stream.read(size):
                yield bytes(piece)
    except (OSError, EOFError, pa.ArrowException) as error:
        raise PackedError(f"{codec} content that cannot be unpacked: {type(error).__name__}") from None


def _snappy_frames(data: memoryview, size: int, beside: Beside) -> Iterator[bytes]:
    """Chunks of one byte of kind and three of length; data behind a checksum of four bytes
    (https://github.com/google/snappy/blob/main/framing_format.txt)."""
    position = 0
    while position < len(data):
        kind = data[position]
        if 2 <= kind < 0x80:
            beside.foreign.append(data[position:])
            return
        length = int.from_bytes(data[position + 1 : position + 4], "little")
        chunk = data[position + 4 : position + 4 + length]
        if len(data) - position < 4 or len(chunk) != length:
            raise PackedError("snappy content is truncated")
        if kind in (0, 1):
            yield raw("snappy", bytes(chunk[4:]), 1 << 17) if kind == 0 else bytes(chunk[4:])
        else:
            beside.free.append(chunk)
        position += 4 + length


def _named(codec: str) -> Decoder:
    """What only a name tells: nothing may stand behind it."""
    return lambda data, size, beside: _blocks(data, codec) if codec in ("snappy", "lz4") else _read(codec, data, size)


def _blocks(data: memoryview, codec: str) -> Iterator[bytes]:
    """Hadoop's block format: plain size 4, then chunks of size 4 and raw Snappy or LZ4, until the plain size is reached
    (https://github.com/apache/hadoop, `BlockCompressorStream`)."""
    position = 0
    while position < len(data):
        target = int.from_bytes(data[position : position + 4], "big")
        position += 4
        while target > 0:
            size = int.from_bytes(data[position : position + 4], "big")
            chunk = bytes(data[position + 4 : position + 4 + size])
            if len(chunk) != size or not size:
                raise PackedError(f"{codec} content is truncated")
            piece = raw(codec, chunk, target)
            yield piece
            target -= len(piece)
            position += 4 + size


def _lz4_blocks(data: memoryview) -> Iterator[bytes]:
    """Spark's own streams: blocks with a header of 21 bytes, an empty one last; several streams may follow each other
    (https://github.com/lz4/lz4-java, `LZ4BlockOutputStream`)."""
    position, ended = 0, False
    while position < len(data):
        magic, method = (
            bytes(data[position : position + 8]),
            data[position + 8] & 0xF0 if len(data) > position + 8 else 0,
        )
        packed, plain = (int.from_bytes(data[position + at : position + at + 4], "little") for at in (9, 13))
        start = position + _LZ4_HEADER
        block = bytes(data[start : start + packed])
        if magic != _LZ4_BLOCK or method not in (0x10, 0x20) or start > len(data) or len(block) != packed:
            raise PackedError("lz4 blocks are truncated")
        ended = plain == 0
        if not ended:
            piece = block if method == 0x10 else raw("lz4", block, min(plain, _MOST))
            if len(piece) != plain:
                raise PackedError("lz4 block of impossible size")
            yield piece
        position = start + packed
    if not ended:
        raise PackedError("lz4 blocks are truncated")


def raw(codec: str, chunk: bytes, most: int = _MOST) -> bytes:
    """What a chunk of Snappy or LZ4 without a frame unpacks to, at most so many bytes.

    Raises:
        PackedError: cut short, corrupt, or larger than that.
    """
    try:
        if codec == "snappy":
            if cramjam.snappy.decompress_raw_len(chunk) > most:
                raise PackedError("snappy chunk of impossible size")
            return bytes(cramjam.snappy.decompress_raw(chunk))
        out = memoryview(bytearray(min(most, _LZ4_RATIO * len(chunk))))
        return bytes(out[: cramjam.lz4.decompress_block_into(chunk, out, output_len=len(out))])
    except cramjam.DecompressionError:
        raise PackedError(f"{codec} content that cannot be unpacked, or of impossible size") from None


DECODERS: dict[str, Decoder] = {
    "gzip": _streams("gzip", lambda: zlib.decompressobj(wbits=31), b"\x1f\x8b", _gzip_header),
    "bzip2": _streams("bzip2", bz2.BZ2Decompressor, b"BZh"),
    "xz": _streams("xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), b"\xfd7zXZ\0"),
    "zlib": _streams("zlib", zlib.decompressobj, b"\x78"),
    "deflate": _streams("deflate", zlib.decompressobj, b"\x78"),
    "lzma": _streams("lzma", lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE), b"\x5d\0\0"),
    "zstd": _frames,
    "lz4": lambda data, size, beside: (_lz4_frames if by_magic(data) else _named("lz4"))(data, size, beside),
    "lz4 blocks": lambda data, size, beside: _lz4_blocks(data),
    "snappy frames": _snappy_frames,
    "snappy": _named("snappy"),
    "brotli": _named("brotli"),
}
