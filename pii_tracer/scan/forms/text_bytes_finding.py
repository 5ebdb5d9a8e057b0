"""Where a text writes bytes down: base64, hex, escapes, lists of numbers. What they hold, the text does not show.

A superset, found fast: by how compressed streams begin in each writing, and by runs that are long without a separator.
`pii_tracer.scan.forms.text_bytes_decoding` reads what stands there.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt
from ahocorasick_rs import BytesAhoCorasick, MatchKind

LONG = 107
"""Characters of base64 that stand for eighty bytes. What is shorter counts only where it begins as a stream does."""
LINE = 56
"""Characters of a line that may go on in the next, as in MIME and PEM."""
LEAST_HEX = 36
"""Digits of the shortest stream in hex that holds a value (zlib of ten bytes)."""

ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
STREAMS = (
    *(b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"LZ4Block", b"\xff\x06\0\0sN"),
    *(b"\x5d\0\0\x80\0", b"\x5d\0\0\0\x01"),
)
"""How short streams may begin. Files of other kinds are longer than `LONG`."""


def _in_base64(start: bytes) -> bytes:
    """The letters in which both alphabets are the same, and which no writer escapes. The first may be missing."""
    return base64.b64encode(start)[: len(start) * 8 // 6].strip(b"/")


_SHORT_STREAMS = (b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
BASE64 = frozenset(map(_in_base64, _SHORT_STREAMS))
HEADLESS = frozenset(_in_base64(start) for start in _SHORT_STREAMS if base64.b64encode(start)[:1] == b"/")
ZLIB_BASE64 = frozenset(base64.b64encode(z + bytes([n << 4]))[:3] for z in ZLIB[2:] for n in range(16))
"""Of the usual levels of compression; others count where they are long."""
ESCAPES = frozenset(
    (
        rb"\x1f\x8b",
        rb"x\x9c",
        rb"(\xb5/\xfd",
        rb"\037\213",
        rb"\\037\\213",
        rb"x\234",
        rb"x\\234",
        rb"x\332",
        rb"\u001f\u008b",
        rb"x\u009c",
    )
)
ARMOUR = (b"-----BEGIN PGP MESS", b"-----BEGIN AGE ENC", b"$ANSIBLE_VAULT;")
UUENCODE = (b"begin 644 ", b"begin 666 ")
YENC = b"=ybegin "
MARKUP = (b"<!ENTITY", b"<![CDATA[", b"{\\rtf")
"""What parts values in documents otherwise than text does."""

_ALL = sorted({*BASE64, *ZLIB_BASE64, *ESCAPES, *ARMOUR, *UUENCODE, YENC, *MARKUP})
assert len(_ALL) <= 34, "more patterns are searched several times as slowly"
_SEARCH = BytesAhoCorasick(_ALL, matchkind=MatchKind.LeftmostFirst)

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]


def apart_from(signs: bytes) -> bytes:
    """Of each byte whether it is none of some."""
    return bytes(byte not in signs for byte in range(256))


_APART = apart_from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_\\%")
"""Of each byte whether it is not of base64, hex or an escape."""
_WORD = 8
_CLEAN = 3
"""Words in a row without a separator: every run of `LEAST_HEX` has so many at aligned places."""
_DIGESTS = np.isin(np.arange(LONG), (40, 56, 64, 96))
"""Digits of digests in hex (SHA-1 to SHA-384), by their number."""
_QUOTED = 8
"""What stands at the most between two pieces of base64 in a list of texts."""
_HEX_STARTS = np.unique(
    np.frombuffer(
        b"".join(
            cased
            for start in (*STREAMS, *ZLIB, b"PK", b"%PDF", b"PAR1", b"ORC", b"Obj\1", b"7z", b"SQLi", b"\xd0\xcf")
            for cased in (start.hex()[:4].encode(), start.hex()[:4].upper().encode())
        ),
        "<u4",
    )
)  # fmt: skip
_IS_HEX = np.zeros(256, np.bool_)
_IS_HEX[list(b"0123456789abcdefABCDEF")] = True
_ALL_HEX = np.uint64(0x0101010101010101)
_FIRST_CLEAN = np.array([(n & -n).bit_length() - 1 if n else _WORD for n in range(256)])
_LAST_CLEAN = np.array([_WORD - n.bit_length() for n in range(256)])
"""How many bytes of a word are clean before the first that is not, and behind the last."""


def starts_in(text: bytes) -> list[tuple[bytes, int]]:
    """What begins in a text: which of the patterns, and where."""
    return [(_ALL[number], start) for number, start, _ in _SEARCH.find_matches_as_indexes(text)]


def spots(data: bytes | memoryview, borders: Places | None = None) -> Places:
    """Sorted positions near which bytes may be written down.

    borders: where texts meet that have nothing between them.
    """
    found = [start for _, start in starts_in(bytes(data))]
    runs = long_runs(data, borders)
    return np.union1d(np.array(found, np.int64), runs) if found else runs


def long_runs(data: bytes | memoryview, borders: Places | None = None) -> Places:
    """Where runs of characters of base64 or hex begin that are long, go on in another line, or begin as streams do.

    borders: as of `spots`.
    """
    starts, ends = runs(bytes(data), _APART, borders)
    if not len(starts):
        return starts
    whole, sizes = np.frombuffer(data, np.uint8), ends - starts
    # a few of the digits tell nearly all words and UUIDs
    digits = _IS_HEX.take(_from(whole, starts + _WORD, "<u8").view(np.uint8)).view(np.uint64) == _ALL_HEX
    wanted = np.isin(_from(whole, starts, "<u4"), _HEX_STARTS)
    for skip in (2, 3):
        wanted |= np.isin(_from(whole, starts + skip, "<u4"), _HEX_STARTS)
    wanted &= digits
    goes_on = sizes >= LINE
    if goes_on.any():
        last = len(whole) - 1
        behind, second = whole[np.minimum(ends, last)], whole[np.minimum(ends + 1, last)]
        lines = (behind == 10) | (behind == 13) | ((behind == ord("&")) & (second == ord("#")))
        lines |= (behind == ord("=")) & ((second == 10) | (second == 13))
        lines[:-1] |= (behind == ord('"'))[:-1] & (starts[1:] - ends[:-1] <= _QUOTED)
        goes_on &= lines | (sizes >= LONG)
    digits &= ~_DIGESTS[np.minimum(sizes, LONG - 1)]
    perhaps = np.flatnonzero(~wanted & (goes_on | digits))
    first = whole[starts[perhaps][:, None] + np.arange(LEAST_HEX)]
    digits = digits[perhaps] & _IS_HEX[first[:, _CLEAN:]].all(axis=1)
    # thirty-six digits without a letter are a number
    wanted |= _begin_as_text(whole, starts)
    wanted[perhaps] |= (goes_on[perhaps] | digits) & (first > ord("9")).any(axis=1)
    return np.asarray(starts[wanted], np.int64)


def _from(whole: Bytes, places: Places, kind: str) -> Any:
    """The numbers that begin at some places."""
    return np.ndarray((len(whole) - np.dtype(kind).itemsize + 1,), kind, whole, 0, (1,))[places]


def _bits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """One bit of each byte, the first byte's the lowest."""
    return np.asarray((words * np.uint64(0x0102040810204080)) >> np.uint64(56), np.uint64)


