"""Dates and order: the critical path, windows, retention against the deadline, and a checked DAG."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.laws import shipped
from pii_tracer.config.time_windows import Windows, weekly
from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG,
    ICEBERG_DELETE_ROWS,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_REWRITE_MANIFESTS,
)
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    Strategy,
)
from pii_tracer.model.errors import PlanError
from pii_tracer.model.plan import Copy, PlannedColumn
from planners.schedule.step_dates import (
    Retention,
    date_steps,
    duration,
    next_window,
)
from planners.schedule.step_order import _sorted
from planners.step_drafts import CopyDraft, Draft

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
ESTATE = Estate.model_validate(
    {
        "version": 1,
        "estate": "t",
        "environment": "local",
        "catalogs": {},
        "roots": ["w"],
        "lineage": {},
        "subjects": [{"name": "c", "source": "s", "key": "k"}],
        "windows": {"restore_hours": 12, "archive_weekday": "sun", "archive_start_hour": 1},
    }
)


def draft(name: str, action: Action, copy: str = "c1", after: tuple[str, ...] = (), retained: bool = False) -> Draft:
    return Draft(
        id=name,
        copy=copy,
        action=action,
        executor="iceberg",
        parameters={},
        hazards=(),
        irreversible=False,
        verification="",
        reason="",
        after=after,
        retained=retained,
    )


def item(copy_id: str, pii: bool) -> CopyDraft:
    return CopyDraft(
        copy=Copy(
            id=copy_id,
            kind=CopyKind.DERIVED,
            dataset=DatasetId(namespace="file", name=copy_id),
            table=None,
            location="/x",
            format=ICEBERG,
            carries=Carries.KEY,
            strategy=Strategy.DELETE_BY_KEY,
            columns=(PlannedColumn(name="pan", category="national_id"),) if pii else (),
            lineage=(),
            reason="",
        )
    )


DELETE = draft("a", ICEBERG_DELETE_ROWS)
EXPIRE = draft("b", ICEBERG_EXPIRE_SNAPSHOTS, after=("a",), retained=True)


@pytest.mark.parametrize(("pii", "days"), [(True, 7), (False, 30)])
def test_retention_waits_for_the_class_of_the_table(pii: bool, days: int) -> None:
    dated = date_steps([DELETE, EXPIRE], [item("c1", pii)], ESTATE, NOW, NOW + timedelta(days=90), Retention.RETAIN)
    assert dated.by_step["b"].start == NOW + duration(DELETE) + timedelta(days=days)


def test_immediate_does_not_wait_and_says_so() -> None:
    dated = date_steps([DELETE, EXPIRE], [item("c1", True)], ESTATE, NOW, NOW + timedelta(days=28), Retention.IMMEDIATE)
    assert dated.by_step["b"].start == NOW + duration(DELETE)
    assert "time travel ends at once" in dated.notes[-1]


def test_an_impossible_deadline_is_said_with_the_constraint() -> None:
    dated = date_steps([DELETE, EXPIRE], [item("c1", False)], ESTATE, NOW, NOW + timedelta(days=28), Retention.RETAIN)
    assert dated.finish > NOW + timedelta(days=28)
    assert "cannot be met" in dated.notes[0]
    assert "retention" in dated.notes[0]


def test_latest_start_leaves_room_for_what_follows() -> None:
    due = NOW + timedelta(days=28)
    dated = date_steps([DELETE, EXPIRE], [item("c1", True)], ESTATE, NOW, due, Retention.RETAIN)
    assert dated.by_step["b"].latest_start == due - duration(EXPIRE)
    assert dated.by_step["a"].latest_start == due - duration(EXPIRE) - timedelta(days=7) - duration(DELETE)
    assert dated.critical_path == ("a", "b")


def test_who_is_done_early_has_the_slack_of_it() -> None:
    """A step that two others come before waits for neither of them longer than the later one takes."""
    early, late = draft("e", ICEBERG_DELETE_ROWS), replace(draft("l", ICEBERG_DELETE_ROWS), bytes=10**12)
    both = draft("x", ICEBERG_REWRITE_MANIFESTS, after=("e", "l"))
    due = NOW + timedelta(days=28)
    dated = date_steps([early, late, both], [item("c1", True)], ESTATE, NOW, due, Retention.RETAIN)
    assert dated.by_step["e"].latest_start == due - duration(both) - duration(early)
    assert dated.by_step["l"].latest_start == due - duration(both) - duration(late)


def test_restores_wait_hours_and_for_the_weekly_window() -> None:
    restore = draft("r", Action.S3_RESTORE)
    dated = date_steps([restore], [item("c1", True)], ESTATE, NOW, NOW + timedelta(days=28), Retention.RETAIN)
    assert dated.by_step["r"].start == datetime(2026, 11, 22, 1, 0, tzinfo=timezone.utc)
    assert dated.by_step["r"].finish >= dated.by_step["r"].start + timedelta(hours=12)


def test_the_window_that_has_begun_today_is_over() -> None:
    sunday = datetime(2026, 11, 22, 1, 0, 1, tzinfo=timezone.utc)
    assert next_window(sunday, ESTATE) == datetime(2026, 11, 29, 1, 0, tzinfo=timezone.utc)
    assert next_window(sunday, ESTATE.model_copy(update={"windows": Windows()})) == sunday


@pytest.mark.parametrize("day", range(22, 30))
def test_the_next_window_is_the_first_start_that_is_not_over(day: int) -> None:
    starts = [datetime(2026, 11, 22, 1, tzinfo=timezone.utc) + timedelta(days=7 * week) for week in range(3)]
    for clock in (
        timedelta(),
        timedelta(minutes=59, seconds=1, microseconds=1),
        timedelta(hours=1),
        timedelta(hours=2),
    ):
        after = datetime(2026, 11, day, tzinfo=timezone.utc) + clock
        assert next_window(after, ESTATE) == min(start for start in starts if start >= after)


KOLKATA = "sat 22:00-06:00 Asia/Kolkata"


@pytest.mark.parametrize(
    ("text", "after", "minutes", "opens"),
    [
        (KOLKATA, "2026-11-21T10:00+00:00", 60, "2026-11-21T16:30+00:00"),
        (KOLKATA, "2026-11-21T23:00+00:00", 60, "2026-11-21T23:00+00:00"),
        (KOLKATA, "2026-11-22T00:00+00:00", 60, "2026-11-28T16:30+00:00"),  # 30 minutes are left
        (KOLKATA, "2026-11-22T00:00+00:00", 30, "2026-11-22T00:00+00:00"),
        (KOLKATA, "2026-11-21T23:00+00:00", 9 * 60, "2026-11-28T16:30+00:00"),  # longer than the window
        ("sun 02:00–05:00 Europe/Berlin", "2026-03-28T12:00+00:00", 60, "2026-03-29T01:00+00:00"),  # clocks go forward
        ("sun 02:00-05:00 Europe/Berlin", "2026-04-01T12:00+00:00", 60, "2026-04-05T00:00+00:00"),
        ("wed 09:00-17:00 UTC", "2026-11-25T16:30+00:00", 30, "2026-11-25T16:30+00:00"),
    ],
)
def test_a_weekly_window_opens_in_its_own_zone(text: str, after: str, minutes: int, opens: str) -> None:
    found = weekly(text).opening(datetime.fromisoformat(after), timedelta(minutes=minutes))
    assert found == datetime.fromisoformat(opens)


@pytest.mark.parametrize(
    "text", ["sat 22:00", "sat 24:00-06:00 UTC", "xyz 22:00-06:00 UTC", "sat 22:00-06:00 Mars/Base"]
)
def test_a_window_that_nobody_understands_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"window|zone"):
        Windows(weekly=(text,))


def test_what_writes_begins_in_a_window_and_what_looks_does_not_wait() -> None:
    estate = ESTATE.model_copy(update={"windows": Windows(weekly=(KOLKATA, "wed 18:00-20:00 UTC"))})
    verify = replace(draft("v", Action.VERIFY_COPY, after=("b",)), executor="verify")
    steps = [DELETE, EXPIRE, verify]
    dated = date_steps(steps, [item("c1", True)], estate, NOW, NOW + timedelta(days=28), Retention.RETAIN)
    assert dated.by_step["a"].start == datetime(2026, 11, 21, 16, 30, tzinfo=timezone.utc)
    assert dated.by_step["b"].start == datetime(2026, 11, 28, 16, 31, tzinfo=timezone.utc)
    assert dated.by_step["v"].start == dated.by_step["b"].finish
    assert dated.by_step["a"].latest_start >= dated.by_step["a"].start
    at_once = date_steps(steps, [item("c1", True)], estate, NOW, NOW + timedelta(days=28), Retention.IMMEDIATE)
    assert at_once.by_step["a"].start == NOW


def test_steps_under_nessie_wait_for_the_window_too() -> None:
    estate = ESTATE.model_copy(update={"windows": Windows(weekly=(KOLKATA,))})
    steps = [replace(DELETE, executor="nessie")]
    dated = date_steps(steps, [item("c1", True)], estate, NOW, NOW + timedelta(days=28), Retention.RETAIN)
    assert dated.by_step["a"].start == datetime(2026, 11, 21, 16, 30, tzinfo=timezone.utc)


def test_a_window_that_comes_too_late_is_said() -> None:
    estate = ESTATE.model_copy(update={"windows": Windows(weekly=(KOLKATA,))})
    steps = [draft("x", ICEBERG_DELETE_ROWS)]
    dated = date_steps(steps, [item("c1", True)], estate, NOW, NOW + timedelta(hours=2), Retention.RETAIN)
    assert "cannot be met" in dated.notes[0]
    assert "window" in dated.notes[0]


def test_a_cycle_is_named() -> None:
    with pytest.raises(PlanError, match=r"a → b → a|b → a → b"):
        _sorted([draft("a", ICEBERG_DELETE_ROWS, after=("b",)), draft("b", ICEBERG_DELETE_ROWS, after=("a",))])


@pytest.mark.parametrize(
    ("law", "received", "due"),
    [
        ("DPDP", "2026-11-19T10:00:00+05:30", "2026-12-19T10:00:00+05:30"),
        ("GDPR", "2027-01-31T09:00:00+01:00", "2027-02-28T09:00:00+01:00"),
        ("GDPR", "2026-12-15T09:00:00+01:00", "2027-01-15T09:00:00+01:00"),
        ("CCPA", "2026-11-01T00:00:00-08:00", "2026-12-16T00:00:00-08:00"),
        ("DELETE-ACT", "2026-11-01T00:00:00-08:00", "2026-12-16T00:00:00-08:00"),
        ("LGPD", "2026-11-01T00:00:00-03:00", "2026-11-16T00:00:00-03:00"),
        ("UK-GDPR", "2027-01-31T09:00:00+00:00", "2027-02-28T09:00:00+00:00"),
    ],
)
def test_deadlines(law: str, received: str, due: str) -> None:
    when = datetime.fromisoformat(received)
    assert shipped()[law].at(when).deadline.after(when) == datetime.fromisoformat(due)
