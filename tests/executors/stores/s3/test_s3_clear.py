"""What a bucket keeps of a table's past goes, and nothing that is there now: versions first, then their markers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from executors.stores.masked_object_names import shown_names
from executors.stores.s3.clear_old_versions import cleared_at
from executors.stores.s3.executor import S3Executor
from pii_tracer.app.execution.attesting import step_facts
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.object_versions import versions_by_key
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    Match,
    MatchTerm,
    Strategy,
)
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import PartlyDone, Progress
from pii_tracer.run.journal import Journal
from pii_tracer.run.run_state import RunState, State
from pii_tracer.run.runner import run
from tests.executors.stores.s3.s3_runs import Deadly, Now
from tests.review.plans import plan
from tests.run.fakes import FakeLease, Killed
from tests.s3support import MATCH, PERSON, Context, World, estate, keyring, standin, step, world

__all__ = ["standin", "world"]

TABLE = "wh/orders/"
NOT_OURS = ("wh/orders2/", "wh/order-", "other/")


def clearing(bucket: str, **more: Any) -> Step:
    parameters = {"bucket": bucket, "plan_id": "plan_0001", "prefix": TABLE}
    return step(Action.S3_CLEAR_VERSIONS, parameters | more)


def made(world: World, **more: Any) -> str:
    """A table, and others beside it: of each a rewritten object, a deleted one, and one that was brought
    back."""
    bucket = world.new("clear", **more)
    client = world.client()
    for prefix in (TABLE, *NOT_OURS):
        for name in ("rewritten", "deleted", "back"):
            world.put(bucket, prefix + name, b"old " + PERSON.encode())
        world.put(bucket, prefix + "rewritten", b"older")
        world.put(bucket, prefix + "rewritten", b"new")
        for name in ("deleted", "back"):
            client.delete_object(Bucket=bucket, Key=prefix + name)
        world.put(bucket, prefix + "back", b"new")
    return bucket


def stored(world: World, bucket: str, prefix: str = "") -> set[tuple[str, str, bool]]:
    answer = world.client().list_object_versions(Bucket=bucket, Prefix=prefix)
    parts = (answer.get("Versions", ()), answer.get("DeleteMarkers", ()))
    return {(v["Key"], v["VersionId"], v["IsLatest"]) for part in parts for v in part}


def current(world: World, bucket: str) -> dict[str, bytes]:
    found = world.client().list_objects_v2(Bucket=bucket).get("Contents", ())
    return {item["Key"]: world.get(bucket, item["Key"]) for item in found}


def holding(world: World, bucket: str) -> int:
    """Versions of the table itself in which the person stands."""
    mine = world.client().list_object_versions(Bucket=bucket, Prefix=TABLE).get("Versions", ())
    return sum(PERSON.encode() in world.get(bucket, v["Key"], v["VersionId"]) for v in mine)


def test_the_past_of_a_table_goes_and_nothing_of_others(world: World) -> None:
    bucket, executor = made(world), world.executor()
    now, others = current(world, bucket), {place for p in NOT_OURS for place in stored(world, bucket, p)}
    assert holding(world, bucket) == 3, "deleted and rewritten objects hold the person as before"
    one = clearing(bucket)
    executor.check(one, None)
    assert not executor.verify(one, None).ok
    assert executor.probe(one, None) is Progress.PARTIAL
    facts = executor.run(one, None).facts
    assert len([v for v in facts["deleted"] if not v["delete_marker"]]) == 4
    assert len([v for v in facts["deleted"] if v["delete_marker"]]) == 2
    assert {"key", "version_id", "etag", "bytes", "delete_marker"} == facts["deleted"][0].keys()
    assert facts["cost"]["actual"] >= 0
    assert executor.verify(one, None).ok
    assert executor.probe(one, None) is Progress.DONE
    assert holding(world, bucket) == 0
    assert current(world, bucket) == now
    assert others <= stored(world, bucket)
    assert all(place[2] and place[0] in now for place in stored(world, bucket, TABLE))
    assert executor.run(one, None).facts["deleted"] == []


def test_a_bucket_without_versions_keeps_everything(world: World) -> None:
    bucket = world.new("plain", versioned=False)
    world.put(bucket, TABLE + "a", b"x")
    executor = world.executor()
    assert executor.run(clearing(bucket), None).facts["deleted"] == []
    assert executor.verify(clearing(bucket), None).ok
    assert current(world, bucket) == {TABLE + "a": b"x"}


def test_killed_at_each_request_and_run_again(world: World) -> None:
    for left in range(20):
        bucket = made(world.__class__(world.endpoint_url))
        now = current(world, bucket)
        deadly = Deadly(s3_clients(estate(world.endpoint_url)), left)
        context = Context(estate(world.endpoint_url), keyring())
        try:
            S3Executor(context, deadly).run(clearing(bucket), None)
        except Killed:
            assert current(world, bucket) == now
            executor = world.executor()
            if executor.probe(clearing(bucket), None) is not Progress.DONE:
                executor.run(clearing(bucket), None)
            assert executor.verify(clearing(bucket), None).ok
            assert holding(world, bucket) == 0
            assert current(world, bucket) == now
        else:
            break
    assert left == 4, "one request for the versions and one for the markers, before and after each"


def test_what_a_legal_hold_keeps_stays_deleted_and_is_told(world: World) -> None:
    bucket, executor = made(world, ObjectLockEnabledForBucket=True), world.executor()
    key = TABLE + "deleted"
    [held] = world.client().list_object_versions(Bucket=bucket, Prefix=key)["Versions"]
    which = {"Bucket": bucket, "Key": key, "VersionId": held["VersionId"]}
    world.client().put_object_legal_hold(**which, LegalHold={"Status": "ON"})
    now, one = current(world, bucket), clearing(bucket)
    with pytest.raises(PartlyDone, match=r"1 locked and 1 delete marker.*legal hold") as refused:
        executor.run(one, None)
    assert refused.value.facts["locked"] == [{"key": key, "version_id": held["VersionId"], "reason": "legal hold"}]
    assert len(refused.value.facts["markers_kept"]) == 1
    assert len(refused.value.facts["deleted"]) == 4
    assert current(world, bucket) == now, "without its marker the deleted object would be live"
    assert executor.verify(one, None).findings == (
        "1 old version and 1 delete marker is left",
        "locked: legal hold",
    )
    world.client().put_object_legal_hold(**which, LegalHold={"Status": "OFF"})
    assert len(executor.run(one, None).facts["deleted"]) == 2
    assert executor.verify(one, None).ok


def test_a_lock_with_a_date_is_waited_for(world: World) -> None:
    bucket = world.new("dated", ObjectLockEnabledForBucket=True)
    until = (datetime.now(timezone.utc) + timedelta(days=3)).replace(microsecond=0)
    world.put(bucket, TABLE + "a", b"old", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=until)
    world.put(bucket, TABLE + "a", b"new")
    outcome = world.executor().run(clearing(bucket), None)
    assert outcome.waiting_until == until
    assert [item["reason"] for item in outcome.facts["locked"]] == [f"object lock until {until.isoformat()}"]


def test_what_was_deleted_while_a_lock_was_waited_for_is_told_in_the_end(world: World, tmp_path: Path) -> None:
    bucket = world.new("awaited", ObjectLockEnabledForBucket=True)
    now, journal = Now(), tmp_path / "journal"
    until = now() + timedelta(seconds=5)
    world.put(bucket, TABLE + "a", b"old", ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=until)
    for name in ("a", "b", "b"):
        world.put(bucket, TABLE + name, b"new")
    one = plan([clearing(bucket).model_copy(update={"irreversible": True})], [])

    def go() -> State:
        executors = {"s3": S3Executor(Context(estate(world.endpoint_url), keyring(), now))}
        return run(one, executors, Journal.open(journal, now), clock=now, lease=FakeLease()).state

    assert go() is State.WAITING
    sleep(6)
    assert go() is State.COMPLETE
    facts = step_facts(Journal.open(journal, now).records)["step_1"]
    assert [item["key"] for item in facts["deleted"]] == [TABLE + "b", TABLE + "a"]


def test_what_writers_make_old_meanwhile_is_not_waited_for_for_ever(world: World) -> None:
    """A writer who commits every few seconds: after each look there is something old again."""
    bucket, told = made(world), list[dict[str, Any]]()
    context = Context(estate(world.endpoint_url), keyring(), told=lambda step: told)
    executor, one = S3Executor(context), clearing(bucket)
    told.append(dict(executor.run(one, None).facts))
    world.put(bucket, TABLE + "rewritten", b"newer")
    world.client().delete_object(Bucket=bucket, Key=TABLE + "back")
    assert executor.probe(one, None) is Progress.DONE
    check = executor.verify(one, None)
    assert check.ok
    told.append(dict(check.facts))
    assert not executor.verify(one, None).ok, (
        "verified, and looked at again because the person was found: everything counts"
    )
    told.append(dict(executor.run(one, None).facts))
    assert executor.verify(one, None).ok
    assert {place[2] for place in stored(world, bucket, TABLE)} == {True}


@pytest.mark.parametrize("inner", ["sub/_delta_log/0.json", "day=1/sub/.hoodie/x", "sub/metadata/v1.metadata.json"])
def test_somebodys_table_that_has_come_into_the_folder_loses_nothing(world: World, tmp_path: Path, inner: str) -> None:
    bucket, now = made(world), Now()
    theirs = world.put(bucket, TABLE + "sub/a", b"old")["version_id"]
    world.put(bucket, TABLE + "sub/a", b"new")
    marker = world.put(bucket, TABLE + inner, b"{}")["version_id"]
    before = stored(world, bucket)
    journal = Journal.open(tmp_path / "journal", now)
    one = plan([clearing(bucket).model_copy(update={"irreversible": True})], [])

    def go() -> RunState:
        return run(one, {"s3": world.executor()}, journal, clock=now, lease=FakeLease())

    state = go()
    assert (state.state, stored(world, bucket)) == (State.PARTIAL, before)
    [failed] = state.failed
    assert "this folder contains a different table" in failed.reason
    assert "day=1" not in repr(failed)
    for name, version in (("sub/a", theirs), (inner, marker)):  # moved away by its owner
        world.client().delete_object(Bucket=bucket, Key=TABLE + name, VersionId=version)
    assert go().state is State.COMPLETE
    assert holding(world, bucket) == 0


def test_what_was_old_before_counts_whatever_comes_after(world: World) -> None:
    bucket = made(world)
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    told = [{"cleared_before": later.isoformat()}]
    executor = S3Executor(Context(estate(world.endpoint_url), keyring(), told=lambda step: told))
    assert executor.verify(clearing(bucket), None).findings == ("4 old versions and 2 delete markers are left",)
    assert cleared_at(told) == later
    assert cleared_at([*told, {"left": 0}]) is None
    assert cleared_at([{"left": 0}, *told]) == later


def test_all_versions_of_a_key_come_together_however_pages_fall(world: World) -> None:
    bucket = made(world)
    real = world.client()

    @dataclass(frozen=True)
    class Paged:
        size: int

        def list_object_versions(self, **words: Any) -> Any:
            return real.list_object_versions(**words, MaxKeys=self.size)

    whole = {frozenset(v.version_id for v in group) for group in versions_by_key(real, bucket, "")}
    for size in (1, 2, 3, 5):
        groups = list(versions_by_key(Paged(size), bucket, ""))
        assert [len({v.key for v in group}) for group in groups] == [1] * len(groups)
        assert {frozenset(v.version_id for v in group) for group in groups} == whole
    assert len(whole) == 12


@pytest.mark.parametrize("wrong", [{"prefix": ""}, {"prefix": "/"}, {"prefix": "wh"}])
def test_a_whole_bucket_or_another_place_is_no_table(world: World, wrong: dict[str, Any]) -> None:
    with pytest.raises(RunError, match="parameters are not valid"):
        world.executor().run(clearing("b", **wrong), None)


def copy(match: Match | None) -> Copy:
    return Copy(
        id="c1",
        kind=CopyKind.SOURCE,
        dataset=DatasetId(namespace="s3://b", name="wh/orders"),
        table="sales.orders",
        location="s3://b/wh/orders",
        format=DELTA,
        carries=Carries.KEY,
        strategy=Strategy.DELETE_BY_KEY,
        columns=(),
        lineage=(),
        reason="test",
        match=match,
    )


def test_names_do_not_tell_whose_partition_it_was() -> None:
    context = Context(estate("http://127.0.0.1:1"), keyring())
    named = Match(terms=(*MATCH.terms, MatchTerm(column="Email", key_set="user_id", type="string")))
    shown = shown_names(context, copy(named))
    assert shown("wh/orders/day=2026-11-01/part-0.parquet") == "wh/orders/day=2026-11-01/part-0.parquet"
    assert shown(f"wh/orders/user_id={PERSON}/part-0.parquet") == "wh/orders/user_id=…/part-0.parquet"
    assert shown("wh/orders/email=b%40x.example/part-0.parquet") == "wh/orders/email=…/part-0.parquet"
    assert PERSON not in shown(f"wh/orders/of={PERSON}/part-0.parquet")
    assert PERSON not in shown(f"wh/orders/{PERSON}/part-0.parquet")
    assert shown_names(context, copy(None))("wh/orders/day=1/a") == "wh/orders/day=…/a"
