"""A review of models on a terminal, as JSON, and as annotations of GitHub Actions."""

from __future__ import annotations

import json

from pii_tracer.model.model_review import ModelReview, ReviewFinding, Severity
from reports.escape import visible
from reports.exchange.github_annotations import message_text, property_text


def verdict(review: ModelReview) -> str:
    """The outcome in one sentence."""
    denying = sum(finding.denies for finding in review.findings)
    waived = sum(finding.waived is not None for finding in review.findings)
    warnings = len(review.findings) - denying - waived
    parts = [f"{denying} denied", f"{warnings} to look at", f"{waived} accepted"]
    changed = f"{len(review.changed)} changed of {review.compared}"
    views = f"; views, which hold no rows: {len(review.views)}" if review.views else ""
    said = ", ".join(p for p in parts if not p.startswith("0 ")) or "nothing found"
    return f"{'Denied' if review.denied else 'Passed'}: {said} ({changed} models and scripts{views})"


def render_text(review: ModelReview) -> str:
    """One paragraph a finding: file and line, what, what next."""
    lines = []
    for finding in review.findings:
        lines.append(visible(f"{_place(finding)}: {_level(finding)}: {finding.kind.value}: {finding.message}"))
        lines += [f"  from: {visible(' → '.join(finding.path))}"] if len(finding.path) > 1 else []
        lines += [f"  because of: {visible(', '.join(finding.because[:5]))}"] if finding.because else []
        lines.append(
            visible(f"  accepted: {finding.waived}" if finding.waived is not None else f"  next: {finding.todo}")
        )
    lines.append(_followed(review))
    return "\n".join([*lines, verdict(review)]) + "\n"


def render_json(review: ModelReview) -> str:
    """The whole review as one object."""
    data = review.model_dump(mode="json")
    data |= {"denied": review.denied, "exit_code": int(review.exit_code)}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def render_annotations(review: ModelReview) -> str:
    """Workflow commands, one a finding, denials first; what was accepted is a notice."""
    return "".join(_annotation(finding) + "\n" for finding in review.findings)


def _annotation(finding: ReviewFinding) -> str:
    command = "notice" if finding.waived is not None else finding.severity.value
    place = f"file={property_text(visible(finding.file))},line={finding.line}," if finding.file else ""
    end = f"Accepted: {finding.waived}" if finding.waived is not None else finding.todo
    title = property_text(f"pii-tracer: {finding.kind.value}")
    return f"::{command} {place}title={title}::{message_text(visible(f'{finding.message} {end}'))}"


def _place(finding: ReviewFinding) -> str:
    return f"{finding.file}:{finding.line}" if finding.file else "repository"


def _level(finding: ReviewFinding) -> str:
    return "accepted" if finding.waived is not None else {Severity.ERROR: "denied"}.get(finding.severity, "warning")


def _followed(review: ModelReview) -> str:
    said = [
        f"{s.name} (from {s.source} by {s.key}{', guessed from names' if s.guessed else ''})" for s in review.subjects
    ]
    return visible(f"Followed: {', '.join(said) or 'nobody'}; {review.base[:12]} → {review.head[:12]}")
