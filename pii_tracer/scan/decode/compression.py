"""Compressed files: what is inside, whole. Truncated or overlong content is an error, never a shorter text."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

import cramjam
import pyarrow as pa
import zstandard

LIMIT = 2 * 1024**3
"""A file that unpacks to more bytes than this, and is no text that can be read in blocks, is reported as unread."""

_INPUT = 4 * 1024
"""Little: four bytes of a zstd frame can stand for 128 KiB, and what they give comes at once."""


class PackedError(ValueError):
    """The content cannot be had whole; the message says why."""


def stream_of(data: memoryview) -> pa.NativeFile:
    """Bytes as a stream, without a copy of them: they may be a mapped file's that is larger than memory."""
    return pa.BufferReader(pa.py_buffer(data))


def _gzip(source: pa.NativeFile) -> Any:
    return gzip.GzipFile(fileobj=source)


def _lz4(source: pa.NativeFile) -> Any:
    return pa.CompressedInputStream(source, "lz4")


_MAGIC: tuple[tuple[bytes, str, Callable[[Any], Any]], ...] = (
    (b"\x1f\x8b", "gzip", _gzip),
    (b"BZh", "bzip2", bz2.BZ2File),
    (b"\xfd7zXZ\0", "xz", lzma.LZMAFile),
    (b"\x28\xb5\x2f\xfd", "zstd", lambda source: source),
    (b"\x04\x22\x4d\x18", "lz4", _lz4),
)
_LZ4_BLOCK = b"LZ4Block"
_LZ4_HEADER = 21
_LZ4_RATIO = 255
"""A byte of LZ4 stands for that many at the most: a length that goes on
(https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md)."""
_HADOOP = {".snappy": "snappy", ".deflate": "deflate", ".lz4": "lz4"}
_SUFFIXES = (".gz", ".gzip", ".bz2", ".xz", ".zst", ".zstd", *_HADOOP)


def opened(name: str, data: memoryview, size: int) -> tuple[str, str, Iterator[bytes]] | None:
    """(codec, name without its suffix, content in pieces of about `size` bytes) of a compressed file; else None.

    The pieces raise `PackedError` where the content is cut short, corrupt, or larger than `LIMIT`.
    """
    head = bytes(data[:8])
    inner = next((name[: -len(s)] for s in _SUFFIXES if name.lower().endswith(s)), name)
    for magic, codec, opener in _MAGIC:
        if head.startswith(magic):
            return codec, inner, _frames(data, size) if codec == "zstd" else _pieces(codec, opener, data, size)
    if head == _LZ4_BLOCK:
        return "lz4 blocks", inner, _lz4_blocks(data)
    for suffix, codec in _HADOOP.items():
        if name.lower().endswith(suffix):
            return codec, inner, _zlib(data, size) if codec == "deflate" else _blocks(data, codec)
    return None


def unpack(name: str, data: memoryview) -> tuple[str, str, bytes] | None:
    """(codec, name without its suffix, whole content) of a compressed file; None when it is none that is known.

    Raises:
        PackedError: cut short, corrupt, or larger than `LIMIT`.
    """
    found = opened(name, data, 1 << 20)
    return (found[0], found[1], whole(found[0], found[2])) if found else None


def _pieces(codec: str, opener: Callable[[Any], IO[bytes]], data: memoryview, size: int) -> Iterator[bytes]:
    try:
        with opener(stream_of(data)) as stream:
            while piece := stream.read(size):
                yield bytes(piece)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        raise PackedError(f"{codec} content that cannot be unpacked: {type(error).__name__}") from None


def _frames(data: memoryview, size: int) -> Iterator[bytes]:
    """zstd, several frames in a row. Its stream reader ends silently in a cut frame; this says whether it ended."""
    decoder: Any = None
    for start in range(0, len(data), _INPUT):
        rest = bytes(data[start : start + _INPUT])
        while rest:
            decoder = decoder or zstandard.ZstdDecompressor().decompressobj()
            try:
                piece = decoder.decompress(rest)
            except zstandard.ZstdError:
                raise PackedError("zstd content that cannot be unpacked: ZstdError") from None
            for begin in range(0, len(piece), size):
                yield piece[begin : begin + size]
            rest = decoder.unused_data if decoder.eof else b""
            decoder = None if decoder.eof else decoder
    if decoder is not None:
        raise PackedError("zstd content cut short")


CELL = 64 * 1024**2
"""A cell that unpacks to more bytes than this is reported as unread."""

_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
STARTS = frozenset({*(magic[:2] for magic, _, _ in _MAGIC), _LZ4_BLOCK[:2], *_ZLIB})
"""The first two bytes of what may be compressed."""


def cell(value: bytes) -> bytes | None:
    """What a cell of bytes holds that is itself a compressed stream; None where it is none that can be unpacked, as any
    hash may begin like one.

    Raises:
        PackedError: it is larger than `CELL`.
    """
    if value[:2] not in STARTS:
        return None
    try:
        if value.startswith(_ZLIB):
            decoder = zlib.decompressobj()
            pieces: Iterable[bytes] = (decoder.decompress(value, CELL + 1),)
        else:
            found = opened("", memoryview(value), 1 << 20)
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


def _zlib(data: memoryview, size: int) -> Iterator[bytes]:
    """What lies behind the stream has to be one, too: it is never passed over."""
    decoder = zlib.decompressobj()
    try:
        for start in range(0, len(data), _INPUT):
            rest = bytes(data[start : start + _INPUT])
            while rest:
                decoder = zlib.decompressobj() if decoder.eof else decoder
                if piece := decoder.decompress(rest, size):
                    yield piece
                rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
        if piece := decoder.flush():
            yield piece
    except zlib.error:
        raise PackedError("deflate content that cannot be unpacked") from None
    if not decoder.eof:
        raise PackedError("deflate content cut short")


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
                raise PackedError(f"{codec} content cut short")
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
            raise PackedError("lz4 blocks cut short")
        ended = plain == 0
        if not ended:
            piece = block if method == 0x10 else raw("lz4", block, min(plain, LIMIT))
            if len(piece) != plain:
                raise PackedError("lz4 block of impossible size")
            yield piece
        position = start + packed
    if not ended:
        raise PackedError("lz4 blocks cut short")


def raw(codec: str, chunk: bytes, most: int = LIMIT) -> bytes:
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
