"""A review of models as SARIF 2.1.0: each finding points to its line; what was accepted is suppressed, with its reason.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html, 3.35 for suppressions.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pii_tracer import __version__
from pii_tracer.model.model_review import SUMMARIES, FindingKind, ModelReview, ReviewFinding
from reports.escape import visible
from reports.exchange.sarif import SCHEMA, file_uri, message_text

_RULES = tuple(FindingKind)


def render_sarif(review: ModelReview) -> str:
    """One run; sorted, indented JSON. Findings about the whole repository have no location."""
    rules = [
        {
            "id": kind.value,
            "name": "".join(part.capitalize() for part in kind.value.split("-")),
            "shortDescription": {"text": SUMMARIES[kind]},
            "fullDescription": {"text": SUMMARIES[kind]},
            "defaultConfiguration": {"level": "error"},
        }
        for kind in _RULES
    ]
    run = {
        "tool": {"driver": {"name": "pii-tracer", "semanticVersion": __version__, "rules": rules}},
        "automationDetails": {"id": "pii-tracer/review/"},
        "results": [_result(finding) for finding in review.findings],
        "columnKind": "unicodeCodePoints",
        "properties": {"base": review.base, "head": review.head, "denied": review.denied},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


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
