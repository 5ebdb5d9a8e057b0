"""A review of models as a comment on a pull request: the verdict, a table of findings, a picture of each new path."""

from __future__ import annotations

from pii_tracer.model.model_review import ModelReview, ReviewFinding
from reports.escape import markdown, markdown_code, visible
from reports.lineage.layered_drawing import shorten
from reports.model_review.text_and_json import verdict

BUDGET = 60_000
"""Bytes of the comment; GitHub takes 65,536 characters."""
_MOST_PICTURES = 5
_LETTERS = 300


def render_markdown(review: ModelReview, *, budget: int = BUDGET) -> str:
    """GitHub-flavoured Markdown of at most `budget` bytes; denials come first and are cut last."""
    mark = "❌" if review.denied else "✅"
    head = f"### {mark} {markdown(verdict(review))}\n"
    body = [_followed(review), ""]
    if review.findings:
        body += ["| | finding | where | what | next |", "|---|---|---|---|---|"]
    used = len((head + "\n".join(body)).encode()) + 200
    shown = 0
    for finding in review.findings:
        row = _row(finding)
        if used + len(row.encode()) + 1 > budget:
            break
        body.append(row)
        used += len(row.encode()) + 1
        shown += 1
    if shown < len(review.findings):
        body += ["", f"{len(review.findings) - shown} more findings do not fit here: see the JSON or SARIF report."]
    for picture in _pictures(review):
        if used + len(picture.encode()) + 2 <= budget:
            body += ["", picture]
            used += len(picture.encode()) + 2
    return head + "\n" + "\n".join(body) + "\n"


def _followed(review: ModelReview) -> str:
    if not review.subjects:
        return "No person was followed."
    said = [
        f"{markdown(s.name)} from {markdown_code(s.source)} by {markdown_code(s.key)}"
        + (" (guessed from names)" if s.guessed else "")
        for s in review.subjects
    ]
    return f"Followed: {', '.join(said)}."


def _row(finding: ReviewFinding) -> str:
    mark = "☑️ accepted" if finding.waived is not None else "❌" if finding.denies else "⚠️"
    where = markdown_code(shorten(visible(f"{finding.file}:{finding.line}"), 120)) if finding.file else "repository"
    if finding.because:
        where += f" (because of {markdown_code(shorten(visible(', '.join(finding.because)), 120))})"
    end = f"Accepted: {finding.waived}" if finding.waived is not None else finding.todo
    what = markdown(shorten(visible(finding.message), _LETTERS))
    return f"| {mark} | {finding.kind.value} | {where} | {what} | {markdown(shorten(visible(end), _LETTERS))} |"


def _pictures(review: ModelReview) -> list[str]:
    paths = {f.path: f for f in reversed(review.findings) if len(f.path) > 1 and f.waived is None}
    found = sorted(paths.values(), key=lambda f: (not f.denies, f.path))[:_MOST_PICTURES]
    return [_picture(finding) for finding in found]


def _picture(finding: ReviewFinding) -> str:
    """Mermaid reads `#quot;` as a sign; names stand in quotes."""
    nodes = [f'  n{number}["{_label(name)}"]' for number, name in enumerate(finding.path)]
    last = len(finding.path) - 1
    edges = " --> ".join(f"n{number}" for number in range(len(finding.path)))
    style = f"  style n{last} stroke:#c00,stroke-width:2px"
    return "\n".join(["```mermaid", "flowchart LR", *nodes, f"  {edges}", style, "```"])


def _label(name: str) -> str:
    shown = shorten(visible(name), 60)
    return "".join(c if c.isalnum() or c in " ._-/:" else f"#{ord(c)};" for c in shown)
