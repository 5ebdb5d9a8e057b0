"""What changed between two plans, in a reviewer's words: what is new, what is gone, what became worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import (
    Copy,
    ErasurePlan,
    Gap,
    PlannedHold,
    Step,
)


class Sign(StrEnum):
    """How something changed."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class About(StrEnum):
    """What changed."""

    REQUEST = "request"
    COPY = "copy"
    HOLD = "hold"
    GAP = "gap"
    OVERRIDE = "override"
    STEP = "step"
    DATE = "date"
    COST = "cost"
    INPUT = "input"


@dataclass(frozen=True)
class Change:
    """One difference. subject: name of the copy, gap, date …; text: what happened to it.

    look: whoever approved the old plan has to think again about this.
    """

    sign: Sign
    about: About
    subject: str
    text: str
    look: bool


def changes(old: ErasurePlan, new: ErasurePlan) -> tuple[Change, ...]:
    """All differences that matter to a reviewer, by what they are about; those to look at come first."""
    found = [change for rule in _RULES for change in rule(old, new)]
    return tuple(sorted(found, key=lambda change: not change.look))


T = TypeVar("T", Copy, Gap, PlannedHold, Step)


def _by_id(items: Iterable[T]) -> dict[str, T]:
    return {item.id: item for item in items}


def _pairs(old: Mapping[str, T], new: Mapping[str, T]) -> Iterator[tuple[str, T, T]]:
    return ((name, old[name], new[name]) for name in sorted(old.keys() & new.keys()))


