"""The search for so many values that the patterns of all their writings cannot be held.

Only the plain patterns of all values are. Of their writings and digests windows are known (`encoding_windows`). Where
one stands in the data, the patterns of its owners are made, and searched there as those of few values are. So no less
is found: a window stands in every pattern. Over ends of lines more is, as every pattern is looked for there.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Protocol

import numpy as np

from pii_tracer.scan.forms import line_wraps
from pii_tracer.scan.forms.pattern_automaton import Automaton, Search, Table, Tables, Term, add
from pii_tracer.scan.hits import Form
from pii_tracer.scan.many_values.encoding_windows import WRITINGS, Value, builder_of
from pii_tracer.scan.many_values.pattern_windows import Places
from pii_tracer.scan.pattern_prefilter import Sieve
from pii_tracer.scan.value_encodings import ALGORITHMS

_LINED = frozenset({Form.TEXT, Form.BASE64, Form.HEX})
_DIGESTS = frozenset(ALGORITHMS)
"""Forms that are looked for over the ends of lines; digests where they are text."""

MANY = 5_000
"""Of more values the writings are not all made."""

_TOGETHER = 512
"""Owners whose patterns are searched by one automaton."""
_KEPT_TABLES = 4096
"""Owners whose patterns are kept, some 20 KiB each."""
_KEPT = 64
"""Automata that are kept for the next piece of data."""

Match = tuple[tuple[Term, ...], int, int]


class _Last(threading.local):
    """What each thread looked at last, and whose windows stand in it. silent: texts, folded, in which none stands."""

    def __init__(self) -> None:
        self.data: bytes | None = None
        self.owners: list[int] = []
        self.silent: frozenset[bytes] = frozenset()


class Writings:
    """Every digest and writing of some values, made when windows of them are met. Holds values: never stored."""

    def __init__(self, values: Sequence[Value], plain: Table) -> None:
        """plain: patterns of the values as they are, which are searched in any case, and left out here."""
        builder = builder_of(values)
        self._plain = plain
        self._always = sorted(builder.windowless)
        self._windows = builder.table()
        self.longest = builder.longest
        self._made: OrderedDict[tuple[int, ...], tuple[Automaton, Automaton]] = OrderedDict()
        self._last = _Last()
        self._lock = threading.Lock()
        self._tables = lru_cache(_KEPT_TABLES)(partial(_tables_of, values))

    def places(self, data: bytes | memoryview) -> Places:
        """Sorted places, one or more inside every writing."""
        return self._windows.find(data)[0]

    def expect(self, texts: Sequence[bytes]) -> None:
        """As `Search.expect`: find out in one search in which of the texts no window stands."""
        folded = [text.lower() for text in texts]
        ends = np.cumsum([len(text) for text in folded])
        places = self._windows.find(b"".join(folded))[0]  # also windows over two texts: more, never less
        telling = set(np.searchsorted(ends, places, side="right").tolist())
        self._last.silent = frozenset(text for number, text in enumerate(folded) if number not in telling)

    def automata(self, data: bytes) -> Iterator[tuple[Automaton, Automaton]]:
        """What finds every writing that stands in the data: in any case, and exactly."""
        folded = data.lower()  # has the same windows, and the same data are asked for in both ways
        if self._last.data != folded:
            owners = [] if folded in self._last.silent else self._windows.find(folded)[1].tolist()
            self._last.owners = sorted({*owners, *self._always}) if self._always else owners
            self._last.data = folded
        owners = self._last.owners
        for start in range(0, len(owners), _TOGETHER):
            yield self._automata_of(tuple(owners[start : start + _TOGETHER]))

    def _automata_of(self, owners: tuple[int, ...]) -> tuple[Automaton, Automaton]:
        with self._lock:
            if owners in self._made:
                self._made.move_to_end(owners)
                return self._made[owners]
        folded: Table = {}
        exact: Table = {}
        for owner in owners:
            tables = self._tables(owner)
            for joined, part in ((folded, tables.folded), (exact, tables.exact)):
                for pattern, terms in part.items():
                    for term in terms:
                        add(joined, pattern, term)
        made = Automaton(_beside(self._plain, folded)), Automaton(exact)
        with self._lock:
            self._made[owners] = made
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return made


def _tables_of(values: Sequence[Value], owner: int) -> Tables:
    """All that windows of an owner may stand for."""
    number, what = divmod(owner, 2)
    tables = Tables()
    (tables.written if what == WRITINGS else tables.digested)(*values[number])
    tables.show_digests()
    return tables


def _beside(plain: Table, others: Table) -> Table:
    """Patterns without what the plain ones say already."""
    found: Table = {}
    for pattern, terms in others.items():
        known = {name for name, _ in plain.get(pattern, ())}
        rest = tuple(term for term in terms if term[0] not in known)
        if rest:
            found[pattern] = rest
    return found


class FoldedOfMany:
    """As an `Automaton` of all patterns that are searched in any case."""

    def __init__(self, plain: Table, writings: Writings) -> None:
        self._plain, self._writings = Automaton(plain), writings
        self.longest = max(self._plain.longest, writings.longest)

    def matches(self, data: bytes) -> Iterator[Match]:
        """As `Automaton.matches`."""
        found = list(self._plain.matches(data))
        for folded, _ in self._writings.automata(data):
            found += folded.matches(data)
        yield from sorted(found, key=_by_end)

    def expect(self, texts: Sequence[bytes]) -> None:
        """As `Search.expect`."""
        self._writings.expect(texts)


class ExactOfMany:
    """As an `Automaton` of all patterns that are searched as they are."""

    def __init__(self, writings: Writings) -> None:
        self._writings = writings
        self.longest = writings.longest

    def matches(self, data: bytes) -> Iterator[Match]:
        """As `Automaton.matches`."""
        found: list[Match] = []
        for _, exact in self._writings.automata(data):
            found += exact.matches(data)
        yield from sorted(found, key=_by_end)

    def expect(self, texts: Sequence[bytes]) -> None:
        """As `Search.expect`."""
        self._writings.expect(texts)


def _by_end(match: Match) -> tuple[int, int]:
    return match[2], match[1]


class SieveOfMany:
    """As a `Sieve` of all patterns."""

    def __init__(self, plain: Sieve, writings: Writings) -> None:
        self._plain, self._writings = plain, writings
        self.blind = plain.blind

    def places(self, data: bytes | memoryview, label: str | None = None) -> Places:
        """As `Sieve.places`."""
        return np.union1d(self._plain.places(data, label), self._writings.places(data))


class Borders(Protocol):
    """Tells where an end of a line may part a pattern."""

    def windows(self, text: bytes | memoryview) -> Iterator[tuple[int, int]]:
        """Parts of a text that hold all that may go on in the next line."""


class AnySieve(Protocol):
    """Tells where patterns may stand. blind: it cannot, so everything has to be searched."""

    blind: bool

    def places(self, data: bytes | memoryview, label: str | None = None) -> Places:
        """Sorted places, one or more inside every occurrence of every pattern."""


class EveryBorder:
    """As `line_wraps.Borders` of so many patterns that any end of a line may part one."""

    def windows(self, text: bytes | memoryview) -> Iterator[tuple[int, int]]:
        """The whole text, where it has ends of lines."""
        if isinstance(text, bytes) and b"\n" not in text:
            return
        if len(line_wraps.signs_at_ends(text)[0]):
            yield 0, len(text)


@dataclass(frozen=True)
class ValueSearch:
    """What finds some values.

    plain: their tables, those of the values as they are. folded, exact: find what is searched in any case, and as it
    is. patterns: all patterns, and lined those that are looked for over ends of lines; neither is told of many values.
    """

    plain: Tables
    folded: Search
    exact: Search
    sieve: AnySieve
    borders: Borders
    patterns: list[bytes]
    lined: list[bytes]
    many: bool


def search_of(values: Sequence[Value], few: int | None = None) -> ValueSearch:
    """What finds all forms of some values. few: of so many all writings are made, in place of `MANY`: that takes long,
    and pays where much is searched."""
    return _search_of_many(values) if len(values) > (MANY if few is None else few) else _search_of_few(values)


def _is_lined(pattern: bytes, form: Form) -> bool:
    return form in _LINED or (form in _DIGESTS and pattern.isascii())


def _search_of_few(values: Sequence[Value]) -> ValueSearch:
    tables = Tables()
    for key_set, value in values:
        tables.add(key_set, value)
    tables.show_digests()
    lined = [p for table in (tables.folded, tables.exact) for p, terms in table.items() if _is_lined(p, terms[0][1])]
    patterns = [*tables.folded, *tables.exact, *tables.bounded, *tables.anchors]
    folded, exact = Automaton(tables.folded), Automaton(tables.exact)
    return ValueSearch(tables, folded, exact, Sieve(patterns), line_wraps.Borders(lined), patterns, lined, many=False)


def _search_of_many(values: Sequence[Value]) -> ValueSearch:
    tables = Tables()
    for key_set, value in values:
        tables.plain(key_set, value)
    writings = Writings(values, tables.folded)
    sieve = SieveOfMany(Sieve([*tables.folded, *tables.bounded, *tables.anchors]), writings)
    folded, exact = FoldedOfMany(tables.folded, writings), ExactOfMany(writings)
    return ValueSearch(tables, folded, exact, sieve, EveryBorder(), [], [], many=True)
