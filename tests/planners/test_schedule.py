"""Dates and order: the critical path, windows, retention against the deadline, and a checked DAG."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from pii_tracer.config import Estate, Windows
from pii_tracer.errors import PlanError
from pii_tracer.model import Carries, CopyKind, DatasetId, Format, Strategy
from pii_tracer.plan import Action, Copy, PlannedColumn
from planners.drafts import CopyDraft, Draft
from planners.laws import LAWS, deadline
from planners.ordering import _sorted
from planners.schedule import Retention, date_steps, duration, next_window

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
            format=Format.ICEBERG,
            carries=Carries.KEY,
            strategy=Strategy.DELETE_BY_KEY,
            columns=(PlannedColumn(name="pan", category="national_id"),) if pii else (),
            lineage=(),
            reason="",
        )
    )


DELETE = draft("a", Action.ICEBERG_DELETE_ROWS)
EXPIRE = draft("b", Action.ICEBERG_EXPIRE_SNAPSHOTS, after=("a",), retained=True)


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


def test_restores_wait_hours_and_for_the_weekly_window() -> None:
    restore = draft("r", Action.S3_RESTORE)
    dated = date_steps([restore], [item("c1", True)], ESTATE, NOW, NOW + timedelta(days=28), Retention.RETAIN)
    assert dated.by_step["r"].start == datetime(2026, 11, 22, 1, 0, tzinfo=timezone.utc)
    assert dated.by_step["r"].finish >= dated.by_step["r"].start + timedelta(hours=12)


def test_the_window_that_has_begun_today_is_over() -> None:
    sunday = datetime(2026, 11, 22, 1, 0, 1, tzinfo=timezone.utc)
    assert next_window(sunday, ESTATE) == datetime(2026, 11, 29, 1, 0, tzinfo=timezone.utc)
    assert next_window(sunday, ESTATE.model_copy(update={"windows": Windows()})) == sunday


def test_a_cycle_is_named() -> None:
    with pytest.raises(PlanError, match=r"a → b → a|b → a → b"):
        _sorted(
            [draft("a", Action.ICEBERG_DELETE_ROWS, after=("b",)), draft("b", Action.ICEBERG_DELETE_ROWS, after=("a",))]
        )


@pytest.mark.parametrize(
    ("law", "received", "due"),
    [
        ("DPDP", "2026-11-19T10:00:00+05:30", "2026-12-19T10:00:00+05:30"),
        ("GDPR", "2027-01-31T09:00:00+01:00", "2027-02-28T09:00:00+01:00"),
        ("GDPR", "2026-12-15T09:00:00+01:00", "2027-01-15T09:00:00+01:00"),
        ("CCPA", "2026-11-01T00:00:00-08:00", "2026-12-16T00:00:00-08:00"),
    ],
)
def test_deadlines(law: str, received: str, due: str) -> None:
    assert deadline(LAWS[law], datetime.fromisoformat(received)) == datetime.fromisoformat(due)
