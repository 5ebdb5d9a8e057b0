"""A trace as one HTML file: the picture, what is not certain, every edge with its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pii_tracer.lineage.graph.edges import Edge
from pii_tracer.lineage.graph.trace import Link, Trace
from pii_tracer.model.datasets import DatasetId
from reports.html_templates import render_html
from reports.lineage import trace_picture
from reports.lineage.layered_drawing import NODE_WIDTH

MOST_ROWS = 4000
"""Edges that the page lists; a larger trace says how many are left out."""

_DEFAULT_CATALOG = "spark_catalog."


@dataclass(frozen=True)
class Step:
    """A link with the words of the page. rows: its edges and memberships; 0 of them shown where the page is full."""

    source: str
    target: str
    link: Link
    masked: int
    shown: bool


def render_trace_html(trace: Trace, aliases: Mapping[DatasetId, Sequence[str]]) -> str:
    """A self-contained page (inline style and SVG, no script, no request).

    aliases: names of tables by dataset; the shortest full one stands for the dataset.
    """
    names = _names(trace.datasets, aliases)
    room = MOST_ROWS
    steps = []
    for link in trace.links:
        size = len(link.edges) + len(link.memberships)
        room -= size
        masked = sum(e.masking for e in link.values)
        steps.append(Step(names[link.source], names[link.target], link, masked, room >= 0))
    values = [e for link in trace.links for e in link.values]
    return render_html(
        "trace.html.j2",
        trace=trace,
        title=names[trace.start] + (f".{trace.column}" if trace.column else ""),
        names=names,
        picture=trace_picture.picture(trace, names),
        node_width=NODE_WIDTH,
        steps=steps,
        hidden=sum(not s.shown for s in steps),
        values=len(values),
        masked=sum(e.masking for e in values),
        disagreements=[(names[a.source.dataset], names[a.target.dataset], a, b) for a, b in trace.disagreements],
        most=MOST_ROWS,
        kind=_kind,
    )


def _kind(edge: Edge) -> str:
    return edge.subtype.lower().replace("_", " ") + (", masked" if edge.masking else "")


def _names(datasets: Sequence[DatasetId], aliases: Mapping[DatasetId, Sequence[str]]) -> dict[DatasetId, str]:
    """One short name for each: a table's full name, else the last parts of the path; the whole where these are not
    unmistakable."""
    full = {d: max(aliases.get(d, ()), key=lambda a: (a.count("."), a), default="") for d in datasets}
    short = {d: name.removeprefix(_DEFAULT_CATALOG) or _end(d) for d, name in full.items()}
    times = Counter(short.values())
    return {d: name if times[name] == 1 else str(d) for d, name in short.items()}


def _end(dataset: DatasetId) -> str:
    parts = [p for p in dataset.name.split("/") if p]
    return "/".join(parts[-2:]) or str(dataset)
