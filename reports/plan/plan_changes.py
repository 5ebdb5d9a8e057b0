"""What changed between two plans: as text, as Markdown within a byte budget, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from pii_tracer.common.plurals import counted
from pii_tracer.review.plan_changes import Change, Sign
from reports.escape import markdown, markdown_code, visible
from reports.lineage.layered_drawing import shorten

BUDGET = 60_000
NOTHING = "no change that a reviewer must know"
_MARKS = {Sign.ADDED: "+", Sign.REMOVED: "-", Sign.CHANGED: "~"}
_LETTERS = 500


def render_changes_text(found: Sequence[Change]) -> str:
    """One line a change; `!` where whoever approved the old plan has to think again."""
    if not found:
        return NOTHING
    return "\n".join(
        f"{'!' if item.look else ' '} {_MARKS[item.sign]} {item.about} {visible(item.subject)}: {visible(item.text)}"
        for item in found
    )


def render_changes_json(found: Sequence[Change]) -> str:
    """A list of objects: `sign`, `about`, `subject`, `text`, `look`."""
    return json.dumps([asdict(item) for item in found], indent=2, ensure_ascii=False)


def render_changes_markdown(found: Sequence[Change], old: str, new: str, *, budget: int = BUDGET) -> str:
    """GitHub-flavoured Markdown of at most `budget` bytes; what has to be looked at comes first and is cut last."""
    head = f"## What changed: {markdown_code(shorten(visible(old), 80))} → {markdown_code(shorten(visible(new), 80))}"
    if not found:
        return f"{head}\n\n{NOTHING.capitalize()}.\n"
    look = sum(item.look for item in found)
    head += f"\n\n**{counted(len(found), 'change')}, {look:,} to look at**"
    cut = "- *… and {more:,} more: `pii-tracer diff` lists them.*"
    room = budget - len(head.encode()) - len(cut) - 20
    lines: list[str] = []
    for index, item in enumerate(found):
        line = _line(item)
        room -= len(line.encode()) + 1
        if room < 0:
            lines.append(cut.format(more=len(found) - index))
            break
        lines.append(line)
    return head + "\n\n" + "\n".join(lines) + "\n"


def _line(item: Change) -> str:
    mark = "⚠️ " if item.look else ""
    subject = markdown_code(shorten(visible(item.subject), 160))
    return f"- {mark}{item.about} {item.sign} {subject}: {markdown(shorten(visible(item.text), _LETTERS))}"
