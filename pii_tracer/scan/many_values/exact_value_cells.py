"""Cells that are a value and nothing else: columns of keys are full of them, in every copy, and all show the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from pii_tracer.common.plurals import counted

if TYPE_CHECKING:
    from pii_tracer.scan.forms.pattern_automaton import Term
    from pii_tracer.scan.hit_collector import Collector

_Shown = tuple[tuple["Term", int], ...]


class ValueCells:
    """Remembers what such cells show. It changes nothing but the time. Holds values: never printed, never stored."""

    def __init__(self, others: Iterable[Collection[bytes]]) -> None:
        """others: keys of other people, which count in no column of keys."""
        self._others = tuple(others)
        self._shown: dict[bytes, _Shown | None] = {}
        """What a cell shows; None where more than the cell itself decides it."""
        self._same: dict[_Shown, _Shown] = {}

    def __repr__(self) -> str:
        return f"ValueCells({counted(len(self._shown), 'cell')})"

    def count(self, cells: Sequence[bytes], collector: Collector, where: str, column: str | None) -> Sequence[bytes]:
        """Count what those of a column's text cells show that are nothing but a value. Gives all others."""
        patterns = collector.patterns
        if not cells or collector.search_file is None or patterns.key_columns.no_keys_in(column):
            return cells
        new = [cell for cell in set(cells).difference(self._shown) if _text(cell) in patterns.cells]
        patterns.expect(new)
        for cell in new:
            self._shown[cell] = self._shown_by(cell, collector)
        patterns.expect(())
        times = Counter(map(self._shown.get, cells))
        others = times.pop(None, 0)
        for shown, number in times.items():
            for (name, form), count in shown or ():
                collector.add(name, form, where, column, count * number)
        return [cell for cell in cells if self._shown.get(cell) is None] if others else ()

    def _shown_by(self, cell: bytes, collector: Collector) -> _Shown | None:
        alone = collector.inner()
        alone.string(_text(cell), "", None)
        if alone.reasons or alone.longer or any(column for _, _, _, column, _ in alone.counts):
            return None
        # where only a part of a cell is a value, the column's name decides whether it is another's longer key
        spans = {(start, end) for _, start, end in alone.patterns.occurrences(cell, lines=True)}
        spans |= {(match.start, match.end) for match in alone.patterns.bounded(cell)}
        if spans != {(0, len(cell))} or any(cell in others for others in self._others):
            return None
        shown = tuple(sorted(((name, form), count) for (name, form, *_), count in alone.counts.items()))
        return self._same.setdefault(shown, shown)


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "surrogateescape")
