"""Which columns anything of the persons can stand in, over the arrays of the graph, before a single edge is made.

Of a table with a hundred columns a few hold something of a person: only edges out of such columns become objects and
are followed with their expressions (`planners.locate.identifier_walk`). What the arrays say is never less
than what the walk finds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from pii_tracer.lineage.graph import traversal
from pii_tracer.lineage.graph.arrays import (
    KINDS,
    is_direct,
    kind_of,
    numbers_of,
)
from pii_tracer.lineage.graph.edges import Edge, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import ColumnId, DatasetId
from planners.locate.edge_effects import value_edges

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


class Reach:
    """What the values of some columns can reach. Names of columns are told apart without regard to case, as in SQL."""

    def __init__(self, graph: LineageGraph, source: DatasetId, columns: Iterable[ColumnId]) -> None:
        self._graph, self._made, self._source = graph, graph.columnar, source
        direct = is_direct(self._made.edge_kind)
        self._numbers: Numbers = np.flatnonzero(direct)
        self._from = self._twins[self._made.edge_source[direct]]
        self._to = self._twins[numbers_of(self._made.edge_start)[direct]]
        touched = self._reached([n for c in columns for n in self._named(c)], np.ones(len(self._numbers), np.bool_))
        wanted = np.zeros(len(direct), np.bool_)
        wanted[self._numbers] = touched[self._from]
        self._wanted: Numbers = np.flatnonzero(wanted)

    @cached_property
    def _twins(self) -> Numbers:
        """For each column the first one of its dataset whose name differs in case at most."""
        lower = [word.lower() for word in self._made.words]
        known: dict[str, int] = {}
        words = np.array([known.setdefault(word, len(known)) for word in lower], np.int64)
        if len(known) == len(lower):
            return np.arange(len(self._made.column_name))
        keys = numbers_of(self._made.column_start).astype(np.int64) * max(len(known), 1) + words[self._made.column_name]
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        return np.asarray(first[group], np.int64)

    def _columns_of(self, dataset: DatasetId) -> range:
        number = self._graph.number(dataset)
        starts = self._made.column_start
        return range(int(starts[number]), int(starts[number + 1])) if number is not None else range(0)

    def _named(self, column: ColumnId) -> list[int]:
        wanted, names = column.column.lower(), self._made.words
        return [n for n in self._columns_of(column.dataset) if names[int(self._made.column_name[n])].lower() == wanted]

    def _reached(self, start: Iterable[int], along: Mask) -> Mask:
        """Columns (by their first twin) that edges lead to from these, themselves included."""
        size = len(self._twins)
        begin = np.unique(self._twins[np.fromiter(start, np.int64)])
        by_source = np.argsort(self._from[along], kind="stable")
        targets = self._to[along][by_source]
        starts = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(self._from[along], minlength=size), out=starts[1:])
        return _led_to(size, begin, starts, targets)

    def edges_into(self, dataset: DatasetId) -> tuple[Edge, ...]:
        """The value edges into a dataset from columns that something of the persons can stand in."""
        first, last = self._run(dataset)
        low, high = np.searchsorted(self._wanted, [first, last])
        return value_edges(self._graph.edges_numbered(self._wanted[low:high].tolist()))

    def sources_into(self, dataset: DatasetId) -> frozenset[DatasetId]:
        """The datasets that any value edge into a dataset comes from."""
        number, size = self._graph.number(dataset), len(self._made.dataset_names)
        if number is None:
            return frozenset()
        first, last = np.searchsorted(self._feeds, [number * size, (number + 1) * size])
        return frozenset(self._graph.dataset_numbered(n) for n in (self._feeds[first:last] % size).tolist())

    @cached_property
    def _owner(self) -> Numbers:
        """The number of the dataset of each column."""
        return np.searchsorted(self._made.column_start, np.arange(len(self._twins)), "right") - 1

    @cached_property
    def _feeds(self) -> Numbers:
        """Datasets that value edges go into, each with one that they come from: `target * size + source`, sorted."""
        target = self._owner[numbers_of(self._made.edge_start)[self._numbers]].astype(np.int64)
        return np.unique(target * len(self._made.dataset_names) + self._owner[self._made.edge_source[self._numbers]])

    def _run(self, dataset: DatasetId) -> tuple[int, int]:
        columns = self._columns_of(dataset)
        return int(self._made.edge_start[columns.start]), int(self._made.edge_start[columns.stop])

    def comes(self, dataset: DatasetId) -> tuple[bool, bool]:
        """Whether any value of the source goes into a dataset, and whether into some column by aggregation alone."""
        mine = np.unique(self._twins[np.array(self._columns_of(dataset), np.int64)])
        come, plain = self._come[mine], self._plain[mine]
        return bool(come.any()), bool((come & ~plain).any())

    def rows_of(self, carriers: Iterable[DatasetId]) -> tuple[frozenset[DatasetId], frozenset[DatasetId]]:
        """Datasets that values of these datasets' rows go into, whatever the column: row by row, and added up.

        A row that names a person is the person's in all its columns, also in those that came from elsewhere. Where
        some column is an aggregate, the dataset counts as added up: other columns are what was grouped by.
        """
        owner = self._owner
        added, size = self._of_subtype(Subtype.AGGREGATION), len(self._made.dataset_names)
        pair = owner[self._from].astype(np.int64) * size + owner[self._to]
        all_pairs, row_pairs = np.unique(pair), np.setdiff1d(pair[~added], pair[added])
        start = [n for d in carriers if (n := self._graph.number(d)) is not None]
        rows = _follow(size, start, row_pairs)
        met = _follow(size, np.flatnonzero(rows), all_pairs)

        def named(mask: Mask) -> frozenset[DatasetId]:
            return frozenset(self._graph.dataset_numbered(n) for n in np.flatnonzero(mask).tolist())

        return named(rows), named(met & ~rows)

    @cached_property
    def _come(self) -> Mask:
        return self._reached(self._columns_of(self._source), np.ones(len(self._numbers), np.bool_))

    @cached_property
    def _plain(self) -> Mask:
        """Reached without any aggregation."""
        added = self._of_subtype(Subtype.AGGREGATION)
        return self._reached(self._columns_of(self._source), ~added & ~self._explained(added))

    def _of_subtype(self, subtype: Subtype) -> Mask:
        """Which of the value edges are of a subtype."""
        kinds = self._made.edge_kind[self._numbers]
        return np.array([kind_of(code)[1] is subtype for code in range(KINDS)], np.bool_)[kinds]

    def _explained(self, added: Mask) -> Mask:
        """Edges without an expression that do not aggregate, where a statement of the same job says that they do."""
        silent = (self._made.edge_expression[self._numbers] == 0) & ~self._of_subtype(Subtype.IDENTITY)
        source, target = self._made.edge_source[self._numbers], numbers_of(self._made.edge_start)[self._numbers]
        fresh = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
        pair = np.concatenate([[0], np.cumsum(fresh)]) if len(source) else np.zeros(0, np.int64)
        size = len(pair) + 1
        says_added = np.bincount(pair[~silent & added], minlength=size) > 0
        says_plain = np.bincount(pair[~silent & ~added], minlength=size) > 0
        doubtful = np.flatnonzero(silent & ~added & (says_added & ~says_plain)[pair])
        result = np.zeros(len(pair), np.bool_)
        for group in np.unique(pair[doubtful]).tolist():
            members = np.flatnonzero(pair == group)
            edges = self._graph.edges_numbered(self._numbers[members].tolist())
            kept = {id(e) for e in value_edges(edges)}
            result[members] = [id(e) not in kept for e in edges]
        return result


def _follow(size: int, start: Iterable[int], pairs: Numbers) -> Mask:
    """Datasets that pairs (`source * size + target`, sorted) lead to from these, themselves included."""
    begin = np.unique(np.fromiter(start, np.int64))
    starts = np.searchsorted(pairs, np.arange(size + 1, dtype=np.int64) * size)
    targets = pairs % size
    return _led_to(size, begin, starts, targets)


def _led_to(size: int, begin: Numbers, starts: Numbers, targets: Numbers) -> Mask:
    """What is led to from some numbers, themselves included; starts: where each number's run of targets begins."""
    found = np.zeros(size, np.bool_)
    found[traversal.reached(size, begin, lambda layer: targets[traversal.runs(starts, starts[1:], layer)])] = True
    found[begin] = True
    return found


def columns_of(source: DatasetId, *names: Iterable[str]) -> list[ColumnId]:
    """Columns of one dataset by name."""
    return [ColumnId(dataset=source, column=name) for name in chain(*names)]
