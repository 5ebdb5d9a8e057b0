"""Comments that accept a finding, `-- pii-tracer: accept KIND because REASON`: it is shown then, and not hidden."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from pii_tracer.model.model_review import FindingKind, ReviewFinding, Severity

_COMMENT = re.compile(
    r"^[ \t]*(?:--|#|\{#-?)[ \t]*pii-tracer[ \t]*:[ \t]*accept\b[ \t]{0,9}"
    r"(?P<kind>[\w-]{0,99})(?P<rest>.{0,600}?)[ \t]{0,9}(?:-?#\})?[ \t]{0,9}$",
    re.MULTILINE | re.IGNORECASE,
)
_BECAUSE = re.compile(r"\s+because\s+(?P<reason>\S.*\S)\s*\Z", re.IGNORECASE)
_LONGEST = 500
_MOST = 100
"""Of one file."""
_NEVER = frozenset({FindingKind.UNREADABLE, FindingKind.NO_SUBJECT, FindingKind.WAIVER})


@dataclass(frozen=True)
class Waiver:
    """A comment on a line of its own. problem: why it accepts nothing."""

    file: str
    line: int
    kind: str
    reason: str
    problem: str | None = None


def waivers_of(file: str, text: str) -> Iterator[Waiver]:
    """The waivers of a file."""
    for found in islice(_COMMENT.finditer(text), _MOST):
        line = text.count("\n", 0, found.start()) + 1
        because = _BECAUSE.match(found["rest"])
        reason = because["reason"][:_LONGEST] if because else ""
        kind = found["kind"].lower()
        problem = None
        if kind not in {k.value for k in FindingKind} - {k.value for k in _NEVER}:
            problem = "it names no acceptable kind of finding"
        elif not reason:
            problem = "it gives no reason: write `because` and why"
        yield Waiver(file, line, kind, reason, problem)


def accepted(findings: Iterable[ReviewFinding], waivers: Mapping[str, tuple[Waiver, ...]]) -> tuple[ReviewFinding, ...]:
    """The findings, those with a waiver in their own file marked with its reason, and the waivers that are wrong."""
    result = []
    for finding in findings:
        for waiver in waivers.get(finding.file, ()):
            if waiver.kind == finding.kind.value and waiver.problem is None:
                finding = finding.model_copy(update={"waived": waiver.reason})
        result.append(finding)
    for found in waivers.values():
        result += [_wrong(waiver) for waiver in found if waiver.problem]
    return tuple(sorted(result, key=_order))


def _wrong(waiver: Waiver) -> ReviewFinding:
    return ReviewFinding(
        kind=FindingKind.WAIVER,
        severity=Severity.WARNING,
        file=waiver.file,
        line=waiver.line,
        table=waiver.file,
        message=f"This waiver accepts nothing: {waiver.problem}.",
        todo="Write `-- pii-tracer: accept KIND because REASON`, on a line of its own.",
    )


def _order(finding: ReviewFinding) -> tuple[object, ...]:
    return (
        not finding.denies,
        finding.severity is not Severity.ERROR,
        finding.file,
        finding.line,
        finding.kind,
        finding.table,
    )
