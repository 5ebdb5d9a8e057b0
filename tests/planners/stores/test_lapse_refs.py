"""A tag is left to its table's maintenance only where that is declared, has left its trace, and ends in time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_AWAIT_REF, ICEBERG_EXPIRE_SNAPSHOTS
from pii_tracer.lake.inventory import Expiry, Ref, RefKind
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, Strategy
from pii_tracer.model.plan import ErasurePlan
from planners.schedule.step_dates import Retention
from planners.stores.s3.lifecycle_expiry import REF_SLACK
from tests.planners.smalllake import NOW, Lake, copy, hold

JOB = {"job": "nightly upkeep", "does": "expire_snapshots", "tables": ["PROD.a"], "every_days": 1}
RUNS = Expiry(ran=True)


def in_days(days: float) -> str:
    return (NOW + timedelta(days=days)).isoformat()


def tag(days: float | None = 3, kind: RefKind = RefKind.TAG) -> Ref:
    return Ref(name="q3", kind=kind, at="7", lapses=None if days is None else in_days(days))


def plan(ref: Ref | None = None, *, jobs: Any = (JOB,), holds: Any = (), **changes: Any) -> ErasurePlan:
    state = {"format": ICEBERG, "refs": (ref or tag(),), "expiry": RUNS, **changes.pop("state", {})}
    return Lake(states={"a": state}, maintenance=jobs).plan(*holds, **{"retention": Retention.RETAIN, **changes})


def strategy(made: ErasurePlan) -> Strategy:
    (history,) = [c for c in made.copies if c.kind is CopyKind.TABLE_HISTORY]
    return history.strategy


def test_what_the_tables_own_maintenance_removes_in_time_is_waited_for() -> None:
    made = plan()
    assert strategy(made) is Strategy.LET_LAPSE
    wait, verify = [s for s in made.steps if s.copy_ == "c-prod.a@tag.q3"]
    assert (wait.action, wait.executor, wait.irreversible) == (ICEBERG_AWAIT_REF, "iceberg", False)
    assert wait.earliest_start == NOW + timedelta(days=3 + 1) + REF_SLACK
    assert wait.preconditions == ()
    assert wait.parameters["at"] == "7"
    assert verify.action is Action.VERIFY_COPY
    # whose files the tag keeps is not expired before
    expiry = next(s for s in made.steps if s.copy_ == "c-prod.a" and s.action is ICEBERG_EXPIRE_SNAPSHOTS)
    assert expiry.earliest_start >= wait.earliest_finish
    assert made.totals.slack_days > 0
    assert "the job nightly upkeep removes it by" in made.copy_by_id("c-prod.a@tag.q3").reason
    # its rows go with it, and are not other people's loss
    assert copy(made, "a").facts["lapsing_refs"] == ["q3"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"jobs": ()}, "a setting deletes nothing by itself"),
        ({"jobs": ({**JOB, "tables": ["prod.b"]},)}, "the job is another table's"),
        ({"state": {"expiry": Expiry(ran=False)}}, "nothing was ever expired: nobody saw the job run"),
        ({"state": {"expiry": Expiry(ran=True, due=in_days(-9))}}, "what should be gone is there: it does not run"),
        ({"state": {"expiry": None}}, "nothing is known of it"),
        ({"state": {"properties": {"gc.enabled": "false"}}}, "the table forbids it"),
        ({"ref": tag(None)}, "the tag stays for ever"),
        ({"ref": tag(28)}, "it ends after the deadline"),
        ({"ref": tag(3, RefKind.BRANCH)}, "each commit makes a branch younger"),
        ({"jobs": ({**JOB, "every_days": 30},)}, "the job runs too seldom"),
        ({"retention": Retention.IMMEDIATE}, "nothing is waited for"),
    ],
)
def test_what_cannot_be_proved_to_lapse_is_rewritten(changes: dict[str, Any], why: str) -> None:
    assert strategy(plan(**changes)) is Strategy.REWRITE_REF, why


def test_a_job_that_is_hardly_late_still_runs() -> None:
    assert strategy(plan(state={"expiry": Expiry(ran=True, due=in_days(-1.5))})) is Strategy.LET_LAPSE


def test_what_is_held_does_not_lapse() -> None:
    assert strategy(plan(holds=(hold("prod.a"),))) is Strategy.EXEMPT