def runs(data: bytes, parting: bytes, borders: Places | None) -> tuple[Places, Places]:
    """Where all runs of `LEAST_HEX` characters and more begin and end. parting: of each byte whether it parts them.

    borders: as of `spots`.
    """
    if len(data) < LEAST_HEX:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    apart = np.frombuffer(data.translate(parting), np.uint8)
    words = np.frombuffer(apart, np.uint64, len(apart) // _WORD) == 0
    clean = words[2:] & words[1:-1] & words[:-2]
    if not clean.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    steps = np.diff(clean.astype(np.int8), prepend=0, append=0)
    first, last = np.flatnonzero(steps == 1) * _WORD, (np.flatnonzero(steps == -1) + _CLEAN - 1) * _WORD
    starts = np.maximum(0, first - _LAST_CLEAN.take(_bits(_from(apart, np.maximum(0, first - _WORD), "<u8"))))
    last = np.minimum(last, len(apart) - _WORD)
    ends = last + _FIRST_CLEAN.take(_bits(_from(apart, last, "<u8")))
    if borders is not None:
        run = np.searchsorted(starts, borders, side="right") - 1
        inside = borders[(run >= 0) & (borders < ends[run]) & (borders > starts[run])]
        starts, ends = np.sort(np.concatenate([starts, inside])), np.sort(np.concatenate([ends, inside]))
    long = ends - starts >= LEAST_HEX
    return starts[long], ends[long]


_NUMBERS = np.full(256, 255, np.uint8)
_NUMBERS[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")] = np.arange(64)
_NUMBERS[list(b"-_")] = (62, 63)
_IS_SHOWN = np.zeros(256, np.bool_)
_IS_SHOWN[[*range(32, 127), 9, 10, 13]] = True
_LOOKED_AT = LEAST_HEX // 4


def _begin_as_text(whole: Bytes, starts: Places) -> npt.NDArray[np.bool_]:
    """Which runs of letters begin as base64 of a text of ASCII does."""
    left = np.arange(len(starts))
    for group in range(_LOOKED_AT):
        four = _NUMBERS[whole[starts[left][:, None] + 4 * group + np.arange(4)]].astype(np.uint32)
        joined = four[:, 0] << 18 | four[:, 1] << 12 | four[:, 2] << 6 | four[:, 3]
        shown = _IS_SHOWN[joined >> 16 & 255] & _IS_SHOWN[joined >> 8 & 255] & _IS_SHOWN[joined & 255]
        left = left[shown & (four < 64).all(axis=1)]
    result = np.zeros(len(starts), np.bool_)
    result[left] = True
    return result
