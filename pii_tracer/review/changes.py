"""What changed between two plans, in a reviewer's words: what is new, what is gone, what became worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from pii_tracer.enums import StrEnum
from pii_tracer.plan import LEFT_OUT, Copy, ErasurePlan, Gap, PlannedHold, Step


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


def _copies(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    before, after = _by_id(old.copies), _by_id(new.copies)
    for name in sorted(before.keys() - after.keys()):
        left = any(g.kind == LEFT_OUT and g.dataset == before[name].dataset for g in new.gaps)
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
        elif one.mask != other.mask:
            yield Change(Sign.CHANGED, About.COPY, name, f"other columns are kept: {other.reason}", True)
        elif one.location != other.location:
            yield Change(Sign.CHANGED, About.COPY, name, f"{one.location} becomes {other.location}", True)
        rows = (one.found.rows if one.found else None, other.found.rows if other.found else None)
        if rows[0] != rows[1]:
            shown = ["unknown" if n is None else f"{n:,}" for n in rows]
            yield Change(Sign.CHANGED, About.COPY, name, f"{shown[0]} rows of the persons become {shown[1]}", False)


def _holds(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    before, after = _by_id(old.holds), _by_id(new.holds)
    for name in sorted(after.keys() - before.keys()):
        hold = after[name]
        text = f"keeps {len(hold.copies)} of the copies until {_day(hold.until)}: {hold.basis}, {hold.citation}"
        yield Change(Sign.ADDED, About.HOLD, name, text, True)
    for name in sorted(before.keys() - after.keys()):
        yield Change(Sign.REMOVED, About.HOLD, name, "keeps nothing any more", True)
    for name, one, other in _pairs(before, after):
        if one.until != other.until:
            text = f"until {_day(one.until)} becomes until {_day(other.until)}"
            yield Change(Sign.CHANGED, About.HOLD, name, text, True)


def _day(moment: datetime | None) -> str:
    return "further notice" if moment is None else moment.date().isoformat()


def _gaps(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    before, after = _by_id(old.gaps), _by_id(new.gaps)
    for name in sorted(after.keys() - before.keys()):
        gap = after[name]
        waived = f" (waived by {gap.waiver.who}: {gap.waiver.why})" if gap.waiver else ""
        yield Change(Sign.ADDED, About.GAP, name, f"opened: {gap.reason}{waived}", True)
    for name in sorted(before.keys() - after.keys()):
        yield Change(Sign.REMOVED, About.GAP, name, "closed", False)
    for name, one, other in _pairs(before, after):
        if one.waiver == other.waiver:
            continue
        if other.waiver is None:
            yield Change(Sign.CHANGED, About.GAP, name, "is no longer waived", False)
        else:
            waiver = other.waiver
            text = f"waived by {waiver.who} until {_day(waiver.until)}: {waiver.why}"
            yield Change(Sign.CHANGED, About.GAP, name, text, True)


def _overrides(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    for item in new.overrides:
        if item not in old.overrides:
            yield Change(Sign.ADDED, About.OVERRIDE, item.kind, f"is set aside: {item.reason}", True)
    for item in old.overrides:
        if item not in new.overrides:
            yield Change(Sign.REMOVED, About.OVERRIDE, item.kind, f"is no longer set aside: {item.reason}", False)


def _steps(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    """Per copy that is in both plans: those of a new or a gone copy are told with it."""
    copies = {c.id for c in old.copies} & {c.id for c in new.copies}
    before, after = ({k: s for k, s in _by_id(p.steps).items() if (s.copy_ or "") in copies} for p in (old, new))
    gone, come = before.keys() - after.keys(), after.keys() - before.keys()
    for sign, names, steps in ((Sign.ADDED, come, after), (Sign.REMOVED, gone, before)):
        grouped: dict[str, list[Step]] = {}
        for name in sorted(names):
            grouped.setdefault(steps[name].copy_ or "", []).append(steps[name])
        for copy_id, items in sorted(grouped.items()):
            yield Change(sign, About.STEP, copy_id, _acts(items), any(s.irreversible for s in items))
    for name, one, other in _pairs(before, after):
        if other.irreversible and not one.irreversible:
            yield Change(Sign.CHANGED, About.STEP, name, "can no longer be undone", True)
        elif one.irreversible and not other.irreversible:
            yield Change(Sign.CHANGED, About.STEP, name, "can be undone now", False)
        if one.parameters != other.parameters:
            yield Change(Sign.CHANGED, About.STEP, name, "does its work with other parameters", other.irreversible)


def _acts(steps: Sequence[Step]) -> str:
    counts = Counter(_words(s.action) + (" (irreversible)" if s.irreversible else "") for s in steps)
    return ", ".join(f"{count} × {act}" if count > 1 else act for act, count in counts.items())


def _dates(old: ErasurePlan, new: ErasurePlan) -> Iterator[Change]:
    for subject, one, other in (
        ("done by", old.totals.finish, new.totals.finish),
        ("deadline", old.totals.deadline, new.totals.deadline),
    ):
        if one != other:
            later = other > one
            text = f"{_day(one)} becomes {_day(other)}, {_span(abs(other - one))} {'later' if later else 'earlier'}"
            # a later end and an earlier deadline both take time away
            yield Change(Sign.CHANGED, About.DATE, subject, text, later is (subject == "done by"))
    if old.totals.recheck_on != new.totals.recheck_on and new.totals.recheck_on:
        text = f"plan again on {_day(new.totals.recheck_on)}"
        yield Change(Sign.CHANGED, About.DATE, "recheck", text, False)


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


_RULES = (_requests, _copies, _holds, _gaps, _overrides, _steps, _dates, _costs, _inputs)


def _words(name: str) -> str:
    return str(name).replace("_", " ")
