"""A window of each of many patterns, and where in bytes one of these windows stands.

Of a pattern a few bytes are chosen, and only a hash of them is kept, with a number: whose pattern it is. So a hundred
million patterns take a gigabyte. Case is left out, as in `pattern_prefilter`: a superset, which the exact search sorts
out.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SPANS = (4, 6, 8, 16, 32)
"""Bytes of a window. Longer ones tell apart what writes a sign in several bytes."""

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Owners = npt.NDArray[np.uint32]

_FOLD = np.uint64(0x2020202020202020)
_FOLD_BYTE = np.uint8(0x20)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)
_FIRST = np.uint64(0x9E3779B97F4A7C15)
_MIXERS = tuple(map(np.uint64, (0xC2B2AE3D27D4EB4F, 0xE7037ED1A0B428DB, 0xA0761D6478BD642F)))
_PIECE = 1 << 15
"""Places that are looked at together: what is made of them stays in the processor's cache."""
_SPARSE = 2
"""Of two to the power of so many places of a table of marks one is taken at the most."""
_LEAST_BITS, _MOST_BITS = 16, 28
_MASKS = {4: np.uint64(0xFFFFFFFF), 6: np.uint64(0xFFFFFFFFFFFF)}


@dataclass(frozen=True)
class Ragged:
    """Byte strings of different lengths, one behind the other. data: their bytes, and `SPANS[-1]` more behind them."""

    data: Bytes
    starts: Places
    sizes: Places

    @classmethod
    def of(cls, strings: list[bytes]) -> Ragged:
        """Some byte strings."""
        sizes = np.array([len(string) for string in strings], np.int64)
        data = np.frombuffer(b"".join(strings) + bytes(SPANS[-1]), np.uint8)
        return cls(data, np.cumsum(sizes) - sizes, sizes)

    def only(self, rows: npt.NDArray[np.bool_]) -> Ragged:
        """Some of them."""
        return Ragged(self.data, self.starts[rows], self.sizes[rows])


def span_of(sizes: Places, wanted: int) -> Places:
    """The longest span that fits in a pattern and is not longer than wanted. 0: the pattern is too short for any."""
    result = np.zeros(len(sizes), np.int64)
    for span in SPANS:
        if span <= wanted:
            result[sizes >= span] = span
    return result


def hashes_at(data: Bytes, places: Places, span: int) -> Hashes:
    """The hashes of the windows of so many bytes that begin at some places. All lie within the data."""
    if span < 8:
        return np.asarray(_words(data, places) & _MASKS[span])
    if span == 8:
        return _words(data, places)
    half = span // 2
    return _joined(hashes_at(data, places, half), hashes_at(data, places + half, half))


def _words(data: Bytes, places: Places) -> Hashes:
    """Eight folded bytes from each place on. Behind the end of the data are zeros."""
    if len(places) and int(places.max()) + 8 > len(data):
        data = np.concatenate([data, np.zeros(8, np.uint8)])
    return np.asarray(_eights(data)[places] | _FOLD)


def _eights(data: Bytes) -> Hashes:
    """Every run of eight bytes."""
    runs: Hashes = np.ndarray((max(0, len(data) - 7),), np.uint64, data, 0, (1,))
    return runs


def _joined(left: Hashes, right: Hashes) -> Hashes:
    mixed = left * _FIRST
    mixed += right
    return np.asarray(mixed)


