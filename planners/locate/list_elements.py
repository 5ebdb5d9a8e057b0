"""Identifiers that go into lists, and come out of them again as rows.

`collect_list(id)` hides whose row it is; `explode` of that list makes a row of each element, which names one person.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from pii_tracer.lineage.graph.edges import Edge, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import ColumnId
from planners.locate.edge_effects import value_edges
from planners.locate.identifier_traces import ColumnCarriage, Trace
from planners.locate.sql.spark_functions import parse
from planners.locate.sql.whole_numbers import NotComputable

Coming = tuple[Edge, ColumnCarriage]
"""An edge with what its source has of the persons."""

_MAKES_LIST = re.compile(r"\s*(?:collect_(?:list|set)|array_agg|array)\s*\(", re.IGNORECASE)


def united(
    graph: LineageGraph,
    coming: Sequence[Coming],
    name: Callable[[Edge], str],
    step: Callable[[Edge, ColumnCarriage], ColumnCarriage],
    everything: Callable[[], Iterable[Edge]],
) -> dict[str, ColumnCarriage]:
    """What edges bring into a dataset's columns. name: of an edge's column. everything: all value edges into the
    dataset.
    """
    result: dict[str, ColumnCarriage] = {}
    exploded: list[Coming] = []
    for edge, came in coming:
        if came.listed and _becomes_rows(edge, came):
            exploded.append((edge, came))
        else:
            _add(result, name(edge), _with_lists(step(edge, came), edge, came))
    rows = _rows(result, [(name(edge), came) for edge, came in exploded]) if exploded else {}
    if rows and _with_group_keys_alone(graph, next(iter(rows)), list(everything())):
        result |= rows
    else:
        for edge, came in exploded:
            _add(result, name(edge), _with_lists(step(edge, came), edge, came))
    for edge, _ in coming:
        made = result[name(edge)]
        known = {e.source for e, _ in coming if name(e) == name(edge)} if made.listed else set()
        if made.listed and not {e.source for e in value_edges(graph.edges_into_column(edge.target))} <= known:
            # elements of something else as well: a row made of one would be another's
            result[name(edge)] = replace(made, listed=frozenset(), hidden=made.lost)
    return result


def _add(result: dict[str, ColumnCarriage], name: str, now: ColumnCarriage) -> None:
    before = result.get(name, ColumnCarriage())
    result[name] = ColumnCarriage(
        traces=before.traces | now.traces,
        lost=before.lost | now.lost,
        mixed=before.mixed or now.mixed,
        ended=before.ended | now.ended,
        listed=before.listed | now.listed,
        hidden=before.hidden | now.hidden,
    )


def _with_lists(now: ColumnCarriage, edge: Edge, came: ColumnCarriage) -> ColumnCarriage:
    """With what of the lost identifiers stands in a list, and what is hidden otherwise."""
    if not now.lost:
        return now
    put_in = _put_in(edge, came)
    lists = put_in or (came.listed if edge.subtype is Subtype.IDENTITY else frozenset())
    apart = {t.origin for t in came.traces if t not in put_in} | came.hidden | (now.lost - {t.origin for t in lists})
    return replace(now, listed=lists, hidden=now.lost & apart)


def _put_in(edge: Edge, came: ColumnCarriage) -> frozenset[Trace]:
    """The identifiers of a column that become elements of a list of nothing else."""
    made = _parsed(edge) if edge.expression is not None and _MAKES_LIST.match(edge.expression) else None
    if isinstance(made, exp.ArrayAgg | exp.ArrayUniqueAgg):
        element = made.this
    elif isinstance(made, exp.Array) and len(made.expressions) == 1:
        element = made.expressions[0]
    else:
        return frozenset()
    if not isinstance(element, exp.Column) or element.name.lower() != edge.source.column.lower():
        return frozenset()
    return frozenset(t for t in came.traces if not t.access)


def _becomes_rows(edge: Edge, came: ColumnCarriage) -> bool:
    """Whether a list of identifiers and of nothing else becomes rows, one for each element."""
    made = _parsed(edge)
    if not isinstance(made, exp.Explode) or not isinstance(made.this, exp.Column):
        return False
    return not (came.traces or came.hidden or came.ended)


def _rows(
    made: Mapping[str, ColumnCarriage], exploded: Collection[tuple[str, ColumnCarriage]]
) -> dict[str, ColumnCarriage]:
    """The one column of such rows; none where other columns name persons, which may be others than the element."""
    names = {name for name, _ in exploded}
    if len(names) != 1 or any(c.traces or c.lost or c.mixed for c in made.values()):
        return {}
    traces = frozenset(replace(t, partial=False) for _, c in exploded for t in c.listed)
    return {name: ColumnCarriage(traces=traces, mixed=any(t.mixed for t in traces)) for name in names}


def _with_group_keys_alone(graph: LineageGraph, element: str, edges: Sequence[Edge]) -> bool:
    """Whether rows of a list's elements have beside them only what the lists' rows were grouped by: any other value of
    such a row can be another's of the group.
    """
    tables = {e.source.dataset for e in edges}
    if len(tables) != 1 or any(e.target.dataset in tables for e in edges):
        return False
    keys: set[ColumnId] = {m.source for m in graph.memberships_into(*tables) if m.subtype is Subtype.GROUP_BY}
    return all(
        e.subtype is Subtype.IDENTITY and e.source in keys
        for column in {e.source for e in edges if e.target.column.lower() != element.lower()}
        for e in value_edges(graph.edges_into_column(column))
    )


def _parsed(edge: Edge) -> exp.Expression | None:
    try:
        return parse(edge.expression or "")
    except NotComputable:
        return None
