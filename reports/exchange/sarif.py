"""A check as SARIF 2.1.0, for code scanning: each finding points to its line in the plan file.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; what GitHub reads of it:
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from pii_tracer import __version__
from pii_tracer.review.policy import Level, Rule
from pii_tracer.review.policy_check import CheckReport, Located
from reports.escape import visible

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Level.DENY: "error", Level.WARN: "warning"}


def render_sarif(report: CheckReport) -> str:
    """One run with one artifact, the plan file; sorted, indented JSON."""
    indexes = {rule.id: n for n, rule in enumerate(report.rules)}
    driver = {
        "name": "pii-tracer",
        "semanticVersion": __version__,
        "rules": [_rule(rule) for rule in report.rules],
    }
    artifact = {
        "location": {"uri": file_uri(report.plan_file)},
        "roles": ["analysisTarget"],
        "hashes": {"sha-256": report.digest.removeprefix("sha256:")},
    }
    run = {
        "tool": {"driver": driver},
        # a category of its own, so that two plans of one commit do not replace each other's results
        "automationDetails": {"id": f"pii-tracer/{visible(report.plan_id)}/"},
        "artifacts": [artifact],
        "results": [_result(item, indexes, report) for item in report.findings],
        "columnKind": "unicodeCodePoints",
        "properties": {"planId": visible(report.plan_id), "complete": report.complete},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": "".join(part.capitalize() for part in rule.id.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "defaultConfiguration": {"level": "error"},
    }


def _result(item: Located, indexes: dict[str, int], report: CheckReport) -> dict[str, Any]:
    finding = item.finding
    place = "/".join(str(part) for part in finding.at)
    return {
        "ruleId": finding.rule,
        "ruleIndex": indexes[finding.rule],
        "level": _LEVELS[finding.level],
        # in a message, `[text](n)` is a link and `{n}` a placeholder (SARIF 3.11.5, 3.11.6)
        "message": {"text": message_text(finding.message)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": file_uri(report.plan_file), "index": 0},
                    "region": {"startLine": item.line},
                }
            }
        ],
        "partialFingerprints": {
            "finding/v1": hashlib.sha256(f"{finding.rule}\0{place}\0{finding.message}".encode()).hexdigest()
        },
    }


def message_text(text: str) -> str:
    """A message in which nothing is a link or a placeholder."""
    shown = visible(text).replace("\\", "\\\\")
    for mark in "[]":
        shown = shown.replace(mark, "\\" + mark)
    return shown.replace("{", "{{").replace("}", "}}")


def file_uri(path: str) -> str:
    """A relative URI reference, or `file:` for an absolute path."""
    pure = PurePath(path)
    return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix())