class Builder:
    """Takes patterns, and makes a table of their windows."""

    def __init__(self) -> None:
        self._found: dict[int, list[tuple[Hashes, Owners]]] = {}
        self.longest = 0
        self.windowless: set[int] = set()
        """Whose patterns are too short for a window."""

    def add(
        self,
        patterns: Ragged,
        owners: Owners,
        wanted: int = 16,
        inside: Places | None = None,
        *,
        longest: int = 0,
    ) -> None:
        """Patterns with the number of the owner of each.

        wanted: how long a window may be. inside: where in each pattern the first byte stands that the window has to
        hold; without it, any will do. longest: bytes of the longest one, where only parts are given.
        """
        if not len(owners):
            return
        self.longest = max(self.longest, longest, int(patterns.sizes.max()))
        spans = span_of(patterns.sizes, wanted)
        self.windowless.update(owners[spans == 0].tolist())
        for span in np.unique(spans[spans > 0]).tolist():
            rows = spans == span
            hashes = _most_telling(patterns.only(rows), span, None if inside is None else inside[rows])
            self._keep(span, hashes, owners[rows])

    def _keep(self, span: int, hashes: Hashes, owners: Owners) -> None:
        self._found.setdefault(span, []).append((hashes, owners))

    def may_take(self, signs: Iterable[Bytes], least: int, wanted: int = 16, leads: Bytes | None = None) -> bool:
        """Whether patterns are worth making. signs: all that they are made of; least: bytes of the shortest one;
        leads: of which each window holds one."""
        return True

    def take(self, other: Builder) -> None:
        """What another builder took, too."""
        self.longest = max(self.longest, other.longest)
        self.windowless |= other.windowless
        for span, parts in other._found.items():
            self._found.setdefault(span, []).extend(parts)

    def table(self) -> Windows:
        """All that was added."""
        spans = sorted(self._found)
        with ThreadPoolExecutor(2) as pool:  # sorting works outside of Python's lock
            made = dict(zip(spans, pool.map(lambda span: _Table.of(self._found.pop(span)), spans), strict=True))
        return Windows(made)


