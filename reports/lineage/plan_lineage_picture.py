"""Where the person went, as a layered drawing: source on the left, what was made from it to the right; clones,
replicas and archives behind all that was derived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from pii_tracer.common.plurals import counted
from pii_tracer.model.datasets import Carries, CopyKind
from reports.lineage.layered_drawing import (
    Arc,
    Layout,
    lay_out,
    shorten,
)
from reports.plan.plan_view import CopyRow, PlanView

_NODE_HEIGHT, _BEYOND_HEIGHT = 42, 15
_NAME_LETTERS = 23
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
    heights = {row.copy.id: float(_NODE_HEIGHT + (_BEYOND_HEIGHT if beyond.get(row.copy.id) else 0)) for row in rows}
    behind = frozenset(row.copy.id for row in rows if row.copy.kind in _LAST_COLUMN)
    made = lay_out([row.copy.id for row in rows], copy_edges(view, edges), heights, behind)
    names = {row.copy.id: row.name for row in rows}
    nodes = tuple(_node(row, beyond, made, heights) for row in rows)
    arcs = tuple(Arc(p.path, f"{names[p.source]} → {names[p.target]}") for p in made.paths)
    present = {row.copy.carries for row in rows}
    return Picture(made.width, made.height, nodes, arcs, tuple(kind for kind in Carries if kind in present))


def _beyond(view: PlanView) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    top = ""
    for row in view.rows:
        if row.depth == 0:
            top = row.copy.id
        else:
            found.setdefault(top, []).append(row.kind)
    return found


def _node(row: CopyRow, beyond: dict[str, list[str]], made: Layout, heights: dict[str, float]) -> Node:
    copy = row.copy
    hanging = beyond.get(copy.id, [])
    kinds = ", ".join(dict.fromkeys(hanging))
    rows = f" · {counted(row.rows, 'row')}" if row.rows is not None else ""
    tip = (
        f"{row.number}. {row.name} ({row.kind}, {copy.format}): carries {row.carries}; {row.strategy}{rows};"
        f" {counted(len(row.steps), 'step')}, {row.irreversible} irreversible"
    )
    return Node(
        id=copy.id,
        name=shorten(row.name, _NAME_LETTERS),
        facts=f"{row.strategy.removeprefix('delete ')}{rows}",
        beyond=shorten(f"+{len(hanging)} {kinds}", 30) if hanging else "",
        carries=copy.carries,
        tip=tip + (f"; beyond: {kinds}" if hanging else ""),
        x=made.x[copy.id],
        y=made.y[copy.id],
        height=heights[copy.id],
    )
