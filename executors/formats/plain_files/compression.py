"""Compressed text files as streams: opened for reading, and written again with the codec they had."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import cramjam
import zstandard

from executors.formats.plain_files.arrow_match import BY_HAND, RowsError
from executors.formats.plain_files.stored_file import Stored

PLAIN, GZIP, ZSTD, BZIP2, DEFLATE, SNAPPY = "plain", "gzip", "zstd", "bzip2", "deflate", "snappy"
_MAGIC = ((b"\x1f\x8b", GZIP), (b"\x28\xb5\x2f\xfd", ZSTD), (b"BZh", BZIP2))
_SUFFIX = {".deflate": DEFLATE, ".snappy": SNAPPY}
_CHUNK = 256 * 1024
_MOST = 2 * 1024**3
_ZSTD_INPUT = 4 * 1024
"""Little: four bytes of a zstd frame can stand for 128 KiB, and what they give comes at once."""


def codec_of(path: Stored) -> str:
    """The codec of a file: by its first bytes, for Hadoop's own two by its name.

    Raises:
        RowsError: a codec that is not supported (its name says one, or a known one that cannot be written again).
    """
    with path.open("rb") as stream:
        head = stream.read(6)
    for magic, codec in _MAGIC:
        if head.startswith(magic):
            return codec
    suffix = path.suffix.lower()
    if suffix in (".gz", ".zst", ".bz2", ".lz4", ".xz") and head:
        raise RowsError("the file's codec is not supported, or differs from the file's name", todo=BY_HAND)
    return _SUFFIX.get(suffix, PLAIN)


@contextmanager
def reading(path: Stored, codec: str) -> Iterator[IO[bytes]]:
    """The content, decompressed as it is read; content that is cut short is an error at its end."""
    with path.open("rb") as raw:
        if codec == ZSTD:
            yield io.BufferedReader(_Frames(raw))
        elif codec in _STREAMS:
            yield io.BufferedReader(_Streams(raw, _STREAMS[codec]))
        elif codec == SNAPPY:
            yield io.BufferedReader(_HadoopSnappy(raw))
        else:
            opened: Any = gzip.GzipFile(fileobj=raw) if codec == GZIP else raw
            yield opened


@contextmanager
def writing(path: Stored, codec: str) -> Iterator[IO[bytes]]:
    """A stream that compresses what is written; the file is whole when the block ends."""
    with path.open("wb") as raw:
        packed: Any
        if codec == GZIP:
            packed = gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="")
        elif codec == BZIP2:
            packed = bz2.BZ2File(raw, "wb")
        elif codec == ZSTD:
            packed = zstandard.ZstdCompressor().stream_writer(raw, closefd=False)
        elif codec == DEFLATE:
            packed = _Deflating(raw)
        elif codec == SNAPPY:
            packed = io.BufferedWriter(_SnappyBlocks(raw), _CHUNK)
        else:
            yield raw
            return
        with packed:
            yield packed


class _Pieces(io.RawIOBase, ABC):
    """A raw stream over pieces of bytes that a subclass gives; `b""` is the end."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._left = memoryview(b"")  # taken from the front many times: without a copy of the rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            piece = self._piece()
            if piece is None:
                return 0
            self._left = memoryview(piece)
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size

    @abstractmethod
    def _piece(self) -> bytes | None:
        """The next bytes; None at the end."""


class _Frames(_Pieces):
    """zstd, several frames in a row; a cut frame is an error and not an end."""

    def __init__(self, raw: IO[bytes]) -> None:
        super().__init__(raw)
        self._decoder: Any = None

    def _piece(self) -> bytes | None:
        data = self._raw.read(_ZSTD_INPUT) if self._decoder is None or not self._decoder.unused_data else b""
        if self._decoder is not None and self._decoder.eof:
            data = self._decoder.unused_data + data
            self._decoder = None
        if not data:
            if self._decoder is not None:
                raise EOFError("zstd content is truncated")
            return None
        if self._decoder is None:
            self._decoder = zstandard.ZstdDecompressor().decompressobj()
        return bytes(self._decoder.decompress(data))


class _Streams(_Pieces):
    """Streams that follow each other, as Hadoop reads them. Bytes that are no stream are an error and not an end."""

    def __init__(self, raw: IO[bytes], new: Callable[[], Any]) -> None:
        super().__init__(raw)
        self._new = new
        self._decoder = new()

    def _piece(self) -> bytes | None:
        if self._decoder.eof:
            data = self._decoder.unused_data or self._raw.read(_CHUNK)
            if not data:
                return None
            self._decoder = self._new()
        else:
            data = getattr(self._decoder, "unconsumed_tail", b"")
            if not data and getattr(self._decoder, "needs_input", True):
                data = self._raw.read(_CHUNK)
        piece: bytes = self._decoder.decompress(data, _CHUNK)
        if not (data or piece or self._decoder.eof):
            raise EOFError("compressed content is truncated")
        return piece


_STREAMS: dict[str, Callable[[], Any]] = {DEFLATE: zlib.decompressobj, BZIP2: bz2.BZ2Decompressor}
"""Hadoop calls zlib's format deflate."""


class _HadoopSnappy(_Pieces):
    """Hadoop's blocks: plain size 4, then chunks of size 4 and raw Snappy (Hadoop's `BlockCompressorStream`)."""

    def _piece(self) -> bytes | None:
        head = self._raw.read(4)
        if not head:
            return None
        if len(head) != 4:
            raise EOFError("snappy content is truncated")
        wanted, out = int.from_bytes(head, "big"), bytearray()
        while len(out) < wanted:
            size = int.from_bytes(self._exactly(4), "big")
            chunk = self._exactly(size)
            if not size:
                raise EOFError("a snappy block has an impossible size")
            out += unsnapped(chunk, wanted - len(out))
        return bytes(out)

    def _exactly(self, size: int) -> bytes:
        data = self._raw.read(size)
        if len(data) != size:
            raise EOFError("snappy content is truncated")
        return data


def unsnapped(chunk: bytes, most: int = _MOST) -> bytes:
    """What a chunk of raw Snappy unpacks to, at most so many bytes.

    Raises:
        OSError: cut short, corrupt, or larger than that.
    """
    try:
        if cramjam.snappy.decompress_raw_len(chunk) <= most:
            return bytes(cramjam.snappy.decompress_raw(chunk))
    except cramjam.DecompressionError:
        pass
    raise OSError("snappy content cannot be unpacked, or has an impossible size")


class _Deflating(io.RawIOBase):
    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._packer = zlib.compressobj()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._raw.write(self._packer.compress(data))
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._raw.write(self._packer.flush())
        super().close()


class _SnappyBlocks(io.RawIOBase):
    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        for start in range(0, len(data), _CHUNK):
            plain = bytes(data[start : start + _CHUNK])
            chunk = bytes(cramjam.snappy.compress_raw(plain))
            self._raw.write(len(plain).to_bytes(4, "big") + len(chunk).to_bytes(4, "big") + chunk)
        return len(data)
