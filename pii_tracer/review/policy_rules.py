"""Policy as pure rules over a plan: each finding names its rule, and what in the plan it is about."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pii_tracer.common.plurals import counted
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.estate_file import Policy
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import PolicyDenied
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.legal_holds import Hold, may_begin_until
from pii_tracer.model.locations import names_place
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.model.timestamps import told_apart

Place = tuple[str | int, ...]
"""Where in the plan file: `("gaps", 3)`, `("totals", "cost")`; empty for the whole file."""


class Level(StrEnum):
    """DENY stops the plan, WARN is for the reviewers."""

    DENY = "deny"
    WARN = "warn"


@dataclass(frozen=True)
class Finding:
    """One rule that a plan does not satisfy. at: what in the plan file it is about."""

    rule: str
    level: Level
    message: str
    at: Place = ()


@dataclass(frozen=True)
class Signer:
    """Somebody whose approval of these very bytes holds."""

    name: str
    role: str


@dataclass(frozen=True)
class PolicyInput:
    """All that the rules look at.

    approvers: None where nobody has asked yet (before the approvals). digests: of the files as they are now, by the
    plan's field (`policy_digest`); only what was looked at is in it. holds: all that the estate file declares.
    other_wishes: requests whose persons ask to keep other data now than the plan keeps for them.
    """

    plan: ErasurePlan
    policy: Policy
    production: bool
    now: datetime
    approvers: tuple[Signer, ...] | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    holds: tuple[Hold, ...] = ()
    other_wishes: tuple[str, ...] = ()


def person(name: str) -> str:
    """A name without regard to case, spaces, Unicode's ways to write a letter, and what cannot be seen: one person
    under two spellings is still one."""
    seen = "".join(c for c in " ".join(name.split()) if not _invisible(c))
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())
    return " ".join(folded.split())


def has_invisible(name: str) -> bool:
    """Whether a name holds control or format characters: zero width, marks of direction, line ends."""
    return any(_invisible(c) for c in name)


def _invisible(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf")


_SHOWN = 5
Looks = Callable[[PolicyInput], Iterable[tuple[Level, str, Place]]]


@dataclass(frozen=True)
class Rule:
    """One rule. id: stable, as reports name it; summary: what it asks for."""

    id: str
    summary: str
    looks: Looks


def why_unapplyable(plan: ErasurePlan) -> str:
    """Why nobody can run a plan whose gaps are all waived: a waiver frees no copy."""
    blocked = [copy.table or copy.location for copy in plan.copies if copy.strategy is Strategy.BLOCKED]
    if not blocked and all(copy.strategy is Strategy.EXEMPT for copy in plan.copies):
        return "nothing is to be erased"
    if not blocked:
        gone = counted(len(plan.known_by_key or ()), "person")
        return f"the source does not know {gone}, and what was found can be of others: make a plan for each alone"
    more = [f"{len(blocked) - _SHOWN} more"] if len(blocked) > _SHOWN else []
    names = ", ".join([*blocked[:_SHOWN], *more])
    copies = counted(len(blocked), "copy is", "copies are")
    return f"{copies} blocked, and no waiver frees a copy: {names} (one with a task does, where the gap says so)"


def _applyable(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    if given.plan.complete and not given.plan.applyable:
        yield Level.DENY, f"the plan cannot be applied: {why_unapplyable(given.plan)}", ("applyable",)


_DAY = 86_400
_EARLIER = (
    "where steps wait for `retention.pii_days` or `retention.derived_days` of the estate file, lower these, and plan"
    " again"
)


def _slack(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    totals = given.plan.totals
    if totals.finish > totals.deadline:
        ends, due = told_apart(totals.finish, totals.deadline)
        late = f"the plan ends on {ends}, after the legal deadline {due}"
        # what is overdue, or was held beyond its deadline, must still be erased: the policy's owner decides
        if given.policy.allow_late:
            yield Level.WARN, f"the deadline is set aside: {late}; `allow_late` lets it through", ("totals", "finish")
        else:
            words = f"{late}: {_EARLIER}. If it cannot end earlier, `allow_late: true` in the policy lets it through"
            yield Level.DENY, words, ("totals", "finish")
        return
    if given.now > totals.deadline:  # no reason to leave the person where they are: only told
        words = (
            f"the legal deadline {totals.deadline.date()} has passed, and the plan was made for"
            f" {given.plan.created_at.date()}: it does not end when it says"
        )
        yield Level.WARN, words, ("totals", "deadline")
    # `slack_days` is rounded, for people
    slack = (totals.deadline - totals.finish).total_seconds() / _DAY
    if slack < given.policy.min_slack_days:
        asked = f"{slack:.3f} days of slack, the policy asks for {given.policy.min_slack_days:g}: {_EARLIER}"
        yield Level.DENY, asked, ("totals", "slack_days")


def _cost(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    totals, most = given.plan.totals, given.policy.max_cost
    if most is not None and totals.cost > most:
        words = f"{totals.cost:.2f} {totals.currency} is more than the policy's {most:.2f}"
        yield Level.DENY, words, ("totals", "cost")


def _persons(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    persons, most = len(given.plan.requests), given.policy.max_persons
    if most is not None and persons > most:
        yield Level.DENY, f"the plan is for {counted(persons, 'person')}, the policy's limit is {most}", ("requests",)


def _gaps(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    for index, gap in enumerate(given.plan.gaps):
        at = ("gaps", index)
        if gap.kind == GapKind.LEFT_OUT:
            level = Level.WARN if gap.waiver is None else Level.DENY
            yield level, f"{gap.dataset} is left out: this plan is not the whole erasure, and nobody can waive that", at
        elif gap.waiver is None:
            yield Level.DENY, f"gap {gap.id} ({gap.kind}) is not waived", at
        elif gap.waiver.until <= given.now:
            yield Level.DENY, f"the waiver of gap {gap.id} has run out", at
        else:
            yield Level.WARN, f"gap {gap.id} ({gap.kind}) was waived by {gap.waiver.who}", at
            if gap.waiver.until <= given.plan.totals.finish:
                yield Level.WARN, _too_short(f"the waiver of gap {gap.id}", gap.waiver.until, given), at


def _waivers(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    most = given.policy.max_waivers_per_person
    if most is None:
        return
    counts = Counter(person(gap.waiver.who) for gap in given.plan.gaps if gap.waiver)
    for who, count in sorted(counts.items()):
        if count > most:
            yield (
                Level.DENY,
                f"{who} waived {counted(count, 'gap')}, the policy lets one person waive {most}",
                ("gaps",),
            )


def _unwaivable(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    for index, gap in enumerate(given.plan.gaps):
        if gap.waiver is not None and gap.kind in given.policy.unwaivable:
            yield Level.DENY, f"gap {gap.id}: the policy lets nobody waive a gap of kind {gap.kind}", ("gaps", index)


def _retention(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    if given.plan.retention == "immediate" and not given.policy.allow_immediate_retention:
        yield Level.DENY, "the plan cuts time travel at once; the policy forbids it", ("retention",)


def _overrides(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    for index, override in enumerate(given.plan.overrides):
        yield Level.WARN, f"{override.kind} is set aside: {override.reason}", ("overrides", index)


def _exemptions(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    for index, hold in enumerate(given.plan.holds):
        at, copies = ("holds", index), counted(len(hold.copies), "copy", "copies")
        if hold.until is not None and hold.until <= given.now:
            yield Level.DENY, f"the hold {hold.id} has lapsed; the plan still keeps {copies} for it", at
        else:
            until = "without an end date" if hold.until is None else f"until {hold.until.date().isoformat()}"
            words = f"{copies} not erased {until}: {hold.basis}, {hold.citation} ({hold.id}, {hold.approver})"
            yield Level.WARN, words, at
            if hold.until is not None and hold.until <= given.plan.totals.finish:
                yield Level.WARN, _too_short(f"the hold {hold.id}", hold.until, given), at
    for declared in _uncounted(given):
        words = (
            f"the hold {declared.id} is in force ({declared.basis}, {declared.citation}), and the plan was made for"
            f" {given.plan.created_at.date()}, for which it did not count: {_erased(given.plan)}; plan again"
        )
        yield Level.DENY, words, ("created_at",)
    if given.other_wishes:
        words = (
            f"{counted(len(given.other_wishes), 'person asks', 'persons ask')} to keep other data now than the plan"
            f" keeps: the first is that of {given.other_wishes[0]}; release the plan if the request store has it, and"
            " plan again"
        )
        yield Level.DENY, words, ("holds",)


def _erased(plan: ErasurePlan) -> str:
    if plan.partitioned is not None:
        return "what it keeps would be erased"
    return "the plan was made before partitions were recorded, and does not show whether what it keeps would be erased"


def _uncounted(given: PolicyInput) -> Iterable[Hold]:
    """Holds of today that had not begun, or were to be over, on the day that the plan is for: the rules of the planner
    for which holds count, asked once more, since a plan can be signed and run long after that day."""
    plan, asked = given.plan, {request.id for request in given.plan.requests}
    until = may_begin_until(max(request.deadline for request in plan.requests), plan.totals.finish)
    known = {hold.id for hold in plan.holds}
    for hold in given.holds:
        now = hold.in_force(given.now) and hold.concerns(asked) and hold.id not in known
        if now and not hold.counts(plan.created_at, until) and not _holds_no_copy(hold, plan):
            yield hold


def _holds_no_copy(hold: Hold, plan: ErasurePlan) -> bool:
    """All that it names was looked at, and is no copy. A name that is not known may be a copy's, written wrongly. Files
    of a table with partitions elsewhere may be in any copy: a plan of before these were recorded cannot tell."""
    if plan.partitioned is None:
        return False
    clean = [(e.table, e.dataset.name) for e in plan.examined]
    copies = [(c.table, c.location, c.dataset.name) for c in plan.copies]
    apart = [table.names for table in plan.partitioned if table.elsewhere]
    return all(
        any(names_place(name, *places) for places in clean)
        and not any(names_place(name, *c) for c in copies)
        and not any(names_place(name, *names) for names in apart)
        for name in hold.datasets
    )


def _too_short(what: str, until: datetime, given: PolicyInput) -> str:
    """The rules are asked at each resume: a run that lasts longer would be stuck in its middle."""
    ends, finish = until.date(), given.plan.totals.finish.date()
    return f"{what} ends on {ends}, before the plan does ({finish}): a run that is not done by then cannot be resumed"


def _writers(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    for index, step in enumerate(given.plan.steps):
        for precondition in step.preconditions:
            if precondition.kind == "writers_stopped" and precondition.expected != "true":
                level = Level.DENY if step.irreversible else Level.WARN
                yield level, f"step {step.id} runs while {precondition.target} may still write", ("steps", index)


def _unclassified(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    if not given.policy.require_classification:
        return
    known = {copy.id for copy in given.plan.copies if any(column.category for column in copy.columns)}
    for index, step in enumerate(given.plan.steps):
        if step.irreversible and step.copy_ is not None and step.copy_ not in known:
            yield Level.DENY, f"step {step.id} cannot be undone, and {step.copy_} is not classified", ("steps", index)


def _digests(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    for name, found in sorted(given.digests.items()):
        if getattr(given.plan, name) != found:
            # the approval is bound to the policy of its own time; estate and manifest stop the run
            level = Level.WARN if name == "policy_digest" else Level.DENY
            what = _FILES[name]
            yield level, f"the {what} is not the one the plan was made with", (name,)


_FILES = {
    "policy_digest": "policy file",
    "estate_digest": "estate file",
    "subjects_digest": "sealed manifest beside the plan",
}


def _approvers(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    if given.approvers is None:
        return
    needed = given.policy.production_approvers if given.production else 1
    names = {person(a.name) for a in given.approvers}
    if len(names) < needed:
        yield Level.DENY, f"{len(names)} of {needed} approvers have approved", ()
    if given.production:
        for role in sorted(set(given.policy.required_roles) - {a.role for a in given.approvers}):
            yield Level.DENY, f"nobody in the role `{role}` has approved", ()


def _separation(given: PolicyInput) -> Iterable[tuple[Level, str, Place]]:
    if not given.production:
        return
    planner = given.plan.planned_by
    if not planner:
        yield (
            Level.DENY,
            "the plan does not say who planned it, so no approver can be shown to be somebody else",
            ("planned_by",),
        )
    elif given.approvers and {person(a.name) for a in given.approvers} == {person(planner)}:
        yield Level.DENY, "the person who made the plan is its only approver", ("planned_by",)
    if given.policy.production_approvers < 2:
        yield Level.WARN, "the policy lets one person approve in production; two are usual", ()


RULES: tuple[Rule, ...] = (
    Rule("applyable", "every copy has a way to be erased", _applyable),
    Rule(
        "min-slack", "the plan ends before the legal deadline, with the policy's slack, or lateness is allowed", _slack
    ),
    Rule("max-cost", "the plan costs no more than the policy allows", _cost),
    Rule("max-persons", "the plan erases no more persons than the policy allows", _persons),
    Rule("gaps", "every gap is closed, or waived by a named person until a future date", _gaps),
    Rule("waivers-per-person", "no person waives more gaps than the policy allows", _waivers),
    Rule("unwaivable-gaps", "no gap of a kind that nobody may waive is waived", _unwaivable),
    Rule("immediate-retention", "time travel ends at once only where the policy allows it", _retention),
    Rule("overrides", "protections that the plan sets aside are seen by the reviewers", _overrides),
    Rule(
        "exemptions",
        "what a hold keeps is seen by the reviewers, no hold has lapsed, none is in force that did not count, and the"
        " persons ask to keep the same now",
        _exemptions,
    ),
    Rule("writers-stopped", "no step that cannot be undone runs beside a writer", _writers),
    Rule("irreversible-unclassified", "no step that cannot be undone runs on an unclassified table", _unclassified),
    Rule("digests", "estate file, policy and sealed manifest are those the plan was made with", _digests),
    Rule("production-approvers", "enough people in the right roles have approved", _approvers),
    Rule("separation-of-duties", "the person who plans is not alone in approving", _separation),
)


def evaluate(
    plan: ErasurePlan,
    policy: Policy,
    *,
    production: bool,
    now: datetime,
    approvers: tuple[Signer, ...] | None = None,
    digests: Mapping[str, str] | None = None,
    holds: tuple[Hold, ...] = (),
    other_wishes: tuple[str, ...] = (),
) -> tuple[Finding, ...]:
    """All findings, in the rules' order. approvers, digests, holds, other_wishes: as in `PolicyInput`."""
    given = PolicyInput(plan, policy, production, now, approvers, digests or {}, holds, other_wishes)
    return tuple(Finding(rule.id, *found) for rule in RULES for found in rule.looks(given))


def enforce(findings: Iterable[Finding]) -> None:
    """Raise `PolicyDenied` with every finding that denies."""
    denied = [f for f in findings if f.level is Level.DENY]
    if denied:
        raise PolicyDenied(
            "the policy refuses this plan: " + "; ".join(f"[{f.rule}] {f.message}" for f in denied),
            todo="change the plan, or ask the policy's owner to change the policy",
        )
