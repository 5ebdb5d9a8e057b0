"""`check`: a plan against the policy, as text, JSON, SARIF, JUnit or annotations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, show_or_write, state_option
from pii_tracer.review.policy_check_report import CheckReport


@click.command()
@click.argument("plan_file", type=click.Path(path_type=Path))
@estate_option
@state_option
@click.option("--policy", type=click.Path(path_type=Path), help="policy file  [default: policy.yaml beside the estate]")
@click.option(
    "--trusted", type=click.Path(path_type=Path), help="check the approvals beside the plan too, against these keys"
)
@click.option("--out", type=click.Path(path_type=Path), help="write the report there instead of stdout")
@format_option("text", "json", "sarif", "junit", "github")
def check(
    plan_file: Path,
    estate_file: Path,
    state: Path,
    policy: Path | None,
    trusted: Path | None,
    out: Path | None,
    fmt: str,
) -> int:
    """Check a plan against the policy. Exit 3: incomplete, 4: a rule denies."""
    from pii_tracer.app.review.plan_check import check as check_plan

    report = check_plan(Settings(estate_file, state), plan_file, policy=policy, trusted=trusted)
    show_or_write(rendered(report, fmt), out)
    return int(report.exit_code)


def rendered(report: CheckReport, fmt: str) -> str:
    """The report in one of the formats, with its final newline."""
    if fmt == "json":
        return json.dumps(as_json(report), indent=2, ensure_ascii=False) + "\n"
    if fmt == "sarif":
        from reports.exchange.sarif import render_sarif

        return render_sarif(report)
    if fmt == "junit":
        from reports.exchange.junit import render_junit

        return render_junit(report)
    if fmt == "github":
        from reports.exchange.github_annotations import render_annotations

        return render_annotations(report)
    from pii_tracer.common.plurals import counted
    from reports.escape import visible

    lines = [f"{i.finding.level.value}: {i.finding.rule}: {visible(i.finding.message)}" for i in report.findings]
    count = counted(len(lines), "finding") if lines else "no findings"
    return "\n".join([*lines, f"{count} against {report.policy_file}"]) + "\n"


def as_json(report: CheckReport) -> dict[str, Any]:
    """The report as one object. line: in the plan file, from 1."""
    return {
        "plan_id": report.plan_id,
        "plan_file": report.plan_file,
        "plan_digest": report.digest,
        "policy_file": report.policy_file,
        "complete": report.complete,
        "denied": bool(report.denied),
        "exit_code": int(report.exit_code),
        "findings": [
            {
                "rule": item.finding.rule,
                "level": item.finding.level.value,
                "message": item.finding.message,
                "line": item.line,
            }
            for item in report.findings
        ],
        "rules": [{"id": rule.id, "summary": rule.summary} for rule in report.rules],
    }
