"""Writings of many values at once that take several bytes together: base64, base32, base85, uuencode.

Each gives, as the writings of single values do, the characters that stand for a value wherever it lies in the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pii_tracer.scan.many_values.pattern_windows import SPANS, Bytes, Places, Ragged
from pii_tracer.scan.value_encodings import ENOUGH, SHORT_BASE64

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_STANDARD = np.frombuffer(_LETTERS + b"+/", np.uint8)
_FOR_URLS = np.frombuffer(_LETTERS + b"-_", np.uint8)
_UU = np.arange(32, 96, dtype=np.uint8)
_UU_TICKS = np.frombuffer(b"`" + bytes(range(33, 96)), np.uint8)
_BASE32 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", np.uint8)
_ASCII85 = np.arange(33, 118, dtype=np.uint8)
_BASE85 = np.frombuffer(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~", np.uint8
)
BASE64 = (_STANDARD, _FOR_URLS)
"""Signs of base64, in both alphabets."""
IN_ONE_WORD = (_BASE32, _ASCII85, _BASE85)
"""Signs of base32 and base85."""
_BEHIND = (0, 2, 3)
"""Characters of base64 that also stand for what lies before, by the bytes before in a group."""


def table(rows: Bytes) -> Ragged:
    """Rows of the same length as byte strings."""
    count, size = rows.shape
    data = np.concatenate([rows.ravel(), np.zeros(SPANS[-1], np.uint8)])
    return Ragged(data, np.arange(count, dtype=np.int64) * size, np.full(count, size, np.int64))


def _sixes(values: Bytes, before: int) -> Bytes:
    """The six-bit numbers of base64 of rows of bytes that have so many others before them; those that hold only bits of
    the row. Whoever asks knows how many of the first are of the others, too.
    """
    rows, length = values.shape
    size = -(-(before + length) // 3) * 3
    padded = np.zeros((rows, size), np.uint8)
    padded[:, before : before + length] = values
    threes = padded.reshape(rows, -1, 3).astype(np.uint32)
    joined = threes[:, :, 0] << 16 | threes[:, :, 1] << 8 | threes[:, :, 2]
    numbers = np.stack([joined >> shift & 63 for shift in (18, 12, 6, 0)], axis=2).reshape(rows, -1).astype(np.uint8)
    return np.asarray(numbers[:, _BEHIND[before] : (before + length) * 8 // 6])


def _in(numbers: Bytes, *alphabets: Bytes) -> Iterator[tuple[Bytes, Places]]:
    """Numbers in alphabets, with the rows that they are of; in a further one only rows that differ in it."""
    rows = np.arange(len(numbers), dtype=np.int64)
    yield alphabets[0][numbers], rows
    for alphabet in alphabets[1:]:
        others = np.flatnonzero((alphabet != alphabets[0])[numbers].any(axis=1))
        if len(others):
            yield alphabet[numbers[others]], others


def base64(values: Bytes) -> Iterator[tuple[Bytes, Places]]:
    """As `value_encodings.base64_cores`, of rows of the same length, with the rows that they are of."""
    for before in range(3):
        numbers = _sixes(values, before)
        if numbers.shape[1] >= SHORT_BASE64:
            yield from _in(numbers, _STANDARD, _FOR_URLS)


def twice_base64(values: Bytes) -> Iterator[tuple[Bytes, Places]]:
    """As `transcriptions.base64_of_base64` of ASCII."""
    for once, rows in base64(values):
        for twice, others in base64(once):
            yield twice, rows[others]


def uuencoded(values: Bytes) -> Iterator[tuple[Bytes, Places]]:
    """As `transcriptions.of_bytes` has it."""
    for before in range(3):
        numbers = _sixes(values, before)
        if numbers.shape[1] >= SHORT_BASE64:
            yield from _in(numbers, _UU, _UU_TICKS)


def wide_base64(values: Bytes) -> Iterator[tuple[Bytes, Places]]:
    """Base64 of UTF-16 in both orders of bytes, as `fully_escaped_values.wide_encoded`."""
    for first in (0, 1):
        wide = np.zeros((len(values), 2 * values.shape[1]), np.uint8)
        wide[:, first::2] = values
        yield from base64(wide)


def base32(values: Bytes, least: int) -> Iterator[Bytes]:
    """At each of the five places in a group; of at least so many characters."""
    rows, length = values.shape
    for before in range(5):
        bits = np.zeros((rows, 8 * (before + length) + 4), np.uint8)
        bits[:, 8 * before : 8 * (before + length)] = np.unpackbits(values, axis=1)
        first, last = -(-before * 8 // 5), (before + length) * 8 // 5
        if last - first >= least:
            fives = bits[:, 5 * first : 5 * last].reshape(rows, -1, 5)
            yield _BASE32[fives @ np.array([16, 8, 4, 2, 1], np.uint8)]


def base85(values: Bytes, least: int) -> Iterator[Bytes]:
    """In both alphabets, the groups of four that lie in a value as a whole; of at least so many bytes."""
    length = values.shape[1]
    for before in range(4):
        inside = values[:, before : before + (length - before) // 4 * 4]
        if inside.shape[1] < least:
            continue
        numbers = np.ascontiguousarray(inside).view(">u4").astype(np.int64)
        digits = np.stack([numbers // 85**power % 85 for power in (4, 3, 2, 1, 0)], axis=2).reshape(len(values), -1)
        yield _ASCII85[digits]
        yield _BASE85[digits]


def base64_alone(values: Bytes) -> Iterator[tuple[Ragged, Places]]:
    """As `value_encodings.base64_alone`: the longest run in which both alphabets are the same, or both in full."""
    numbers = _sixes(values, 0)
    run = np.zeros(len(numbers), np.int64)
    best, end = run.copy(), run.copy()
    for column in range(numbers.shape[1]):
        run = np.where(numbers[:, column] < 62, run + 1, 0)
        longer = run > best
        best[longer], end[longer] = run[longer], column + 1
    patterns = table(_STANDARD[numbers])
    long = best >= ENOUGH
    yield Ragged(patterns.data, (patterns.starts + end - best)[long], best[long]), np.flatnonzero(long)
    short = np.flatnonzero(~long)
    for shown, rows in _in(numbers[short], _STANDARD, _FOR_URLS) if len(short) else ():
        yield table(shown), short[rows]
