"""Columns in which values of one person stand in rows of others, of every dataset that a walk went through.

A table is deleted from by the key of its rows. Where a statement put another person's name beside that key, these
rows have to be made anew (`Carriage.mixed`). `planners.locate.sql.values_in_other_rows` reads it out of one statement;
here it is followed downstream.

So have rows that a delete would find by a value which is not known to be their own person's: `coalesce(boss_id, id)`
has the boss in rows of those whom she leads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from pii_tracer.lineage.graph.edges import Edge, Subtype
from pii_tracer.model.datasets import Access, ColumnId, DatasetId
from planners.locate.edge_effects import along, value_edges
from planners.locate.identifier_traces import Teller, Trace
from planners.locate.identifier_walk import Walk
from planners.locate.sql.branch_identifiers import table_name
from planners.locate.sql.column_expressions import Fate, Place
from planners.locate.sql.equal_columns import compared
from planners.locate.sql.relation_rows import NO_VALUES, Rows, Values
from planners.locate.sql.statement_rows import Statement, Told
from planners.locate.unkeyed_rows import Unkeyed

Strayed = Mapping[DatasetId, frozenset[str]]
"""By dataset: columns, by their names in lower case."""
Way = tuple[str, tuple[Access, ...]]
"""A column, by its name in lower case, and the way into it."""


@dataclass(frozen=True)
class Strays:
    """What one person's rows may have of others: columns with such values, and places where keys have rivals."""

    columns: Strayed
    rivals: Rivals


def stray_columns(walk: Walk, lacking: Mapping[DatasetId, Unkeyed]) -> Strays:
    """All of them. walk: after its `run`. lacking: what is known of rows without a key."""
    return Strays(_columns(walk), Rivals(walk, lacking, {}).find())


def _columns(walk: Walk) -> Strayed:
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


