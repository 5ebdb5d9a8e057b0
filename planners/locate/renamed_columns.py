"""Columns that were renamed: lineage tells of them under the names of its time, executors find today's alone.

`ALTER TABLE t RENAME COLUMN a TO b` is recorded as a value that goes from `a` to `b` of the same dataset. Where the
dataset's schema has `b` and no `a`, everything that is told of `a` is true of `b`. A column that was filled from
another one and took its place (UPDATE, then DROP) is none of these: rows may have come between the two.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from sqlglot import exp

from pii_tracer.lineage.graph.edges import Edge, JobRef, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import ColumnId, DatasetId
from planners.locate.sql.spark_functions import parse
from planners.locate.sql.whole_numbers import NotComputable

ALTER = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*ALTER\b", re.IGNORECASE | re.DOTALL)
"""A statement that changes the shape of a table."""


class Renames:
    """Former names of the columns of some datasets, with what lineage tells under them."""

    def __init__(self, graph: LineageGraph, jobs: dict[DatasetId, tuple[JobRef, ...]]) -> None:
        """jobs: the statements that write the datasets."""
        found = {dataset: _renamed(graph, dataset, told) for dataset, told in jobs.items()}
        self._today = {dataset: names for dataset, names in found.items() if names}

    def former(self, dataset: DatasetId) -> tuple[ColumnId, ...]:
        """Columns of a dataset under names that they have no more."""
        return tuple(ColumnId(dataset=dataset, column=name) for name in sorted(self._today.get(dataset, ())))

    def today(self, dataset: DatasetId, name: str) -> str:
        """What a column is called now."""
        return self._today.get(dataset, {}).get(name.lower(), name)

    def told(self, edges: Iterable[Edge]) -> tuple[Edge, ...]:
        """The edges under today's names, without those of the renames themselves."""
        if not self._today:
            return tuple(edges)
        named = (self._named(edge) for edge in edges)
        return tuple(e for e in named if e.source != e.target or e.subtype is not Subtype.IDENTITY)

    def _named(self, edge: Edge) -> Edge:
        source, target = self._column(edge.source), self._column(edge.target)
        if (source, target) == (edge.source, edge.target):
            return edge
        expression = edge.expression
        if expression is not None and source != edge.source:
            expression = _with_name(expression, edge.source.column, source.column)
        return edge.model_copy(update={"source": source, "target": target, "expression": expression})

    def _column(self, column: ColumnId) -> ColumnId:
        name = self.today(column.dataset, column.column)
        return column if name == column.column else ColumnId(dataset=column.dataset, column=name)


def _renamed(graph: LineageGraph, dataset: DatasetId, jobs: Iterable[JobRef]) -> dict[str, str]:
    """Today's names by former ones in lower case. A name that led to several columns, or to none, is not among them."""
    alone: dict[tuple[str, str], bool] = {}
    for job in jobs:
        alters = job.statement is not None and ALTER.match(job.statement) is not None
        alone[job.job, job.where] = alters and alone.get((job.job, job.where), True)
    if not any(alone.values()):
        return {}
    after: dict[str, set[str]] = defaultdict(set)
    for edge in graph.edges_into(dataset):
        own = edge.source.dataset == dataset and edge.subtype is Subtype.IDENTITY
        if own and any(alone.get((e.job or "", e.where)) for e in edge.evidence):
            after[edge.source.column.lower()].add(edge.target.column.lower())
    declared = {c.name.lower(): c.name for c in graph.declared(dataset)}
    ends = {name: _end(name, after, declared) for name in after}
    return {name: declared[end] for name, end in ends.items() if end is not None and end != name}


def _end(name: str, after: dict[str, set[str]], declared: dict[str, str]) -> str | None:
    """Where a chain of renames ends in a column that is there."""
    seen = {name}
    while name not in declared:
        following = after.get(name, set()) - seen
        if len(following) != 1:
            return None
        (name,) = following
        seen.add(name)
    return name


def _with_name(expression: str, old: str, new: str) -> str:
    """An expression in which a column has another name; as it is where it does not parse: then it hides the column."""
    try:
        tree = parse(expression).copy()
    except NotComputable:
        return expression
    for node in tree.find_all(exp.Column):
        for part in node.parts:
            if isinstance(part, exp.Identifier) and part.name.lower() == old.lower():
                part.set("this", new)
    return tree.sql(dialect="spark")
