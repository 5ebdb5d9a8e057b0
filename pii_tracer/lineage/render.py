"""Where a dataset or column comes from or goes to: as a text tree, JSON, Mermaid or DOT.

Names are foreign text: control characters are made visible and each format's own marks are escaped.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from pii_tracer.lineage.edges import Edge, EdgeType
from pii_tracer.lineage.graph import LineageGraph
from pii_tracer.model import ColumnId, DatasetId

Direction = Literal["up", "down"]


@dataclass(frozen=True)
class Link:
    """One step of a trace between datasets, with the columns it is made of."""

    source: DatasetId
    target: DatasetId
    edges: tuple[Edge, ...]


def trace(graph: LineageGraph, start: DatasetId, direction: Direction, column: str | None = None) -> tuple[Link, ...]:
    """All links from a dataset, or from one of its columns along DIRECT edges, in order of the walk."""
    if column is not None:
        return _column_trace(graph, ColumnId(dataset=start, column=column), direction)
    reached = {start, *(graph.downstream(start) if direction == "down" else graph.upstream(start))}
    links = []
    for target in graph.datasets():
        if target not in reached:
            continue
        by_source: dict[DatasetId, list[Edge]] = {}
        for edge in graph.edges_into(target):
            by_source.setdefault(edge.source.dataset, []).append(edge)
        for member in graph.memberships_into(target):
            by_source.setdefault(member.source.dataset, [])
        for job in graph.jobs_into(target):
            for source in job.inputs:
                by_source.setdefault(source, [])
        links += [Link(s, target, tuple(e)) for s, e in sorted(by_source.items()) if s in reached and s != target]
    return tuple(links)


def _column_trace(graph: LineageGraph, start: ColumnId, direction: Direction) -> tuple[Link, ...]:
    found: dict[Edge, None] = {}
    seen, waiting = {start}, [start]
    while waiting:
        here = waiting.pop(0)
        edges: Iterable[Edge] = graph.edges_from(here)
        if direction == "up":
            edges = (e for e in graph.edges_into(here.dataset) if e.target == here)
        for edge in edges:
            if edge.type is not EdgeType.DIRECT:
                continue
            found[edge] = None
            there = edge.target if direction == "down" else edge.source
            if there not in seen:
                seen.add(there)
                waiting.append(there)
    grouped: dict[tuple[DatasetId, DatasetId], list[Edge]] = {}
    for edge in found:
        grouped.setdefault((edge.source.dataset, edge.target.dataset), []).append(edge)
    return tuple(Link(s, t, tuple(edges)) for (s, t), edges in grouped.items())


def plain(text: str) -> str:
    """Foreign text on a terminal: control characters become visible."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def as_text(links: Iterable[Link], start: DatasetId, direction: Direction) -> str:
    """A tree; what was shown already is only named again."""
    following: dict[DatasetId, list[Link]] = {}
    for link in links:
        here, there = (link.source, link.target) if direction == "down" else (link.target, link.source)
        following.setdefault(here, []).append(Link(here, there, link.edges))
    lines = [plain(str(start))]
    shown = {start}

    def walk(here: DatasetId, indent: str) -> None:
        for number, link in enumerate(following.get(here, ())):
            last = number == len(following[here]) - 1
            again = link.target in shown
            lines.append(
                f"{indent}{'└── ' if last else '├── '}{plain(str(link.target))}{' (see above)' if again else ''}"
            )
            inner = indent + ("    " if last else "│   ")
            lines.extend(f"{inner}  {_arrow(e)}" for e in link.edges if e.type is EdgeType.DIRECT)
            if not again:
                shown.add(link.target)
                walk(link.target, inner)

    walk(start, "")
    return "\n".join(lines)


def _arrow(edge: Edge) -> str:
    how = str(edge.subtype) + (", masked" if edge.masking else "")
    return plain(f"{edge.source.column} -> {edge.target.column} ({how})")


def as_json(links: Iterable[Link], start: DatasetId, direction: Direction) -> str:
    """One object: the start and all links with their edges."""
    content: dict[str, Any] = {
        "start": start.model_dump(),
        "direction": direction,
        "links": [
            {
                "source": link.source.model_dump(),
                "target": link.target.model_dump(),
                "edges": [e.model_dump(mode="json") for e in link.edges],
            }
            for link in links
        ],
    }
    return json.dumps(content, ensure_ascii=False, indent=2)


def as_mermaid(links: Iterable[Link], start: DatasetId) -> str:
    """A Mermaid flow chart (https://mermaid.js.org/syntax/flowchart.html)."""
    links = list(links)
    ids = _numbered(links, start)
    lines = ["flowchart LR"]
    lines += [f'  {name}["{_quoted(str(dataset))}"]' for dataset, name in ids.items()]
    lines += [f'  {ids[k.source]} -->|"{_label(k)}"| {ids[k.target]}' for k in links]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """HTML entities are the one escape Mermaid has, written with `#`."""
    escaped = html.escape(plain(text), quote=True).replace("`", "&#96;").replace("\\", "&#92;")
    return escaped.replace("&#x27;", "&#39;").replace("&#", "#").replace("&", "#")


def _label(link: Link) -> str:
    direct = sum(e.type is EdgeType.DIRECT for e in link.edges)
    return f"{direct} columns" if direct else "rows only"


def as_dot(links: Iterable[Link], start: DatasetId) -> str:
    """Graphviz DOT (https://graphviz.org/doc/info/lang.html)."""
    links = list(links)
    ids = _numbered(links, start)

    def quoted(text: str) -> str:
        return '"' + plain(text).replace("\\", "\\\\").replace('"', '\\"') + '"'

    lines = ["digraph lineage {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  {name} [label={quoted(str(dataset))}];" for dataset, name in ids.items()]
    lines += [f"  {ids[k.source]} -> {ids[k.target]} [label={quoted(_label(k))}];" for k in links]
    return "\n".join([*lines, "}"])


def _numbered(links: Iterable[Link], start: DatasetId) -> dict[DatasetId, str]:
    nodes = dict.fromkeys([start, *(d for link in links for d in (link.source, link.target))])
    return {dataset: f"n{number}" for number, dataset in enumerate(nodes)}
