"""Where is the key? For every dataset downstream of a source: how it carries the person, column by column.

The identifying columns of the source are followed along value edges, hop by hop, with the expression that each hop
recorded. What comes out is, per column, the places where an identifier stands (plain, or put through an expression)
or the honest answer that it cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pii_tracer.config import Subject
from pii_tracer.lineage.edges import Edge, EdgeType, Subtype
from pii_tracer.lineage.graph import LineageGraph
from pii_tracer.model import Access, Carries, DatasetId
from planners.expressions import INPUT, NotComputable, compose, compute, is_plain, locate


@dataclass(frozen=True)
class Trace:
    """An identifier of the source standing in a column: `expression` over `x` is what was done to it."""

    origin: str
    access: tuple[Access, ...]
    expression: str


@dataclass(frozen=True)
class ColumnCarriage:
    """What one column has of the source.

    traces: identifiers that can be found again. lost: identifiers that go in but cannot be found again by equality.
    from_source: some value of the source goes in, identifying or not. aggregated: only through aggregation.
    """

    traces: frozenset[Trace] = frozenset()
    lost: frozenset[str] = frozenset()
    from_source: bool = False
    aggregated: bool = True


@dataclass(frozen=True)
class Carriage:
    """How a dataset carries the persons of a source.

    terms: the traces whose rows are deleted (all of the best class). hops: datasets on the way from the source.
    """

    dataset: DatasetId
    carries: Carries
    terms: tuple[tuple[str, Trace], ...]
    columns: Mapping[str, ColumnCarriage]
    hops: tuple[DatasetId, ...]
    reason: str
    lost: tuple[str, ...] = ()
    unidentified: tuple[str, ...] = field(default=())


def follow(graph: LineageGraph, source: DatasetId, subject: Subject) -> dict[DatasetId, Carriage]:
    """Carriage of every dataset downstream of the source, the source itself included, in topological order."""
    identifying = (subject.key, *(i.column for i in subject.identifiers), *subject.record_keys)
    columns: dict[DatasetId, dict[str, ColumnCarriage]] = {
        source: {
            c.name: ColumnCarriage(
                traces=frozenset({Trace(c.name, (), INPUT)}) if c.name in identifying else frozenset(),
                from_source=True,
                aggregated=False,
            )
            for c in graph.columns(source)
        }
    }
    for name in identifying:
        columns[source].setdefault(name, ColumnCarriage(frozenset({Trace(name, (), INPUT)}), frozenset(), True, False))
    order = tuple(graph.downstream(source))
    parents: dict[DatasetId, DatasetId] = {}
    result = {source: _classify(subject, source, columns[source], (source,))}
    for dataset in order:
        if dataset == source:
            continue
        edges = [e for e in graph.edges_into(dataset) if e.type is EdgeType.DIRECT and e.source.dataset in columns]
        columns[dataset] = _columns_of(edges, columns)
        parents[dataset] = _parent(edges, result, source, graph, dataset)
        result[dataset] = _classify(subject, dataset, columns[dataset], _hops(parents, source, dataset))
    return result


def _columns_of(
    edges: Iterable[Edge], known: Mapping[DatasetId, Mapping[str, ColumnCarriage]]
) -> dict[str, ColumnCarriage]:
    result: dict[str, ColumnCarriage] = {}
    for edge in edges:
        came = known[edge.source.dataset].get(edge.source.column)
        if came is None:
            continue
        traces, lost = _step(edge, came)
        before = result.get(edge.target.column, ColumnCarriage())
        result[edge.target.column] = ColumnCarriage(
            traces=before.traces | traces,
            lost=before.lost | lost,
            from_source=before.from_source or came.from_source,
            aggregated=before.aggregated and (came.aggregated or edge.subtype is Subtype.AGGREGATION),
        )
    return result


def _step(edge: Edge, came: ColumnCarriage) -> tuple[frozenset[Trace], frozenset[str]]:
    """What becomes of a column's identifiers along one edge."""
    if edge.subtype is Subtype.IDENTITY:
        return came.traces, came.lost
    traces: set[Trace] = set()
    lost = set(came.lost)
    for trace in came.traces:
        places = locate(edge.expression, edge.source.column, trace.access) if edge.expression else ()
        if not places and not _only_counts(edge):
            lost.add(trace.origin)
        traces.update(Trace(trace.origin, p.access, compose(trace.expression, p.expression)) for p in places)
    return frozenset(traces), frozenset(lost)


