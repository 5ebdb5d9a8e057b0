"""The picture of a trace. A large one is cut so that it stays readable: the middle of a long way, and the many of a
broad one, become one node each that says how many it stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import networkx as nx

from pii_tracer.common.plurals import counted
from pii_tracer.lineage.graph.trace import Trace
from pii_tracer.model.datasets import DatasetId
from reports.lineage.layered_drawing import Arc, lay_out, shorten

_HEIGHT = 42
_LETTERS = 23
_BEFORE, _AFTER = 3, 1
"""Steps that a long way shows at its start and its end."""
_FEW = 40
"""Up to so many datasets the picture shows more of them in one step."""


@dataclass(frozen=True)
class Node:
    """One dataset, or many (`count`). tone: `start`, `gap`, `many` or nothing."""

    name: str
    facts: str
    tip: str
    tone: str
    x: float
    y: float


@dataclass(frozen=True)
class Picture:
    """The drawing. hidden: datasets that are not drawn by themselves."""

    width: float
    height: float
    nodes: tuple[Node, ...]
    arcs: tuple[Arc, ...]
    hidden: int


def picture(trace: Trace, names: Mapping[DatasetId, str]) -> Picture:
    """Draw a trace; upstream is left."""
    groups = _groups(trace)
    members: dict[str, list[DatasetId]] = {}
    for dataset in trace.datasets:
        members.setdefault(groups[dataset], []).append(dataset)
    between: Counter[tuple[str, str]] = Counter()
    columns: Counter[tuple[str, str]] = Counter()
    for link in trace.links:
        pair = groups[link.source], groups[link.target]
        if pair[0] != pair[1]:
            between[pair] += 1
            columns[pair] += len({(e.source, e.target) for e in link.values})
    made = lay_out(list(members), list(between), dict.fromkeys(members, float(_HEIGHT)))
    into = Counter({g: sum(n for (_, t), n in columns.items() if t == g) for g in members})
    said = {group: _said(group, items, names) for group, items in members.items()}
    nodes = tuple(
        Node(
            name=shorten(said[group][0], _LETTERS),
            facts=said[group][1] or (f"{counted(into[group], 'value edge')} in" if into[group] else ""),
            tip=said[group][2],
            tone=_tone(trace, items),
            x=made.x[group],
            y=made.y[group],
        )
        for group, items in members.items()
    )
    arcs = tuple(
        Arc(
            p.path,
            f"{said[p.source][0]} → {said[p.target][0]}: {counted(columns[p.source, p.target], 'value edge')}",
        )
        for p in made.paths
    )
    hidden = sum(len(items) for items in members.values() if len(items) > 1)
    return Picture(made.width, made.height, nodes, arcs, hidden)


def _said(group: str, items: list[DatasetId], names: Mapping[DatasetId, str]) -> tuple[str, str, str]:
    """Name, second line and tip of a node."""
    if len(items) == 1:
        return names[items[0]], "", str(items[0])
    some = ", ".join(names[d] for d in items[:12]) + (" …" if len(items) > 12 else "")
    return counted(len(items), "dataset"), group, some


def _tone(trace: Trace, items: list[DatasetId]) -> str:
    if len(items) > 1:
        return "many"
    if items[0] == trace.start:
        return "start"
    return "gap" if any(gap.dataset == items[0] for gap in trace.gaps) else ""


def _groups(trace: Trace) -> dict[DatasetId, str]:
    """For each dataset what it is drawn as: itself, or one of many."""
    steps = _steps(trace)
    far = max(steps.values())
    cut = range(_BEFORE + 1, far - _AFTER + 1) if far > _BEFORE + _AFTER + 1 else range(0)
    groups: dict[DatasetId, str] = {}
    by_step: dict[int, list[DatasetId]] = {}
    for dataset in trace.datasets:
        step = steps[dataset]
        if step in cut:
            groups[dataset] = f"{cut.start} to {cut.stop - 1} steps away"
        else:
            groups[dataset] = str(dataset)
            by_step.setdefault(step, []).append(dataset)
    weight = _weight(trace)
    broad = 16 if len(steps) <= _FEW else 8
    for step, items in by_step.items():
        if len(items) > broad:
            kept = sorted(items, key=lambda d: (-weight[d], d))[: broad - 1]
            for dataset in set(items) - set(kept):
                groups[dataset] = f"{counted(step, 'step')} away"
    return groups


def _weight(trace: Trace) -> Counter[DatasetId]:
    """What is shown first: datasets with gaps, then those that most goes through."""
    weight = Counter(d for link in trace.links for d in (link.source, link.target))
    for gap in trace.gaps:
        if gap.dataset is not None:
            weight[gap.dataset] += 1_000_000
    return weight


def _steps(trace: Trace) -> dict[DatasetId, int]:
    """How many links each dataset is away from the start."""
    links = nx.DiGraph((link.source, link.target) for link in trace.links)
    links.add_node(trace.start)
    return dict(
        nx.single_source_shortest_path_length(links if trace.direction == "down" else links.reverse(), trace.start)
    )
