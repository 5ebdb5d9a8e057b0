"""When work may be done: restores and their waits, and weekly windows in somebody's own time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from pii_tracer.model.datasets import Frozen

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TEXT = re.compile(
    rf"({'|'.join(WEEKDAYS)})\s+([01]\d|2[0-3]):([0-5]\d)\s*[-–]\s*([01]\d|2[0-3]):([0-5]\d)\s+(\S+)", re.IGNORECASE
)


@dataclass(frozen=True)
class Weekly:
    """A window that opens once a week, by the clock on the wall. An end that is not after the beginning is on the next
    day. Where the clock is changed meanwhile, times that are left out are not in it, and times that come twice are.
    """

    weekday: int
    begin: time
    end: time
    zone: ZoneInfo

    def opening(self, after: datetime, need: timedelta) -> datetime:
        """The first time at or after `after` (UTC) at which work of this length fits into the window.

        Work that is longer than the window usually is begins when one opens.
        """
        day = after.astimezone(self.zone).date()
        day -= timedelta(days=(day.weekday() - self.weekday) % 7)
        opens, closes = self._clock(day)
        longer = need > closes - opens
        for week in range(4):  # of two weeks one can be cut short by a change of the clock
            for opens, closes in self._on(day + timedelta(days=7 * week)):
                start = max(after, opens)
                if start + need <= closes or (longer and start == opens):
                    return start
        raise AssertionError("a weekly window opens every week")

    def _clock(self, day: date) -> tuple[datetime, datetime]:
        """Begin and end on the clock on the wall, as times without a zone."""
        last = day if self.end > self.begin else day + timedelta(days=1)
        return datetime.combine(day, self.begin), datetime.combine(last, self.end)

    def _on(self, day: date) -> list[tuple[datetime, datetime]]:
        """When (UTC) the clock stands in the window of a day: in two parts, or never, where it is changed meanwhile."""
        opens, closes = (moment.replace(tzinfo=timezone.utc) for moment in self._clock(day))
        # no zone is more than 14 hours from UTC, and none changes its clock twice within days
        first, last = opens - timedelta(days=1), closes + timedelta(days=1)
        before, after = self._ahead(first), self._ahead(last)
        if before == after:
            return [(opens - before, closes - before)]
        change = self._change(first, last)
        parts = [(opens - before, min(closes - before, change)), (max(opens - after, change), closes - after)]
        parts = [(start, end) for start, end in parts if start < end]
        if len(parts) == 2 and parts[0][1] == parts[1][0]:
            return [(parts[0][0], parts[1][1])]
        return parts

    def _ahead(self, moment: datetime) -> timedelta:
        return moment.astimezone(self.zone).utcoffset() or timedelta()

    def _change(self, first: datetime, last: datetime) -> datetime:
        """The second between two moments at which the clock is changed."""
        before = self._ahead(first)
        while last - first > timedelta(seconds=1):
            middle = first + timedelta(seconds=(last - first) // timedelta(seconds=2))
            first, last = (middle, last) if self._ahead(middle) == before else (first, middle)
        return last


def weekly(text: str) -> Weekly:
    """Read `sat 22:00-06:00 Asia/Kolkata`.

    Raises:
        ValueError: written otherwise, or a time zone that this machine does not know.
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise ValueError("this is not a weekly window; write it as `sat 22:00-06:00 Asia/Kolkata`")
    day, *hours, zone = found.groups()
    begin_hour, begin_minute, end_hour, end_minute = map(int, hours)
    try:
        known = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(
            f"the time zone {zone} is not known: use a name of the IANA database; `pip install tzdata` brings it"
        ) from None
    return Weekly(WEEKDAYS.index(day.lower()), time(begin_hour, begin_minute), time(end_hour, end_minute), known)


def _understood(text: str) -> str:
    weekly(text)
    return text


WindowText = Annotated[str, AfterValidator(_understood)]
"""A weekly window as people write it."""


class Windows(Frozen):
    """Waits and windows; hours of archives in UTC.

    restore_hours: what the service promises, and plans reckon with; restore_check_minutes: how often a waiting run
    looks whether it is there already. archive_weekday and archive_start_hour: when archive batches run. weekly: when
    other steps that write begin, each as `sat 22:00-06:00 Asia/Kolkata`; empty for any time.
    """

    restore_hours: int = Field(default=12, ge=0)
    restore_check_minutes: float = Field(default=30, gt=0)
    archive_weekday: Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"] | None = None
    archive_start_hour: int = Field(default=0, ge=0, le=23)
    weekly: tuple[WindowText, ...] = ()
