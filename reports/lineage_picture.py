"""Where the person went, as a layered drawing: source on the left, what was made from it to the right.

Only the layout is here; templates draw it. Long edges pass through empty places of the layers between (the usual
layered method: layers by longest path, order by barycentre), so that no edge runs behind a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pii_tracer.model import Carries, CopyKind
from reports import wording
from reports.planview import CopyRow, PlanView

NODE_WIDTH = 190
_NODE_HEIGHT, _BEYOND_HEIGHT, _PASS_HEIGHT = 42, 15, 10
_COLUMN, _GAP, _MARGIN = 230, 14, 6
_NAME_LETTERS = 23
_SWEEPS = 6
_LAST_COLUMN = frozenset({CopyKind.DEV_CLONE, CopyKind.REPLICA, CopyKind.ARCHIVE, CopyKind.BACKUP, CopyKind.TOPIC})

Edges = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Node:
    """A counting copy, placed. beyond: the kinds of what hangs from it. tip: all that is shown on hovering."""

    id: str
    name: str
    facts: str
    beyond: str
    carries: Carries
    tip: str
    x: float
    y: float
    height: float


@dataclass(frozen=True)
class Arc:
    """An edge as an SVG path, with the names it joins."""

    path: str
    tip: str


@dataclass(frozen=True)
class Picture:
    """The drawing. legend: the ways in which the person is carried that occur in it."""

    width: float
    height: float
    nodes: tuple[Node, ...]
    arcs: tuple[Arc, ...]
    legend: tuple[Carries, ...]


def copy_edges(view: PlanView, edges: Edges = ()) -> tuple[tuple[str, str], ...]:
    """Edges between counting copies (ids), from dataset edges and from each copy's lineage path.

    Names may be `namespace:name`, the name, the table or the location (or its end), with or without a column behind
    it. A hop that is no copy of this plan is passed over: what matters here is how the copies hang together.
    """
    rows = [row for row in view.rows if row.depth == 0]
    known: dict[str, str] = {}
    for row in rows:
        copy = row.copy
        for name in (str(copy.dataset), copy.dataset.name, copy.table, copy.location):
            if name:
                known.setdefault(name, copy.id)
    ends = Counter(row.copy.location.rstrip("/").rpartition("/")[2] for row in rows)
    for row in rows:  # a folder without a table goes by the last part of its path, where that is unmistakable
        end = row.copy.location.rstrip("/").rpartition("/")[2]
        if ends[end] == 1:
            known.setdefault(end, row.copy.id)
    found: dict[tuple[str, str], None] = {}
    for source, target in edges:
        pair = (_resolve(source, known), _resolve(target, known))
        if pair[0] and pair[1] and pair[0] != pair[1]:
            found[pair[0], pair[1]] = None
    for row in rows:
        hops = [_resolve(part, known) for hop in row.copy.lineage for part in hop.replace(" → ", " -> ").split(" -> ")]
        path = [hop for hop in hops if hop]
        if path and path[-1] != row.copy.id:
            path.append(row.copy.id)
        for a, b in pairwise(path):
            if a != b:
                found[a, b] = None
    return tuple(found)


def _resolve(name: str, known: dict[str, str]) -> str | None:
    name = name.strip()
    return known.get(name) or known.get(name.rpartition(".")[0])


def picture(view: PlanView, edges: Edges = ()) -> Picture:
    """Lay out the counting copies of a plan."""
    rows = [row for row in view.rows if row.depth == 0]
    beyond = _beyond(view)
    arcs = _without_cycles([row.copy.id for row in rows], copy_edges(view, edges))
    layers = _layers(rows, arcs)
    heights = {row.copy.id: float(_NODE_HEIGHT + (_BEYOND_HEIGHT if beyond.get(row.copy.id) else 0)) for row in rows}
    columns, chains = _columns(rows, arcs, layers, heights)
    _order(columns, chains)
    tall = max((_extent(column, heights) for column in columns), default=0.0)
    y: dict[str, float] = {}
    for column in columns:
        at = _MARGIN + (tall - _extent(column, heights)) / 2
        for item in column:
            y[item] = at
            at += heights[item] + _GAP
    x = {item: float(_MARGIN + index * _COLUMN) for index, column in enumerate(columns) for item in column}
    names = {row.copy.id: row.name for row in rows}
    nodes = tuple(_node(row, beyond, x, y, heights) for row in rows)
    drawn = tuple(_arc(chain, x, y, heights, names) for chain in chains)
    width = 2 * _MARGIN + NODE_WIDTH + _COLUMN * max(0, len(columns) - 1)
    present = {row.copy.carries for row in rows}
    return Picture(width, tall + 2 * _MARGIN, nodes, drawn, tuple(kind for kind in Carries if kind in present))


def _beyond(view: PlanView) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    top = ""
    for row in view.rows:
        if row.depth == 0:
            top = row.copy.id
        else:
            found.setdefault(top, []).append(row.kind)
    return found


def _without_cycles(ids: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Edges but those that close a cycle (walking in plan order): a drawing in layers has no way back."""
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


