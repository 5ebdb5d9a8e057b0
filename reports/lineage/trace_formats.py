"""A trace as a text tree, JSON, Mermaid or DOT.

Names are foreign text: control characters are made visible and each format's own marks are escaped.
"""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.lineage.graph.edges import Edge, LineageGap, Subtype
from pii_tracer.lineage.graph.trace import Link, Trace
from pii_tracer.model.datasets import DatasetId

WIDTH = 100
"""Columns of text that a tree keeps to where names allow it."""

TEXT_LINKS = 1000
"""Links that a tree shows."""

MERMAID_LINKS = 500
"""Mermaid's own limit (maxEdges): https://mermaid.js.org/config/schema-docs/config.html"""

_DEEP = 10


def plain(text: str) -> str:
    """Foreign text on a terminal: control characters become visible."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def as_text(made: Trace) -> str:
    """A tree; what was shown already is only named again, what lies deep is continued further down."""
    tree = _Tree(made)
    lines = tree.drawn()
    lines += _remarks(made)
    return "\n".join(lines)


class _Tree:
    def __init__(self, made: Trace) -> None:
        self.made = made
        self.following: dict[DatasetId, list[tuple[DatasetId, Link]]] = {}
        for link in made.links:
            here, there = (link.source, link.target) if made.direction == "down" else (link.target, link.source)
            self.following.setdefault(here, []).append((there, link))
        self.lines: list[str] = []
        self.shown = {made.start}
        self.left = TEXT_LINKS
        self.later: list[DatasetId] = []

    def drawn(self) -> list[str]:
        """The lines of the tree, and of the trees that continue it."""
        self.lines.append(plain(self.made.title))
        self._below(self.made.start, "", 0)
        if not self.made.links:
            self.lines.append(
                f"  lineage knows nothing {'made from' if self.made.direction == 'down' else 'behind'} it"
            )
        while self.later and self.left:
            root = self.later.pop(0)
            self.lines += ["", f"{plain(str(root))} (continued)"]
            self._below(root, "", 0)
        missing = len(self.made.links) - (TEXT_LINKS - self.left)
        if missing:
            self.lines += ["", f"… and {counted(missing, 'further link')}: use `--format json` to list all of them"]
        if self.made.left_out:
            self.lines += [
                "",
                f"… and {counted(self.made.left_out, 'dataset')} further away: use `--format json` to list all of them",
            ]
        return self.lines

    def _below(self, here: DatasetId, indent: str, depth: int) -> None:
        links = self.following.get(here, [])
        for number, (there, link) in enumerate(links):
            if not self.left:
                return
            self.left -= 1
            last = number == len(links) - 1
            again = there in self.shown
            self.shown.add(there)
            goes_on = not again and bool(self.following.get(there))
            deep = goes_on and depth >= _DEEP
            note = " (itself)" if there == here else " (see above)" if again else " (continued below)" if deep else ""
            self.lines.append(f"{indent}{'└── ' if last else '├── '}{plain(str(there))}{note}")
            inner = indent + ("    " if last else "│   ")
            self.lines += _told(link, inner + ("│ " if goes_on and not deep else "  "))
            if deep:
                self.later.append(there)
            elif goes_on:
                self._below(there, inner, depth + 1)


def _told(link: Link, indent: str) -> list[str]:
    """What goes over a link: columns that stay as they are in one list, then the others one by one."""
    same = [e for e in link.values if e.subtype is Subtype.IDENTITY and e.source.column == e.target.column]
    lines = _listed("unchanged:", [e.source.column for e in same], indent)
    lines += [_arrow(e, indent) for e in link.values if e not in same]
    deciding = [f"{e.source.column} -> {e.target.column} ({e.subtype})" for e in link.edges if e not in link.values]
    lines += _listed("decides:", deciding, indent)
    lines += _listed("rows by:", [f"{m.source.column} ({m.subtype})" for m in link.memberships], indent)
    if not link.edges and not link.memberships:
        lines += _listed(
            "columns not known; job:", [f"{j.job} ({j.where})" if j.job else j.where for j in link.jobs[-1:]], indent
        )
    return lines


def _listed(what: str, names: Iterable[str], indent: str) -> list[str]:
    text = ", ".join(dict.fromkeys(plain(n) for n in names))
    if not text:
        return []
    return textwrap.wrap(
        f"{what} {text}",
        max(WIDTH, len(indent) + 40),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _arrow(edge: Edge, indent: str) -> str:
    how = str(edge.subtype) + (", masked" if edge.masking else "")
    line = plain(f"{indent}{edge.source.column} -> {edge.target.column} ({how})")
    room = WIDTH - len(line) - 2
    text = plain(" ".join((edge.expression or "").split()))
    if not text or edge.subtype is Subtype.IDENTITY or room < 16:
        return line
    return f"{line}  {text if len(text) <= room else text[: room - 1] + '…'}"


def _remarks(made: Trace) -> list[str]:
    """Disagreements and gaps, below the tree."""
    lines = []
    if made.disagreements:
        lines += ["", f"events and SQL disagree on {len(made.disagreements)}:"]
        for event, sql in made.disagreements:
            lines.append(plain(f"  {event.source} -> {event.target}: {_kind(event)} by events, {_kind(sql)} by SQL"))
    for title, gaps in (("gaps on the way", made.gaps), ("gaps that may lead anywhere", made.elsewhere)):
        if gaps:
            lines += ["", f"{title}: {len(gaps)}"]
        for gap in gaps:
            lines += _wrapped(f"{gap.dataset or gap.kind}: {gap.reason}", "  ")
            lines += _what_closes(gap)
    return lines


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        plain(text), WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False
    )


def _what_closes(gap: LineageGap) -> list[str]:
    return _wrapped(f"seen in {gap.evidence}" + (f"; to close it: {gap.closes}" if gap.closes else ""), "    ")


def gaps_as_text(gaps: Sequence[LineageGap]) -> str:
    """Gaps by dataset; those of which nobody knows where they lead come last."""
    groups: dict[DatasetId | None, list[LineageGap]] = {}
    for gap in sorted(gaps, key=lambda g: (g.dataset is None, str(g.dataset), g.kind, g.reason)):
        groups.setdefault(gap.dataset, []).append(gap)
    lines = []
    for dataset, items in groups.items():
        lines.append(plain(str(dataset)) if dataset else "may lead anywhere")
        for gap in items:
            lines += _wrapped(f"{gap.kind}: {gap.reason}", "  ") + _what_closes(gap)
    counted = f"{len(gaps)} gap{'' if len(gaps) == 1 else 's'}"
    return "\n".join(
        [*lines, f"{counted} in {len(groups)} place{'' if len(groups) == 1 else 's'}" if gaps else "no gaps"]
    )


def _kind(edge: Edge) -> str:
    return str(edge.subtype) + (", masked" if edge.masking else "")


def as_json(made: Trace) -> str:
    """One object with everything that is known about the way."""
    content: dict[str, Any] = {
        "start": made.start.model_dump(),
        "column": made.column,
        "direction": made.direction,
        "links": [
            {
                "source": link.source.model_dump(),
                "target": link.target.model_dump(),
                "edges": [e.model_dump(mode="json") for e in link.edges],
                "memberships": [m.model_dump(mode="json") for m in link.memberships],
                "jobs": [{"job": j.job, "at": j.at, "where": j.where} for j in link.jobs],
            }
            for link in made.links
        ],
        "disagreements": [
            {"events": event.model_dump(mode="json"), "sql": sql.model_dump(mode="json")}
            for event, sql in made.disagreements
        ],
        "gaps": [gap.model_dump(mode="json") for gap in made.gaps],
        "gaps_elsewhere": [gap.model_dump(mode="json") for gap in made.elsewhere],
    }
    return json.dumps(content, ensure_ascii=False, indent=2)


def as_mermaid(made: Trace) -> str:
    """A Mermaid flow chart (https://mermaid.js.org/syntax/flowchart.html), as long as Mermaid draws it."""
    links = [link for link in made.links if link.source != link.target]
    missing = len(links) - MERMAID_LINKS
    links = links[:MERMAID_LINKS]
    ids = _numbered(links, made.start)
    lines = ["flowchart LR"]
    if missing > 0:
        lines.append(
            f"  %% left out: {counted(missing, 'further link')}: Mermaid draws {MERMAID_LINKS}; dot and json have all"
        )
    if made.left_out:
        lines.append(f"  %% left out: {counted(made.left_out, 'dataset')} further away; dot and json have all")
    lines += [f'  {name}["{_quoted(str(dataset))}"]' for dataset, name in ids.items()]
    lines += [f'  {ids[k.source]} -->|"{_label(k)}"| {ids[k.target]}' for k in links]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """HTML entities are the one escape Mermaid has, written with `#`."""
    escaped = html.escape(plain(text), quote=True).replace("`", "&#96;").replace("\\", "&#92;")
    return escaped.replace("&#x27;", "&#39;").replace("&#", "#").replace("&", "#")


def _label(link: Link) -> str:
    direct = len({(e.source, e.target) for e in link.values})
    return f"{direct} column{'' if direct == 1 else 's'}" if direct else "rows only"


def as_dot(made: Trace) -> str:
    """Graphviz DOT (https://graphviz.org/doc/info/lang.html)."""
    ids = _numbered(made.links, made.start)

    def quoted(text: str) -> str:
        return '"' + plain(text).replace("\\", "\\\\").replace('"', '\\"') + '"'

    lines = ["digraph lineage {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  {name} [label={quoted(str(dataset))}];" for dataset, name in ids.items()]
    lines += [f"  {ids[k.source]} -> {ids[k.target]} [label={quoted(_label(k))}];" for k in made.links]
    return "\n".join([*lines, "}"])


def _numbered(links: Iterable[Link], start: DatasetId) -> dict[DatasetId, str]:
    nodes = dict.fromkeys([start, *(d for link in links for d in (link.source, link.target))])
    return {dataset: f"n{number}" for number, dataset in enumerate(nodes)}
