"""Which requests go into which batch: every deadline that can be kept is kept, and each that cannot is named.

Of the requests that are there when a batch begins, those go in that are due first and can still be in time. As every
batch takes as long as the other, no other choice keeps more deadlines, whatever comes in later (F. Glover, Maximum
matching in a convex bipartite graph, 1967). Those that cannot be in time any more have the places that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from heapq import heappop, heappush

from pii_tracer.common.plurals import counted
from pii_tracer.config.batches import Batches
from pii_tracer.config.time_windows import weekly

_BEGINNING = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MOMENT = timedelta(minutes=1)


@dataclass(frozen=True)
class Waiting:
    """A request that waits for a batch. not_before: when what it waits for has run (`waits_for`: the notice that its
    law wants, or a hold). carried_over: it was in a plan before."""

    id: str
    received: datetime
    due: datetime
    not_before: datetime | None = None
    carried_over: bool = False
    waits_for: str = "its notice"

    @property
    def ready(self) -> datetime:
        """When a batch can take it."""
        return max(self.received, self.not_before or self.received)


@dataclass(frozen=True)
class Batch:
    """What is planned together. late: those of its requests whose deadline it does not keep."""

    begins: datetime
    ends: datetime
    requests: tuple[str, ...]
    late: tuple[Late, ...]


@dataclass(frozen=True)
class Late:
    """A deadline that cannot be kept, and why."""

    id: str
    due: datetime
    reason: str


@dataclass(frozen=True)
class BatchRule:
    """persons: of one batch at most."""

    persons: int
    batches: Batches

    @property
    def takes(self) -> timedelta:
        """From begin to proof."""
        return timedelta(days=self.batches.takes_days)

    def span(self, at: datetime) -> datetime:
        """When the span that a moment lies in begins; it has one batch."""
        every = timedelta(hours=self.batches.every_hours)
        return _BEGINNING + (at - _BEGINNING) // every * every

    def begin(self, after: datetime) -> datetime:
        """The first begin of a batch at a moment or after it: the begin of a span, or when a window opens after it."""
        span = self.span(after)
        return self.opening(span if span == after else span + timedelta(hours=self.batches.every_hours))

    def opening(self, after: datetime) -> datetime:
        """The first moment at which a plan may be made."""
        return min((weekly(text).opening(after, _MOMENT) for text in self.batches.windows), default=after)


def forecast(requests: Iterable[Waiting], rule: BatchRule, start: datetime) -> Iterator[Batch]:
    """The batches from a moment on, until nobody waits. A request that comes in later is not looked at before."""
    coming = sorted(requests, key=lambda one: (one.ready, one.id))
    queue, number, at = _Queue(rule), 0, rule.begin(start)
    while number < len(coming) or queue.waits:
        if not queue.waits:
            at = max(at, rule.begin(coming[number].ready))
        while number < len(coming) and coming[number].ready <= at:
            queue.push(coming[number], at)
            number += 1
        yield queue.batch(at)
        at = rule.begin(at + _MOMENT)


@dataclass
class _Queue:
    rule: BatchRule
    on_time: list[tuple[datetime, str, Waiting, datetime]] = field(default_factory=list)
    late: list[tuple[datetime, str, Waiting, datetime]] = field(default_factory=list)

    @property
    def waits(self) -> bool:
        return bool(self.on_time or self.late)

    def push(self, one: Waiting, at: datetime) -> None:
        heappush(self.on_time, (one.due, one.id, one, at))

    def batch(self, at: datetime) -> Batch:
        ends, chosen, late = at + self.rule.takes, list[str](), list[Late]()
        while self.on_time and len(chosen) < self.rule.persons:
            entry = heappop(self.on_time)
            if entry[0] < ends:
                heappush(self.late, entry)
            else:
                chosen.append(entry[1])
        while self.late and len(chosen) < self.rule.persons:
            due, name, one, first = heappop(self.late)
            chosen.append(name)
            late.append(Late(name, due, self._why(one, first, at)))
        return Batch(at, ends, tuple(chosen), tuple(late))

    def _why(self, one: Waiting, first: datetime, at: datetime) -> str:
        """first: the first batch that could take it. at: the one that does."""
        takes, rule = self.rule.takes, self.rule
        if one.received + takes > one.due:
            had = max(timedelta(), one.due - one.received)
            return f"a batch takes {_days(takes)} days, but the law allows {_days(had)} from receipt"
        if first + takes <= one.due:
            return (
                f"every batch that ends in time is full, with {counted(rule.persons, 'person')} whose deadlines are "
                "not later"
            )
        if one.not_before and rule.begin(one.received) + takes <= one.due:
            return f"{one.waits_for} ran until {one.not_before:%Y-%m-%d %H:%M} UTC: no batch after it ends in time"
        since = "was carried over" if one.carried_over else "came in"
        return f"the first batch after it {since} begins on {first:%Y-%m-%d %H:%M} UTC, and ends after the deadline"


def _days(span: timedelta) -> str:
    return f"{span / timedelta(days=1):.1f}".removesuffix(".0")
