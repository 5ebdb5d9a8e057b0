"""A reading as SARIF 2.1.0, for code scanning: findings point to the estate file (see `reports.exchange.sarif`)."""

from __future__ import annotations

import json
from typing import Any

from pii_tracer import __version__
from pii_tracer.readiness.findings import SUMMARIES, Finding, FindingKind, Level
from pii_tracer.readiness.reading import Readiness
from reports.escape import visible
from reports.exchange.sarif import SCHEMA, file_uri, message_text

_LEVELS = {Level.BLOCKING: "error", Level.WARNING: "warning", Level.NOTE: "note"}
_INDEXES = {kind: number for number, kind in enumerate(FindingKind)}


def render_readiness_sarif(found: Readiness, estate_file: str) -> str:
    """One run with one artifact, the estate file; sorted, indented JSON."""
    run = {
        "tool": {
            "driver": {"name": "pii-tracer", "semanticVersion": __version__, "rules": [_rule(k) for k in FindingKind]}
        },
        "automationDetails": {"id": f"pii-tracer-readiness/{visible(found.estate)}/"},
        "artifacts": [{"location": {"uri": file_uri(estate_file)}, "roles": ["analysisTarget"]}],
        "results": [_result(finding, estate_file) for finding in found.findings],
        "columnKind": "unicodeCodePoints",
        "properties": {"score": found.score.points, "ready": found.ready, "reading": found.number},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def _rule(kind: FindingKind) -> dict[str, Any]:
    return {
        "id": kind.value,
        "name": "".join(part.capitalize() for part in kind.value.split("_")),
        "shortDescription": {"text": SUMMARIES[kind]},
        "fullDescription": {"text": SUMMARIES[kind]},
        "defaultConfiguration": {"level": "warning"},
    }


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
