"""The lineage graph: datasets and columns, who feeds whom, and where lineage is not complete.

The graph is a value: the same facts in any order, any number of times, make an equal graph with the same digest.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import networkx as nx
import numpy as np

from pii_tracer.lineage.dataset_names import Identities
from pii_tracer.lineage.graph import traversal
from pii_tracer.lineage.graph.array_decoding import Reader
from pii_tracer.lineage.graph.array_encoding import encode
from pii_tracer.lineage.graph.array_file import pack
from pii_tracer.lineage.graph.arrays import Columnar, numbers_of
from pii_tracer.lineage.graph.canonical_facts import Facts
from pii_tracer.lineage.graph.edges import (
    Edge,
    Evidence,
    JobRef,
    LineageGap,
    Membership,
)
from pii_tracer.model.datasets import Column, ColumnId, DatasetId


class LineageGraph:
    """Immutable view over arrays: freshly harvested facts are put into arrays, a stored graph is mapped.

    Walks go over the arrays; objects are made when they are asked for. networkx serves what people want to look at
    or compute by themselves: `neighbourhood`, `dataset_graph`, `column_graph`.
    """

    def __init__(self, facts: Facts) -> None:
        self._set(encode(facts))
        self.facts = facts

    @classmethod
    def of(cls, columnar: Columnar, digest: str | None = None) -> LineageGraph:
        """A graph over arrays. digest: of their file, where it was checked already."""
        graph = cls.__new__(cls)
        graph._set(columnar)
        if digest is not None:
            graph._digest = digest
        return graph

    def _set(self, columnar: Columnar) -> None:
        self.columnar = columnar
        self._read = Reader(columnar)

    @cached_property
    def facts(self) -> Facts:
        """Everything as objects: of a large graph, more than one wants."""
        return self._read.facts()

    @cached_property
    def identities(self) -> Identities:
        """What names in statements mean, as the harvest knew at its end."""
        return Identities(self.aliases())

    @cached_property
    def _digest(self) -> str:
        return pack(self.columnar)[1]

    def digest(self) -> str:
        """SHA-256 of the graph's file: independent of the order and repetition of events."""
        return self._digest

    def candidates(self, name: str) -> tuple[DatasetId, ...]:
        """The datasets that a person may mean by a path, a catalog name (`lake.prod.payments`), or the end of one.

        What is called exactly so goes before what ends so; names of catalogs and paths before paths that are read
        like names (`prod.payments` for `/lake/prod/payments`).
        """
        named, like = self._meant(name)
        return tuple(self._read.dataset(n) for n in sorted(named or like))

    def _meant(self, name: str) -> tuple[set[int], set[int]]:
        """Datasets that have the name or its end, and those whose path only reads like it."""
        text = name.strip().replace("`", "").rstrip("/").lower()
        if not text:
            return set(), set()
        ends = ("." + text, "/" + text)
        as_path = ("/" + text.replace(".", "/"), "/" + text.replace(".", ".db/", 1))
        exact: set[int] = set()
        ending: set[int] = set()
        like: set[int] = set()
        for said, number in [*self._names(), *self._read.aliases()]:
            said = said.lower()
            if text == said:
                exact.add(number)
            elif said.endswith(ends):
                ending.add(number)
            elif said.endswith(as_path):
                like.add(number)
        return exact or ending, like

    def aliases(self) -> dict[str, DatasetId]:
        """What the names of tables mean."""
        return {alias: self._read.dataset(number) for alias, number in self._read.aliases()}

    def aliases_of(self, dataset: DatasetId) -> tuple[str, ...]:
        """The names of tables that mean a dataset, sorted."""
        number = self._read.number(dataset)
        if number is None:
            return ()
        of_it = np.flatnonzero(self.columnar.alias_dataset == number).tolist()
        return tuple(self.columnar.aliases[n] for n in of_it)

    def _names(self) -> list[tuple[str, int]]:
        """What nodes are called: their name, and namespace and name."""
        named = []
        for number, name in enumerate(self.columnar.dataset_names):
            if self._read.is_node(number):
                named += [(name, number), (str(self._read.dataset(number)), number)]
        return named

    def resolve(self, name: str) -> DatasetId | None:
        """The dataset of a name; None when nothing or more than one thing has it. Never one that only reads like it."""
        named, _ = self._meant(name)
        return self._read.dataset(named.pop()) if len(named) == 1 else None

    @cached_property
    def _order(self) -> tuple[DatasetId, ...]:
        return tuple(self._read.dataset(number) for number in self.columnar.order.tolist())

    def datasets(self) -> tuple[DatasetId, ...]:
        """All datasets, upstream before downstream; members of a cycle stand together."""
        return self._order

    def columns(self, dataset: DatasetId) -> tuple[Column, ...]:
        """Columns of a dataset as schemas say; those that only lineage mentions follow, with an empty type."""
        number = self._read.number(dataset)
        if number is None:
            return ()
        known = self._read.declared(number)
        names = {c.name.lower() for c in known}
        mentioned = (self._read.column_name(n) for n in self._read.columns_of(number))
        return (*known, *(Column(name=n, type="") for n in mentioned if n != "*" and n.lower() not in names))

    def declared(self, dataset: DatasetId) -> tuple[Column, ...]:
        """Columns of a dataset as schemas say; none where no schema is known."""
        number = self._read.number(dataset)
        return self._read.declared(number) if number is not None else ()

    def column_names(self, dataset: DatasetId) -> tuple[str, ...]:
        """The names of `columns`."""
        number = self._read.number(dataset)
        return self._read.names(number) if number is not None else ()

    def number(self, dataset: DatasetId) -> int | None:
        """The number of a dataset in `columnar`; None when the graph does not know it."""
        return self._read.number(dataset)

    def dataset_numbered(self, number: int) -> DatasetId:
        """The dataset of a number."""
        return self._read.dataset(number)

    def edges_numbered(self, numbers: Iterable[int]) -> tuple[Edge, ...]:
        """Edges by their numbers in `columnar`, in the order of these."""
        return self._read.edges(numbers)

    def edges_into(self, dataset: DatasetId) -> tuple[Edge, ...]:
        """Edges into the columns of a dataset, by target column, the DIRECT ones of each first."""
        number = self._read.number(dataset)
        return self._read.edges(self._read.edges_into(number)) if number is not None else ()

    def edges_into_column(self, column: ColumnId) -> tuple[Edge, ...]:
        """Edges into one column, the DIRECT ones first."""
        number = self._read.column_number(column)
        starts = self.columnar.edge_start
        return self._read.edges(range(int(starts[number]), int(starts[number + 1]))) if number is not None else ()

    def memberships_into(self, dataset: DatasetId) -> tuple[Membership, ...]:
        """What decides about the rows of a dataset."""
        number = self._read.number(dataset)
        return self._read.memberships(number) if number is not None else ()

    def jobs_into(self, dataset: DatasetId) -> tuple[JobRef, ...]:
        """Jobs that write the dataset, latest last."""
        number = self._read.number(dataset)
        return self._read.jobs(number) if number is not None else ()

    def sources_of(self, dataset: DatasetId) -> tuple[DatasetId, ...]:
        """Datasets that a dataset is directly made from, itself left out."""
        number = self._read.number(dataset)
        if number is None:
            return ()
        first, last = self.columnar.link_start[number : number + 2].tolist()
        return tuple(self._read.dataset(n) for n in self.columnar.link_source[first:last].tolist())

    def targets_of(self, dataset: DatasetId) -> tuple[DatasetId, ...]:
        """Datasets that something of a dataset directly goes into, itself left out."""
        return tuple(self._within(dataset, traversal.feeds(self.columnar), 1))

    def columns_beside(self, column: ColumnId) -> tuple[tuple[ColumnId, ...], tuple[ColumnId, ...]]:
        """The columns that values of this one directly come from, and those that they directly go into."""
        start = self._read.column_number(column)
        if start is None:
            return (), ()
        size, ways = len(self.columnar.column_name), (traversal.values_up, traversal.values_down)
        up, down = (traversal.reached(size, start, way(self.columnar), layers=1).tolist() for way in ways)
        return tuple(self._read.columns(up)), tuple(self._read.columns(down))

    def downstream(self, dataset: DatasetId) -> tuple[DatasetId, ...]:
        """Every dataset that receives something, in topological order (cycles are taken together)."""
        return self._reached(dataset, traversal.feeds(self.columnar))

    def in_order(self, datasets: Iterable[DatasetId]) -> tuple[DatasetId, ...]:
        """Datasets in topological order; those that no lineage knows come first."""
        rank = traversal.places(self.columnar.order, len(self.columnar.dataset_names))

        def place(dataset: DatasetId) -> tuple[int, DatasetId]:
            number = self._read.number(dataset)
            return (-1 if number is None else int(rank[number])), dataset

        return tuple(sorted(datasets, key=place))

    def upstream(self, dataset: DatasetId) -> tuple[DatasetId, ...]:
        """Every dataset something comes from, in topological order."""
        return self._reached(dataset, traversal.fed_by(self.columnar))

    def _reached(self, dataset: DatasetId, step: traversal.Step) -> tuple[DatasetId, ...]:
        start = self._read.number(dataset)
        if start is None:
            return ()
        found = traversal.reached(len(self.columnar.dataset_names), start, step)
        rank = traversal.places(self.columnar.order, len(self.columnar.dataset_names))
        return tuple(self._read.dataset(n) for n in found[np.argsort(rank[found])].tolist())

    def columns_downstream(self, column: ColumnId, *, influence: bool = False) -> tuple[ColumnId, ...]:
        """Every column that values of this one go into, sorted.

        influence: also those that it only decides about: conditions, windows, and by filters, joins, grouping and
        sorting every column of the dataset.
        """
        return self._columns_reached(column, traversal.influence_down if influence else traversal.values_down)

    def columns_upstream(self, column: ColumnId, *, influence: bool = False) -> tuple[ColumnId, ...]:
        """Every column that values of this one come from, sorted. influence: also those that only decide about it."""
        return self._columns_reached(column, traversal.influence_up if influence else traversal.values_up)

    def _columns_reached(self, column: ColumnId, way: traversal.Way) -> tuple[ColumnId, ...]:
        start = self._read.column_number(column)
        if start is None:
            return ()
        found = traversal.reached(len(self.columnar.column_name), start, way(self.columnar))
        return tuple(self._read.columns(found.tolist()))

    @cached_property
    def gaps(self) -> tuple[LineageGap, ...]:
        """Where lineage is not complete."""
        return self._read.gaps()

    def disagreements(self) -> tuple[tuple[Edge, Edge], ...]:
        """Pairs of edges between the same columns that events and SQL classify differently; both stay."""
        pairs = []
        for group in traversal.disagreeing(self.columnar):
            if not self._read.told_by_both(group):
                continue
            edges = self._read.edges(group)
            events = [e for e in edges if _only(e.evidence, "openlineage")]
            sql = [e for e in edges if _only(e.evidence, "sql")]
            pairs += [(a, b) for a in events for b in sql if (a.subtype, a.masking) != (b.subtype, b.masking)]
        return tuple(pairs)

    def dataset_graph(self) -> nx.DiGraph[DatasetId]:
        """All datasets and who feeds whom, for networkx."""
        graph: nx.DiGraph[DatasetId] = nx.DiGraph()
        graph.add_nodes_from(self._order)
        names = {n: self._read.dataset(n) for n in self.columnar.order.tolist()}
        targets = numbers_of(self.columnar.link_start)
        graph.add_edges_from(
            (names[a], names[b]) for a, b in zip(self.columnar.link_source.tolist(), targets.tolist(), strict=True)
        )
        return graph

    def column_graph(self) -> nx.MultiDiGraph[ColumnId]:
        """All columns that edges join, for networkx; each edge has its `Edge` as attribute `edge`."""
        return _joined(self.facts.edges)

    def neighbourhood(self, dataset: DatasetId, hops: int = 1) -> nx.MultiDiGraph[ColumnId]:
        """Columns of the datasets at most so many hops up and down, and the edges between them, as `column_graph`."""
        near = {dataset}
        for way in (traversal.feeds(self.columnar), traversal.fed_by(self.columnar)):
            near.update(self._within(dataset, way, hops))
        edges = [e for d in sorted(near) for e in self.edges_into(d) if e.source.dataset in near]
        graph = _joined(edges)
        graph.add_nodes_from(ColumnId(dataset=d, column=c.name) for d in sorted(near) for c in self.columns(d))
        return graph

    def _within(self, dataset: DatasetId, step: traversal.Step, hops: int) -> list[DatasetId]:
        start = self._read.number(dataset)
        if start is None:
            return []
        found = traversal.reached(len(self.columnar.dataset_names), start, step, layers=hops)
        return [self._read.dataset(n) for n in found.tolist()]


def _joined(edges: tuple[Edge, ...] | list[Edge]) -> nx.MultiDiGraph[ColumnId]:
    graph: nx.MultiDiGraph[ColumnId] = nx.MultiDiGraph()
    graph.add_edges_from((e.source, e.target, {"edge": e}) for e in edges)
    return graph


def _only(evidence: tuple[Evidence, ...], source: str) -> bool:
    return all(e.source == source for e in evidence)
