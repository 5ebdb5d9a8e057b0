"""Tells fast where in bytes a pattern may stand, so that the exact search only looks there. Never misses one.

Of every pattern a window of up to eight bytes is chosen, the one whose words are rarest in the data. Wherever the
pattern stands, its window covers a whole word of four bytes at an aligned place. So it is enough to look at aligned
words (numpy does it nearly at the speed of the memory), and at the whole windows around the few that are known. Case is
left out by setting the bit that tells `a` from `A`: a superset of equal text, which the exact search sorts out.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_WORD = 4
_WINDOW = 8
_PIECE = 1 << 17
"""Words that are looked at together: what is made of them stays in the processor's cache."""

_RUN = np.arange(_WINDOW)
_LOWEST = np.array([(n & -n).bit_length() - 1 if n else 0 for n in range(1 << _WORD)])
_FOLD = np.uint32(0x20202020)
_FOLD_ALL = np.uint64(0x2020202020202020)
_FOLDED = bytes(byte | 32 for byte in range(256))
_SAMPLE = 1 << 16
_SAMPLE_BITS = 16
_CROWDED = 512
"""A sieve that lets through more than one place in so many bytes is chosen anew, by the data at hand."""
_TRIES = 4
"""So often for one kind of data; what is crowded then is full of the persons."""
_LABELS = 1024
_CACHED_BITS = 22
"""Tables of so many places stay in the processor's cache; larger ones only keep the share of taken places small."""
_MOST_BITS = 28
_ROOM = 1 << 29
"""Bytes that the choices for all kinds of data may take together; those of many persons are large."""
_TOGETHER = 1 << 14
"""Patterns whose windows are chosen at once: more take more memory, and less no less time."""

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]
Numbers = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]


class _Desk(threading.local):
    """Arrays that each thread uses again: to get new ones from the system costs more than what is done in them."""

    def __init__(self) -> None:
        self.mixed = np.empty(_PIECE, np.uint32)
        self.places = np.empty(_PIECE, np.intp)
        self.known = np.empty(_PIECE, np.bool_)


_DESK = _Desk()


def _mixed(words: Words, bits: int) -> Words:
    """A hash of so many bits of each word."""
    return _mix(words.copy(), bits)


def _mix(words: Words, bits: int) -> Words:
    """The same, in their place."""
    words *= np.uint32(0x9E3779B1)
    words >>= np.uint32(32 - bits)
    return words


def _grams(data: Bytes, size: int) -> npt.NDArray[Any]:
    """Every run of so many bytes, as one unsigned number each."""
    runs = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(data, size))
    return np.asarray(runs.view(np.uint32 if size == _WORD else np.uint64)[:, 0])


def _from(whole: Bytes, starts: Places, kind: type[np.uint32] | type[np.uint64]) -> npt.NDArray[Any]:
    """The word, or the eight bytes, from each place on; all of them lie in the data."""
    runs: npt.NDArray[Any] = np.ndarray((len(whole) - kind().itemsize + 1,), kind, whole, 0, (1,))
    return np.asarray(runs[starts])


def _eight(whole: Bytes, starts: Places) -> Numbers:
    """The eight bytes from each place on, as one number each, folded. Behind the end the last byte is read again."""
    last = len(whole) - _WINDOW
    if last >= 0 and (not len(starts) or starts.max() <= last):
        return np.asarray(_from(whole, starts, np.uint64) | _FOLD_ALL)
    around = whole.take(starts[:, None] + _RUN, mode="clip")
    return np.asarray(around.view(np.uint64)[:, 0] | _FOLD_ALL)


