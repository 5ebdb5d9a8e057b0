"""Weekly windows are times on a clock on the wall, in the weeks in which it is changed, too."""

from __future__ import annotations

from datetime import datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pii_tracer.config.time_windows import Weekly, weekly

UTC = timezone.utc
MINUTE = timedelta(minutes=1)
CHANGES = {  # a day in a week in which the clock is changed
    "Europe/Berlin": (datetime(2026, 10, 25, tzinfo=UTC), datetime(2027, 3, 28, tzinfo=UTC)),
    "America/New_York": (datetime(2026, 11, 1, tzinfo=UTC), datetime(2027, 3, 14, tzinfo=UTC)),
    "Australia/Lord_Howe": (datetime(2026, 10, 3, tzinfo=UTC), datetime(2027, 4, 3, tzinfo=UTC)),  # by half an hour
    "America/Santiago": (datetime(2026, 9, 6, tzinfo=UTC), datetime(2027, 4, 4, tzinfo=UTC)),  # at midnight
    "Asia/Kolkata": (datetime(2026, 10, 25, tzinfo=UTC),),
}


def is_open(window: Weekly, moment: datetime) -> bool:
    """Whether the clock on the wall stands in the window."""
    local = moment.astimezone(window.zone)
    clock, begin, end = local.time(), window.begin, window.end
    today = local.weekday() == window.weekday
    if end > begin:
        return today and begin <= clock < end
    return (today and clock >= begin) or (local.weekday() == (window.weekday + 1) % 7 and clock < end)


def slow(window: Weekly, after: datetime, need: timedelta) -> datetime:
    """The first minute from which the window stays open for so long, or opens, where no usual one is as long."""
    hours = [timedelta(hours=t.hour, minutes=t.minute) for t in (window.begin, window.end)]
    usual = hours[1] - hours[0] if hours[1] > hours[0] else hours[1] - hours[0] + timedelta(days=1)
    first, newly, before = None, False, is_open(window, after - MINUTE)
    for n in range(24 * 60 * 24):
        moment = after + MINUTE * n
        opened = is_open(window, moment)
        if opened and first is None:
            first, newly = moment, not before
        elif first is not None and not opened:  # of one opening, no later minute fits where the first does not
            if moment - first >= need or (need > usual and newly):
                return first
            first = None
        before = opened
    raise AssertionError("no window in three weeks")


@st.composite
def cases(draw: st.DrawFn) -> tuple[Weekly, datetime, timedelta]:
    zone = draw(st.sampled_from(sorted(CHANGES)))
    near = draw(st.sampled_from(CHANGES[zone]))
    clock = st.builds(time, st.integers(0, 23), st.sampled_from([0, 1, 10, 30, 59]))
    small = st.builds(time, st.integers(0, 4), st.sampled_from([0, 1, 10, 30, 59]))  # where clocks are changed
    window = Weekly(draw(st.integers(0, 6)), draw(small | clock), draw(small | clock), ZoneInfo(zone))
    after = near + MINUTE * draw(st.integers(-8 * 24 * 60, 2 * 24 * 60))
    return window, after, MINUTE * draw(st.integers(1, 90) | st.integers(1, 26 * 60))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


BERLIN = "sun 01:00-05:00 Europe/Berlin"


@pytest.mark.parametrize(
    ("text", "after", "hours", "starts"),
    [
        (BERLIN, "2026-10-20T00:00", 4, "2026-10-24T23:00"),
        (BERLIN, "2026-10-25T00:00", 4, "2026-10-25T00:00"),  # it is open for five hours
        (BERLIN, "2026-10-25T00:01", 4, "2026-11-01T00:00"),
        (BERLIN, "2027-03-22T00:00", 3, "2027-03-28T00:00"),
        (BERLIN, "2027-03-22T00:00", 3.5, "2027-04-03T23:00"),  # it is open for three hours, and usually for four
        (BERLIN, "2027-03-22T00:00", 6, "2027-03-28T00:00"),  # longer than any
        ("sun 01:00-02:30 Europe/Berlin", "2027-03-28T00:30", 1, "2027-04-03T23:00"),  # 02:00 is 03:00
        ("sun 02:30-05:00 Europe/Berlin", "2027-03-27T00:00", 1, "2027-03-28T01:00"),
        ("sun 02:10-02:50 Europe/Berlin", "2027-03-27T00:00", 0.5, "2027-04-04T00:10"),  # no such time that day
        ("sun 02:10-02:50 Europe/Berlin", "2026-10-25T00:20", 0.5, "2026-10-25T00:20"),
        ("sun 02:10-02:50 Europe/Berlin", "2026-10-25T00:30", 0.5, "2026-10-25T01:10"),  # once more that day
    ],
)
def test_where_the_clock_is_changed(text: str, after: str, hours: float, starts: str) -> None:
    assert weekly(text).opening(at(after), timedelta(hours=hours)) == at(starts)


@given(cases())
@example((weekly(BERLIN), at("2026-10-25T00:00"), timedelta(hours=4)))
@example((weekly(BERLIN), at("2027-03-28T00:30"), timedelta(hours=3)))
@settings(deadline=None)
def test_a_window_is_where_the_clock_says(case: tuple[Weekly, datetime, timedelta]) -> None:
    window, after, need = case
    assert window.opening(after, need) == slow(window, after, need)
