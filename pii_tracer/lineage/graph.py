"""The lineage graph: datasets and columns, who feeds whom, and where lineage is not complete.

The graph is a value: the same facts in any order, any number of times, make an equal graph with the same digest.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx

from pii_tracer.lineage.edges import Edge, Evidence, JobRef, LineageGap, Membership
from pii_tracer.lineage.facts import Facts
from pii_tracer.model import Column, ColumnId, DatasetId


class LineageGraph:
    """Immutable view over harvested facts, with indexes for walks.

    networkx serves the walks between datasets; columns are reached through per-dataset lists.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._into: dict[DatasetId, list[Edge]] = defaultdict(list)
        self._from: dict[ColumnId, list[Edge]] = defaultdict(list)
        self._members: dict[DatasetId, list[Membership]] = defaultdict(list)
        self._jobs: dict[DatasetId, list[JobRef]] = defaultdict(list)
        self._datasets: Any = nx.DiGraph()
        self._fill()
        self._order = _topological(self._datasets)

    def _fill(self) -> None:
        self._datasets.add_nodes_from(sorted(self.facts.columns))
        for edge in self.facts.edges:
            self._into[edge.target.dataset].append(edge)
            self._from[edge.source].append(edge)
            self._datasets.add_edge(edge.source.dataset, edge.target.dataset)
        for member in self.facts.memberships:
            self._members[member.target].append(member)
            self._datasets.add_edge(member.source.dataset, member.target)
        for job in self.facts.jobs:
            self._jobs[job.output].append(job)
            self._datasets.add_node(job.output)
            self._datasets.add_edges_from((source, job.output) for source in job.inputs)
        for jobs in self._jobs.values():
            jobs.sort(key=lambda j: (j.at or "", j.where, j.job))

    def resolve(self, name: str) -> DatasetId | None:
        """The dataset that a person means by a path, a catalog name (`lake.prod.payments`) or its end.

        None when nothing or more than one thing has that name.
        """
        text = name.strip().replace("`", "").rstrip("/").lower()
        exact = {d for d in self._datasets if text in (d.name.lower(), str(d).lower())}
        exact |= {d for alias, d in self.facts.aliases.items() if alias.lower() == text}
        if not exact and text:
            ends = ("." + text, "/" + text)
            exact = {d for alias, d in self.facts.aliases.items() if alias.lower().endswith(ends)}
            exact |= {d for d in self._datasets if d.name.lower().endswith(ends)}
        return exact.pop() if len(exact) == 1 else None

    def datasets(self) -> tuple[DatasetId, ...]:
        """All datasets, upstream before downstream."""
        return self._order

    def columns(self, dataset: DatasetId) -> tuple[Column, ...]:
        """Columns of a dataset as schemas say; those that only edges mention follow, with an empty type."""
        known = self.facts.columns.get(dataset, ())
        names = {c.name.lower() for c in known}
        mentioned = {e.target.column for e in self._into.get(dataset, ())}
        mentioned |= {c.column for c in self._from if c.dataset == dataset}
        more = sorted(n for n in mentioned if n != "*" and n.lower() not in names)
        return (*known, *(Column(name=n, type="") for n in more))

    def edges_into(self, dataset: DatasetId) -> tuple[Edge, ...]:
        return tuple(self._into.get(dataset, ()))

    def edges_from(self, column: ColumnId) -> tuple[Edge, ...]:
        return tuple(self._from.get(column, ()))

    def memberships_into(self, dataset: DatasetId) -> tuple[Membership, ...]:
        return tuple(self._members.get(dataset, ()))

    def jobs_into(self, dataset: DatasetId) -> tuple[JobRef, ...]:
        """Jobs that write the dataset, latest last."""
        return tuple(self._jobs.get(dataset, ()))

    def downstream(self, dataset: DatasetId) -> tuple[DatasetId, ...]:
        """Every dataset that receives something, in topological order (cycles are taken together)."""
        return self._reached(dataset, nx.descendants)

    def upstream(self, dataset: DatasetId) -> tuple[DatasetId, ...]:
        """Every dataset something comes from, in topological order."""
        return self._reached(dataset, nx.ancestors)

    def _reached(self, dataset: DatasetId, walk: Any) -> tuple[DatasetId, ...]:
        if dataset not in self._datasets:
            return ()
        reached = walk(self._datasets, dataset) - {dataset}
        return tuple(d for d in self._order if d in reached)

    @property
    def gaps(self) -> tuple[LineageGap, ...]:
        return self.facts.gaps

    def disagreements(self) -> tuple[tuple[Edge, Edge], ...]:
        """Pairs of edges between the same columns that events and SQL classify differently; both stay."""
        by_columns: dict[tuple[ColumnId, ColumnId], list[Edge]] = defaultdict(list)
        for edge in self.facts.edges:
            by_columns[edge.source, edge.target].append(edge)
        pairs = []
        for edges in by_columns.values():
            events = [e for e in edges if _only(e.evidence, "openlineage") and e.type == "DIRECT"]
            sql = [e for e in edges if _only(e.evidence, "sql") and e.type == "DIRECT"]
            pairs += [(a, b) for a in events for b in sql if (a.subtype, a.masking) != (b.subtype, b.masking)]
        return tuple(pairs)

    def digest(self) -> str:
        """SHA-256 over the canonical JSON of the facts: independent of the order and repetition of events."""
        return "sha256:" + hashlib.sha256(self.facts.canonical().encode()).hexdigest()


def _only(evidence: tuple[Evidence, ...], source: str) -> bool:
    return all(e.source == source for e in evidence)


def _topological(graph: Any) -> tuple[DatasetId, ...]:
    """Upstream before downstream; members of a cycle stand together, sorted by name."""
    parts = nx.condensation(graph)
    members: Mapping[int, Iterable[DatasetId]] = parts.nodes(data="members")
    order = nx.lexicographical_topological_sort(parts, key=lambda n: min(members[n]))
    return tuple(dataset for part in order for dataset in sorted(members[part]))
