"""One hop: what an edge does to a value, and which statements it comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Protocol

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.subjects import Subject
from pii_tracer.lineage.graph.edges import Edge, EdgeType, Membership, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Access, ColumnId, DatasetId, Frozen
from pii_tracer.model.errors import ConfigError
from planners.locate.identifier_traces import ColumnCarriage, Teller, Trace, composed
from planners.locate.sql.column_expressions import Fate, Place, locate
from planners.locate.sql.equal_columns import Equal, same_kind, with_persons_columns
from planners.locate.sql.relation_rows import Rows
from planners.locate.sql.statement_rows import Statement, Told


class Anonymisers(Frozen):
    """What the estate declares to end a person's data: functions by name, and columns."""

    functions: frozenset[str] = frozenset()
    columns: frozenset[ColumnId] = frozenset()

    def end(self, edge: Edge, place: Place) -> bool:
        """Whether the person ends on this edge."""
        if not self.columns and not self.functions:
            return False
        return edge.target in self.columns or bool(place.through & self.functions)


def declared_anonymisers(estate: Estate, graph: LineageGraph) -> Anonymisers:
    """The estate's `anonymisers`: `table.column` where a table of that name is known, a function's name otherwise.

    Raises:
        ConfigError: the table is known and has no such column.
    """
    functions: set[str] = set()
    columns: set[ColumnId] = set()
    for name in estate.anonymisers:
        table, _, column = name.rpartition(".")
        dataset = graph.resolve(table) if table else None
        if dataset is None:
            functions.add(name.rpartition(".")[2].lower())
            continue
        known = [c.name for c in graph.columns(dataset) if c.name.lower() == column.lower()]
        if not known:
            raise ConfigError(
                f"`anonymisers` names the column {name}, which does not exist",
                where="the estate file, `anonymisers`",
                todo="correct the column's name",
            )
        columns.add(ColumnId(dataset=dataset, column=known[0]))
    return Anonymisers(functions=frozenset(functions), columns=frozenset(columns))


def along(edge: Edge, access: tuple[Access, ...]) -> tuple[Place, ...]:
    """Where a value at `access` of the edge's source stands in its target.

    An edge without an expression hides what it carries; if it aggregates, it may be anybody's of the group.
    """
    if edge.subtype is Subtype.IDENTITY:
        return (Place(access),)
    if edge.expression is None:
        return (Place(group=edge.subtype is Subtype.AGGREGATION, fate=Fate.HIDDEN),)
    return locate(edge.expression, edge.source.column, access)


