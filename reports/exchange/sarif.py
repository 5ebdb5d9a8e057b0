"""A check as SARIF 2.1.0, for code scanning: each finding points to its line in the plan file.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; what GitHub reads of it:
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from pii_tracer import __version__
from pii_tracer.review.policy_check_report import CheckReport, Located
from pii_tracer.review.policy_rules import Level
from reports.escape import visible

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Level.DENY: "error", Level.WARN: "warning"}


def render_sarif(report: CheckReport) -> str:
    """One run with one artifact, the plan file; sorted, indented JSON."""
    indexes = {rule.id: n for n, rule in enumerate(report.rules)}
    artifact = {
        "location": {"uri": file_uri(report.plan_file)},
        "roles": ["analysisTarget"],
        "hashes": {"sha-256": report.digest.removeprefix("sha256:")},
    }
    return log_of_run(
        # a category of its own, so that two plans of one commit do not replace each other's results
        f"pii-tracer/{visible(report.plan_id)}/",
        [rule_of(rule.id, rule.summary) for rule in report.rules],
        [_result(item, indexes, report) for item in report.findings],
        {"planId": visible(report.plan_id), "complete": report.complete},
        artifact,
    )


def log_of_run(
    category: str,
    rules: Sequence[Mapping[str, Any]],
    results: Sequence[Mapping[str, Any]],
    properties: Mapping[str, Any],
    artifact: Mapping[str, Any] | None = None,
) -> str:
    """A log with one run; sorted, indented JSON.

    category: what a later run replaces. rules: as of `rule_of`; artifact: the one file that all results lie in.
    """
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "pii-tracer", "semanticVersion": __version__, "rules": rules}},
        "automationDetails": {"id": category},
        "results": results,
        "columnKind": "unicodeCodePoints",
        "properties": properties,
    }
    if artifact is not None:
        run["artifacts"] = [artifact]
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def rule_of(id_: str, summary: str, level: str = "error") -> dict[str, Any]:
    """A rule. level: of a result that has none."""
    return {
        "id": id_,
        "name": "".join(part.capitalize() for part in re.split("[-_]", id_)),
        "shortDescription": {"text": summary},
        "fullDescription": {"text": summary},
        "defaultConfiguration": {"level": level},
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
