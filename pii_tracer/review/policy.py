"""Policy as pure rules over a plan: each finding names its rule and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from pii_tracer.config import Policy
from pii_tracer.enums import StrEnum
from pii_tracer.errors import PolicyDenied
from pii_tracer.plan import ErasurePlan


class Level(StrEnum):
    """DENY stops the plan, WARN is for the reviewers."""

    DENY = "deny"
    WARN = "warn"


@dataclass(frozen=True)
class Finding:
    """One rule that a plan does not satisfy."""

    rule: str
    level: Level
    message: str


@dataclass(frozen=True)
class PolicyInput:
    """All that the rules look at."""

    plan: ErasurePlan
    policy: Policy
    production: bool
    now: datetime


Rule = Callable[[PolicyInput], Iterable[Finding]]


def _slack(given: PolicyInput) -> Iterable[Finding]:
    totals = given.plan.totals
    if totals.finish > totals.deadline:
        late = totals.finish.date().isoformat()
        yield Finding("min-slack", Level.DENY, f"the plan ends on {late}, after the legal deadline")
    elif totals.slack_days < given.policy.min_slack_days:
        yield Finding(
            "min-slack",
            Level.DENY,
            f"{totals.slack_days:.1f} days of slack, the policy asks for {given.policy.min_slack_days:g}",
        )


def _cost(given: PolicyInput) -> Iterable[Finding]:
    totals, most = given.plan.totals, given.policy.max_cost
    if most is not None and totals.cost > most:
        yield Finding(
            "max-cost", Level.DENY, f"{totals.cost:.2f} {totals.currency} is more than the policy's {most:.2f}"
        )


def _gaps(given: PolicyInput) -> Iterable[Finding]:
    for gap in given.plan.gaps:
        if gap.waiver is None:
            yield Finding("gaps", Level.DENY, f"gap {gap.id} ({gap.kind}) is not waived")
        elif gap.waiver.until <= given.now:
            yield Finding("gaps", Level.DENY, f"the waiver of gap {gap.id} has run out")
        else:
            yield Finding("gaps", Level.WARN, f"gap {gap.id} ({gap.kind}) was waived by {gap.waiver.who}")


def _retention(given: PolicyInput) -> Iterable[Finding]:
    if given.plan.retention == "immediate" and not given.policy.allow_immediate_retention:
        yield Finding("immediate-retention", Level.DENY, "the plan cuts time travel at once; the policy forbids it")


def _overrides(given: PolicyInput) -> Iterable[Finding]:
    for override in given.plan.overrides:
        yield Finding("overrides", Level.WARN, f"{override.kind} is set aside: {override.reason}")


def _writers(given: PolicyInput) -> Iterable[Finding]:
    for step in given.plan.steps:
        for precondition in step.preconditions:
            if precondition.kind == "writers_stopped" and precondition.expected != "true":
                level = Level.DENY if step.irreversible else Level.WARN
                yield Finding(
                    "writers-stopped", level, f"step {step.id} runs while {precondition.target} may still write"
                )


def _separation(given: PolicyInput) -> Iterable[Finding]:
    if given.production and given.policy.production_approvers < 2:
        yield Finding(
            "separation-of-duties", Level.WARN, "the policy lets one person approve in production; two are usual"
        )


RULES: tuple[Rule, ...] = (_slack, _cost, _gaps, _retention, _overrides, _writers, _separation)


def evaluate(plan: ErasurePlan, policy: Policy, *, production: bool, now: datetime) -> tuple[Finding, ...]:
    """All findings, in the rules' order."""
    given = PolicyInput(plan, policy, production, now)
    return tuple(finding for rule in RULES for finding in rule(given))


def enforce(findings: Iterable[Finding]) -> None:
    """Raise `PolicyDenied` with every finding that denies."""
    denied = [f for f in findings if f.level is Level.DENY]
    if denied:
        raise PolicyDenied(
            "the policy refuses this plan: " + "; ".join(f"[{f.rule}] {f.message}" for f in denied),
            todo="change the plan or, by its owner, the policy",
        )