@dataclass(frozen=True)
class _Choice:
    """The chosen windows. tries: so often they were chosen for this kind of data; known: whether a word's hash is of
    one; backs: a bit for each place it has in one; table: whether a window's hash is of one; spans: windows by size.
    """

    tries: int
    bits: int
    known: npt.NDArray[np.bool_]
    backs: Bytes
    table: npt.NDArray[np.bool_]
    spans: tuple[tuple[np.uint64, Numbers], ...]

    def among(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Which runs of eight bytes begin with a chosen window."""
        result = np.zeros(len(numbers), np.bool_)
        for mask, values in self.spans:
            masked = numbers & mask
            maybe = np.flatnonzero(self.table.take(_mixed(_halved(masked), self.bits)))
            rest = masked[maybe]
            places = np.searchsorted(values, rest)
            places[places == len(values)] = 0
            result[maybe[values[places] == rest]] = True
        return result


def _halved(numbers: Numbers) -> Words:
    return np.asarray((numbers >> np.uint64(32)) * np.uint64(0x85EBCA6B) ^ numbers, np.uint64).astype(np.uint32)


class Sieve:
    """Where patterns may stand. Holds values of persons, as `Patterns` does: never printed, never stored.

    blind: a pattern is too short for a sieve, so everything has to be searched.
    """

    def __init__(self, patterns: Iterable[bytes]) -> None:
        folded = sorted({pattern.translate(_FOLDED) for pattern in patterns})
        shortest = min(map(len, folded), default=0)
        self.blind = shortest < _WORD
        self._step = _WORD if shortest >= 7 else 2 if shortest >= 5 else 1
        sizes = np.array([len(pattern) for pattern in folded], np.int64)
        self._begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)[:-1]])
        self._spans = np.minimum(sizes, _WINDOW).astype(np.uint8)
        self._sizes = sizes.astype(np.int32)
        self._joined: Bytes = np.frombuffer(b"".join(folded) + bytes(2 * _WINDOW), np.uint8)
        words = (len(folded) * self._step).bit_length()
        self._bits = min(_MOST_BITS, max(_SAMPLE_BITS, min(_CACHED_BITS, words + 7), words + 2))
        self._labels = max(1, min(_LABELS, _ROOM // ((3 << self._bits) + 8 * len(folded))))
        self._choices: dict[str | None, _Choice] = {}

    def places(self, data: Any, label: str | None = None) -> Places:
        """Sorted positions in `data` (a buffer): one or more inside every occurrence of every pattern, and some others.

        label: what kind of data it is, e.g. the column's name: windows are chosen once for each.

        Raises:
            ValueError: the sieve is blind.
        """
        if self.blind:
            raise ValueError("a pattern is too short for a sieve")
        whole: Bytes = np.frombuffer(data, np.uint8)
        found = []
        for shift in range(0, _WORD, self._step):
            first = (shift - whole.ctypes.data) % _WORD
            for start in range(first, len(whole) - _WORD + 1, _PIECE * _WORD):
                kind = self._kind(label)
                choice = self._choices.get(kind) or self._choose(whole[start:], kind, 1)
                places = self._in(whole, start, choice)
                if len(places) * _CROWDED > _PIECE * _WORD and choice.tries < _TRIES:
                    places = self._in(whole, start, self._choose(whole[start:], kind, choice.tries + 1))
                found.append(places)
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)

    def _kind(self, label: str | None) -> str | None:
        """The kind of data for which windows are chosen; only so many that there is room for."""
        return label if label in self._choices or len(self._choices) < self._labels else None

    def _in(self, whole: Bytes, start: int, choice: _Choice) -> Places:
        """The places whose words lie in the piece that begins at `start`."""
        count = min(_PIECE, (len(whole) - start) // _WORD)
        words = np.require(whole[start : start + count * _WORD], requirements="C").view(np.uint32)
        if not words.flags.aligned:
            words = words.copy()
        mixed, places, hits = _DESK.mixed[:count], _DESK.places[:count], _DESK.known[:count]
        _mix(np.bitwise_or(words, _FOLD, out=mixed), choice.bits)
        places[:] = mixed
        choice.known.take(places, out=hits, mode="clip")
        known = np.flatnonzero(hits)
        if not len(known):
            return np.empty(0, np.int64)
        backs, known = choice.backs.take(mixed.take(known)), known * _WORD + start
        starts = []
        while len(known):  # hardly a word has more than one place in the windows
            starts.append(known - _LOWEST.take(backs))
            backs &= backs - np.uint8(1)
            known = known.compress(backs != 0)
            backs = backs.compress(backs != 0)
        first = np.concatenate(starts)
        first = first.compress(first >= 0)
        return np.asarray(first.compress(choice.among(_eight(whole, first))), np.int64)

    def _choose(self, data: Bytes, kind: str | None, tries: int) -> _Choice:
        """Of each pattern the window whose most frequent word is rarest in a sample of the data."""
        sample = _mixed(_grams(data[:_SAMPLE] | np.uint8(32), _WORD), _SAMPLE_BITS)
        weights = np.bincount(sample, minlength=1 << _SAMPLE_BITS)
        count = len(self._begins)
        parts = [self._lightest(n, min(n + _TOGETHER, count), weights) for n in range(0, count, _TOGETHER)]
        chosen = np.concatenate(parts)
        backs = np.zeros(1 << self._bits, np.uint8)
        for back in range(self._step):
            backs[_mixed(_from(self._joined, chosen + back, np.uint32), self._bits)] |= np.uint8(1 << back)
        numbers = _from(self._joined, chosen, np.uint64)
        table = np.zeros(1 << self._bits, np.bool_)
        spans = []
        for span in np.unique(self._spans):
            mask = np.uint64((1 << 8 * int(span)) - 1)
            values = np.unique(numbers[self._spans == span] & mask)
            table[_mixed(_halved(values), self._bits)] = True
            spans.append((mask, values))
        choice = _Choice(tries, self._bits, backs != 0, backs, table, tuple(spans))
        self._choices[kind] = choice
        return choice

    def _lightest(self, first: int, last: int, weights: Places) -> Places:
        """Where the windows of some patterns begin whose most frequent word is rarest."""
        begins, sizes = self._begins[first:last] - self._begins[first], self._sizes[first:last]
        size = int(begins[-1] + sizes[-1])
        at = int(self._begins[first])
        words = _grams(self._joined[at : at + size + _WINDOW], _WORD)
        weighed = weights[_mixed(words, _SAMPLE_BITS)]
        # the words of a window that can lie at an aligned place: as many as the step
        heavy = np.max([weighed[i : size + i] for i in range(self._step)], axis=0)
        ends = np.repeat(begins + sizes - self._spans[first:last], sizes)
        heavy[np.arange(size) > ends] = np.iinfo(heavy.dtype).max
        lightest = np.repeat(np.minimum.reduceat(heavy, begins), sizes)
        candidates = np.flatnonzero(heavy == lightest)
        return np.asarray(candidates[np.searchsorted(candidates, begins)] + at, np.int64)


def around(spots: Places, reach: int, size: int) -> Iterator[tuple[int, int]]:
    """What lies within reach of some places in data of that size; parts that touch are one."""
    low = high = 0
    for spot in spots.tolist():
        if spot - reach > high:
            if high:
                yield low, high
            low = max(0, spot - reach)
        high = min(size, spot + reach)
    if high:
        yield low, high
