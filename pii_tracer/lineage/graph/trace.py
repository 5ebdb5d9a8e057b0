"""Where a dataset or column comes from or goes to: links between datasets, and what is not certain about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from pii_tracer.lineage.graph.edges import (
    Edge,
    EdgeType,
    JobRef,
    LineageGap,
    Membership,
)
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.sql.text.literal_redaction import hidden
from pii_tracer.model.datasets import ColumnId, DatasetId

Direction = Literal["up", "down"]


@dataclass(frozen=True)
class Link:
    """One step between datasets: the edges between their columns, what decides about rows, the jobs that do it."""

    source: DatasetId
    target: DatasetId
    edges: tuple[Edge, ...]
    memberships: tuple[Membership, ...] = ()
    jobs: tuple[JobRef, ...] = ()

    @property
    def values(self) -> tuple[Edge, ...]:
        """The edges along which values go."""
        return tuple(e for e in self.edges if e.type is EdgeType.DIRECT)


@dataclass(frozen=True)
class Trace:
    """The whole way up or down from a dataset, or from one of its columns.

    links: by their target, upstream before downstream. disagreements: edges of the way that events (first) and SQL
    (second) classify differently. gaps: of the datasets on the way. elsewhere: gaps of which nobody knows where they
    lead: the way may be longer than it looks. left_out: datasets on the way that were not read, the farthest ones.
    """

    start: DatasetId
    column: str | None
    direction: Direction
    links: tuple[Link, ...]
    disagreements: tuple[tuple[Edge, Edge], ...]
    gaps: tuple[LineageGap, ...]
    elsewhere: tuple[LineageGap, ...]
    left_out: int = 0

    @property
    def title(self) -> str:
        """What was asked for."""
        return str(self.start) if self.column is None else f"{self.start}.{self.column}"

    @property
    def datasets(self) -> tuple[DatasetId, ...]:
        """Every dataset on the way, the start first."""
        ends = (d for link in self.links for d in (link.source, link.target))
        return tuple(dict.fromkeys((self.start, *ends)))


def trace(
    graph: LineageGraph,
    start: DatasetId,
    direction: Direction,
    column: str | None = None,
    *,
    influence: bool = False,
    most: int | None = None,
) -> Trace:
    """All links from a dataset, or from one of its columns along values.

    influence: also where the column only decides about other values or about rows (a dataset's trace always has that).
    most: read no further datasets once there are so many links; edges of a large estate would fill the memory.
    """
    if column is None:
        reached = {start, *(graph.downstream(start) if direction == "down" else graph.upstream(start))}
        into = partial(_links_into, graph, reached=reached)
    else:
        columns = _columns(graph, ColumnId(dataset=start, column=column), direction, influence)
        reached = {c.dataset for c in columns}
        into = partial(_column_links, graph, reached=reached, columns=columns, influence=influence)
    order = [d for d in graph.datasets() if d in reached]
    links = _nearest(order if direction == "down" else order[::-1], into, most)
    whole = len(links) == len(order)
    if direction == "up":
        links.reverse()
    way = {start, *(d for some in links for link in some for d in (link.source, link.target))}
    edges = {edge for some in links for link in some for edge in link.edges}
    return Trace(
        start=start,
        column=column,
        direction=direction,
        links=tuple(link for some in links for link in some),
        left_out=0 if whole else len(reached - way),
        disagreements=tuple(pair for pair in graph.disagreements() if pair[0] in edges),
        gaps=tuple(gap for gap in graph.gaps if gap.dataset in way or gap.dataset in reached),
        elsewhere=tuple(gap for gap in graph.gaps if gap.dataset is None),
    )


def without_literals(made: Trace) -> Trace:
    """The trace as it may be shown: a job's SQL can name a person in a literal."""
    return replace(
        made,
        links=tuple(replace(link, edges=tuple(map(_shown, link.edges))) for link in made.links),
        disagreements=tuple((_shown(event), _shown(sql)) for event, sql in made.disagreements),
    )


def _shown(edge: Edge) -> Edge:
    return edge if edge.expression is None else edge.model_copy(update={"expression": hidden(edge.expression)})


def _nearest(order: Sequence[DatasetId], into: Callable[[DatasetId], list[Link]], most: int | None) -> list[list[Link]]:
    """The links into each dataset in turn, until there are enough."""
    links: list[list[Link]] = []
    read = 0
    for dataset in order:
        if most is not None and read >= most:
            break
        links.append(into(dataset))
        read += len(links[-1])
    return links


def _links_into(graph: LineageGraph, target: DatasetId, reached: Set[DatasetId]) -> list[Link]:
    """One link for each dataset that the target is made from; into itself only where columns say so."""
    edges: dict[DatasetId, list[Edge]] = {}
    for edge in graph.edges_into(target):
        edges.setdefault(edge.source.dataset, []).append(edge)
    members: dict[DatasetId, list[Membership]] = {}
    for member in graph.memberships_into(target):
        members.setdefault(member.source.dataset, []).append(member)
    jobs = graph.jobs_into(target)
    sources = sorted({*edges, *members, *graph.sources_of(target)} & reached)
    return [
        Link(
            s,
            target,
            tuple(edges.get(s, ())),
            tuple(members.get(s, ())),
            tuple(job for job in jobs if s in job.inputs),
        )
        for s in sources
    ]


def _columns(graph: LineageGraph, start: ColumnId, direction: Direction, influence: bool) -> Set[ColumnId]:
    walk = graph.columns_downstream if direction == "down" else graph.columns_upstream
    return {start, *walk(start, influence=influence)}


def _column_links(
    graph: LineageGraph, target: DatasetId, reached: Set[DatasetId], columns: Set[ColumnId], influence: bool
) -> list[Link]:
    """Links into a dataset, as far as these columns have a part in them."""
    links = []
    for link in _links_into(graph, target, reached):
        edges = tuple(
            e
            for e in link.edges
            if e.source in columns and e.target in columns and (influence or e.type is EdgeType.DIRECT)
        )
        members = tuple(m for m in link.memberships if influence and m.source in columns)
        if edges or members:
            links.append(Link(link.source, link.target, edges, members, link.jobs))
    return links
