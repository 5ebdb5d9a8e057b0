"""What keeps bytes in a bucket beyond versions: locks, unfinished uploads, lifecycle rules that are waited for."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from executors.stores.s3.executor import S3Executor
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.locks_and_uploads import iter_uploads
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Step
from pii_tracer.run.executor_protocol import PartlyDone, Progress
from tests.s3support import PERSON, PLAN, Context, World, estate, keyring, parquet, standin, step, table, world

__all__ = ["standin", "world"]

KEY = "archive/2026.parquet"
BODY = parquet(table(["1", PERSON, "2"]))


class Counting:
    """The real clients, with every DeleteObjects counted by the versions it named."""

    def __init__(self, world: World) -> None:
        self._clients = s3_clients(estate(world.endpoint_url))
        self.asked: list[str] = []
        self.bypassed: list[bool] = []

    def __call__(self, region: str | None) -> Any:
        client = self._clients(region)
        outer = self

        class Watched:
            def __getattr__(self, name: str) -> Any:
                return getattr(client, name)

            def delete_objects(self, **request: Any) -> Any:
                outer.asked += [item["VersionId"] for item in request["Delete"]["Objects"]]
                outer.bypassed.append(request.get("BypassGovernanceRetention", False))
                return client.delete_objects(**request)

        return Watched()


def executor(world: World, clients: Any = None, now: datetime | None = None) -> S3Executor:
    context = Context(estate(world.endpoint_url), keyring())
    return S3Executor(replace(context, now=lambda: now) if now else context, clients)


def removal(bucket: str, versions: list[dict[str, Any]], **more: Any) -> Step:
    parameters = {"bucket": bucket, "plan_id": PLAN, "versions": versions, "object_lock": True}
    return step(Action.S3_DELETE_VERSIONS, parameters | more)


def locked(world: World, bucket: str, mode: str, seconds: float) -> dict[str, Any]:
    until = datetime.now(timezone.utc) + timedelta(seconds=seconds)
    return world.put(bucket, KEY, BODY, ObjectLockMode=mode, ObjectLockRetainUntilDate=until)


# --- Object Lock ---


@pytest.mark.parametrize("mode", ["COMPLIANCE", "GOVERNANCE"])
def test_a_locked_version_is_waited_for_and_never_tried_before_its_date(world: World, mode: str) -> None:
    bucket = world.new("worm", ObjectLockEnabledForBucket=True)
    free = world.put(bucket, KEY, BODY)
    kept = locked(world, bucket, mode, 3600)
    counting = Counting(world)
    work = removal(bucket, [free, kept])
    # the naive way: the version that is named is refused, and the person stays
    with pytest.raises(Exception, match="AccessDenied"):
        world.client().delete_object(Bucket=bucket, Key=KEY, VersionId=kept["version_id"])
    outcome = executor(world, counting).run(work, None)
    assert outcome.waiting_until is not None
    assert [item["version_id"] for item in outcome.facts["deleted"]] == [free["version_id"]]
    assert outcome.facts["locked"][0]["reason"].startswith("object lock until ")
    assert executor(world, counting).probe(work, None) is Progress.PARTIAL
    assert not executor(world, counting).verify(work, None).ok
    again = executor(world, counting).run(work, None)
    assert again.waiting_until == outcome.waiting_until
    assert counting.asked == [free["version_id"]]
    world.end_lock(bucket, kept, mode)
    assert executor(world, counting).run(work, None).waiting_until is None
    assert executor(world, counting).verify(work, None).ok
    assert world.versions(bucket) == []


def test_governance_is_bypassed_only_where_the_plan_says_so_and_compliance_never(world: World) -> None:
    bucket = world.new("gov", ObjectLockEnabledForBucket=True)
    strict = locked(world, bucket, "COMPLIANCE", 3600)
    soft = locked(world, bucket, "GOVERNANCE", 3600)
    counting = Counting(world)
    assert executor(world, counting).run(removal(bucket, [strict, soft]), None).waiting_until is not None
    assert counting.asked == []
    approved = removal(bucket, [strict, soft], bypass_governance=True)
    outcome = executor(world, counting).run(approved, None)
    assert outcome.waiting_until is not None
    assert outcome.facts["governance_bypassed"] == 1
    assert (counting.asked, counting.bypassed) == ([soft["version_id"]], [True])
    assert world.versions(bucket) == [(KEY, strict["version_id"])]


def test_a_legal_hold_stands_until_its_owner_releases_it(world: World) -> None:
    bucket = world.new("hold", ObjectLockEnabledForBucket=True)
    held, free = (world.put(bucket, KEY, BODY) for _ in range(2))
    which = {"Bucket": bucket, "Key": KEY, "VersionId": held["version_id"]}
    world.client().put_object_legal_hold(**which, LegalHold={"Status": "ON"})
    counting = Counting(world)
    work = removal(bucket, [held, free], bypass_governance=True)
    with pytest.raises(PartlyDone, match="legal hold") as caught:
        executor(world, counting).run(work, None)
    assert counting.asked == [free["version_id"]]
    assert caught.value.facts["locked"] == [{"key": KEY, "version_id": held["version_id"], "reason": "legal hold"}]
    world.client().put_object_legal_hold(**which, LegalHold={"Status": "OFF"})
    assert executor(world, counting).run(work, None).waiting_until is None
    assert world.versions(bucket) == []


def test_the_servers_clock_decides_whether_a_lock_is_over(world: World) -> None:
    bucket = world.new("skew", ObjectLockEnabledForBucket=True)
    kept = locked(world, bucket, "COMPLIANCE", 3600)
    ahead = datetime.now(timezone.utc) + timedelta(days=30)
    counting = Counting(world)
    assert executor(world, counting, ahead).run(removal(bucket, [kept]), None).waiting_until is not None
    assert counting.asked == []


# --- unfinished uploads ---


def upload(world: World, bucket: str, key: str = KEY) -> dict[str, str]:
    """An unfinished upload whose one part holds the person, as a plan names it."""
    client = world.client()
    made = client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    client.upload_part(Bucket=bucket, Key=key, UploadId=made, PartNumber=1, Body=BODY)
    [found] = [u for u in iter_uploads(client, bucket, key) if u.upload_id == made]
    return found.model_dump()


def abort(bucket: str, uploads: list[dict[str, str]], idle_hours: int = 0) -> Step:
    parameters = {"bucket": bucket, "prefix": "archive/", "uploads": uploads, "plan_id": PLAN}
    return step(Action.S3_ABORT_UPLOADS, parameters | {"idle_hours": idle_hours})


def open_uploads(world: World, bucket: str) -> list[str]:
    return [u["UploadId"] for u in world.client().list_multipart_uploads(Bucket=bucket).get("Uploads", ())]


def test_unfinished_uploads_outlive_every_version_until_they_are_aborted(world: World) -> None:
    bucket = world.new("parts")
    old = world.put(bucket, KEY, BODY)
    ours = [upload(world, bucket, f"archive/{i}") for i in range(2)]
    theirs = upload(world, bucket, "archive/other")
    runner = executor(world)
    runner.run(removal(bucket, [old], object_lock=False), None)
    assert world.versions(bucket) == []
    assert len(open_uploads(world, bucket)) == 3  # the naive way: no listing of objects shows them
    work = abort(bucket, ours)
    assert runner.probe(work, None) is Progress.NOT_STARTED
    # killed in the middle
    world.client().abort_multipart_upload(Bucket=bucket, Key=ours[0]["key"], UploadId=ours[0]["upload_id"])
    assert runner.probe(work, None) is Progress.PARTIAL
    facts = runner.run(work, None).facts
    assert ([u["upload_id"] for u in facts["aborted"]], facts["already_gone"]) == ([ours[1]["upload_id"]], 1)
    assert runner.verify(work, None).ok
    assert runner.probe(work, None) is Progress.DONE
    assert open_uploads(world, bucket) == [theirs["upload_id"]]
    assert runner.run(work, None).facts["already_gone"] == 2


def test_an_upload_that_somebody_still_writes_is_left_to_them(world: World) -> None:
    bucket = world.new("busy")
    idle, busy = upload(world, bucket, "archive/idle"), upload(world, bucket, "archive/busy")
    busy["touched"] = "2026-11-20T00:00:00Z"  # what the plan saw, before the newest part came
    with pytest.raises(PartlyDone, match="an upload is still running") as caught:
        executor(world).run(abort(bucket, [busy]), None)
    assert caught.value.facts["failed"][0]["upload_id"] == busy["upload_id"]
    # one that was touched within the last day may have a slow writer
    outcome = executor(world).run(abort(bucket, [idle], idle_hours=24), None)
    assert outcome.waiting_until is not None
    assert outcome.waiting_until - datetime.now(timezone.utc) > timedelta(hours=23)
    assert set(open_uploads(world, bucket)) == {idle["upload_id"], busy["upload_id"]}


# --- lifecycle ---


def lapse(bucket: str, versions: list[dict[str, Any]], now: datetime) -> Step:
    dates = {"until": (now + timedelta(days=9)).isoformat(), "give_up": (now + timedelta(days=12)).isoformat()}
    days = {"expires_after_days": 30, "noncurrent_days": 1}
    parameters = {"bucket": bucket, "prefix": "archive/", "versions": versions, **days, **dates}
    return step(Action.S3_AWAIT_EXPIRY, parameters)


def rules(world: World, bucket: str, days: int, noncurrent: int = 1) -> None:
    rule = {
        "ID": "old",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "Expiration": {"Days": days - noncurrent},
        "NoncurrentVersionExpiration": {"NoncurrentDays": noncurrent},
    }
    world.client().put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})


def test_what_a_lifecycle_removes_is_waited_for_and_looked_at(world: World) -> None:
    bucket, now = world.new("lapse"), datetime.now(timezone.utc)
    old = world.put(bucket, KEY, BODY)
    newer = world.put(bucket, KEY, BODY)
    work = lapse(bucket, [old], now)
    with pytest.raises(RunError, match="rules changed"):
        executor(world, now=now).check(work, None)
    for days, noncurrent in ((31, 1), (30, 29)):  # the same sum, counted from another day
        rules(world, bucket, days, noncurrent)
        with pytest.raises(RunError, match="rules changed"):
            executor(world, now=now).check(work, None)
    rules(world, bucket, 30)
    executor(world, now=now).check(work, None)
    assert executor(world, now=now).run(work, None).waiting_until == now + timedelta(days=9)
    late = now + timedelta(days=10)
    assert executor(world, now=late).run(work, None).waiting_until == late + timedelta(hours=6)
    assert not executor(world, now=late).verify(work, None).ok
    with pytest.raises(RunError, match="not removed, although"):
        executor(world, now=now + timedelta(days=12)).run(work, None)
    # the rule acts at last, on the old version alone
    world.client().delete_object(Bucket=bucket, Key=KEY, VersionId=old["version_id"])
    facts = executor(world, now=late).run(work, None).facts
    assert (facts["left"], facts["lapsed"]) == (0, 1)
    assert executor(world, now=late).verify(work, None).ok
    assert world.versions(bucket) == [(KEY, newer["version_id"])]