def _most_telling(patterns: Ragged, span: int, inside: Places | None) -> Hashes:
    """Of each pattern a window; all at the same place of their patterns, the one where fewest are alike."""
    last = patterns.sizes - span
    if inside is None:
        tried = [np.zeros_like(last), last // 2, last]
    else:
        tried = [np.clip(inside + shift - span, 0, last) for shift in (1, 4, span // 2)] + [np.minimum(inside, last)]
    offsets = max(tried, key=lambda some: _different(patterns, some, span))
    return hashes_at(patterns.data, patterns.starts + offsets, span)


def _different(patterns: Ragged, offsets: Places, span: int) -> int:
    """How many windows at such places of a sample of patterns are different."""
    some = patterns.starts[:_SAMPLE] + offsets[:_SAMPLE]
    return len(np.unique(hashes_at(patterns.data, some, span)))


_SAMPLE = 2048


@dataclass(frozen=True)
class _Table:
    """Of windows the first bits of hashes, each with its owner in the bits that are left, sorted: they are sorted far
    faster than hashes beside owners, and so many bits still tell most windows apart.

    owner: the bits of owners; marks: by other hashes of these, whether there is one.
    """

    entries: Hashes
    owner: np.uint64
    marks: tuple[npt.NDArray[np.bool_], ...]
    shift: np.uint64

    @classmethod
    def of(cls, parts: list[tuple[Hashes, Owners]]) -> _Table:
        """Of hashes and their owners. parts: is emptied, so that not all is held twice."""
        size = sum(len(some) for some, _ in parts)
        most = max((int(theirs.max()) for _, theirs in parts if len(theirs)), default=0)
        owner = np.uint64((1 << most.bit_length()) - 1)
        entries = np.empty(size, np.uint64)
        while parts:
            some, theirs = parts.pop()
            entries[size - len(some) : size] = _begun(some, owner) | theirs
            size -= len(some)
        entries.sort()
        count = min(_MOST_BITS, max(_LEAST_BITS, len(entries).bit_length() + _SPARSE))
        shift = np.uint64(64 - count)
        marks = []
        for mixer in _MIXERS:
            marked = np.zeros(1 << count, np.bool_)
            marked[_index(entries & ~owner, mixer, shift)] = True
            marks.append(marked)
        return cls(entries, owner, tuple(marks), shift)

    def among(self, hashes: Hashes) -> Places:
        """Which of some hashes are known, and hardly any other."""
        begun = _begun(hashes, self.owner)
        maybe = np.flatnonzero(self.marks[0].take(_index(begun, _MIXERS[0], self.shift)))
        asked = begun[maybe]
        for mixer, marked in zip(_MIXERS[1:], self.marks[1:], strict=True):
            kept = marked.take(_index(asked, mixer, self.shift))
            maybe, asked = maybe[kept], asked[kept]
        if not len(maybe):
            return maybe
        found = np.searchsorted(self.entries, asked)
        found[found == len(self.entries)] = 0
        return np.asarray(maybe[self.entries[found] & ~self.owner == asked])

    def owned(self, hashes: Hashes) -> Owners:
        """The owners of some hashes, which are known."""
        begun = np.unique(_begun(hashes, self.owner))
        first = np.searchsorted(self.entries, begun)
        counts = np.searchsorted(self.entries, begun | self.owner, side="right") - first
        total = int(counts.sum())
        steps = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.asarray(self.entries[np.repeat(first, counts) + steps] & self.owner, np.uint32)


def _begun(hashes: Hashes, owner: np.uint64) -> Hashes:
    """The first bits of other hashes of these, and zeros for an owner."""
    mixed = hashes * _SPREAD
    mixed &= ~owner
    return np.asarray(mixed)


def _index(hashes: Hashes, mixer: np.uint64, shift: np.uint64) -> npt.NDArray[np.intp]:
    mixed = hashes * mixer
    mixed >>= shift
    return mixed.view(np.intp)


class OwnersInTexts(Builder):
    """Takes patterns, and keeps only whose windows stand in some short texts."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        super().__init__()
        self._texts = [np.frombuffer(text, np.uint8) | _FOLD_BYTE for text in texts]
        self._there = {span: np.concatenate([_all_hashes(text, span) for text in self._texts]) for span in SPANS}
        self.owners: set[int] = set()

    def _keep(self, span: int, hashes: Hashes, owners: Owners) -> None:
        self.owners.update(owners[np.isin(hashes, self._there[span])].tolist())

    def may_take(self, signs: Iterable[Bytes], least: int, wanted: int = 16, leads: Bytes | None = None) -> bool:
        """As of `Builder`: whether so many of the signs stand side by side as the shortest window has."""
        span = int(span_of(np.array([least]), wanted)[0])
        known = np.zeros(256, np.bool_)
        for some in signs:
            known[some.ravel() | _FOLD_BYTE] = True
        return span == 0 or any(
            _longest_run(known[text]) >= span and (leads is None or bool(np.isin(text, leads | _FOLD_BYTE).any()))
            for text in self._texts
        )

    def take(self, other: Builder) -> None:
        """What another one took, too."""
        super().take(other)
        if isinstance(other, OwnersInTexts):
            self.owners |= other.owners


def _all_hashes(text: Bytes, span: int) -> Hashes:
    return hashes_at(text, np.arange(max(0, len(text) - span + 1)), span)


def _longest_run(marks: npt.NDArray[np.bool_]) -> int:
    ends = np.flatnonzero(np.concatenate([[True], ~marks, [True]]))
    return int(np.diff(ends).max()) - 1


class Windows:
    """Tells where windows of patterns stand, and whose they are. Holds hashes of persons' values: never stored."""

    def __init__(self, tables: dict[int, _Table]) -> None:
        self._tables = tables

    def __len__(self) -> int:
        return sum(len(table.entries) for table in self._tables.values())

    def find(self, data: bytes | memoryview) -> tuple[Places, Owners]:
        """The sorted places at which windows stand, and all owners of these windows."""
        whole = np.frombuffer(data, np.uint8)
        places: list[Places] = []
        owners: list[Owners] = []
        for start in range(0, len(whole), _PIECE):
            piece = whole[start : start + _PIECE + SPANS[-1]]
            for span, hashes in self._hashes(piece):
                table = self._tables[span]
                known = table.among(hashes[:_PIECE])
                if len(known):
                    places.append(known + start)
                    owners.append(table.owned(hashes[known]))
        if not places:
            return np.empty(0, np.int64), np.empty(0, np.uint32)
        return np.unique(np.concatenate(places)), np.unique(np.concatenate(owners))

    def _hashes(self, piece: Bytes) -> list[tuple[int, Hashes]]:
        """Of each span that is in use, the hashes at all places at which so many bytes stand."""
        padded = np.concatenate([piece, np.zeros(8, np.uint8)])
        words = _eights(padded)[: len(piece)] | _FOLD
        found = []
        longest = max(self._tables, default=0)
        for span in SPANS:
            size = len(piece) - span + 1
            if size <= 0 or span > longest:
                break
            if span < 8:
                hashes = words[:size] & _MASKS[span]
            elif span == 8:
                hashes = before = words[:size]
            else:
                half = span // 2
                hashes = before = _joined(before[:size], before[half : half + size])
            if span in self._tables:
                found.append((span, hashes))
        return found
