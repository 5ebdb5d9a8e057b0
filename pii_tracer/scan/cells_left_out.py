"""Cells that the owner's word makes nobody's key, and what a text may show of them beside its cells. Keeps no value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from pii_tracer.model.number_keys import without_fraction
from pii_tracer.scan.forms.pattern_automaton import Term
from pii_tracer.scan.hits import Form, Hit, without_short
from pii_tracer.scan.value_forms import PLAIN, Patterns

NOTHING: Mapping[str, int] = MappingProxyType({})

Apart = Sequence[tuple[range, frozenset[str]]]
"""Bytes of columns of other numbers that a reader gave as cells, with the key sets that are none there."""


class LeftCells:
    """Counts cells that are nothing but a key, in columns that hold another system's numbers (`KeyColumns.not_keys`).

    A text that was read as cells may show each of them once; what it shows beyond them is in no such cell, and counts.
    """

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._cells: Counter[tuple[str, str, str]] = Counter()
        self._shown: Counter[str] = Counter()

    def leave(self, key_set: str, where: str, column: str, *, shown: int = 1) -> None:
        """Count a cell. shown: how often the text that it was read from shows the key there."""
        self._cells[key_set, where, self._patterns.mask(column)] += 1
        self._shown[key_set] += shown

    def text(self, cell: str, where: str, column: str | None) -> frozenset[str]:
        """The key sets that a cell of text is none of, though it is exactly their key."""
        no_keys = self._patterns.key_columns.no_keys_in(column)
        if not no_keys:
            return no_keys
        names = no_keys.intersection(self._patterns.of_cell(cell))
        for name, shown in times_shown(self._patterns, names, cell).items():
            self.leave(name, where, column or "", shown=shown)
        return names

    def number(self, key_set: str, value: object, where: str, column: str | None) -> bool:
        """Whether a cell with the number of a key is none."""
        no_keys = self._patterns.key_columns.no_keys_in(column)
        if column is None or key_set not in no_keys:
            return False
        text = str(value)
        shown = without_fraction(text).lstrip("-").isdigit()
        # the text may have more zeros in the fraction than the number that was read of it
        ways = (text, f"{text}0") if "." in text else (text,)
        times = Counter[str]()
        if shown:
            times[key_set] = min(times_shown(self._patterns, (key_set,), way)[key_set] for way in ways)
        self.leave(key_set, where, column, shown=times[key_set])
        whole = without_short(key_set)
        if whole != key_set and whole in no_keys.intersection(self._patterns.of_cell(text)):
            self.leave(whole, where, column)  # the text shows the number and its fraction as one value, too
        return True

    def folders(self, path: str, where: str) -> Counter[str]:
        """The partition folders of a path that are such cells, by key set."""
        found: Counter[str] = Counter()
        for segment in path.split("/")[:-1] if self._patterns.key_columns.not_keys else ():
            column, _, value = segment.partition("=")
            found.update(self.text(value, where, column))
        return found

    def names_in(self, where: str) -> frozenset[str]:
        """The key sets of the cells in a kind of place."""
        return frozenset(name for name, place, _ in self._cells if place == where)

    def shown_in(self, text: str) -> Counter[str]:
        """How often a text may show what was left out of its cells, by key set.

        Never where digits may be written as escapes: a cell may not stand there as it is.
        """
        return Counter() if "\\u00" in text else self._shown.copy()

    def hits(self) -> tuple[Hit, ...]:
        """The cells, sorted."""
        weak = self._patterns.is_weak
        return tuple(
            Hit(key_set=without_short(name), form=Form.TEXT, where=where, column=column, weak=weak(name), count=count)
            for (name, where, column), count in sorted(self._cells.items())
        )

    def merge(self, other: LeftCells) -> None:
        """Take over another's."""
        self._cells += other._cells
        self._shown += other._shown


def times_shown(patterns: Patterns, names: Collection[str], cell: str) -> Counter[str]:
    """How often a cell that is a key shows it: more than once where the key set has it in two texts (4711, 4711.0)."""
    found = Counter[str]()
    if names:
        text = cell.encode("utf-8", "surrogateescape")
        found.update(name for terms, _, _ in patterns.occurrences(text) for name, form in terms if form in PLAIN)
        found.update(match.key_set for match in patterns.bounded(text) if match.form in PLAIN)
    return Counter({name: max(1, found[name]) for name in names})


def beyond(found: Counter[Term], left: Mapping[str, int]) -> Counter[Term]:
    """What a text shows beyond the cells that were left out of it. left: how many, by key set."""
    rest, spare = Counter(found), Counter(left)
    for name, form in sorted(found) if left else ():
        if form in PLAIN:
            gone = min(spare[name], rest[name, form])
            rest[name, form] -= gone
            spare[name] -= gone
    return +rest


def outside(terms: Sequence[Term], start: int, end: int, apart: Apart) -> Iterator[Term]:
    """What a match in bytes stands for, but for keys in columns that hold none."""
    for name, form in terms:
        if not (form in PLAIN and any(name in sets and p.start <= start and end <= p.stop for p, sets in apart)):
            yield name, form
