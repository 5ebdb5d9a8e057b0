"""Columns as they were when a statement ran, where events tell that they changed since."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.table_candidates import Columns, Tables
from pii_tracer.lineage.sql.statement_effects import StatementLineage
from pii_tracer.model.datasets import Column, DatasetId

Statements = Sequence[StatementLineage]

Versions = Mapping[tuple[Column, ...], tuple[int, int]]
"""Columns of a dataset with the first and last time at which they were told, in microseconds."""


class Eras:
    """Schemas by time. Events can tell a schema cut down to what a query read, so a version proves what a table had
    and never what it had not.
    """

    def __init__(self, known: Mapping[str, Columns], versions: Mapping[DatasetId, Versions], ledger: Ledger) -> None:
        self._tables = Tables(known)
        self._versions: dict[str, Versions] = {}
        for name in known:
            dataset = ledger.identities.of_table(name)
            if (
                dataset is not None
                and dataset in versions
                and any(v != ledger.columns[dataset] for v in versions[dataset])
            ):
                self._versions[name] = versions[dataset]

    def resolved(
        self, text: str, moments: Iterable[int], made: Statements, parse: Callable[[dict[str, Columns]], Statements]
    ) -> tuple[Statements, Statements]:
        """A text as parsed with today's columns and, second, with those of the moments at which it ran.

        One that ran when a table had columns which are gone now is true with both: a copy of it may hold them still.
        One that today's columns do not resolve is taken as it was.
        """
        old: Statements = ()
        for at in moments:
            then = self._tables_at(text, at)
            if then is None or (complete(made) and not then[1]):
                continue
            again = parse(then[0])
            if complete(again):
                made, old = (made, [*old, *again]) if complete(made) else (again, old)
        return made, old

    def _tables_at(self, text: str, at: int) -> tuple[dict[str, Columns], bool] | None:
        """The tables a text can mean with their columns at a time, and whether one had columns that are gone now.

        None when none of them was different.
        """
        if not at or not self._versions:
            return None
        found = self._tables.of(text)
        changed, gone = False, False
        for name in found.keys() & self._versions.keys():
            then = [(c.name, c.type) for c in _at(self._versions[name], at)]
            now = {column.lower() for column, _ in found[name]}
            changed |= {column.lower() for column, _ in then} != now
            gone |= not {column.lower() for column, _ in then} <= now
            found[name] = then
        return (found, gone) if changed else None


def complete(made: Statements) -> bool:
    """Whether a text gave statements, and all of them are resolved."""
    return bool(made) and all(one.complete for one in made)


def _at(versions: Versions, at: int) -> tuple[Column, ...]:
    """The fullest of those told around that time, else the last one before it, else the first one after it."""
    around = [v for v, (first, last) in versions.items() if first <= at <= last]
    if around:
        return max(around, key=lambda v: (len(v), repr(v)))
    before = [v for v, (_, last) in versions.items() if last < at]
    if before:
        return max(before, key=lambda v: (versions[v][1], len(v), repr(v)))
    return min(versions, key=lambda v: (versions[v][0], -len(v), repr(v)))
