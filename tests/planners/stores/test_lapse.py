"""Archives whose lifecycle ends before the deadline are waited for; where anything of them stays longer they are not."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pii_tracer.config.estate_file import Prices
from pii_tracer.lake.inventory import Inventory, ObjectSet, ObjectVersion
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import DatasetId, Strategy
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.review.drift import compare
from planners.schedule.step_dates import Retention
from planners.stores.s3.lifecycle_expiry import EXPIRY_SLACK, lapse_of
from tests.planners.smalllake import FAR, NOW, Lake, archive, hold

PRICES = Prices(archive_object=10.0)


def version(days_ago: float, **changes: Any) -> ObjectVersion:
    written = (NOW - timedelta(days=days_ago)).isoformat()
    fields = {"key": f"p/{days_ago}.parquet", "version_id": "1", "latest": True, "size": 1, "modified": written}
    return ObjectVersion(**{**fields, **changes})


def objects(*versions: ObjectVersion, days: int | None = 30, **changes: Any) -> ObjectSet:
    return archive(**{"versions": versions, "expires_after_days": days, "versioned": False, **changes})


def applied(due: datetime) -> datetime:
    """When a rule has done what is due: after the next midnight, and S3's own time."""
    return datetime(due.year, due.month, due.day, tzinfo=timezone.utc) + timedelta(days=1) + EXPIRY_SLACK


def plan(*sets: ObjectSet, **changes: Any) -> ErasurePlan:
    return Lake(objects=sets).plan(**{"retention": Retention.RETAIN, "prices": PRICES, **changes})


def of_archives(made: ErasurePlan) -> dict[str, Strategy]:
    return {c.id: c.strategy for c in made.copies if c.table is None}


def test_what_ends_in_time_is_waited_for_and_verified_after_it() -> None:
    made = plan(objects(version(20), version(10)))
    assert of_archives(made) == {"c-b-p": Strategy.LET_LAPSE}
    wait, verify = [s for s in made.steps if s.copy_ == "c-b-p"]
    assert (wait.action, wait.executor, wait.irreversible) == (Action.S3_AWAIT_EXPIRY, "s3", False)
    assert wait.earliest_start == applied(NOW - timedelta(days=10) + timedelta(days=30))
    assert wait.estimate.cost == 0
    assert verify.action is Action.VERIFY_COPY
    assert verify.depends_on == (wait.id,)
    assert wait.preconditions == ()
    assert "a rewrite would end earlier and cost 20.00 INR" in made.copy_by_id("c-b-p").reason
    assert made.totals.slack_days > 0


@pytest.mark.parametrize(
    ("sets", "why"),
    [
        ([objects(version(1))], "it ends after the deadline"),
        ([objects(version(20), days=None)], "no lifecycle rule"),
        ([objects(version(20), object_lock=True)], "a lock may keep it"),
        (
            [
                objects(
                    version(20),
                    version(300, version_id="0", latest=False),
                    versioned=True,
                    days=31,
                    noncurrent_days=30,
                )
            ],
            "its successor lets it wait for longer than the deadline",
        ),
        ([objects(version(300), versioned=True, days=35, noncurrent_days=30)], "hidden only now, it then waits on"),
    ],
)
def test_what_may_stay_longer_is_rewritten(sets: list[ObjectSet], why: str) -> None:
    made = plan(*sets)
    assert of_archives(made)["c-b-p"] is Strategy.RESTORE_REWRITE_ARCHIVE, why


def test_of_an_archive_each_object_ends_by_itself_or_is_rewritten() -> None:
    """A weekly archive is older than its deadline in part: the oldest objects need no restore."""
    old, young, before = version(20), version(1), version(20, version_id="0", latest=False)
    made = plan(objects(old, young, before))
    copy = made.copy_by_id("c-b-p")
    assert copy.strategy is Strategy.RESTORE_REWRITE_ARCHIVE
    end = applied(NOW - timedelta(days=20) + timedelta(days=30))
    assert copy.reason.endswith(f"1 object is left to the bucket's lifecycle, until {end:%Y-%m-%d}")
    rewrite, delete, wait, verify = [s for s in made.steps if s.copy_ == "c-b-p"]
    assert [v["key"] for v in rewrite.parameters["objects"]] == [young.key]
    assert [v["key"] for v in delete.parameters["versions"]] == delete.parameters["keep_latest_of"] == [young.key]
    assert (wait.action, [v["key"] for v in wait.parameters["versions"]]) == (Action.S3_AWAIT_EXPIRY, [old.key])
    assert wait.earliest_start == end
    assert wait.id in verify.depends_on
    # the old version goes at once, and the current one of its key, which nobody rewrites, does not hold it back
    [versions, _] = [s for s in made.steps if s.copy_ == "c-b-p-versions"]
    assert [(v["key"], v["version_id"]) for v in versions.parameters["versions"]] == [(old.key, "0")]
    assert versions.parameters["keep_latest_of"] == [young.key]
    assert made.totals.slack_days > 0


def test_objects_that_replicas_wait_for_are_all_rewritten() -> None:
    more = {"bucket": "c", "region": "o", "dataset": DatasetId(namespace="s3://c", name="p"), "fed": True}
    sets = [objects(version(20), version(1), **extra) for extra in ({}, more | {"replica_of": "s3://b/p"})]
    assert Action.S3_AWAIT_EXPIRY not in {s.action for s in plan(*sets).steps}


