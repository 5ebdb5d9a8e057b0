"""A check of a plan as one object that every report is made from: findings with their lines, and all rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pii_tracer.model.errors import ExitCode
from pii_tracer.review.json_line_numbers import lines_of
from pii_tracer.review.plan_file import LoadedPlan
from pii_tracer.review.policy_rules import RULES, Finding, Level, Rule


@dataclass(frozen=True)
class Located:
    """A finding with the line of the plan file (from 1) that it is about."""

    finding: Finding
    line: int


@dataclass(frozen=True)
class CheckReport:
    """What a check found. plan_file, policy_file: as the user would type them; digest: of the plan file's bytes."""

    plan_file: str
    policy_file: str
    plan_id: str
    digest: str
    complete: bool
    findings: tuple[Located, ...]
    rules: tuple[Rule, ...] = RULES

    @property
    def denied(self) -> tuple[Located, ...]:
        """The findings that stop the plan."""
        return tuple(item for item in self.findings if item.finding.level is Level.DENY)

    @property
    def exit_code(self) -> ExitCode:
        """3 for an incomplete plan, 4 where a rule denies, 0 otherwise; warnings do not fail."""
        if not self.complete:
            return ExitCode.INCOMPLETE
        return ExitCode.POLICY_DENIED if self.denied else ExitCode.DONE

    def of(self, rule: str) -> tuple[Located, ...]:
        """The findings of one rule."""
        return tuple(item for item in self.findings if item.finding.rule == rule)


def report_of(loaded: LoadedPlan, findings: Iterable[Finding], *, plan_file: str, policy_file: str) -> CheckReport:
    """Findings with their lines in the plan file."""
    found = tuple(findings)
    lines = lines_of(loaded.raw, [f.at for f in found])
    return CheckReport(
        plan_file=plan_file,
        policy_file=policy_file,
        plan_id=loaded.plan.plan_id,
        digest=loaded.digest,
        complete=loaded.plan.complete,
        findings=tuple(Located(f, lines[f.at]) for f in found),
    )
