"""Walks over the whole graph, a layer at a time (breadth first, vectorised over the arrays)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pii_tracer.lineage.graph.arrays import Columnar, is_direct, numbers_of
from pii_tracer.lineage.graph.string_pool import U32

Layer = npt.NDArray[np.int64]
Step = Callable[[Layer], Layer]
"""From the numbers of one layer to those next to them, in any order, with repetition."""

_FEW = 256

Way = Callable[[Columnar], Step]


def reached(size: int, start: int | Layer, step: Step, layers: int | None = None) -> Layer:
    """Every number that steps lead to from `start`, sorted, without `start` itself (as networkx's `descendants`).

    layers: how many steps at most.
    """
    seen = np.zeros(size, np.bool_)
    seen[start] = True
    layer: Layer = np.atleast_1d(np.asarray(start, np.int64))
    while len(layer) and layers != 0:
        layers = None if layers is None else layers - 1
        found = step(layer)
        fresh = found[~seen[found]]
        seen[fresh] = True
        layer = _once(fresh, size)
    seen[start] = False
    return np.flatnonzero(seen)


def _once(numbers: Layer, size: int) -> Layer:
    """Sorted, without repetition: by sorting where they are few, else by ticking them off."""
    if len(numbers) * _FEW < size:
        return np.unique(numbers) if len(numbers) > 1 else numbers
    ticked = np.zeros(size, np.bool_)
    ticked[numbers] = True
    return np.flatnonzero(ticked)


def runs(first: npt.NDArray[np.integer], last: npt.NDArray[np.integer], layer: Layer) -> Layer:
    """All places of the runs [first[n], last[n]) of the layer's numbers."""
    begin = first[layer].astype(np.int64)
    lengths = last[layer].astype(np.int64) - begin
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(begin - ends + lengths, lengths) + np.arange(total)


def feeds(made: Columnar) -> Step:
    """From datasets to those that receive something of them."""
    return lambda layer: made.feed_target[runs(made.feed_start, made.feed_start[1:], layer)].astype(np.int64)


def fed_by(made: Columnar) -> Step:
    """From datasets to those that something of them comes from."""
    return lambda layer: made.link_source[runs(made.link_start, made.link_start[1:], layer)].astype(np.int64)


def values_down(made: Columnar) -> Step:
    """From columns to those that their values go into."""
    return lambda layer: made.forward_target[runs(made.forward_start, made.forward_direct, layer)].astype(np.int64)


def values_up(made: Columnar) -> Step:
    """From columns to those that their values come from."""
    return lambda layer: made.edge_source[runs(made.edge_start, made.edge_direct, layer)].astype(np.int64)


def influence_down(made: Columnar) -> Step:
    """From columns to those that they go into or decide about; who decides about rows decides about every column."""
    by_source = np.argsort(made.member_source, kind="stable")
    sources = made.member_source[by_source]
    targets = numbers_of(made.member_start)[by_source].astype(np.int64)
    decided = np.zeros(len(made.dataset_names), np.bool_)

    def step(layer: Layer) -> Layer:
        first, last = np.searchsorted(sources, layer, "left"), np.searchsorted(sources, layer, "right")
        datasets = np.unique(targets[_between(first, last)])
        datasets = datasets[~decided[datasets]]
        decided[datasets] = True
        edges = runs(made.forward_start, made.forward_start[1:], layer)
        columns = runs(made.column_start, made.column_start[1:], datasets)
        return np.concatenate([made.forward_target[edges].astype(np.int64), columns])

    return step


def influence_up(made: Columnar) -> Step:
    """From columns to those that go into them, or decide about them or about their rows."""
    asked = np.zeros(len(made.dataset_names), np.bool_)

    def step(layer: Layer) -> Layer:
        datasets = np.unique(np.searchsorted(made.column_start, layer.astype(np.uint32), "right") - 1)
        datasets = datasets[~asked[datasets]]
        asked[datasets] = True
        edges = runs(made.edge_start, made.edge_start[1:], layer)
        members = runs(made.member_start, made.member_start[1:], datasets)
        return np.concatenate([made.edge_source[edges], made.member_source[members]]).astype(np.int64)

    return step


def _between(first: Layer, last: Layer) -> Layer:
    every = np.arange(len(first))
    return runs(first.astype(np.uint64), last.astype(np.uint64), every)


def disagreeing(made: Columnar) -> list[Layer]:
    """Numbers of the DIRECT edges between the same two columns, where there are several kinds of them."""
    numbers = np.flatnonzero(is_direct(made.edge_kind))
    source, kind = made.edge_source[numbers], made.edge_kind[numbers]
    target = np.searchsorted(made.edge_start, numbers.astype(np.uint32), "right")
    same = (source[1:] == source[:-1]) & (target[1:] == target[:-1])
    # a group is a run of neighbours between the same columns
    first = np.flatnonzero(np.concatenate([[True], ~same])) if len(numbers) else np.zeros(0, np.int64)
    last = np.append(first[1:], len(numbers))
    different = np.flatnonzero(kind[first] != kind[last - 1]) if len(first) else first
    return [numbers[first[n] : last[n]] for n in different]


def places(order: U32, size: int) -> npt.NDArray[np.int64]:
    """For every number its place in an order."""
    rank = np.zeros(size, np.int64)
    rank[order] = np.arange(len(order))
    return rank
