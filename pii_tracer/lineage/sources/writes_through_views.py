"""Writes through views and synonyms: their rows are in the tables behind these, which the statement does not name.

An updatable view has one row of its table each, and a row that is written to it is written to the table
(https://www.postgresql.org/docs/current/sql-createview.html#SQL-CREATEVIEW-UPDATABLE-VIEWS,
https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CREATE-SYNONYM.html). Which one takes it is known
once every definition was read. So the graph leads back from a column of the view to the column that it shows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pii_tracer.lineage.dataset_names import UNRESOLVED
from pii_tracer.lineage.graph.edges import THROUGH, Subtype
from pii_tracer.lineage.sources.evidence_merging import Proof
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.statement_facts import Told, makes_table
from pii_tracer.lineage.sql.statement_effects import Effect, through_view
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.gap_kinds import LineageGapKind

_INTO_ROWS = frozenset({Effect.APPEND, Effect.CHANGE, Effect.REPLACE})
_CLOSES = "add the statement that creates the view, or use the tables of the view in the statement that writes"


@dataclass(frozen=True)
class _View:
    """What one statement says of a view. tables: behind it. shows: by column, in small letters, what it is as it is.

    names: its columns as they are written, by the same. same: tables of which it shows columns that nobody knows,
    under their names.
    """

    proof: Proof
    tables: frozenset[DatasetId]
    shows: Mapping[str, frozenset[ColumnId]]
    names: Mapping[str, str]
    same: frozenset[DatasetId]

    def behind(self, column: str) -> frozenset[ColumnId]:
        known = self.shows.get(column.lower())
        return known or frozenset(ColumnId(dataset=table, column=column) for table in self.same)


Views = Mapping[DatasetId, tuple[_View, ...]]


def defined(told: Sequence[Told], ledger: Ledger) -> Views:
    """The views that statements make; of a session's own only those that something writes to.

    What a catalog has as a table is one today, whatever it was. A name that statements also make like a table is no
    view either, nor one of which nobody knows whether it is a view: what is written to it stays in doubt.
    """
    written = {one.made.output for one in told if _writes(one)}
    tables = {_known(one, ledger) for one in told if makes_table(one.made)}
    found: dict[DatasetId, list[_View]] = defaultdict(list)
    for one in told:
        passing = one.made.effect is Effect.TEMPORARY and one.made.output in written
        if passing or (one.made.effect is Effect.VIEW and one.made.output is not None):
            view = _target(one, ledger)
            certain = passing or (view.namespace != UNRESOLVED and view not in tables)
            if certain and view not in ledger.identities.roots:
                found[view].append(_view(one, ledger))
    return {view: tuple(several) for view, several in found.items()}


def explained(told: Iterable[Told], views: Views, ledger: Ledger) -> list[Told]:
    """The statements, without the doubt of those that write through a view whose tables are known."""
    if not views:
        return list(told)
    return [_explained(one) if _writes(one) and _target(one, ledger) in views else one for one in told]


def tell_through(told: Iterable[Told], views: Views, ledger: Ledger) -> None:
    """Lead back from the columns of each view that something writes to. After everything else was told."""
    into: dict[DatasetId, set[str]] = defaultdict(set)
    for one in told if views else ():
        if _writes(one) and (target := _target(one, ledger)) in views:
            into[target] |= {edge.target[1].lower() for edge in one.made.edges} - {"*"}
    if by_runs := _by_runs(views, ledger):
        reached = ledger.reached()
        for view in by_runs:
            into[view] |= reached[view]
    waiting = list(into)
    done: set[tuple[DatasetId, frozenset[str]]] = set()
    while waiting:
        view = waiting.pop()
        state = (view, frozenset(into[view]))
        if state in done:
            continue
        done.add(state)
        for made in views[view]:
            for column in _lead_back(view, made, into[view], ledger):
                if column.dataset in views:
                    into[column.dataset].add(column.column.lower())
                    waiting.append(column.dataset)


def _lead_back(view: DatasetId, one: _View, written: set[str], ledger: Ledger) -> set[ColumnId]:
    """Edges from a view to what it shows; the columns that these lead to."""
    job = f"{THROUGH} {view.name}"  # rows of another view may lack the key
    proof = replace(one.proof, job=job)
    names = {column.name.lower(): column.name for column in ledger.columns.get(view, ())}
    found: set[ColumnId] = set()
    for name in sorted({*names, *written, *one.shows}):
        source = ColumnId(dataset=view, column=names.get(name) or one.names.get(name, name))
        for column in sorted(one.behind(name)):
            ledger.edge(source, column, Subtype.IDENTITY, False, proof)
            found.add(column)
    hidden = sorted(name for name in written if not one.behind(name))
    for table in sorted(one.tables):
        ledger.job(job, None, frozenset({view}), table, proof)
        for name in hidden:
            reason = (
                f"the statement writes {name} of the view {view.name}, and nobody knows which columns of the table "
                "get the values"
            )
            ledger.gap(table, LineageGapKind.SQL_PARTIAL, reason, proof, _CLOSES)
    if not one.tables:
        ledger.gap(view, LineageGapKind.SQL_PARTIAL, through_view(view.name), proof, _CLOSES)
    return found


def _by_runs(views: Views, ledger: Ledger) -> list[DatasetId]:
    """Views into which runs without SQL bring rows of something that the view does not read."""
    behind = {view: {view}.union(*(one.tables for one in several)) for view, several in views.items()}
    return [
        output for output, inputs in ledger.without_text() if output in behind and not behind[output].issuperset(inputs)
    ]


def _view(one: Told, ledger: Ledger) -> _View:
    made = one.made
    inputs = {table: one.own.of(table) or ledger.dataset(table, one.proof) for table in made.inputs}
    shows: dict[str, set[ColumnId]] = defaultdict(set)
    same: set[DatasetId] = set()
    for edge in made.edges:
        table, column = edge.source
        dataset = inputs.get(table) or one.own.of(table) or ledger.dataset(table, one.proof)
        if column == "*":
            same.add(dataset)
        elif edge.subtype is Subtype.IDENTITY and edge.target[1] != "*":
            shows[edge.target[1].lower()].add(ColumnId(dataset=dataset, column=column))
    return _View(
        one.proof,
        frozenset(inputs.values()),
        {name: frozenset(columns) for name, columns in shows.items()},
        {edge.target[1].lower(): edge.target[1] for edge in made.edges},
        frozenset(same),
    )


def _writes(one: Told) -> bool:
    """Whether a statement puts rows or values into something that is there."""
    return one.made.effect in _INTO_ROWS and not one.made.makes and one.made.output is not None


def _target(one: Told, ledger: Ledger) -> DatasetId:
    return _known(one, ledger) or ledger.dataset(one.made.output or "", one.proof, written=True)


def _known(one: Told, ledger: Ledger) -> DatasetId | None:
    name = one.made.output or ""
    return one.own.of(name) or ledger.identities.of_rows(name, written=True)


def _explained(one: Told) -> Told:
    doubt = through_view(one.made.output or "")
    return replace(one, made=replace(one.made, reasons=tuple(r for r in one.made.reasons if r != doubt)))
