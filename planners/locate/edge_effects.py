"""One hop: what an edge does to a value, and which statements it comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from pii_tracer.config.estate_file import Estate
from pii_tracer.lineage.graph.edges import Edge, EdgeType, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Access, ColumnId, Frozen
from pii_tracer.model.errors import ConfigError
from planners.locate.identifier_traces import ColumnCarriage, Trace, composed
from planners.locate.sql.column_expressions import Fate, Place, locate


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
                f"the anonymised column {name} does not exist",
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
    """Edges that carry values. One without an expression is left out when a statement of the same job explains it."""
    direct = [e for e in edges if e.type is EdgeType.DIRECT]
    if not any(_silent(e) for e in direct):
        return tuple(direct)
    spoken: dict[tuple[ColumnId, ColumnId], set[str | None]] = defaultdict(set)
    for edge in direct:
        if not _silent(edge):
            spoken[edge.source, edge.target] |= {e.job for e in edge.evidence}
    return tuple(e for e in direct if not (_silent(e) and _explained(e, spoken[e.source, e.target])))


def _silent(edge: Edge) -> bool:
    return edge.expression is None and edge.subtype is not Subtype.IDENTITY


def _explained(edge: Edge, spoken: set[str | None]) -> bool:
    return bool(edge.evidence) and all(e.job and e.job in spoken for e in edge.evidence)


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
