"""What its owner deleted must not be live again because of us: delete markers go after what stands behind them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from executors.stores.s3.delete_markers import hiding
from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.archive_versions import discover_archives
from pii_tracer.model.actions import Action
from pii_tracer.model.plan import Step
from pii_tracer.run.executor_protocol import PartlyDone, Progress
from pii_tracer.run.run_state import State
from tests.executors.stores.s3.s3_runs import (
    OTHERS,
    PERSON,
    PREFIX,
    Bucket,
    Now,
    body,
    users,
)
from tests.planners.smalllake import Lake
from tests.s3support import PLAN, World, standin, step, world

__all__ = ["standin", "world"]

KEY = f"{PREFIX}gone.parquet"
LIVE = f"{PREFIX}live.parquet"
BODY = body(PERSON, OTHERS[0])


def deleted(world: World, bucket: str, key: str = KEY, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """An object that its owner deleted: its version and the marker, as a plan names them."""
    version = world.put(bucket, key, BODY, **more)
    marker = world.client().delete_object(Bucket=bucket, Key=key)["VersionId"]
    return version, {"key": key, "version_id": marker}


def live(world: World, bucket: str, key: str = KEY) -> bool:
    found = world.client().list_objects_v2(Bucket=bucket, Prefix=key)
    return bool(found["KeyCount"])


def removal(bucket: str, *versions: dict[str, Any], **more: Any) -> Step:
    parameters = {"bucket": bucket, "plan_id": PLAN, "versions": versions, "object_lock": True}
    return step(Action.S3_DELETE_VERSIONS, parameters | more)


def hold(world: World, bucket: str, version: dict[str, Any], status: str = "ON") -> None:
    which = {"Bucket": bucket, "Key": version["key"], "VersionId": version["version_id"]}
    world.client().put_object_legal_hold(**which, LegalHold={"Status": status})


def test_a_deleted_object_whose_version_is_locked_stays_deleted_until_the_lock_ends(
    world: World, tmp_path: Path
) -> None:
    bucket = world.new("lockmark", ObjectLockEnabledForBucket=True)
    until = Now()() + timedelta(days=40)
    lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": until}
    version, _ = deleted(world, bucket, **lock)
    deleted(world, bucket, f"{PREFIX}free.parquet")
    world.put(bucket, LIVE, body(PERSON, OTHERS[1]))
    lake = Bucket(world.endpoint_url, bucket)
    plan, journal = lake.plan(), tmp_path / "journal.jsonl"
    state = lake.attempt(plan, journal)
    assert state is not None
    assert (state.state, state.failed) == (State.WAITING, ())
    assert not live(world, bucket)
    # only the object whose version could go is gone with its marker
    assert {key for key, _ in world.versions(bucket)} == {KEY, LIVE}
    world.end_lock(bucket, version, "GOVERNANCE")
    lake.now.offset = timedelta(days=41)
    state = lake.attempt(plan, journal)
    assert state is not None
    assert (state.state, state.failed) == (State.COMPLETE, ())
    assert {key for key, _ in world.versions(bucket)} == {LIVE}


def test_a_marker_stays_when_its_version_is_refused_in_the_same_step(world: World) -> None:
    bucket = world.new("refused", ObjectLockEnabledForBucket=True)
    version, marker = deleted(world, bucket)
    other = deleted(world, bucket, LIVE)
    hold(world, bucket, version)
    runner = world.executor()
    # a caller that may not read locks learns of one by AccessDenied alone
    for known in (False, True):
        work = removal(bucket, version, marker, *other, object_lock=known)
        with pytest.raises(PartlyDone, match="below its delete marker") as caught:
            runner.run(work, None)
        assert not live(world, bucket)
        assert caught.value.facts["markers_kept"] == [{"key": KEY, "version_id": marker["version_id"]}]
        assert sorted(world.versions(bucket)) == sorted((v["key"], v["version_id"]) for v in (version, marker))
        assert runner.probe(work, None) is Progress.PARTIAL
        assert not runner.verify(work, None).ok
    hold(world, bucket, version, "OFF")
    runner.run(work, None)
    assert (world.versions(bucket), runner.probe(work, None)) == ([], Progress.DONE)


def test_a_marker_that_hides_what_the_step_does_not_name_is_kept(world: World) -> None:
    bucket = world.new("else")
    version, marker = deleted(world, bucket)
    more = deleted(world, bucket, LIVE)
    runner, work = world.executor(), removal(bucket, marker, *more, object_lock=False)
    with pytest.raises(PartlyDone, match="below its delete marker"):
        runner.run(work, None)
    assert not live(world, bucket)
    assert {key for key, _ in world.versions(bucket)} == {KEY}
    assert not runner.verify(work, None).ok
    world.client().delete_object(Bucket=bucket, Key=KEY, VersionId=version["version_id"])
    assert runner.run(work, None).facts["deleted"][0]["delete_marker"]
    assert world.versions(bucket) == []


def test_what_is_in_front_of_a_marker_does_not_hold_it(world: World) -> None:
    bucket = world.new("front")
    listed = [*deleted(world, bucket), *deleted(world, bucket)]
    newest = world.put(bucket, KEY, body(OTHERS[2]))
    world.executor().run(removal(bucket, *listed, object_lock=False), None)
    assert world.versions(bucket) == [(KEY, newest["version_id"])]


def test_times_tell_what_stands_behind_a_marker() -> None:
    def made(second: int, **more: Any) -> ObjectVersion:
        fields = {"key": "k", "version_id": f"{second}", "latest": False, "size": 1, "modified": f"2026-01-0{second}"}
        return ObjectVersion.model_validate(fields | more)

    marker, newest = made(2, delete_marker=True), made(2, delete_marker=True, latest=True)
    for other, behind in (
        (made(1), True),
        (made(2), True),
        (made(3), False),
        (made(2, latest=True), False),
        (made(1, delete_marker=True), False),
        (made(1, key="another"), False),
    ):
        assert hiding([marker], [other]) == [marker] * behind
    assert hiding([newest], [made(3)]) == [newest]


# --- what its owner brought back ---


def test_an_object_that_its_owner_brings_back_while_the_run_is_parked_is_not_deleted(
    world: World, tmp_path: Path
) -> None:
    bucket = world.new("undeleted")
    version, marker = deleted(world, bucket)
    deleted(world, bucket, f"{PREFIX}other.parquet")
    world.put(bucket, LIVE, body(PERSON, OTHERS[1]), StorageClass="GLACIER")
    lake = Bucket(world.endpoint_url, bucket)
    plan, journal = lake.plan(), tmp_path / "journal.jsonl"
    state = lake.attempt(plan, journal)
    assert state is not None
    assert state.state is State.WAITING
    world.client().delete_object(Bucket=bucket, Key=KEY, VersionId=marker["version_id"])
    assert live(world, bucket)
    world.advance()
    lake.now.offset += timedelta(hours=2)
    state = lake.attempt(plan, journal)
    assert state is not None
    assert state.state is State.PARTIAL
    [failure] = state.failed
    assert "wrote the object again" in failure.reason
    assert "make a new plan" in failure.todo
    assert users(world.get(bucket, KEY)) == [PERSON, OTHERS[0]]
    # the rest went on
    assert sorted(key for key, _ in world.versions(bucket)) == [KEY, LIVE]
    assert (KEY, version["version_id"]) in world.versions(bucket)
    # another plan knows it as an object that is there
    [rewrite] = [s for s in lake.plan().steps if s.action is Action.S3_REWRITE_ARCHIVE]
    assert KEY in [item["key"] for item in rewrite.parameters["objects"]]


def test_a_null_version_that_was_a_marker_and_is_an_object_now_is_not_deleted(world: World) -> None:
    bucket = world.new("null", versioned=False)
    world.put(bucket, KEY, body(*OTHERS))  # where versioning is suspended this takes the place of a marker
    marker = {"key": KEY, "version_id": "null"}
    work = removal(bucket, marker, object_lock=False, never_latest_of=[KEY])
    with pytest.raises(PartlyDone, match="wrote the object again"):
        world.executor().run(work, None)
    assert users(world.get(bucket, KEY)) == [*OTHERS]


def test_a_newer_object_under_the_name_of_a_deleted_one_holds_nothing_back(world: World) -> None:
    bucket = world.new("anew")
    listed = deleted(world, bucket)
    newest = world.put(bucket, KEY, body(*OTHERS))
    world.executor().run(removal(bucket, *listed, object_lock=False, never_latest_of=[KEY]), None)
    assert world.versions(bucket) == [(KEY, newest["version_id"])]


# --- what replication would bring back ---


def test_rules_in_both_directions_do_not_bring_a_deleted_object_back(world: World, tmp_path: Path) -> None:
    here, there = world.new("here"), world.new("there")
    world.replicate(here, there)
    world.replicate(there, here)
    deleted(world, here)
    world.put(here, LIVE, body(PERSON, OTHERS[1]))
    assert (live(world, here), live(world, there)) == (False, True)
    lake = Bucket(world.endpoint_url, here)
    found, _ = discover_archives(lake.estate, lake.clients, lake.base)
    [gap] = [gap for gap in Lake(objects=found).plan().gaps if gap.waiver is None]
    assert gap.kind == "s3_replicated_back"
    assert f"Switch off the rule from {there} to {here}" in gap.reason
    # what would come of it: every new object there is copied here
    world.put(there, KEY, body(OTHERS[0]))
    assert live(world, here)
    world.client().delete_object(Bucket=here, Key=KEY)
    # its owner switches off the rule back
    world.replicate(there, here, status="Disabled")
    plan, journal = lake.plan(), tmp_path / "journal.jsonl"
    state = lake.attempt(plan, journal)
    assert state is not None
    assert (state.state, state.failed) == (State.COMPLETE, ())
    assert (live(world, here), live(world, there)) == (False, True)
    assert [users(world.get(bucket, LIVE)) for bucket in (here, there)] == [[OTHERS[1]]] * 2
    assert users(world.get(there, KEY)) == [OTHERS[0]]
    assert all(not lake.verdict(copy).residue for copy in plan.copies)
