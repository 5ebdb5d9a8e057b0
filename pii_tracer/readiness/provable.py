"""The earliest day on which the erasure of a request received now could be proved, against the deadlines of laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pii_tracer.config.laws import Law
from pii_tracer.model.timestamps import told_apart
from pii_tracer.readiness.findings import Finding, FindingKind, Level


@dataclass(frozen=True)
class Keeper:
    """Something that keeps bytes until a day. until: None where nothing ends it. reason: the setting, lock or rule."""

    where: str
    owner: str
    reason: str
    until: datetime | None


@dataclass(frozen=True)
class LawAnswer:
    """A law's deadline for a request received now, and whether the proof could be there by then."""

    law: str
    article: str
    deadline: datetime
    met: bool


@dataclass(frozen=True)
class Provable:
    """on: None where something keeps bytes without an end. decided_by: what is let go last; None where nothing waits.

    held: what holds exempt from the erasure until they end; it does not count against a deadline.
    """

    on: datetime | None
    decided_by: Keeper | None
    laws: tuple[LawAnswer, ...]
    held: tuple[Keeper, ...] = ()


def provable(now: datetime, keepers: Sequence[Keeper], held: Sequence[Keeper], laws: Mapping[str, Law]) -> Provable:
    """Take the last of all ends. Nothing that keeps bytes means that the proof waits for no clock."""
    endless = next((keeper for keeper in keepers if keeper.until is None), None)
    last = endless or max(keepers, key=lambda k: (k.until or now, k.where), default=None)
    on = None if endless else max(now, last.until or now) if last else now
    answers = []
    for name in sorted(laws):
        deadline = laws[name].at(now).deadline
        end = deadline.after(now)
        answers.append(LawAnswer(name, deadline.article, end, on is not None and on <= end))
    return Provable(on, last, tuple(answers), tuple(held))


def late(found: Provable) -> Iterator[Finding]:
    """A finding for each law whose deadline the proof would miss."""
    for answer in found.laws:
        keeper = found.decided_by
        if answer.met or keeper is None:
            continue
        until, due = told_apart(keeper.until or answer.deadline, answer.deadline)
        end = f"until {until}" if keeper.until else "without an end"
        text = f"{keeper.reason} keeps bytes {end}; the deadline of {answer.law} is {due}"
        todo = "shorten what keeps the bytes, or have the policy allow late plans"
        yield Finding(FindingKind.TOO_LATE, Level.BLOCKING, keeper.where, keeper.owner, text, todo, answer.law)


def in_days(now: datetime, days: float) -> datetime:
    """A moment so many days later; never beyond what a calendar has."""
    return now + timedelta(days=min(days, 36_500))
