"""Compressed files: what is inside, whole. Truncated or overlong content is an error, never a shorter text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pii_tracer.scan.decode.compressed_streams import DECODERS, Beside, PackedError, by_magic

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
        raise PackedError(f"{codec} content followed by other bytes")


def unpack(name: str, data: memoryview) -> tuple[str, str, bytes] | None:
    """(codec, name without its suffix, whole content) of a compressed file; None when it is none that is known.

    Raises:
        PackedError: cut short, corrupt, or larger than `LIMIT`.
    """
    found = opened(name, data, 1 << 20)
    return (found[0], found[1], whole(found[0], found[2])) if found else None


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