@pytest.mark.parametrize(
    ("there", "drifted"),
    [
        (["old", "young"], False),
        (["young"], False),
        (["young", "marker"], False),
        (["old"], True),
        (["old", "young", "newer"], True),
        (["young", "marker", "newer"], True),
    ],
)
def test_an_object_that_ended_meanwhile_is_no_drift(there: list[str], drifted: bool) -> None:
    old, young = version(20), version(1)
    known = {
        "old": old,
        "young": young,
        "marker": version(0, key=old.key, version_id="m", delete_marker=True),
        "newer": version(0, key=old.key, version_id="2"),
    }
    made = plan(objects(old, young))
    now = Inventory(tables=(), objects=(objects(*(known[name] for name in there)),), gaps=())
    found = [item for item in compare(made, now) if item.kind == "object_versions"]
    assert bool(found) is drifted
    assert all(item.hard for item in found)


def test_a_replica_that_stays_longer_keeps_its_origin_from_lapsing() -> None:
    """Deleting the replica's objects without rewritten ones would lose everybody else's rows."""
    origin = objects(version(20))
    more = {
        "bucket": "c",
        "region": "o",
        "dataset": DatasetId(namespace="s3://c", name="p"),
        "replica_of": "s3://b/p",
        "fed": True,
    }
    short, long = objects(version(20), **more), objects(version(20), days=None, **more)
    assert set(of_archives(plan(origin, short)).values()) == {Strategy.LET_LAPSE}
    assert set(of_archives(plan(origin, long)).values()) == {Strategy.RESTORE_REWRITE_ARCHIVE, Strategy.DELETE_VERSIONS}


def test_immediate_waits_for_no_lifecycle_and_a_hold_for_none_either() -> None:
    assert of_archives(plan(objects(version(20)), retention=Retention.IMMEDIATE)) == {
        "c-b-p": Strategy.RESTORE_REWRITE_ARCHIVE
    }
    lake = Lake(objects=(objects(version(20)),))
    held = lake.plan(hold("s3://b/p", until=FAR), retention=Retention.RETAIN)
    assert of_archives(held) == {"c-b-p": Strategy.EXEMPT}


@pytest.mark.parametrize(
    ("days_ago", "days", "versioned", "noncurrent", "end"),
    [
        (10, 30, False, 0, applied(NOW + timedelta(days=20))),
        (300, 30, False, 0, applied(NOW)),
        (10, 40, True, 10, applied(applied(NOW + timedelta(days=20)) + timedelta(days=10))),
        (300, 7, True, 2, applied(applied(NOW) + timedelta(days=2))),
        (300, 65, True, 60, applied(applied(NOW) + timedelta(days=60))),
    ],
    ids=["by its age", "a rule younger than it", "hidden by its age", "hidden now", "noncurrent days are not its age"],
)
def test_a_current_object_ends_when_the_rule_can_have_been_applied(
    days_ago: int, days: int, versioned: bool, noncurrent: int, end: datetime
) -> None:
    there = objects(version(days_ago), days=days, versioned=versioned, noncurrent_days=noncurrent)
    assert lapse_of(there, NOW) == end
    assert end > NOW


HIDDEN = {"key": "k", "delete_marker": True}
EARLIER = {"key": "k", "version_id": "m", "latest": False}


@pytest.mark.parametrize(
    ("others", "end"),
    [
        ([version(5, **HIDDEN)], applied(NOW + timedelta(days=25))),
        ([version(20, **EARLIER), version(1, **HIDDEN)], applied(NOW + timedelta(days=29))),
        ([version(20, **EARLIER | {"delete_marker": True}), version(1, **HIDDEN)], applied(NOW + timedelta(days=10))),
        ([version(50, **EARLIER), version(40, **HIDDEN)], applied(NOW)),
        ([version(300, **EARLIER), version(2, **HIDDEN)], applied(NOW + timedelta(days=28))),
        ([version(5, key="another", delete_marker=True)], applied(NOW + timedelta(days=30))),
    ],
    ids=["marker", "each its own", "marker and back", "long ago", "written in one second", "no successor listed"],
)
def test_old_versions_count_from_when_their_successor_came(others: list[ObjectVersion], end: datetime) -> None:
    old = version(300, key="k", version_id="0", latest=False)
    assert lapse_of(objects(old, *others, days=400, versioned=True, noncurrent_days=30), NOW) == end


def test_times_without_a_zone_are_utc() -> None:
    naive = version(0, modified="2026-11-01T00:00:00")
    there = objects(naive, days=365)
    assert lapse_of(there, NOW) == applied(datetime(2027, 11, 1, tzinfo=timezone.utc))


def test_names_that_tell_the_person_are_in_no_plan() -> None:
    """An object named after the person: its steps would name it to every reviewer."""
    telling = objects(version(20, key="p/user=asha@example.org.parquet"), version(20))
    told = Lake(objects=(telling,)).plan(retention=Retention.RETAIN, prices=PRICES)
    assert "asha@" in told.model_dump_json()
    made = Lake(objects=(telling,), named={"s3://b/p": 1}).plan(retention=Retention.RETAIN, prices=PRICES)
    assert "asha@" not in made.model_dump_json()
    assert of_archives(made) == {"c-b-p": Strategy.BLOCKED}
    (gap,) = [g for g in made.gaps if g.kind == "object_names"]
    assert gap.evidence == "s3://b/p"
    assert not made.complete