@dataclass(frozen=True)
class Rivals:
    """Where something else can stand in place of an identifier, in a row that is, or may be, of somebody else.

    A value of a column that no lineage connects with the person can name anybody, whatever it looks like: only who
    owns the row tells whose it is. ways: by dataset. lacking: of each dataset, what is known of rows without a key.
    """

    walk: Walk
    lacking: Mapping[DatasetId, Unkeyed]
    ways: dict[DatasetId, frozenset[Way]]

    def at(self, dataset: DatasetId, column: str, access: tuple[Access, ...]) -> bool:
        return (column.lower(), access) in self.ways.get(dataset, ())

    def find(self) -> Rivals:
        """Fill `ways`, upstream first. What the estate file says of a table it says of its values, too."""
        while True:
            before = dict(self.ways)
            for dataset in self.walk.order:
                if dataset not in self.walk.told and (here := {*self._followed(dataset), *self._put(dataset)}):
                    self.ways[dataset] = frozenset(here)
            if self.ways == before or not self.walk.circular:
                return self

    def _followed(self, dataset: DatasetId) -> Iterator[Way]:
        """What comes out of columns in which they stand."""
        for edge in self.walk.edges[dataset]:
            for name, access in self.ways.get(edge.source.dataset, ()):
                if name == edge.source.column.lower():
                    found = (place for place in along(edge, access) if place.fate is Fate.FOUND)
                    yield from ((edge.target.column.lower(), place.access) for place in found)

    def _put(self, dataset: DatasetId) -> Iterator[Way]:
        """Where the statements that write a dataset put them."""
        own: dict[str, set[tuple[Access, ...]]] = defaultdict(set)
        for name, column in self.walk.columns.get(dataset, {}).items():
            own[name.lower()] |= {trace.access for trace in column.traces}
        equal = self.walk.equal.explained.get(dataset, frozenset())
        for edge in self._edges(dataset, [name for name, ways in own.items() if ways]):
            target = edge.target.column.lower()
            if (edge.source, target) in equal or self.walk.column(edge.source.dataset, edge.source.column):
                continue
            places = [p for p in along(edge, ()) if p.fate is not Fate.COUNTED and p.access in own[target]]
            into = {p.access for p in places if not self.walk.anonymisers.end(edge, p)}
            if into and self._beside_persons(dataset, edge):
                yield from ((target, access) for access in into - self._own(dataset, edge))

    def _edges(self, dataset: DatasetId, names: Collection[str]) -> tuple[Edge, ...]:
        """The value edges into some columns, also under their former names."""
        graph, renames = self.walk.graph, self.walk.renames
        columns = [ColumnId(dataset=dataset, column=name) for name in self.walk.names(dataset) if name.lower() in names]
        columns += renames.former(dataset) if columns else ()
        found = renames.told(value_edges(edge for column in columns for edge in graph.edges_into_column(column)))
        return tuple(edge for edge in found if edge.target.column.lower() in names)

    def _tellers(self, dataset: DatasetId, edge: Edge) -> list[Statement | None]:
        known = self.walk.statements.get(dataset, {})
        return [known.get(self.walk.teller(dataset, told)) for told in edge.evidence]

    def _beside_persons(self, dataset: DatasetId, edge: Edge) -> bool:
        """Whether the value comes out of a person's row, or goes into one."""
        if _of_persons(self.walk, edge.source.dataset):
            return True
        return any(s is not None and self._meets(s, edge) for s in self._tellers(dataset, edge))

    def _meets(self, statement: Statement, edge: Edge) -> bool:
        """Whether a statement joins a table with persons, or changes their rows by it."""
        other = edge.source.dataset
        for names in statement.joined_tables(edge.target.column.lower()):
            sides = [{self.walk.named(name) for name in side} for side in names]
            holding = [any(_of_persons(self.walk, d) for d in side) for side in sides]
            for number, side in enumerate(sides):
                if other in side and any(holds for n, holds in enumerate(holding) if n != number):
                    return True
        return False

    def _own(self, dataset: DatasetId, edge: Edge) -> set[tuple[Access, ...]]:
        """Where it is the row's own person's after all, or no person is in the row when it stands there."""
        told = [s for s in self._tellers(dataset, edge) if s is not None and s.known]
        if not told or edge.expression is None or len(told) < len(edge.evidence):
            return set()
        found: set[tuple[Access, ...]] = set()
        done = {(place.access, place.expression) for place in along(edge, ())}
        for one in self.walk.edges[dataset]:
            if _plain(one.target) != _plain(edge.target):
                continue
            came = self.walk.column(one.source.dataset, one.source.column)
            same = all(self._one_person(s) and self._compares(s, edge.source, one.source) for s in told)
            first = one.expression == edge.expression and _plain(one.source).column != _plain(edge.source).column
            first = first and all(self._in_each_row(s, one, edge) for s in told)
            for trace in came.traces if came is not None and (same or first) else ():
                sure = first and self._always(one.source, trace)
                for place in along(one, trace.access):
                    if (same and (place.access, place.expression) in done) or (sure and _before(place, edge)):
                        found.add(place.access)
        return found

    def _always(self, column: ColumnId, trace: Trace) -> bool:
        """Whether a person's key is there in each of her rows."""
        key = trace.origin == self.walk.subject.key and not (trace.partial or trace.mixed or trace.mention)
        return key and not self.lacking[column.dataset].lacks_in(column)

    def _in_each_row(self, statement: Statement, key: Edge, edge: Edge) -> bool:
        """Whether the rows of a statement that have no value of a key have no person, or not the other value either."""
        if self._one_person(statement):
            return True
        one_table = key.source.dataset == edge.source.dataset and not statement.views
        return one_table and self._tables(statement).count(key.source.dataset) == 1

    def _one_person(self, statement: Statement) -> bool:
        """Whether a row without one relation of persons has none of another."""
        if not (statement.joins_outer or statement.views_unite):
            return True
        return not statement.views and sum(_of_persons(self.walk, d) for d in self._tables(statement)) < 2

    def _tables(self, statement: Statement) -> list[DatasetId]:
        """The tables that a statement reads, each as often as it stands there."""
        tables = statement.tree.find_all(exp.Table) if statement.tree is not None else ()
        return [self.walk.named(table_name(table)) for table in tables if table.find_ancestor(exp.Select)]

    def _compares(self, statement: Statement, one: ColumnId, other: ColumnId) -> bool:
        wanted = {_plain(one), _plain(other)}
        pairs = compared(statement.tree, self.walk.equal.owner) if statement.tree is not None else ()
        return any(
            {_plain(ColumnId(dataset=self.walk.named(t), column=c)) for t, c in pair} == wanted for pair in pairs
        )


def _before(place: Place, rival: Edge) -> bool:
    """Whether what stands in a place is asked for before a column of another name, in the row itself."""
    looked_up = place.group or place.windows or "select" in (rival.expression or "").lower()
    column = rival.source.column.lower()
    return not looked_up and all(column not in way for way in place.instead)
