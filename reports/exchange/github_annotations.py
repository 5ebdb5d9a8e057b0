"""A check as workflow commands of GitHub Actions: annotations on the lines of the plan file.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands; the escapes are those of the
runner (actions/runner, ActionCommand): `%`, CR and LF in a message, and `:` and `,` in a property as well.
"""

from __future__ import annotations

from pathlib import PurePath

from pii_tracer.review.policy_check_report import CheckReport, Located
from pii_tracer.review.policy_rules import Level
from reports.escape import visible

_COMMANDS = {Level.DENY: "error", Level.WARN: "warning"}


def render_annotations(report: CheckReport) -> str:
    """One line a finding, denials first (the runner shows ten errors and ten warnings of a step)."""
    ordered = sorted(report.findings, key=lambda item: item.finding.level is not Level.DENY)
    return "".join(_command(report, item) + "\n" for item in ordered)


def _command(report: CheckReport, item: Located) -> str:
    file = property_text(PurePath(report.plan_file).as_posix())
    title = property_text(f"{item.finding.level.value}: {item.finding.rule}")
    command = _COMMANDS[item.finding.level]
    return f"::{command} file={file},line={item.line},title={title}::{message_text(visible(item.finding.message))}"


def message_text(text: str) -> str:
    """A message as a workflow command's data."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def property_text(text: str) -> str:
    """A text as a workflow command's property."""
    return message_text(text).replace(":", "%3A").replace(",", "%2C")
