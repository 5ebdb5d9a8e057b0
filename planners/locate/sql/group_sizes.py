"""How small the groups of an aggregate are: a count of one person is that person's data still.

Measured from the source without Spark, where the groups are plain columns of it or its days; otherwise not at all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

from pii_tracer.lineage.graph.edges import Edge, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import DatasetId
from planners.locate.edge_effects import value_edges


@dataclass(frozen=True)
class Dimension:
    """A column of the source that groups are made by; `daily` when they are made by its day (in UTC)."""

    column: str
    daily: bool


@dataclass(frozen=True)
class Groups:
    """How many groups there are, how many persons the smallest has, and how many groups hold one person only."""

    groups: int
    smallest: int
    alone: int


_DAY = re.compile(r"CAST\([^()]*\.(?P<column>\w+) AS DATE\)", re.IGNORECASE)


def dimensions(graph: LineageGraph, dataset: DatasetId, source: DatasetId) -> tuple[Dimension, ...] | None:
    """What the groups of a dataset are made by; None when the source's rows alone do not tell (filters, joins, …)."""
    members = graph.memberships_into(dataset)
    edges = value_edges(graph.edges_into(dataset))
    if any(e.source.dataset != source for e in edges) or any(m.source.dataset != source for m in members):
        return None
    if any(m.subtype in (Subtype.FILTER, Subtype.JOIN) for m in members):
        return None
    found = {d for e in edges if e.subtype is not Subtype.AGGREGATION and (d := _dimension(e)) is not None}
    grouped = {m.source.column for m in members if m.subtype is Subtype.GROUP_BY}
    if not grouped or {d.column for d in found} != grouped or len(found) != len(grouped):
        return None
    return tuple(sorted(found, key=lambda d: d.column))


def _dimension(edge: Edge) -> Dimension | None:
    if edge.subtype is Subtype.IDENTITY:
        return Dimension(edge.source.column, daily=False)
    daily = _DAY.fullmatch(edge.expression or "")
    return Dimension(edge.source.column, daily=True) if daily and daily["column"] == edge.source.column else None


def measure(rows: Mapping[str, Sequence[Any]], by: Sequence[Dimension], key: str) -> Groups:
    """Persons per group. rows: the columns of the source, row by row."""
    persons: dict[tuple[Any, ...], set[Any]] = defaultdict(set)
    values = [[_day(v) for v in rows[d.column]] if d.daily else rows[d.column] for d in by]
    for group, person in zip(zip(*values, strict=True), rows[key], strict=True):
        persons[group].add(person)
    sizes = [len(found) for found in persons.values()]
    return Groups(groups=len(sizes), smallest=min(sizes, default=0), alone=sum(size == 1 for size in sizes))


def _day(value: Any) -> date | None:
    if isinstance(value, datetime):
        return (value.astimezone(timezone.utc) if value.tzinfo else value).date()
    return value if isinstance(value, date) else None
