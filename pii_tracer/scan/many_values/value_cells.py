"""Cells that are a value and nothing else: columns of keys are full of them, in every copy, and all show the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pii_tracer.scan.forms.pattern_automaton import Term
    from pii_tracer.scan.hit_collector import Collector

_ODD = -1
"""The kind of a cell that is searched each time: more than the cell itself decides what it shows."""


class ValueCells:
    """Remembers what such cells show. It changes nothing but the time. Holds values: never printed, never stored."""

    def __init__(self, others: Iterable[Collection[bytes]]) -> None:
        """others: keys of other people, which count in no column of keys."""
        self._others = tuple(others)
        self._kinds: dict[bytes, int] = {}
        self._shown: dict[tuple[tuple[Term, int], ...], int] = {}

    def __repr__(self) -> str:
        return f"ValueCells({len(self._kinds)} cells)"

    def count(self, cells: Sequence[bytes], collector: Collector, where: str, column: str | None) -> Sequence[bytes]:
        """Count what those of a column's text cells show that are nothing but a value. Gives all others."""
        patterns = collector.patterns
        if collector.search_file is None or patterns.key_columns.no_keys_in(column):
            return cells
        new = [cell for cell in set(cells).difference(self._kinds) if _text(cell) in patterns.cells]
        patterns.expect(new)
        for cell in new:
            self._kinds[cell] = self._kind_of(cell, collector)
        patterns.expect(())
        times = Counter(self._kinds.get(cell, _ODD) for cell in cells)
        for terms, kind in list(self._shown.items()):
            for (name, form), count in terms if kind in times else ():
                collector.add(name, form, where, column, count * times[kind])
        return [cell for cell in cells if self._kinds.get(cell, _ODD) == _ODD] if times[_ODD] else ()

    def _kind_of(self, cell: bytes, collector: Collector) -> int:
        alone = collector.inner()
        alone.string(_text(cell), "", None)
        if alone.reasons or alone.longer or any(column for _, _, _, column, _ in alone.counts):
            return _ODD
        # where only a part of a cell is a value, the column's name decides whether it is another's longer key
        spans = {(start, end) for _, start, end in alone.patterns.occurrences(cell, lines=True)}
        spans |= {(match.start, match.end) for match in alone.patterns.bounded(cell)}
        if spans != {(0, len(cell))} or any(cell in others for others in self._others):
            return _ODD
        shown = tuple(sorted(((name, form), count) for (name, form, *_), count in alone.counts.items()))
        return self._shown.setdefault(shown, len(self._shown))


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "surrogateescape")
