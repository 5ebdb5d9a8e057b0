"""Tables of the words in some bytes: what a table does not hold surely does not stand there.

Words are taken at every second or fourth place, so that a table is made fast. A pattern, wherever it stands, covers
all words at such places within it. Case is left out as in the sieve (`pii_tracer.scan.pattern_prefilter`): by setting
the bit that tells `a` from `A`. Two words may share a place in a table, which lets through more and never less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Marks = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]

LEAST_BITS = 10
"""Of the logarithm of a table's size."""
SPARSE, SPARSER = 8, 16
"""A table of which fewer than one place in so many is taken is made smaller."""
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Width:
    """A width of words. size, step: of a word, and from one to the next, in bytes; most: bits, of the largest table."""

    size: int
    step: int
    most: int
    kind: Any
    fold: Any
    mixer: Any

    @property
    def covered(self) -> int:
        """A pattern of so many bytes or more holds a whole word, wherever it stands."""
        return self.size + self.step - 1

    def hashes(self, words: npt.NDArray[Any]) -> Hashes:
        """Of which the highest bits tell a word's place in a table."""
        mixed = (words | self.fold) * self.mixer
        return np.asarray(mixed.astype(np.uint64) << np.uint64(64 - 8 * self.size))


SHORT = Width(4, 2, 20, np.uint32, np.uint32(0x20202020), np.uint32(0x9E3779B1))
LONG = Width(8, 4, 27, np.uint64, np.uint64(0x2020202020202020), np.uint64(0x9E3779B97F4A7C15))


DIGITS = 7
_RUN = 8
_WITHOUT_LAST, _HALVES, _OF_DIGITS = map(np.uint64, (0x00FFFFFFFFFFFFFF, 0x00F0F0F0F0F0F0F0, 0x0030303030303030))


def new_marks(bits: int) -> Marks:
    """An empty table of `2**bits` places."""
    return np.zeros(1 << max(LEAST_BITS, bits), np.bool_)


def mark(marks: Marks, hashes: Hashes) -> None:
    """Take the places of some words."""
    marks[hashes >> np.uint64(65 - len(marks).bit_length())] = True


def mark_words(marks: Marks, data: bytes | memoryview, width: Width) -> None:
    """Take the places of the words in some bytes."""
    shift = width.kind(8 * width.size + 1 - len(marks).bit_length())
    for first in range(0, width.size, width.step):
        count = (len(data) - first) // width.size
        words = np.frombuffer(data, width.kind, count, first) if count > 0 else ()
        for start in range(0, len(words), _BLOCK):
            mixed = words[start : start + _BLOCK] | width.fold
            mixed *= width.mixer
            mixed >>= shift
            marks[mixed] = True


def mark_digits(marks: Marks, data: bytes | memoryview) -> None:
    """Take the places of all runs of `DIGITS` digits, at any place: numbers differ where their words do not.

    A run covers just one aligned word of four bytes.
    """
    for start in range(0, len(data) - 3, 4 * _BLOCK) if len(data) >= _RUN else ():
        words = np.frombuffer(data, np.uint32, min(_BLOCK, (len(data) - start) // 4), start)
        found = np.flatnonzero((words & np.uint32(0xF0F0F0F0)) == np.uint32(0x30303030))
        if len(found):
            starts = (start + 4 * found[:, None] + np.arange(-3, 1)).ravel()
            every = np.ndarray((len(data) - _RUN + 1,), np.uint64, data, 0, (1,))
            runs = every[starts[(starts >= 0) & (starts < len(every))]] & _WITHOUT_LAST
            mark(marks, runs[(runs & _HALVES) == _OF_DIGITS] * LONG.mixer)
    if len(data) >= DIGITS:
        tail = bytes(data[-DIGITS:])
        if all(byte & 0xF0 == 0x30 for byte in tail):
            mark(marks, digit_runs([tail]))


def digit_runs(runs: Iterable[bytes]) -> Hashes:
    """Of runs of so many digits."""
    return np.asarray(np.array([int.from_bytes(run, "little") for run in runs], np.uint64) * LONG.mixer)


def packed(marks: Marks, sparse: int) -> bytes:
    """A table in bits, made smaller where it is sparse: neighbours fold together."""
    wanted = max(1 << LEAST_BITS, sparse * int(np.count_nonzero(marks)))
    while wanted < len(marks):
        marks = marks[0::2] | marks[1::2]
    return np.packbits(marks).tobytes()


def held(table: bytes, hashes: Hashes) -> Marks:
    """Whether each word's place in a table is taken."""
    bits = (8 * len(table)).bit_length() - 1
    places = hashes >> np.uint64(64 - bits)
    octets = np.frombuffer(table, np.uint8)[(places >> np.uint64(3)).astype(np.intp)]
    return np.asarray(octets & (np.uint8(128) >> (places & np.uint64(7)).astype(np.uint8)), np.bool_)


class PatternWords:
    """The words of some patterns, for each way in which one may lie over the places at which words are taken."""

    def __init__(self, patterns: Sequence[bytes], width: Width) -> None:
        """patterns: those that are too short for a word count as held everywhere."""
        self._always = np.array([len(pattern) < width.covered for pattern in patterns], np.bool_)
        spots: list[int] = []
        owners, starts, begin = [], [], 0
        for number, pattern in enumerate(patterns):
            for first in range(width.step) if len(pattern) >= width.covered else ():
                owners.append(number)
                starts.append(len(spots))
                spots += range(begin + first, begin + len(pattern) - width.size + 1, width.step)
            begin += len(pattern)
        joined = b"".join(patterns) + bytes(width.size)
        every: npt.NDArray[Any] = np.ndarray((begin + 1,), width.kind, joined, 0, (1,))
        self._hashes = width.hashes(every[np.array(spots, np.intp)])
        self._starts, self._owners = np.array(starts, np.intp), np.array(owners, np.intp)

    def may_stand(self, table: bytes) -> Marks:
        """Whether each pattern may stand in the bytes that the table was made of."""
        result: Marks = self._always.copy()
        if len(self._starts):
            result[self._owners[np.logical_and.reduceat(held(table, self._hashes), self._starts)]] = True
        return result


class PatternDigits:
    """The runs of digits in some patterns. A byte that is a digit when case is left out may have been none."""

    def __init__(self, patterns: Sequence[bytes]) -> None:
        runs, self._owners = [], []
        for number, pattern in enumerate(patterns):
            for start in range(len(pattern) - DIGITS + 1):
                run = pattern[start : start + DIGITS]
                if run.isdigit():
                    runs.append(run)
                    self._owners.append(number)
        self._count = len(patterns)
        self._hashes = digit_runs(runs)

    def may_stand(self, table: bytes) -> Marks:
        """As `PatternWords.may_stand`."""
        result = np.ones(self._count, np.bool_)
        if len(self._hashes):
            result[np.array(self._owners, np.intp)[~held(table, self._hashes)]] = False
        return result


def fold(patterns: Iterable[bytes]) -> list[bytes]:
    """Patterns without case, each once."""
    return sorted({bytes(byte | 32 for byte in pattern) for pattern in patterns})