def _only_counts(edge: Edge) -> bool:
    """An aggregate that is no longer the identifier itself (counting users does not name one)."""
    return edge.subtype is Subtype.AGGREGATION


def _parent(
    edges: Iterable[Edge],
    done: Mapping[DatasetId, Carriage],
    source: DatasetId,
    graph: LineageGraph,
    dataset: DatasetId,
) -> DatasetId:
    """The upstream dataset that explains best how the person came here: nearest to the source."""
    near = [e.source.dataset for e in edges if e.source.dataset in done]
    near += [m.source.dataset for m in graph.memberships_into(dataset) if m.source.dataset in done]
    return min(near, key=lambda d: (len(done[d].hops), d), default=source)


def _hops(parents: Mapping[DatasetId, DatasetId], source: DatasetId, dataset: DatasetId) -> tuple[DatasetId, ...]:
    hops = [dataset]
    while hops[-1] != source and hops[-1] in parents and parents[hops[-1]] not in hops:
        hops.append(parents[hops[-1]])
    return tuple(reversed(hops))


def _classify(
    subject: Subject, dataset: DatasetId, columns: Mapping[str, ColumnCarriage], hops: tuple[DatasetId, ...]
) -> Carriage:
    identifiers = {i.column for i in subject.identifiers}
    usable = [(name, t) for name, c in sorted(columns.items()) for t in sorted(c.traces, key=_order) if _usable(t)]
    lost = tuple(sorted({o for c in columns.values() for o in c.lost} | _uncomputable(columns)))

    def of(origins: set[str], *, plain: bool | None) -> tuple[tuple[str, Trace], ...]:
        return tuple(
            (n, t) for n, t in usable if t.origin in origins and (plain is None or is_plain(t.expression) is plain)
        )

    ladder = (
        (Carries.KEY, of({subject.key}, plain=True), f"carries {subject.key} itself"),
        (Carries.COMPUTED_KEY, of({subject.key}, plain=False), f"carries {subject.key} put through a known expression"),
        (Carries.BRIDGE, of(set(subject.record_keys), plain=True), "reaches the person through row keys of the source"),
        (Carries.IDENTIFIERS, of(identifiers, plain=None), "carries other identifiers of the person"),
    )
    for carries, terms, reason in ladder:
        if terms:
            where = ", ".join(f"{n} = {t.expression.replace(INPUT, t.origin)}" for n, t in terms[:3])
            return Carriage(dataset, carries, terms, columns, hops, f"{reason}: {where}", lost)
    return _without_terms(dataset, columns, hops, lost)


def _without_terms(
    dataset: DatasetId, columns: Mapping[str, ColumnCarriage], hops: tuple[DatasetId, ...], lost: tuple[str, ...]
) -> Carriage:
    from_source = [c for c in columns.values() if c.from_source]
    unidentified = tuple(sorted(name for name, c in columns.items() if c.from_source and not c.aggregated))
    if lost:
        reason = f"{', '.join(lost)} goes in, but through an expression that cannot be matched again"
        return Carriage(dataset, Carries.UNKNOWN, (), columns, hops, reason, lost, unidentified)
    if any(c.aggregated for c in from_source):
        reason = "holds aggregates to which the person contributed, and no key"
        return Carriage(dataset, Carries.AGGREGATE, (), columns, hops, reason, lost, unidentified)
    if from_source:
        reason = "holds values of the source's rows without any key"
        return Carriage(dataset, Carries.UNKNOWN, (), columns, hops, reason, lost, unidentified)
    return Carriage(dataset, Carries.NONE, (), columns, hops, "only filtered or joined by the source", lost)


def _usable(trace: Trace) -> bool:
    """True when the expression can be evaluated; tried with digits, which every cast accepts."""
    try:
        compute(trace.expression, "1234567890")
    except NotComputable:
        return False
    return True


def _uncomputable(columns: Mapping[str, ColumnCarriage]) -> set[str]:
    return {t.origin for c in columns.values() for t in c.traces if not _usable(t)}


def _order(trace: Trace) -> tuple[str, str, str]:
    return (trace.origin, trace.expression, repr(trace.access))


def other_key_columns(carriage: Carriage, all_columns: Iterable[str]) -> tuple[str, ...]:
    """Columns that lineage shows to hold no identifier of the source: a same number there means something else."""
    return tuple(
        sorted(n for n in all_columns if (c := carriage.columns.get(n)) is None or (not c.traces and not c.lost))
    )
