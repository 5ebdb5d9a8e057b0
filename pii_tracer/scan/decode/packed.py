"""Compressed files: what is inside, whole. Truncated or overlong content is an error, never a shorter text."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Any

import pyarrow as pa
import zstandard

LIMIT = 2 * 1024**3
"""A file that unpacks to more bytes than this is not read: it is reported as unread."""


class PackedError(ValueError):
    """The content cannot be had whole; the message says why."""


def _gzip(source: io.BytesIO) -> Any:
    return gzip.GzipFile(fileobj=source)


def _zstd(source: io.BytesIO) -> Any:
    return zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)


def _lz4(source: io.BytesIO) -> Any:
    return pa.CompressedInputStream(pa.PythonFile(source, "r"), "lz4")


_MAGIC: tuple[tuple[bytes, str, Callable[[io.BytesIO], Any]], ...] = (
    (b"\x1f\x8b", "gzip", _gzip),
    (b"BZh", "bzip2", bz2.BZ2File),
    (b"\xfd7zXZ\0", "xz", lzma.LZMAFile),
    (b"\x28\xb5\x2f\xfd", "zstd", _zstd),
    (b"\x04\x22\x4d\x18", "lz4", _lz4),
)
_HADOOP = {".snappy": "snappy", ".deflate": "deflate"}
_SUFFIXES = (".gz", ".gzip", ".bz2", ".xz", ".zst", ".zstd", ".lz4", *_HADOOP)


def unpack(name: str, data: memoryview) -> tuple[str, str, bytes] | None:
    """(codec, name without its suffix, content) of a compressed file; None when it is none that is known.

    Raises:
        PackedError: cut short, corrupt, or larger than `LIMIT`.
    """
    head = bytes(data[:8])
    inner = next((name[: -len(s)] for s in _SUFFIXES if name.lower().endswith(s)), name)
    for magic, codec, opener in _MAGIC:
        if head.startswith(magic):
            return codec, inner, _read(codec, opener, data)
    for suffix, codec in _HADOOP.items():
        if name.lower().endswith(suffix):
            return codec, inner, _zlib(data) if codec == "deflate" else _snappy_blocks(data)
    return None


def _read(codec: str, opener: Callable[[io.BytesIO], IO[bytes]], data: memoryview) -> bytes:
    try:
        with opener(io.BytesIO(data)) as stream:
            content = stream.read(LIMIT + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, pa.ArrowException) as error:
        raise PackedError(f"{codec} content that cannot be unpacked: {type(error).__name__}") from None
    if len(content) > LIMIT:
        raise PackedError(f"{codec} content larger than {LIMIT} bytes")
    if codec == "zstd":
        _whole_zstd(data, len(content))
    return bytes(content)


def _whole_zstd(data: memoryview, size: int) -> None:
    """The stream reader ends silently in a cut frame; the frames' decoder says whether it came to an end."""
    rest, total = bytes(data), 0
    while rest:
        decoder = zstandard.ZstdDecompressor().decompressobj()
        try:
            total += len(decoder.decompress(rest))
        except zstandard.ZstdError:
            raise PackedError("zstd content that cannot be unpacked: ZstdError") from None
        if not decoder.eof:
            raise PackedError("zstd content cut short")
        rest = decoder.unused_data
    if total != size:
        raise PackedError("zstd content of two sizes")


def _zlib(data: memoryview) -> bytes:
    try:
        decoder = zlib.decompressobj()
        content = decoder.decompress(bytes(data), LIMIT + 1)
    except zlib.error:
        raise PackedError("deflate content that cannot be unpacked") from None
    if not decoder.eof or len(content) > LIMIT:
        raise PackedError("deflate content cut short or too large")
    return content


def _snappy_blocks(data: memoryview) -> bytes:
    """Hadoop's block format: plain size 4, then chunks of size 4 and raw Snappy, until the plain size is reached
    (https://github.com/apache/hadoop, `BlockCompressorStream`)."""
    out, position = bytearray(), 0
    try:
        while position < len(data):
            target = len(out) + int.from_bytes(data[position : position + 4], "big")
            position += 4
            while len(out) < target:
                size = int.from_bytes(data[position : position + 4], "big")
                chunk = bytes(data[position + 4 : position + 4 + size])
                if len(chunk) != size or not size:
                    raise PackedError("snappy content cut short")
                out += pa.decompress(chunk, _snappy_size(chunk), "snappy", asbytes=True)
                position += 4 + size
            if len(out) > LIMIT:
                raise PackedError(f"snappy content larger than {LIMIT} bytes")
    except (pa.ArrowException, OSError, IndexError):
        raise PackedError("snappy content that cannot be unpacked") from None
    return bytes(out)


def _snappy_size(chunk: bytes) -> int:
    size = shift = 0
    for byte in chunk[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if size > LIMIT:
        raise PackedError("snappy chunk of impossible size")
    return size
