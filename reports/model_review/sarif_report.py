"""A review of models as SARIF 2.1.0: each finding points to its line; what was accepted is suppressed, with its reason.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html, 3.35 for suppressions.
"""

from __future__ import annotations

import hashlib
from typing import Any

from pii_tracer.model.model_review import SUMMARIES, FindingKind, ModelReview, ReviewFinding
from reports.escape import visible
from reports.exchange.sarif import file_uri, log_of_run, message_text, rule_of

_RULES = tuple(FindingKind)


def render_sarif(review: ModelReview) -> str:
    """One run; sorted, indented JSON. Findings about the whole repository have no location."""
    return log_of_run(
        "pii-tracer/review/",
        [rule_of(kind.value, SUMMARIES[kind]) for kind in _RULES],
        [_result(finding) for finding in review.findings],
        {"base": review.base, "head": review.head, "denied": review.denied},
    )


def _result(finding: ReviewFinding) -> dict[str, Any]:
    told = f"{finding.kind}\0{finding.table}\0{','.join(finding.columns)}"
    result: dict[str, Any] = {
        "ruleId": finding.kind.value,
        "ruleIndex": _RULES.index(finding.kind),
        "level": finding.severity.value,
        "message": {"text": message_text(f"{finding.message} {finding.todo}")},
        "partialFingerprints": {"finding/v1": hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()},
    }
    if finding.file:
        place = {"artifactLocation": {"uri": file_uri(visible(finding.file))}, "region": {"startLine": finding.line}}
        result["locations"] = [{"physicalLocation": place}]
    if finding.waived is not None:
        result["suppressions"] = [{"kind": "inSource", "justification": message_text(finding.waived)}]
    return result
