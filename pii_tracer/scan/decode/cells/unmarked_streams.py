"""Compressed streams that begin like anything: raw deflate, Snappy and LZ4 without frames, Brotli. They are tried."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable

import cramjam

from pii_tracer.scan.decode.cells.opaque_bytes import is_record
from pii_tracer.scan.decode.compressed_streams import PackedError, raw

LEAST = 8
"""No stream that holds a value has fewer bytes."""
TRAILER = 8
"""Bytes of checksum and size that may stand behind a raw stream."""
LZ4_RATIO = 255
MOST_BROTLI = 400
LEAST_LZ4 = 16
_PRINTABLE = bytes(range(32, 127))
_TELLING, _HIDDEN = 32, 0.45
"""From so many bytes on, so large a share of them is no text in streams of other kinds."""
HEADER = 16
ZEROS = 5
"""Compressed text has hardly a zero byte: what has one in so many is a record of numbers."""


def unmarked(value: bytes, most: int) -> bytes | None:
    """What bytes hold that are such a stream from end to end; None where they are none, or of more than `most`."""
    if len(value) < LEAST or value.count(0) * ZEROS > len(value):
        return None
    shown = len(value) >= _TELLING and len(value.translate(None, _PRINTABLE)) < _HIDDEN * len(value)
    for attempt in _PLAIN if shown else _ATTEMPTS:
        content = attempt(value, most)
        if content and len(content) >= LEAST // 2:
            return content
    return None


def _behind_a_header(value: bytes, most: int) -> bytes | None:
    """Raw deflate behind a few bytes: a length, a field's number, a version."""
    if is_record(value):
        return None
    for at in range(1, min(HEADER, len(value) - LEAST)):
        content = _deflate(value[at:], most)
        if content is not None and len(content) > (len(value) - at) * 3 // 4:
            return content
    return None


def _deflate(value: bytes, most: int) -> bytes | None:
    if value[0] & 6 == 6:
        return None  # no block is of this kind
    decoder = zlib.decompressobj(-15)
    try:
        content = decoder.decompress(value, most)
    except zlib.error:
        return None
    rest = decoder.unused_data
    return content if decoder.eof and (len(rest) <= TRAILER or not rest.strip(b"\0")) else None


def _snappy(value: bytes, most: int) -> bytes | None:
    size = shift = at = 0
    while at < 5:
        size |= (value[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if value[at - 1] < 128:
            break
    # a literal takes at the most a sixth more than it is, a copy of three bytes stands for 64
    return _raw("snappy", value, most) if len(value) * 6 // 7 - 32 <= size <= 32 * len(value) else None


def _sized_lz4(value: bytes, most: int) -> bytes | None:
    for order in ("little", "big"):
        size = int.from_bytes(value[:4], order)
        if len(value) // 2 <= size <= min(most, LZ4_RATIO * len(value)):
            content = _raw("lz4", value[4:], size)
            if content is not None and len(content) == size:
                return content
    return None


def _hadoop(value: bytes, most: int) -> bytes | None:
    """One block of Hadoop's: plain size 4, size 4, and raw Snappy or LZ4."""
    size, packed = int.from_bytes(value[:4], "big"), int.from_bytes(value[4:8], "big")
    if packed != len(value) - 8 or not 0 < size <= most:
        return None
    return _raw("snappy", value[8:], size) or _raw("lz4", value[8:], size)


def _lz4(value: bytes, most: int) -> bytes | None:
    return _raw("lz4", value, min(most, LZ4_RATIO * len(value))) if len(value) >= LEAST_LZ4 else None


def _raw(codec: str, value: bytes, most: int) -> bytes | None:
    try:
        return raw(codec, value, most)
    except PackedError:
        return None


def _brotli(value: bytes, most: int) -> bytes | None:
    """Only where the length in front makes sense: to set a decoder up takes longer than all other attempts together
    (RFC 7932, sections 9.1 and 9.2)."""
    bits = int.from_bytes(value[:8], "little")
    window = 1 if not bits & 1 else 4 if bits & 14 else 7
    bits >>= window
    last = bits & 1
    bits >>= 2 if last else 1
    nibbles = 4 + (bits & 3)
    size = ((bits >> 2) & ((1 << 4 * nibbles) - 1)) + 1
    if nibbles == 7 or not len(value) // 2 <= size <= min(most, MOST_BROTLI * len(value)):
        return None
    if not may_be_brotli(value):
        return None
    out = bytearray(size if last else min(most, max(size, LZ4_RATIO * len(value))))
    try:
        return bytes(out[: cramjam.brotli.decompress_into(value, out)])
    except cramjam.DecompressionError:
        return None


_LENGTH_BITS = (2, 2, 2, 3, 2, 2, 2, 4, 2, 2, 2, 3, 2, 2, 2, 4)
_LENGTHS = (0, 4, 3, 2, 0, 4, 3, 1, 0, 4, 3, 2, 0, 4, 3, 5)
"""The fixed code for lengths of codes, by its next four bits (RFC 7932, section 3.5)."""


class _Bits:
    """The first bits of a stream; zeros behind its end."""

    def __init__(self, value: bytes) -> None:
        self._left = int.from_bytes(value[:64], "little")

    def take(self, count: int) -> int:
        """The next so many bits."""
        taken = self._left & ((1 << count) - 1)
        self._left >>= count
        return taken

    def varied(self) -> int:
        """A number of types or trees (section 9.2)."""
        if not self.take(1):
            return 1
        count = self.take(3)
        return 1 + (1 << count) + self.take(count)

    def is_code(self) -> bool:
        """Whether a prefix code may stand next: one in which no bit is left over, or of up to four symbols."""
        skipped = self.take(2)
        if skipped == 1:
            return True
        space = 32
        codes = 0
        for _ in range(skipped, 18):
            index = self._left & 15
            self.take(_LENGTH_BITS[index])
            if _LENGTHS[index]:
                codes += 1
                space -= 32 >> _LENGTHS[index]
                if space <= 0:
                    break
        return space == 0 or codes == 1


def may_be_brotli(value: bytes) -> bool:
    """Whether the header of the first block makes sense, as far as the first code in it."""
    bits = _Bits(value)
    if bits.take(1) and not bits.take(3):
        bits.take(3)
    last = bits.take(1)
    if last and bits.take(1):
        return True  # an empty one
    nibbles = 4 + bits.take(2)
    if nibbles == 7:
        return True
    size = bits.take(4 * nibbles) + 1
    if not last and bits.take(1):
        return size < len(value)  # as it stands
    for _ in range(3):
        types = bits.varied()
        if types > 1:
            return bits.is_code()
    bits.take(8)
    if bits.varied() > 1:
        return True
    return bits.varied() > 1 or bits.is_code()


def _lzma(value: bytes, most: int) -> bytes | None:
    if value[0] != 0x5D or value[1:3] != b"\0\0":
        return None
    decoder = lzma.LZMADecompressor(lzma.FORMAT_ALONE)
    try:
        content = decoder.decompress(value, most)
    except lzma.LZMAError:
        return None
    return content if decoder.eof else None


_PLAIN = (_snappy, _hadoop, _sized_lz4)
"""Streams in which most of a text stands as it is."""
_ATTEMPTS: tuple[Callable[[bytes, int], bytes | None], ...] = (
    _deflate,
    _snappy,
    _lzma,
    _hadoop,
    _sized_lz4,
    _brotli,
    _lz4,
    _behind_a_header,
)