def _requests(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    before, after = ({(r.id, r.subject): r for r in plan.requests} for plan in (old, new))
    for request_id, _ in sorted(after.keys() - before.keys()):
        yield Change(Sign.ADDED, About.REQUEST, request_id, "its person is erased too", True)
    for request_id, _ in sorted(before.keys() - after.keys()):
        yield Change(Sign.REMOVED, About.REQUEST, request_id, "its person is no longer erased", True)
    for key in sorted(before.keys() & after.keys()):
        one, other = before[key], after[key]
        if (one.law, one.citation) != (other.law, other.citation):
            text = f"{one.law}, {one.citation} becomes {other.law}, {other.citation}"
            yield Change(Sign.CHANGED, About.REQUEST, key[0], text, True)
        for what, was, now in (
            ("received", one.received, other.received),
            ("its deadline", one.deadline, other.deadline),
        ):
            if was != now:
                text = f"{what} {was:%Y-%m-%d %H:%M} becomes {now:%Y-%m-%d %H:%M}"
                yield Change(Sign.CHANGED, About.REQUEST, key[0], text, True)


def _copies(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    before, after = _by_id(old.copies), _by_id(new.copies)
    for name in sorted(before.keys() - after.keys()):
        left = any(g.kind == GapKind.LEFT_OUT and g.dataset == before[name].dataset for g in new.gaps)
        text = "left out of the plan: the person stays in there" if left else "no longer in the plan"
        yield Change(Sign.REMOVED, About.COPY, name, text, True)
    for name in sorted(after.keys() - before.keys()):
        yield Change(Sign.ADDED, About.COPY, name, f"{_words(after[name].strategy)}: {after[name].reason}", True)
    for name, one, other in _pairs(before, after):
        if one.strategy is not other.strategy:
            text = f"{_words(one.strategy)} becomes {_words(other.strategy)}: {other.reason}"
            yield Change(Sign.CHANGED, About.COPY, name, text, True)
        elif one.match != other.match:
            yield Change(Sign.CHANGED, About.COPY, name, "the person's rows are found by other columns", True)
        elif one.mentions != other.mentions:
            text = f"other columns become NULL in rows of others: {other.reason}"
            yield Change(Sign.CHANGED, About.COPY, name, text, True)
        elif one.mask != other.mask:
            yield Change(Sign.CHANGED, About.COPY, name, f"other columns are kept: {other.reason}", True)
        elif one.location != other.location:
            yield Change(Sign.CHANGED, About.COPY, name, f"{one.location} becomes {other.location}", True)
        rows = (one.found.rows if one.found else None, other.found.rows if other.found else None)
        if rows[0] != rows[1]:
            shown = ["unknown" if n is None else f"{n:,}" for n in rows]
            yield Change(Sign.CHANGED, About.COPY, name, f"rows of the persons: {shown[0]} becomes {shown[1]}", False)


def _holds(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    before, after = _by_id(old.holds), _by_id(new.holds)
    for name in sorted(after.keys() - before.keys()):
        hold = after[name]
        text = f"keeps {len(hold.copies)} of the copies {_until(hold.until)}: {hold.basis}, {hold.citation}"
        yield Change(Sign.ADDED, About.HOLD, name, text, True)
    for name in sorted(before.keys() - after.keys()):
        yield Change(Sign.REMOVED, About.HOLD, name, "keeps nothing any more", True)
    for name, one, other in _pairs(before, after):
        if one.until != other.until:
            text = f"{_until(one.until)} becomes {_until(other.until)}"
            yield Change(Sign.CHANGED, About.HOLD, name, text, True)


def _until(moment: datetime | None) -> str:
    return "without an end date" if moment is None else f"until {moment.date()}"


def _gaps(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    before, after = _by_id(old.gaps), _by_id(new.gaps)
    for name in sorted(after.keys() - before.keys()):
        gap = after[name]
        waived = f" (waived by {gap.waiver.who}: {gap.waiver.why})" if gap.waiver else ""
        yield Change(Sign.ADDED, About.GAP, name, f"opened: {gap.reason}{waived}", True)
    for name in sorted(before.keys() - after.keys()):
        yield Change(Sign.REMOVED, About.GAP, name, "closed", False)
    for name, one, other in _pairs(before, after):
        if other.seen != one.seen and one.waiver and other.waiver:
            text = f"shows something else, and a new waiver is given by {other.waiver.who}"
            yield Change(Sign.CHANGED, About.GAP, name, text, True)
        if one.waiver == other.waiver:
            continue
        if other.waiver is None:
            yield Change(Sign.CHANGED, About.GAP, name, "is no longer waived", False)
        else:
            waiver = other.waiver
            text = f"waived by {waiver.who} until {waiver.until.date()}: {waiver.why}"
            yield Change(Sign.CHANGED, About.GAP, name, text, True)


def _overrides(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    for item in new.overrides:
        if item not in old.overrides:
            yield Change(Sign.ADDED, About.OVERRIDE, item.kind, f"is set aside: {item.reason}", True)
    for item in old.overrides:
        if item not in new.overrides:
            yield Change(Sign.REMOVED, About.OVERRIDE, item.kind, f"is no longer set aside: {item.reason}", False)


def _steps(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    """Per copy that is in both plans: those of a new or a gone copy are told with it. Those of no copy: the run's."""
    copies = {c.id for c in old.copies} & {c.id for c in new.copies}
    before, after = (
        {k: s for k, s in _by_id(p.steps).items() if s.copy_ is None or s.copy_ in copies} for p in (old, new)
    )
    gone, come = before.keys() - after.keys(), after.keys() - before.keys()
    for sign, names, steps in ((Sign.ADDED, come, after), (Sign.REMOVED, gone, before)):
        grouped: dict[str, list[Step]] = {}
        for name in sorted(names):
            grouped.setdefault(steps[name].copy_ or "the run", []).append(steps[name])
        for copy_id, items in sorted(grouped.items()):
            yield Change(sign, About.STEP, copy_id, _acts(items), any(s.irreversible or s.copy_ is None for s in items))
    for name, one, other in _pairs(before, after):
        if other.irreversible and not one.irreversible:
            yield Change(Sign.CHANGED, About.STEP, name, "can no longer be undone", True)
        elif one.irreversible and not other.irreversible:
            yield Change(Sign.CHANGED, About.STEP, name, "can be undone now", False)
        if one.parameters != other.parameters:
            yield Change(Sign.CHANGED, About.STEP, name, "does its work with other parameters", other.irreversible)
        if (one.action, one.executor) != (other.action, other.executor):
            text = f"{_words(one.action)} by {one.executor} becomes {_words(other.action)} by {other.executor}"
            yield Change(Sign.CHANGED, About.STEP, name, text, True)


def _order(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    """What a step waits for, of the steps that both plans have: what is new or gone is told by itself."""
    before, after = _by_id(old.steps), _by_id(new.steps)
    both = before.keys() & after.keys()
    for name, one, other in _pairs(before, after):
        was, now = both & set(one.depends_on), both & set(other.depends_on)
        if was - now:
            yield Change(Sign.CHANGED, About.STEP, name, f"no longer waits for {', '.join(sorted(was - now))}", True)
        if now - was:
            yield Change(Sign.CHANGED, About.STEP, name, f"also waits for {', '.join(sorted(now - was))}", False)


def _preconditions(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    """What is compared with the world before a step. Another state of it is what planning again is for."""
    for name, one, other in _pairs(_by_id(old.steps), _by_id(new.steps)):
        before, after = ({(p.kind, p.target): p for p in step.preconditions} for step in (one, other))
        gone = sorted({kind for kind, _ in before.keys() - after.keys()})
        come = sorted({kind for kind, _ in after.keys() - before.keys()})
        both = [(before[key], after[key]) for key in sorted(before.keys() & after.keys())]
        soft = sorted({now.kind for was, now in both if was.hard and not now.hard})
        else_ = sorted({now.kind for was, now in both if was.expected != now.expected or (now.hard and not was.hard)})
        for kinds, text, look in (
            (gone, "is no longer compared before it", True),
            (soft, "no longer stops the run when it differs", True),
            (come, "is compared before it, too", False),
            (else_, "is expected to be another", False),
        ):
            if kinds:
                yield Change(Sign.CHANGED, About.STEP, name, f"{', '.join(map(_words, kinds))} {text}", look)


def _acts(steps: Sequence[Step]) -> str:
    counts = Counter(_words(s.action) + (" (irreversible)" if s.irreversible else "") for s in steps)
    return ", ".join(f"{count} × {act}" if count > 1 else act for act, count in counts.items())


def _dates(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    for subject, one, other in (
        ("done by", old.totals.finish, new.totals.finish),
        ("deadline", old.totals.deadline, new.totals.deadline),
    ):
        # the same plan that is made seconds later ends seconds later
        if abs(other - one) >= (timedelta(minutes=1) if subject == "done by" else timedelta.resolution):
            later = other > one
            text = f"{one.date()} becomes {other.date()}, {_span(abs(other - one))} {'later' if later else 'earlier'}"
            # a later end and an earlier deadline both take time away
            yield Change(Sign.CHANGED, About.DATE, subject, text, later is (subject == "done by"))
    if old.totals.recheck_on != new.totals.recheck_on and new.totals.recheck_on:
        text = f"plan again on {new.totals.recheck_on.date()}"
        yield Change(Sign.CHANGED, About.DATE, "recheck", text, False)
    yield from _step_dates(old, new)


def _step_dates(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    """In one line: a plan that is made later has later dates for all. One that begins earlier may cut a wait short."""
    pairs = [(one, other) for _, one, other in _pairs(_by_id(old.steps), _by_id(new.steps))]
    moved = [(one, other) for one, other in pairs if _when(one) != _when(other)]
    if moved:
        earlier = any(other.earliest_start < one.earliest_start for one, other in moved)
        text = f"{len(moved)} of them have other dates" + (", some begin earlier" if earlier else "")
        yield Change(Sign.CHANGED, About.DATE, "steps", text, earlier)


def _when(step: Step) -> tuple[datetime, datetime, datetime]:
    return step.earliest_start, step.earliest_finish, step.latest_start


def _span(length: timedelta) -> str:
    hours = length.total_seconds() / 3600
    if hours >= 48:
        return f"{hours / 24:.0f} days"
    return f"{hours:.0f} hours" if hours >= 2 else f"{hours * 60:.0f} minutes"


def _costs(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    one, other = old.totals, new.totals
    if (one.cost, one.currency) != (other.cost, other.currency):
        text = f"{one.cost:,.2f} {one.currency} becomes {other.cost:,.2f} {other.currency}"
        yield Change(Sign.CHANGED, About.COST, "cost", text, other.cost > one.cost or one.currency != other.currency)


def _inputs(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    if old.estate != new.estate:
        yield Change(Sign.CHANGED, About.INPUT, "estate", f"{old.estate} becomes {new.estate}", True)
    if old.planned_by != new.planned_by:
        yield Change(Sign.CHANGED, About.INPUT, "planner", f"{old.planned_by} becomes {new.planned_by}", True)
    if old.retention != new.retention:
        yield Change(Sign.CHANGED, About.INPUT, "retention", f"{old.retention} becomes {new.retention}", True)
    for subject, field, look in (
        ("policy file", "policy_digest", True),
        ("estate file", "estate_digest", True),
        ("keys of the persons", "subjects_digest", True),
        ("lineage", "graph_digest", False),
        ("inventory", "inventory_digest", False),
    ):
        if getattr(old, field) != getattr(new, field):
            yield Change(Sign.CHANGED, About.INPUT, subject, "is another one", look)


_RULES = (_requests, _copies, _holds, _gaps, _overrides, _steps, _order, _preconditions, _dates, _costs, _inputs)


def _words(name: str) -> str:
    return str(name).replace("_", " ")
