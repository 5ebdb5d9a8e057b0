"""A layered drawing of a directed graph: what comes first on the left, what follows from it to the right.

Only places and paths are made here; templates draw them. Long edges pass through empty places of the layers between
(the usual layered method: layers by longest path, order by barycentre), so that no edge runs behind a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

NODE_WIDTH = 190
MARGIN = 6
_COLUMN, _GAP, _PASS_HEIGHT = 230, 14, 10
_SWEEPS = 6


@dataclass(frozen=True)
class Arc:
    """An SVG path between nodes, with what to say of it."""

    path: str
    tip: str


@dataclass(frozen=True)
class Path:
    """An edge as an SVG path, and what it joins."""

    source: str
    target: str
    path: str


@dataclass(frozen=True)
class Layout:
    """The drawing's size, the upper left corner of each node, and the edges (less those that close a cycle)."""

    width: float
    height: float
    x: Mapping[str, float]
    y: Mapping[str, float]
    paths: tuple[Path, ...]


def lay_out(
    ids: Sequence[str],
    edges: Sequence[tuple[str, str]],
    heights: Mapping[str, float],
    behind: frozenset[str] = frozenset(),
) -> Layout:
    """Places for nodes of these heights. behind: nodes that stand to the right of all others."""
    arcs = without_cycles(ids, edges)
    layers = _layers(ids, arcs, behind)
    high = dict(heights)
    columns, chains = _columns(ids, arcs, layers, high)
    _order(columns, chains)
    tall = max((_extent(column, high) for column in columns), default=0.0)
    y: dict[str, float] = {}
    for column in columns:
        at = MARGIN + (tall - _extent(column, high)) / 2
        for item in column:
            y[item] = at
            at += high[item] + _GAP
    x = {item: float(MARGIN + index * _COLUMN) for index, column in enumerate(columns) for item in column}
    paths = tuple(Path(chain[0], chain[-1], _path(chain, x, y, high)) for chain in chains)
    width = 2 * MARGIN + NODE_WIDTH + _COLUMN * max(0, len(columns) - 1)
    return Layout(width, tall + 2 * MARGIN, x, y, paths)


def without_cycles(ids: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Edges but those that close a cycle (walking in the order of `ids`): a drawing in layers has no way back."""
    after: dict[str, list[str]] = {}
    for a, b in edges:
        after.setdefault(a, []).append(b)
    state: dict[str, int] = {}
    kept: list[tuple[str, str]] = []
    for root in ids:
        stack = [(root, iter(after.get(root, ())))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            node, rest = stack[-1]
            child = next(rest, None)
            if child is None:
                state[node] = 2
                stack.pop()
            elif state.get(child) != 1:
                kept.append((node, child))
                if child not in state:
                    state[child] = 1
                    stack.append((child, iter(after.get(child, ()))))
    return kept


def _layers(ids: Sequence[str], edges: Sequence[tuple[str, str]], behind: frozenset[str]) -> dict[str, int]:
    """Longest path from a start."""
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(ids)
    layers = {item: layer for layer, items in enumerate(nx.topological_generations(graph)) for item in items}
    last = 1 + max((layer for item, layer in layers.items() if item not in behind), default=-1)
    for item in behind:
        layers[item] = max(layers[item], last)
    return layers


def _columns(
    ids: Sequence[str], edges: Sequence[tuple[str, str]], layers: dict[str, int], heights: dict[str, float]
) -> tuple[list[list[str]], list[list[str]]]:
    """Items per layer, and each edge as a chain of items; a passing place is added in every layer it crosses."""
    used = sorted(set(layers.values()))
    place = {layer: index for index, layer in enumerate(used)}
    columns: list[list[str]] = [[] for _ in used]
    for item in ids:
        columns[place[layers[item]]].append(item)
    chains: list[list[str]] = []
    for number, (a, b) in enumerate(edges):
        chain = [a]
        for index in range(place[layers[a]] + 1, place[layers[b]]):
            item = f"\0{number}/{index}"
            heights[item] = float(_PASS_HEIGHT)
            columns[index].append(item)
            chain.append(item)
        chains.append([*chain, b])
    return columns, chains


def _order(columns: list[list[str]], chains: Sequence[Sequence[str]]) -> None:
    """Sort each layer by the mean place of its neighbours, forth and back."""
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for chain in chains:
        for a, b in pairwise(chain):
            after.setdefault(a, []).append(b)
            before.setdefault(b, []).append(a)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        indexes = range(1, len(columns)) if forth else range(len(columns) - 2, -1, -1)
        for index in indexes:
            beside = columns[index - 1 if forth else index + 1]
            # places as fractions of the layer, so that layers of different length compare
            at = {item: (place + 0.5) / len(beside) for place, item in enumerate(beside)}
            near = before if forth else after
            own = {item: (place + 0.5) / len(columns[index]) for place, item in enumerate(columns[index])}

            def key(
                item: str,
                near: dict[str, list[str]] = near,
                at: dict[str, float] = at,
                own: dict[str, float] = own,
            ) -> float:
                places = [at[other] for other in near.get(item, ()) if other in at]
                return sum(places) / len(places) if places else own[item]

            columns[index].sort(key=key)


def _extent(column: Sequence[str], heights: Mapping[str, float]) -> float:
    return sum(heights[item] for item in column) + _GAP * max(0, len(column) - 1)


def _path(chain: Sequence[str], x: Mapping[str, float], y: Mapping[str, float], heights: Mapping[str, float]) -> str:
    middle = {item: y[item] + heights[item] / 2 for item in chain}
    at_x, at_y = x[chain[0]] + NODE_WIDTH, middle[chain[0]]
    path = f"M{at_x:.0f} {at_y:.1f}"
    for item in chain[1:]:
        bend = (x[item] - at_x) / 2
        path += (
            f"C{at_x + bend:.0f} {at_y:.1f} {x[item] - bend:.0f} {middle[item]:.1f} {x[item]:.0f} {middle[item]:.1f}"
        )
        at_x, at_y = x[item], middle[item]
        if item != chain[-1]:
            at_x += NODE_WIDTH
            path += f"H{at_x:.0f}"
    return path


def shorten(name: str, letters: int) -> str:
    """The name with its middle left out, when it is longer than `letters`."""
    if len(name) <= letters:
        return name
    head = (letters - 1) // 2
    return f"{name[:head]}…{name[len(name) - (letters - 1 - head) :]}"