def value_edges(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """Edges that carry values. One without an expression is left out when a statement of the same job explains it.

    That explains what events say of the job. What another statement does stays as it is.
    """
    direct = [e for e in edges if e.type is EdgeType.DIRECT]
    if not any(_silent(e) for e in direct):
        return tuple(direct)
    spoken: dict[tuple[ColumnId, ColumnId], set[str | None]] = defaultdict(set)
    for edge in direct:
        if not _silent(edge):
            spoken[edge.source, edge.target] |= {e.job for e in edge.evidence if e.source == _STATEMENT}
    return tuple(e for e in direct if not (_silent(e) and _explained(e, spoken[e.source, e.target])))


def joined_tables(graph: LineageGraph, dataset: DatasetId, jobs: Collection[str]) -> set[DatasetId]:
    """The tables whose columns decide about a join of jobs that write a dataset, as events tell.

    Spark's listener tells the columns of every join's condition, of the dataset or of each column
    (https://openlineage.io/docs/spec/facets/dataset-facets/column_lineage_facet).
    """
    told: tuple[Edge | Membership, ...] = (*graph.memberships_into(dataset), *graph.edges_into(dataset))
    joins = (one for one in told if one.subtype is Subtype.JOIN)
    return {one.source.dataset for one in joins if any((proof.job or "") in jobs for proof in one.evidence)}


def _silent(edge: Edge) -> bool:
    return edge.expression is None and edge.subtype is not Subtype.IDENTITY


def _explained(edge: Edge, spoken: set[str | None]) -> bool:
    return bool(edge.evidence) and all(e.job and e.job in spoken and e.source != _STATEMENT for e in edge.evidence)


_STATEMENT = "sql"
"""The source of evidence that is a statement's text."""


def carried(
    edge: Edge,
    came: ColumnCarriage,
    beside: Collection[str],
    anonymisers: Anonymisers,
    picks_others: Callable[[Place], bool],
) -> ColumnCarriage:
    """What becomes of a column's identifiers along one edge. beside: columns whose identifiers go into the same.

    picks_others: whether the edge may put a value that it takes from a place into somebody else's row.
    """
    traces: set[Trace] = set()
    lost: set[str] = set()
    ended = set(came.ended)
    mixed = False
    for trace in came.traces:
        for place in along(edge, trace.access):
            if anonymisers.end(edge, place):
                ended.add(trace.origin)
                continue
            if place.fate is Fate.COUNTED:
                continue
            other = trace.mixed or trace.mention or picks_others(place)
            mixed |= other
            told = composed(trace, place)
            if told is None:
                lost.add(trace.origin)
            else:
                partial = trace.partial or any(set(way).isdisjoint(beside) for way in place.instead)
                traces.add(Trace(trace.origin, place.access, told, other, partial))
    for origin in came.lost:
        for place in along(edge, ()):
            if anonymisers.end(edge, place):
                ended.add(origin)
            elif place.fate is not Fate.COUNTED:
                lost.add(origin)
                mixed |= came.mixed or picks_others(place)
    return ColumnCarriage(frozenset(traces), frozenset(lost), mixed, frozenset(ended))


class Followed(Protocol):
    """What is known of the datasets upstream, while a walk goes on."""

    graph: LineageGraph
    subject: Subject
    statements: dict[DatasetId, dict[Teller, Statement]]
    edges: dict[DatasetId, tuple[Edge, ...]]

    def named(self, table: str) -> DatasetId: ...
    def is_known(self, dataset: DatasetId) -> bool: ...
    def column(self, dataset: DatasetId, name: str) -> ColumnCarriage | None: ...
    def names(self, dataset: DatasetId) -> tuple[str, ...]: ...
    def rows(self, dataset: DatasetId) -> Rows: ...
    def all_edges(self, dataset: DatasetId, tellers: Collection[Teller] | None = None) -> tuple[Edge, ...]: ...


class JoinedColumns:
    """Columns of tables of nobody that joins make equal to a person's: they count as these, from there on downstream.

    explained: by dataset such columns, each with the name (in lower case) of a column that it goes into; they stand
    for nothing else there. said: what is recorded of a statement, and what it says with the person's columns.
    """

    def __init__(self, walk: Followed) -> None:
        self._walk = walk
        self._beyond: set[tuple[DatasetId, str]] = set()
        self.explained: dict[DatasetId, frozenset[tuple[ColumnId, str]]] = {}
        self.said: dict[Told, Told] = {}

    def take(self, dataset: DatasetId) -> None:
        """Change what the walk has of a dataset's statements and edges."""
        if self._walk.subject.several_columns:
            return
        more = self._from_statements(dataset)
        if self._beyond:  # nothing of the source's own columns reaches these
            coming = (e for e in self._walk.all_edges(dataset) if _low(e.source) in self._beyond)
            more |= {e for e in coming if self._walk.column(e.source.dataset, e.source.column)}
        more -= set(self._walk.edges[dataset])
        self._walk.edges[dataset] = (*self._walk.edges[dataset], *sorted(more, key=repr))
        self._beyond |= {_low(e.target) for e in more}

    def _from_statements(self, dataset: DatasetId) -> set[Edge]:
        statements = self._walk.statements[dataset]
        made: dict[Teller, Statement] = {}
        added: set[Edge] = set()
        told: list[Edge] = []
        for teller, statement in statements.items():
            coming = self._walk.all_edges(dataset, {teller}) if self._may_join(statement) else ()
            rows = {edge.source.dataset for edge in coming}
            tells = partial(self._tells, rows)
            found = with_persons_columns(statement.tree, tells, self.owner) if statement.tree and rows else None
            if found is None:
                continue
            made[teller] = Statement(found[0].sql("spark"), statement.views)
            self.said[statement.told] = made[teller].told
            named = self._walk.named
            keys = {
                (named(e.table), e.column): ColumnId(dataset=named(e.persons_table), column=e.persons_column)
                for e in found[1]
            }
            for edge in coming:
                key = keys.get(_low(edge.source))
                if key is not None and edge.subtype is Subtype.IDENTITY:
                    added.add(edge.model_copy(update={"source": key, "expression": None}))
                    told.append(edge)
        if made:
            jobs = {job for _, job, _ in made}
            others = self._walk.all_edges(dataset, statements.keys() - made.keys())
            explained = {_ends(e) for e in told if all((evidence.job or "") in jobs for evidence in e.evidence)}
            self.explained[dataset] = frozenset(explained - {_ends(e) for e in others})
            statements |= made
        return added

    @staticmethod
    def _may_join(statement: Statement) -> bool:
        return " join " in statement.text.lower() or ("," in statement.text and "=" in statement.text)

    def _tells(self, rows: Collection[DatasetId], equal: Equal) -> bool:
        """Whether the one column names persons by its plain value, and the other is of a table of nobody. rows: the
        tables of which values come along.
        """
        mine, persons = self._walk.named(equal.table), self._walk.named(equal.persons_table)
        if persons not in rows or not self._walk.is_known(mine) or self._walk.rows(mine).carrier:
            return False
        found = self._walk.column(persons, equal.persons_column)
        if not found or found.lost or not found.traces:
            return False
        plain = all(t.expression == "x" and not (t.access or t.mixed or t.partial or t.mention) for t in found.traces)
        types = self._type(mine, equal.column), self._type(persons, equal.persons_column)
        return plain and same_kind(*types, as_numbers=equal.as_numbers)

    def _type(self, dataset: DatasetId, column: str) -> str:
        return next((c.type for c in self._walk.graph.columns(dataset) if c.name.lower() == column.lower()), "")

    def owner(self, column: str, tables: Collection[str]) -> str | None:
        """The one of some tables that has a column; None where that is not known."""
        names = {table: [n.lower() for n in self._walk.names(self._walk.named(table))] for table in tables}
        found = [table for table, columns in names.items() if column.lower() in columns]
        return found[0] if len(found) == 1 and all(names.values()) else None


def _low(column: ColumnId) -> tuple[DatasetId, str]:
    return column.dataset, column.column.lower()


def _ends(edge: Edge) -> tuple[ColumnId, str]:
    return edge.source, edge.target.column.lower()
