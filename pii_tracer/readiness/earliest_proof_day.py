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
    """Something that keeps bytes until a day. until: None where nothing ends it. reason: the setting, lock or rule.

    laws: the laws for whose requests it does, where it does not for all.
    """

    where: str
    owner: str
    reason: str
    until: datetime | None
    laws: tuple[str, ...] | None = None

    def concerns(self, law: str) -> bool:
        """Whether it keeps the bytes of somebody who asks by this law."""
        return self.laws is None or law in self.laws


@dataclass(frozen=True)
class LawAnswer:
    """A law's deadline for a request received now, and whether the proof could be there by then. decided_by: what is
    let go last for a request by this law."""

    law: str
    article: str
    deadline: datetime
    met: bool
    decided_by: Keeper | None = None


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
    last = _last(now, keepers)
    answers = []
    for name in sorted(laws):
        deadline = laws[name].at(now).deadline
        end = deadline.after(now)
        mine = _last(now, [keeper for keeper in keepers if keeper.concerns(name)])
        on = _end(now, mine)
        answers.append(LawAnswer(name, deadline.article, end, on is not None and on <= end, mine))
    return Provable(_end(now, last), last, tuple(answers), tuple(held))


def _last(now: datetime, keepers: Sequence[Keeper]) -> Keeper | None:
    endless = next((keeper for keeper in keepers if keeper.until is None), None)
    return endless or max(keepers, key=lambda k: (k.until or now, k.where), default=None)


def _end(now: datetime, keeper: Keeper | None) -> datetime | None:
    if keeper is None:
        return now
    return None if keeper.until is None else max(now, keeper.until)


def late(found: Provable) -> Iterator[Finding]:
    """A finding for each law whose deadline the proof would miss."""
    for answer in found.laws:
        keeper = answer.decided_by
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
