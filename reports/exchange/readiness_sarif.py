"""A reading as SARIF 2.1.0, for code scanning: findings point to the estate file (see `reports.exchange.sarif`)."""

from __future__ import annotations

from typing import Any

from pii_tracer.readiness.findings import SUMMARIES, Finding, FindingKind, Level
from pii_tracer.readiness.readiness_reading import Readiness
from reports.escape import visible
from reports.exchange.sarif import file_uri, log_of_run, message_text, rule_of

_LEVELS = {Level.BLOCKING: "error", Level.UNKNOWN: "warning", Level.WARNING: "warning", Level.NOTE: "note"}
_INDEXES = {kind: number for number, kind in enumerate(FindingKind)}


def render_readiness_sarif(found: Readiness, estate_file: str) -> str:
    """One run with one artifact, the estate file; sorted, indented JSON."""
    return log_of_run(
        f"pii-tracer-readiness/{visible(found.estate)}/",
        [rule_of(kind.value, SUMMARIES[kind], "warning") for kind in FindingKind],
        [_result(finding, estate_file) for finding in found.findings],
        {"score": found.score.points, "ready": found.ready, "answer": found.answer.value, "reading": found.number},
        {"location": {"uri": file_uri(estate_file)}, "roles": ["analysisTarget"]},
    )


def _result(finding: Finding, estate_file: str) -> dict[str, Any]:
    text = f"{finding.where}: {finding.text} (owner: {finding.owner})"
    return {
        "ruleId": finding.kind.value,
        "ruleIndex": _INDEXES[finding.kind],
        "level": _LEVELS[finding.level],
        "message": {"text": message_text(text)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": file_uri(estate_file), "index": 0},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [{"fullyQualifiedName": visible(finding.where)}],
            }
        ],
        "partialFingerprints": {"finding/v1": finding.id},
    }
