"""Archives in a plan: locks and holds, uploads, replicas that are fed and replicas that are not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from pii_tracer.config.estate_file import Prices
from pii_tracer.lake.inventory import (
    Inventory,
    ObjectLock,
    ObjectSet,
    ObjectVersion,
    Upload,
)
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import DatasetId, Strategy
from pii_tracer.model.plan import ErasurePlan, Step
from pii_tracer.review.drift import compare
from planners.schedule.step_dates import Retention
from tests.planners.smalllake import NOW, Lake, archive

UPLOAD = Upload(key="p/part.parquet", upload_id="u1", touched="2026-11-01T00:00:00Z")


def version(key: str = "p/x.parquet", version_id: str = "1", **more: Any) -> ObjectVersion:
    fields = {"key": key, "version_id": version_id, "latest": True, "size": 1, "modified": "2026-01-01", **more}
    return ObjectVersion.model_validate(fields)


def lock(days: float, mode: str = "COMPLIANCE") -> ObjectLock:
    return ObjectLock(mode=mode, until=(NOW + timedelta(days=days)).isoformat())


def replica(name: str = "c", of: str = "b", **more: Any) -> ObjectSet:
    return archive(
        bucket=name, dataset=DatasetId(namespace=f"s3://{name}", name="p"), replica_of=f"s3://{of}/p", **more
    )


def steps(plan: ErasurePlan, copy: str = "c-b-p") -> list[Step]:
    return [s for s in plan.steps if s.copy_ == copy and s.executor == "s3"]


def actions(plan: ErasurePlan, copy: str = "c-b-p") -> list[str]:
    return [s.action.value.removeprefix("s3_") for s in steps(plan, copy)]


def ids(step: Step) -> list[str]:
    return [v["version_id"] for v in step.parameters["versions"]]


# --- whole objects ---


def test_whole_objects_go_everywhere_only_with_a_reason_that_reviewers_see() -> None:
    old = version("p/x.parquet", "0", latest=False)
    sets = (archive(versions=(version(), old)), replica(fed=True, versions=(version(version_id="r"),)))
    assert "s3_delete_whole" not in [o.kind for o in Lake(objects=sets).plan().overrides]
    whole = tuple(s.model_copy(update={"delete_whole": "the lake has the same rows"}) for s in sets)
    plan = Lake(objects=whole).plan()
    assert [(o.kind, o.reason) for o in plan.overrides if o.kind == "s3_delete_whole"] == [
        ("s3_delete_whole", "s3://b/p: the lake has the same rows"),
        ("s3_delete_whole", "s3://c/p: the lake has the same rows"),
    ]
    assert {c.id: c.strategy for c in plan.copies if c.location.startswith("s3://")} == {
        "c-b-p": Strategy.DELETE_ARCHIVES,
        "c-b-p-versions": Strategy.DELETE_VERSIONS,
        "c-c-p": Strategy.DELETE_ARCHIVES,
    }
    for copy, versions in (("c-b-p", ["1"]), ("c-b-p-versions", ["0"]), ("c-c-p", ["r"])):
        [delete] = steps(plan, copy)
        assert (delete.action, ids(delete)) == (Action.S3_DELETE_VERSIONS, versions)
        assert delete.parameters["keep_latest_of"] == []
        assert delete.irreversible
    assert plan.applyable


# --- locks ---


def test_what_a_lock_keeps_is_a_step_of_its_own_that_begins_when_the_lock_ends() -> None:
    kept = version("p/y.parquet", "2", lock=lock(5))
    plan = Lake(objects=(archive(object_lock=True, versions=(version(), kept)),)).plan()
    assert actions(plan) == ["rewrite_archive", "delete_versions", "delete_versions"]
    _, now, later = steps(plan)
    assert (ids(now), ids(later)) == (["1"], ["2"])
    assert now.earliest_start < NOW + timedelta(hours=1)
    assert later.earliest_start == NOW + timedelta(days=5)
    assert "S3" in later.hazards
    assert later.parameters["object_lock"] is True
    assert later.parameters["bypass_governance"] is False
    assert plan.applyable


def test_a_delete_marker_waits_for_the_lock_of_what_is_behind_it() -> None:
    versions = (
        version(),
        version("p/dead.parquet", "m", delete_marker=True),
        version("p/dead.parquet", "v", latest=False, lock=lock(40)),
        version("p/free.parquet", "fm", delete_marker=True),
        version("p/free.parquet", "fv", latest=False),
    )
    plan = Lake(objects=(archive(object_lock=True, versions=versions),)).plan()
    now, later = steps(plan, "c-b-p-versions")
    assert (sorted(ids(now)), sorted(ids(later))) == (["fm", "fv"], ["m", "v"])
    assert later.earliest_start == NOW + timedelta(days=40)


def test_a_delete_knows_which_objects_were_deleted_when_it_was_planned() -> None:
    versions = (
        version(),
        version("p/x.parquet", "0", latest=False),
        version("p/dead.parquet", "m", delete_marker=True),
        version("p/dead.parquet", "v", latest=False),
    )
    for sets in ((archive(versions=versions),), (archive(versions=versions, delete_whole="the lake has the rows"),)):
        plan = Lake(objects=sets).plan()
        [delete] = steps(plan, "c-b-p-versions")
        assert delete.parameters["never_latest_of"] == ["p/dead.parquet"]
        assert "never_latest_of" not in steps(plan)[-1].parameters


def test_a_lock_beyond_the_deadline_cannot_be_met_and_the_review_says_so() -> None:
    objects = archive(object_lock=True, versions=(version(lock=lock(400)),))
    plan = Lake(objects=(objects,)).plan()
    assert not plan.schedules[0].meets_deadline
    assert any("cannot be met" in note for note in plan.schedules[0].notes)


def test_governance_is_set_aside_only_with_a_reason_that_reviewers_see() -> None:
    versions = (version("p/x.parquet", "1", lock=lock(9, "GOVERNANCE")), version("p/y.parquet", "2", lock=lock(5)))
    plan = Lake(objects=(archive(object_lock=True, versions=versions),)).plan()
    assert [o.kind for o in plan.overrides] == ["retention_immediate"]
    assert steps(plan)[-1].earliest_start == NOW + timedelta(days=9)
    objects = archive(object_lock=True, versions=versions, bypass_governance="the DPO's order 12")
    plan = Lake(objects=(objects,)).plan()
    assert [(o.kind, o.reason) for o in plan.overrides][1:] == [
        ("s3_bypass_governance", "s3://b/p: the DPO's order 12"),
    ]
    *_, now, later = steps(plan)
    assert (ids(now), ids(later)) == (["1"], ["2"])
    assert now.parameters["bypass_governance"]
    assert later.earliest_start == NOW + timedelta(days=5)


# --- uploads ---


def test_unfinished_uploads_are_aborted_first_and_alone_where_nothing_else_is_there() -> None:
    plan = Lake(objects=(archive(uploads=(UPLOAD,)),)).plan()
    assert actions(plan)[0] == "abort_uploads"
    [found] = [s for s in plan.steps if s.action is Action.S3_ABORT_UPLOADS]
    assert found.irreversible
    assert found.parameters["uploads"] == [UPLOAD.model_dump()]
    assert found.earliest_start < NOW + timedelta(hours=1)
    young = UPLOAD.model_copy(update={"touched": (NOW - timedelta(hours=4)).isoformat()})
    plan = Lake(objects=(archive(uploads=(UPLOAD, young)),)).plan()
    [found] = [s for s in plan.steps if s.action is Action.S3_ABORT_UPLOADS]
    assert found.earliest_start == NOW + timedelta(hours=20)
    assert found.parameters["idle_hours"] == 24
    plan = Lake(objects=(archive(versions=(), uploads=(UPLOAD,)),)).plan()
    assert actions(plan) == ["abort_uploads"]


# --- replicas ---


def test_a_replica_that_is_fed_waits_for_its_origin_and_one_that_is_not_is_rewritten() -> None:
    plan = Lake(objects=(archive(), replica(fed=True))).plan()
    assert actions(plan, "c-c-p") == ["await_replica", "delete_versions"]
    plan = Lake(objects=(archive(), replica(fed=False))).plan()
    assert actions(plan, "c-c-p") == ["rewrite_archive", "delete_versions"]
    assert plan.copy_by_id("c-c-p").strategy.value == "restore_rewrite_archive"


def test_the_end_of_a_cascade_is_rewritten_for_no_replica_is_replicated_again() -> None:
    plan = Lake(objects=(archive(), replica(fed=True), replica("d", of="c"))).plan()
    assert actions(plan, "c-d-p") == ["rewrite_archive", "delete_versions"]


def test_what_only_the_replica_still_has_is_rewritten_there() -> None:
    gone = version("p/gone.parquet", "7")
    marker = version("p/dead.parquet", "8", delete_marker=True)
    dead = version("p/dead.parquet", "9", latest=False)
    there = replica(fed=True, versions=(*archive().versions, gone, marker, dead))
    plan = Lake(objects=(archive(), there)).plan()
    assert actions(plan, "c-c-p") == ["rewrite_archive", "await_replica", "delete_versions"]
    rewrite, wait, delete = steps(plan, "c-c-p")
    assert [o["key"] for o in rewrite.parameters["objects"]] == ["p/gone.parquet"]
    assert wait.parameters["keys"] == ["p/x.parquet"]
    assert sorted(ids(delete)) == ["0", "1", "7", "8", "9"]
    # nothing of a key that is deleted there must outlive the step
    assert delete.parameters["keep_latest_of"] == ["p/gone.parquet", "p/x.parquet"]


def test_a_replica_whose_origin_is_empty_now_is_planned_by_itself() -> None:
    plan = Lake(objects=(archive(versions=()), replica(fed=True))).plan()
    assert actions(plan, "c-c-p") == ["rewrite_archive", "delete_versions"]


def dead(**more: Any) -> tuple[ObjectVersion, ...]:
    """An object that its owner deleted."""
    return (
        version("p/dead.parquet", "m", delete_marker=True),
        version("p/dead.parquet", "v", latest=False, **more),
    )


def back(plan: ErasurePlan) -> list[str]:
    return [g.id for g in plan.gaps if g.kind == "s3_replicated_back"]


def test_what_a_rewrite_elsewhere_would_bring_back_is_a_gap_that_names_both_buckets() -> None:
    origin = archive(versions=(*archive().versions, *dead()), copied_to=(("c", "p"),))
    kept = (*archive().versions, version("p/dead.parquet", "7"))
    there = replica(fed=True, versions=kept, copied_to=(("b", ""),))
    plan = Lake(objects=(origin, there)).plan()
    [gap] = [g for g in plan.gaps if g.kind == "s3_replicated_back"]
    assert gap.id == "gap-s3_replicated_back-c-p-b"
    assert "1 object is still in the bucket c, but no longer in b" in gap.reason
    assert "Switch off the rule from c to b" in gap.reason
    assert not plan.applyable
    # the rule back is off, is about other names, or no rewrite is planned there
    for rules, whole in (((), None), ((("b", "p/other"),), None), ((("d", ""),), None), ((("b", ""),), "same rows")):
        sets = (o.model_copy(update={"delete_whole": whole}) for o in (origin, there))
        sets = tuple(o.model_copy(update={"copied_to": rules}) if o.bucket == "c" else o for o in sets)
        plan = Lake(objects=sets).plan()
        assert back(plan) == []
        assert plan.applyable


def test_an_object_that_was_deleted_in_the_replica_alone_is_not_brought_back_there() -> None:
    origin = archive(versions=(*archive().versions, version("p/dead.parquet", "7")), copied_to=(("c", ""),))
    there = replica(fed=True, versions=(*archive().versions, *dead()))
    assert back(Lake(objects=(origin, there)).plan()) == ["gap-s3_replicated_back-b-p-c"]
    off = origin.model_copy(update={"copied_to": ()}), there.model_copy(update={"fed": False})
    plan = Lake(objects=off).plan()
    assert plan.applyable
    [delete] = [s for s in steps(plan, "c-c-p") if s.action is Action.S3_DELETE_VERSIONS]
    assert delete.parameters["never_latest_of"] == ["p/dead.parquet"]


def test_what_is_gone_with_every_version_is_brought_back_only_where_it_came_from() -> None:
    kept = version("p/purged.parquet", "7")
    more = (*archive().versions, kept)
    ring = (("c", ""),), (("b", ""),)
    for origin_has, there_has, (to_c, to_b), gaps in (
        (archive().versions, more, ring, ["gap-s3_replicated_back-c-p-b"]),
        (more, archive().versions, ring, ["gap-s3_replicated_back-b-p-c"]),
        # the rule that is switched off is the wrong one
        (archive().versions, more, ((), (("b", ""),)), ["gap-s3_replicated_back-c-p-b"]),
        (archive().versions, more, ((("c", ""),), ()), []),
        # it was written before there was a rule: nobody deleted it
        (more, archive().versions, ((("c", ""),), ()), []),
        (more, more, ring, []),
    ):
        sets = archive(versions=origin_has, copied_to=to_c), replica(fed=bool(to_c), versions=there_has, copied_to=to_b)
        assert back(Lake(objects=sets).plan()) == gaps


def test_a_rule_that_is_switched_on_after_planning_is_drift_and_one_switched_off_is_not() -> None:
    quiet, copied = archive(), archive(copied_to=(("c", "p"),))
    for planned, now, drifts in ((quiet, quiet, 0), (quiet, copied, 1), (copied, copied, 0), (copied, quiet, 0)):
        plan = Lake(objects=(planned,)).plan()
        s3 = plan.model_copy(update={"steps": tuple(steps(plan))})
        found = compare(s3, Inventory(tables=(), objects=(now,)))
        assert [(item.kind, item.found, item.hard) for item in found] == [("replication", "to c: p", True)] * drifts


# --- cold classes ---


@pytest.mark.parametrize("storage", ["GLACIER", "DEEP_ARCHIVE", "INTELLIGENT_TIERING"])
def test_what_may_be_archived_is_restored_first_in_its_window(storage: str) -> None:
    plan = Lake(objects=(archive(versions=(version(storage_class=storage),)),)).plan(retention=Retention.RETAIN)
    assert actions(plan) == ["restore", "rewrite_archive", "delete_versions"]
    finish: datetime = steps(plan)[0].earliest_finish
    assert finish > NOW


# --- costs ---


@pytest.mark.parametrize(("storage", "days"), [("GLACIER", 90), ("DEEP_ARCHIVE", 180), ("STANDARD", 0)])
def test_deleting_before_the_minimum_stay_costs_the_days_that_are_left(storage: str, days: int) -> None:
    prices = Prices(storage_gb_month=6.0)
    young = version(storage_class=storage, size=10**9, modified=(NOW - timedelta(days=60)).isoformat())
    old = version("p/y.parquet", "2", storage_class=storage, size=10**9, modified="2020-01-01T00:00:00Z")
    plan = Lake(objects=(archive(versions=(young, old)),)).plan(prices=prices, retention=Retention.IMMEDIATE)
    fee = steps(plan)[-1].estimate.cost
    # 6 a month for one GB: the hours that the plan itself takes are of no weight
    assert fee == pytest.approx(max(0, days - 60) / 30 * 6.0, abs=0.2)
