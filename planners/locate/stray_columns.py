"""Columns in which values of one person stand in rows of others, of every dataset that a walk went through.

A table is deleted from by the key of its rows. Where a statement put another person's name beside that key, these
rows have to be made anew (`Carriage.mixed`). `planners.locate.sql.stray_values` reads it out of one statement; here it
is followed downstream.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pii_tracer.lineage.graph.edges import Edge, Subtype
from pii_tracer.model.datasets import ColumnId, DatasetId
from planners.locate.edge_effects import along
from planners.locate.identifier_traces import Teller
from planners.locate.identifier_walk import Walk
from planners.locate.sql.column_expressions import Fate
from planners.locate.sql.relation_rows import NO_VALUES, Rows, Values
from planners.locate.sql.statement_rows import Told

Strayed = Mapping[DatasetId, frozenset[str]]
"""By dataset: columns, by their names in lower case."""


def stray_columns(walk: Walk) -> Strayed:
    """The columns with strays. walk: after its `run`."""
    found: dict[DatasetId, frozenset[str]] = {}
    while True:
        before = dict(found)
        for dataset in walk.order:
            if dataset not in walk.several and (here := _into(walk, dataset, found)):
                found[dataset] = here
        if found == before or not walk.circular:
            return found


def _into(walk: Walk, dataset: DatasetId, found: Strayed) -> frozenset[str]:
    above = {source for source in walk.reach.sources_into(dataset) if source in found}
    names: set[str] = set()
    if above:
        edges = (e for e in walk.all_edges(dataset) if e.source.dataset in above)
        names |= {
            e.target.column.lower()
            for e in edges
            if e.source.column.lower() in found[e.source.dataset] and _goes_in(walk, e)
        }
    if any(not t.mixed for column in walk.columns.get(dataset, {}).values() for t in column.traces):
        names |= _brought(walk, dataset)
    return frozenset(names)


def _brought(walk: Walk, dataset: DatasetId) -> set[str]:
    """What the statements and runs that write a dataset put there of others."""
    found: set[str] = set()
    told: dict[Told, list[Teller]] = defaultdict(list)
    for teller, statement in walk.statements.get(dataset, {}).items():
        told[statement.told].append(teller)
    for tellers in told.values():
        statement = walk.statements[dataset][tellers[0]]
        if not statement.known:
            found |= {e.target.column.lower() for e in walk.all_edges(dataset, tellers) if _of_others(walk, e)}
            continue
        strays = statement.strays(lambda name: _rows(walk, name), walk.keys)
        if strays.joined or strays.picked:
            found |= {
                e.target.column.lower()
                for e in walk.all_edges(dataset, tellers)
                if (_plain(e.source) in strays.joined and _goes_in(walk, e))
                or (_plain(e.source) in strays.picked and _picks(walk, e))
            }
    spoken = {job for tellers in told.values() for _, job, _ in tellers}
    if any(job.job not in spoken for job in walk.jobs[dataset]):
        edges = (e for e in walk.all_edges(dataset) if not any((told.job or "") in spoken for told in e.evidence))
        found |= {e.target.column.lower() for e in edges if _added_up(walk, e)}
    return found


def _rows(walk: Walk, name: str) -> Rows | None:
    """The rows of a table by its name in a statement, with their values if they are, or were, persons' rows."""
    dataset = walk.named(name)
    if not walk.is_known(dataset):
        return None
    rows, personal = walk.rows(dataset), _of_persons(walk, dataset)

    def values(way: tuple[str, ...]) -> Values:
        return frozenset({ColumnId(dataset=dataset, column=way[0])}) if personal else NO_VALUES

    names = tuple(name.lower() for name in walk.names(dataset)) or None
    return Rows(rows.carrier, rows.origins, personal=personal, values=values, names=names)


def _plain(column: ColumnId) -> ColumnId:
    return ColumnId(dataset=column.dataset, column=column.column.lower())


def _goes_in(walk: Walk, edge: Edge) -> bool:
    """Whether the value stands in the target, or something of it; not what was counted or anonymised."""
    places = along(edge, ())  # none where a part of it is read, of which nothing is known here
    return not places or any(p.fate is not Fate.COUNTED and not walk.anonymisers.end(edge, p) for p in places)


def _picks(walk: Walk, edge: Edge) -> bool:
    """Whether the value came through a window or an aggregate, as far as the edge tells."""
    told = [p for p in along(edge, ()) if p.fate is not Fate.COUNTED and not walk.anonymisers.end(edge, p)]
    return any(p.group or p.windows or p.fate is Fate.HIDDEN for p in told)


def _of_others(walk: Walk, edge: Edge) -> bool:
    """Whether a window or an aggregate that the edge tells picks out of several persons' rows."""
    places = (
        [p for p in along(edge, ()) if p.fate is not Fate.COUNTED] if _of_persons(walk, edge.source.dataset) else []
    )
    return any(walk.picks_others(edge, place) for place in places)


def _added_up(walk: Walk, edge: Edge) -> bool:
    """Of a run without a text: whether it aggregates values of persons' rows, and no key of theirs groups them."""
    aggregated = edge.subtype is Subtype.AGGREGATION
    tellers = [(e.source, e.job or "", "") for e in edge.evidence]
    return aggregated and _of_persons(walk, edge.source.dataset) and not walk.member_groups(edge, tellers)


def _of_persons(walk: Walk, dataset: DatasetId) -> bool:
    """Whether its rows name persons, or were taken from such rows."""
    return dataset in walk.carriers or dataset in walk.rows_of_carriers[0]
