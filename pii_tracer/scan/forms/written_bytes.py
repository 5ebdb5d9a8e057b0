"""Where a text writes bytes down: base64, hex, escapes, lists of numbers. What they hold, the text does not show.

A superset, found fast: by how compressed streams begin in each writing, and by runs that are long without a separator.
`pii_tracer.scan.forms.bytes_in_text` reads what stands there.
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
_STREAMS = (
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
LISTS = frozenset((b"31,139,8", b"31, 139, 8", b"31,-117,8", b"31, -117, 8"))
ESCAPES = frozenset((rb"\x1f\x8b", rb"x\x9c", rb"(\xb5/\xfd", rb"\037\213", rb"\u001f\u008b", rb"x\u009c"))
ARMOUR = (b"-----BEGIN PGP MESS", b"-----BEGIN AGE ENC", b"$ANSIBLE_VAULT;")
UUENCODE = (b"begin 644 ", b"begin 666 ")
YENC = b"=ybegin "
MARKUP = (b"<!ENTITY", b"<![CDATA[", b"{\\rtf")
"""What parts values in documents otherwise than text does."""

_ALL = sorted({*BASE64, *ZLIB_BASE64, *LISTS, *ESCAPES, *ARMOUR, *UUENCODE, YENC, *MARKUP})
assert len(_ALL) <= 34, "more patterns are searched several times as slowly"
_SEARCH = BytesAhoCorasick(_ALL, matchkind=MatchKind.LeftmostFirst)

Places = npt.NDArray[np.int64]
_APART = np.ones(256, np.uint8)
_APART[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_\\")] = 0
"""Bytes that are not of base64, hex or an escape."""
_STRIDE = 6
_DENSE = 20
_REACH = 64
_HEX_STARTS = np.unique(
    np.frombuffer(
        b"".join(
            cased
            for start in (*_STREAMS, *ZLIB, b"PK", b"%PDF", b"PAR1", b"ORC", b"Obj\1", b"7z", b"SQLi", b"\xd0\xcf")
            for cased in (start.hex()[:4].encode(), start.hex()[:4].upper().encode())
        ),
        "<u4",
    )
)  # fmt: skip
_IS_HEX = np.zeros(256, np.bool_)
_IS_HEX[list(b"0123456789abcdefABCDEF")] = True


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
    """Positions in runs of characters of base64 or hex that are long enough to be looked at."""
    whole = np.frombuffer(data, np.uint8)
    if len(whole) < LEAST_HEX:
        return np.empty(0, np.int64)
    words = np.frombuffer(data, np.uint64, len(whole) // 8)
    if len(words) < 64 * _STRIDE:
        return _runs(whole, borders)
    near = np.flatnonzero(_clean(words[::_STRIDE])) * _STRIDE
    last = len(words) - 1
    at = [_clean(words[np.clip(near + step, 0, last)]) for step in (-2, 2)]
    if np.count_nonzero(at[0] | at[1]) * _DENSE > len(words) // _STRIDE:
        return _runs(whole, borders)
    places = near[at[0] | at[1]] * 8
    around = places[:, None] + np.arange(-_REACH, _REACH)
    apart = _APART.take(whole.take(around, mode="clip")).astype(np.bool_)
    apart |= (around < 0) | (around >= len(whole))
    apart[:, 0] = apart[:, -1] = True
    sizes = np.argmax(apart[:, _REACH:], axis=1) + np.argmax(apart[:, _REACH - 1 :: -1], axis=1)
    hex_ = _IS_HEX[whole.take(places[:, None] + np.arange(8))].all(axis=1)
    return np.asarray(places[(sizes >= LINE) | ((sizes >= LEAST_HEX) & hex_)], np.int64)


def _clean(words: Any) -> Any:
    """Which words of eight bytes have no separator in them."""
    return _APART.take(np.ascontiguousarray(words).view(np.uint8)).view(np.uint64) == 0


def _runs(whole: Any, borders: Places | None) -> Places:
    """Every run by its separators: where those begin that are long, go on in another line, or begin as streams do."""
    parts = np.flatnonzero(_APART.take(whole))
    starts, ends = np.append(0, parts + 1), np.append(parts, len(whole))
    if borders is not None:
        starts, ends = np.sort(np.concatenate([starts, borders])), np.sort(np.concatenate([ends, borders]))
    sizes = ends - starts
    starts, ends, sizes = (array[sizes >= LEAST_HEX] for array in (starts, ends, sizes))
    if not len(starts):
        return np.empty(0, np.int64)
    heads = [whole[(starts + skip)[:, None] + np.arange(4)].copy().view("<u4")[:, 0] for skip in (0, 2, 3)]
    begins = np.isin(heads[0], _HEX_STARTS) | np.isin(heads[1], _HEX_STARTS) | np.isin(heads[2], _HEX_STARTS)
    behind = whole[np.minimum(ends, len(whole) - 1)]
    lines = (sizes >= LINE) & ((behind == 10) | (behind == 13))
    # thirty-six digits without a letter are a number
    letters = (whole[starts[:, None] + np.arange(LEAST_HEX)] > ord("9")).any(axis=1)
    return np.asarray(starts[begins | (letters & (lines | (sizes >= LONG)))], np.int64)