def _layers(rows: Sequence[CopyRow], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Longest path from a start; clones, replicas and archives stand behind all that was derived."""
    layers = {row.copy.id: 0 for row in rows}
    for _ in rows:
        moved = False
        for a, b in edges:
            if layers[b] < layers[a] + 1:
                layers[b] = layers[a] + 1
                moved = True
        if not moved:
            break
    last = {row.copy.id for row in rows if row.copy.kind in _LAST_COLUMN}
    behind = 1 + max((layer for copy, layer in layers.items() if copy not in last), default=-1)
    for copy in last:
        layers[copy] = max(layers[copy], behind)
    return layers


def _columns(
    rows: Sequence[CopyRow], edges: Sequence[tuple[str, str]], layers: dict[str, int], heights: dict[str, float]
) -> tuple[list[list[str]], list[list[str]]]:
    """Items per layer, and each edge as a chain of items; a passing place is added in every layer it crosses."""
    used = sorted(set(layers.values()))
    place = {layer: index for index, layer in enumerate(used)}
    columns: list[list[str]] = [[] for _ in used]
    for row in rows:
        columns[place[layers[row.copy.id]]].append(row.copy.id)
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


def _extent(column: Sequence[str], heights: dict[str, float]) -> float:
    return sum(heights[item] for item in column) + _GAP * max(0, len(column) - 1)


def shorten(name: str, letters: int) -> str:
    """The name with its middle left out, when it is longer than `letters`."""
    if len(name) <= letters:
        return name
    head = (letters - 1) // 2
    return f"{name[:head]}…{name[len(name) - (letters - 1 - head) :]}"


def _node(
    row: CopyRow, beyond: dict[str, list[str]], x: dict[str, float], y: dict[str, float], heights: dict[str, float]
) -> Node:
    copy = row.copy
    hanging = beyond.get(copy.id, [])
    kinds = ", ".join(dict.fromkeys(hanging))
    rows = f" · {wording.counted(row.rows, 'row')}" if row.rows is not None else ""
    tip = (
        f"{row.number}. {row.name} ({row.kind}, {copy.format}): carries {row.carries}; {row.strategy}{rows};"
        f" {wording.counted(len(row.steps), 'step')}, {row.irreversible} irreversible"
    )
    return Node(
        id=copy.id,
        name=shorten(row.name, _NAME_LETTERS),
        facts=f"{row.strategy.removeprefix('delete ')}{rows}",
        beyond=shorten(f"+{len(hanging)} {kinds}", 30) if hanging else "",
        carries=copy.carries,
        tip=tip + (f"; beyond: {kinds}" if hanging else ""),
        x=x[copy.id],
        y=y[copy.id],
        height=heights[copy.id],
    )


def _arc(
    chain: Sequence[str], x: dict[str, float], y: dict[str, float], heights: dict[str, float], names: dict[str, str]
) -> Arc:
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
    return Arc(path, f"{names[chain[0]]} → {names[chain[-1]]}")
