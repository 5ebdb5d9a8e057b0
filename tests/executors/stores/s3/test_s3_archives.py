"""Archives that sleep: runs that park and go on, restores that lapse, archive tiers, and what it all cost."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from executors.stores.s3.executor import S3Executor
from pii_tracer.lake.stores.s3.archive_versions import discover_archives, iter_version_bytes, s3_clients
from pii_tracer.model.actions import Action
from pii_tracer.run.executor_protocol import PartlyDone
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.run_state import RunState, State
from tests.executors.stores.s3.s3_runs import (
    KEYS,
    OTHERS,
    PERSON,
    PREFIX,
    Bucket,
    Context,
    Now,
    body,
    users,
)
from tests.s3support import RESTORE_SECONDS, World, estate, standin, step, world

__all__ = ["standin", "world"]

PRICES = {"restore_gb": 1000.0, "archive_object": 2.5, "request_1000": 1.0}


def cold(world: World, storage: str, **more: Any) -> Bucket:
    bucket = world.new("cold")
    for n in range(2):
        world.put(bucket, f"{PREFIX}{n}.parquet", body(PERSON, OTHERS[n]), StorageClass=storage, **more)
    return Bucket(world.endpoint_url, bucket, windows={"restore_hours": 12, "restore_check_minutes": 30})


def readable(world: World, lake: Bucket) -> bool:
    """Whether the first object can be read at this moment."""
    try:
        world.get(lake.name, f"{PREFIX}0.parquet")
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidObjectState":
            raise
        return False
    return True


def resumed(lake: Bucket, plan: Any, journal: Path) -> RunState:
    """The run again, half an hour later."""
    lake.now.offset += timedelta(minutes=31)
    state = lake.attempt(plan, journal)
    assert state is not None
    assert state.failed == ()
    return state


def restored(world: World, lake: Bucket) -> None:
    """An hour later, when what was asked for can be read."""
    world.advance(RESTORE_SECONDS + 1)
    assert readable(world, lake)


def free_of_the_person(world: World, lake: Bucket) -> None:
    """One version of each object is left; the archived bytes are looked at in the end, restored once more."""
    found = sorted(world.client().list_object_versions(Bucket=lake.name)["Versions"], key=lambda v: v["Key"])
    assert len(found) == 2
    for item in found:
        world.client().restore_object(Bucket=lake.name, Key=item["Key"], RestoreRequest={"Days": 1})
    restored(world, lake)
    assert [users(world.get(lake.name, item["Key"])) for item in found] == [[OTHERS[0]], [OTHERS[1]]]


def manifested(world: World, folder: Path, *, versioned: bool = True) -> Bucket:
    """Two archived objects of the table, and one of another table, which the manifest names."""
    bucket = world.new("told", versioned=versioned)
    for n, people in enumerate([(PERSON, "2"), ("77",), ("2", "77")]):
        world.put(bucket, f"{PREFIX}{n}.parquet", body(*people), StorageClass="GLACIER")
    told = {f"{PREFIX}1.parquet": ["prod.a", "prod.z"], f"{PREFIX}2.parquet": ["prod.z"]}
    (folder / "manifest.json").write_text(json.dumps(told))
    windows = {"restore_hours": 12, "restore_check_minutes": 30}
    return Bucket(world.endpoint_url, bucket, windows=windows, more={"manifest": "manifest.json"}, base=folder)


def test_what_the_manifest_gives_to_other_tables_is_never_restored_or_read(world: World, tmp_path: Path) -> None:
    lake = manifested(world, tmp_path)
    plan, journal = lake.plan(), tmp_path / "journal.jsonl"
    [copy] = plan.copies
    assert copy.reason.endswith("; 1 version left out, which the archive's manifest assigns to other tables")
    assert [o.reason.partition(": ")[2] for o in plan.overrides if o.kind == "s3_manifest"] == [
        "1 version was not searched, which the archive's manifest assigns to other tables"
    ]
    [objects], _ = discover_archives(lake.estate, lake.clients, lake.base)
    assert objects.other_tables == ("prod.z",)
    assert lake.attempt(plan, journal) is not None
    restored(world, lake)
    assert resumed(lake, plan, journal).state is State.COMPLETE
    with pytest.raises(ClientError, match="InvalidObjectState"):
        world.get(lake.name, f"{PREFIX}2.parquet")
    written = {(v.key, v.version_id): v.sha256 or "" for v in known(world, lake)}
    verdict = lake.verdict(copy, written)
    assert (verdict.residue, verdict.unverified) == ((), ())
    assert len(verdict.files) == 2


def known(world: World, lake: Bucket) -> list[Any]:
    """What the bucket says of each version, as the journal of the run would know it."""
    return list(iter_version_bytes(world.client(), lake.name, PREFIX, lake.now()))


@pytest.mark.parametrize("versioned", [True, False])
def test_what_came_later_under_such_a_name_is_read(world: World, tmp_path: Path, versioned: bool) -> None:
    """The manifest speaks of the bytes that were there."""
    lake = manifested(world, tmp_path, versioned=versioned)
    [copy] = {c.location: c for c in lake.plan().copies}.values()
    world.put(lake.name, f"{PREFIX}2.parquet", body(PERSON))
    assert {r.file.partition("?")[0] for r in lake.verdict(copy).residue} == {f"{PREFIX}2.parquet"}


def test_whole_objects_go_without_a_restore(world: World, tmp_path: Path) -> None:
    lake = cold(world, "DEEP_ARCHIVE")
    world.put(lake.name, f"{PREFIX}0.parquet", body("2"), StorageClass="DEEP_ARCHIVE")
    world.put(lake.name, "elsewhere/0.parquet", body(PERSON))
    lake.more["delete_whole"] = "the lake has the same rows"
    plan, journal = lake.plan(), tmp_path / "journal.jsonl"
    assert len(world.versions(lake.name)) == 4
    state = lake.attempt(plan, journal)
    assert state is not None
    assert (state.state, state.failed) == (State.COMPLETE, ())
    assert [key for key, _ in world.versions(lake.name)] == ["elsewhere/0.parquet"]
    for copy in plan.copies:
        verdict = lake.verdict(copy)
        assert (verdict.residue, verdict.unverified, verdict.files) == ((), (), ())


@pytest.mark.parametrize("storage", ["GLACIER", "DEEP_ARCHIVE"])
def test_a_restore_parks_the_run_and_a_later_resume_goes_on(world: World, tmp_path: Path, storage: str) -> None:
    lake = cold(world, storage)
    plan, journal = lake.plan(), tmp_path / "journal.jsonl"
    first = lake.attempt(plan, journal)
    assert first is not None
    assert first.state is State.WAITING
    assert first.waiting_until is not None
    assert not readable(world, lake)
    restored(world, lake)
    # before the date nothing is asked
    waiting = lake.attempt(plan, journal)
    assert waiting is not None
    assert waiting.state is State.WAITING
    assert resumed(lake, plan, journal).state is State.COMPLETE
    free_of_the_person(world, lake)


def test_a_resume_after_the_restore_lapsed_asks_again(world: World, tmp_path: Path) -> None:
    lake = cold(world, "GLACIER")
    plan, journal = lake.plan(), tmp_path / "journal.jsonl"
    assert lake.attempt(plan, journal) is not None
    restored(world, lake)
    world.advance(3 * 86400)
    assert not readable(world, lake)
    assert resumed(lake, plan, journal).state is State.WAITING, "what had lapsed is asked for again"
    restored(world, lake)
    assert resumed(lake, plan, journal).state is State.COMPLETE
    free_of_the_person(world, lake)


def test_a_copy_that_lapses_before_the_rewrite_is_asked_for_by_the_rewrite(world: World) -> None:
    bucket = world.new("late")
    old = world.put(bucket, f"{PREFIX}0.parquet", body(PERSON, "2"), StorageClass="GLACIER")
    warm = world.put(bucket, f"{PREFIX}1.parquet", body(PERSON, "3"))
    executor = S3Executor(Context(estate(world.endpoint_url, prices=PRICES), KEYS, Now()))
    match = {"terms": [{"column": "uid", "key_set": "user.uid", "type": "bigint"}]}
    parameters = {"bucket": bucket, "plan_id": "p", "prefix": PREFIX, "format": "parquet", "match": match}
    work = step(Action.S3_REWRITE_ARCHIVE, parameters | {"objects": [old, warm]})
    # its restore step was verified long ago: only this step can still ask
    outcome = executor.run(work, None)
    assert outcome.waiting_until is not None
    assert outcome.facts["restored_again"]["requested"] == 1
    assert outcome.facts["rewritten"] == 1
    world.advance(RESTORE_SECONDS + 1)
    again = executor.run(work, None)
    assert again.waiting_until is None
    assert executor.verify(work, None).ok


def test_the_archive_tiers_of_intelligent_tiering_are_restored_too(world: World, tmp_path: Path) -> None:
    lake = cold(world, "INTELLIGENT_TIERING", Metadata={"standin-archive-status": "DEEP_ARCHIVE_ACCESS"})
    with pytest.raises(ClientError, match="InvalidObjectState"):
        world.get(lake.name, f"{PREFIX}0.parquet")
    plan, journal = lake.plan(), tmp_path / "journal.jsonl"
    first = lake.attempt(plan, journal)
    assert first is not None
    assert (first.state, first.failed) == (State.WAITING, ())
    restored(world, lake)
    assert resumed(lake, plan, journal).state is State.COMPLETE
    assert len(world.versions(lake.name)) == 2


def test_the_journal_says_what_it_cost_beside_what_was_planned(world: World, tmp_path: Path) -> None:
    lake = cold(world, "GLACIER")
    lake.more = {}
    plan, journal = lake.plan(), tmp_path / "journal.jsonl"
    lake.prices = PRICES
    assert lake.attempt(plan, journal) is not None
    restored(world, lake)
    resumed(lake, plan, journal)
    costs: dict[str, list[float]] = {}
    for record in Journal.open(journal).records:
        if record.kind in (Kind.STEP_RESULT, Kind.STEP_WAITING) and "cost" in record.facts.get("facts", {}):
            found = record.facts["facts"]["cost"]
            costs.setdefault(record.facts["step"].rpartition("/")[2][3:], []).append(found["actual"])
            assert found["currency"] == "INR"
    size = sum(v["size"] or 0 for s in plan.steps if s.action is Action.S3_RESTORE for v in s.parameters["versions"])
    assert costs["s3-restore"][0] == pytest.approx(size / 1e9 * 1000 + 0.002, abs=1e-3)
    assert costs["s3-rewrite-archive"] == [pytest.approx(2 * 2.5 + 0.002, abs=1e-3)]


# --- locks ---


def test_a_run_parks_until_the_lock_of_one_version_ends(world: World, tmp_path: Path) -> None:
    bucket = world.new("worm", ObjectLockEnabledForBucket=True)
    until = Now()() + timedelta(hours=1)
    lock = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until}
    version = world.put(bucket, f"{PREFIX}0.parquet", body(PERSON, "2"), **lock)
    world.put(bucket, f"{PREFIX}0.parquet", body(PERSON, "2", "3"))
    lake = Bucket(world.endpoint_url, bucket)
    plan, journal = lake.plan(), tmp_path / "journal.jsonl"
    state = lake.attempt(plan, journal)
    assert state is not None
    assert (state.state, state.failed) == (State.WAITING, ())
    assert state.waiting_until is not None
    assert abs(state.waiting_until - until) < timedelta(seconds=1)
    assert lake.verdict(plan.copies[0]).residue, "the locked version still holds the person, and the verifier sees it"
    world.end_lock(bucket, version, "COMPLIANCE")
    lake.now.offset = timedelta(hours=2)
    state = lake.attempt(plan, journal)
    assert state is not None
    assert (state.state, state.failed) == (State.COMPLETE, ())
    assert users(world.get(bucket, f"{PREFIX}0.parquet")) == ["2", "3"]
    assert len(world.versions(bucket)) == 1


def test_a_retention_that_is_over_is_not_asked_for_again_and_a_hold_stays(world: World, tmp_path: Path) -> None:
    bucket, client = world.new("lapsed", ObjectLockEnabledForBucket=True), world.client()
    later = (Now()() + timedelta(days=9)).replace(microsecond=0)
    lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": later}
    over, still, held = (f"{PREFIX}{name}.parquet" for name in ("over", "still", "held"))
    old = {key: world.put(bucket, key, body(PERSON, "2"), **lock) for key in (over, still, held)}
    for key in (over, held):
        world.end_lock(bucket, old[key], "GOVERNANCE")
    with pytest.raises(ClientError, match="must be in the future"):  # as a server refuses it
        world.put(bucket, "else", b"x", **lock | {"ObjectLockRetainUntilDate": Now()() - timedelta(days=1)})
    lake = Bucket(world.endpoint_url, bucket)
    plan = lake.plan()
    client.put_object_legal_hold(Bucket=bucket, Key=held, VersionId=old[held]["version_id"], LegalHold={"Status": "ON"})
    lake.attempt(plan, tmp_path / "journal.jsonl")
    heads = {key: client.head_object(Bucket=bucket, Key=key) for key in old}
    assert [users(world.get(bucket, key)) for key in old] == [["2"]] * 3
    asked = ("ObjectLockMode", "ObjectLockRetainUntilDate", "ObjectLockLegalHoldStatus")
    assert [heads[over].get(name) for name in asked] == [None, None, None]
    assert [heads[still].get(name) for name in asked] == ["GOVERNANCE", later, None]
    assert [heads[held].get(name) for name in asked] == [None, None, "ON"]


# --- bad input ---


class Refusing:
    """The real clients; one call is refused for keys or buckets that a test names."""

    def __init__(self, world: World, operation: str, code: str, where: str) -> None:
        self._clients, self._operation = s3_clients(estate(world.endpoint_url)), operation
        self._code, self._where = code, where

    def __call__(self, region: str | None) -> Any:
        client, outer = self._clients(region), self

        class Client:
            def __getattr__(self, name: str) -> Any:
                real = getattr(client, name)

                def call(**request: Any) -> Any:
                    if outer._where in (request.get("Bucket"), request.get("Key")):
                        raise ClientError({"Error": {"Code": outer._code, "Message": "secret"}}, name)
                    return real(**request)

                return call if name == outer._operation else real

        return Client()


@pytest.mark.parametrize("code", ["AccessDenied", "PermanentRedirect", "RequestTimeTooSkewed"])
def test_one_object_that_is_refused_does_not_stop_the_others(world: World, code: str) -> None:
    bucket = world.new("denied")
    olds = [world.put(bucket, f"{PREFIX}{n}.parquet", body(PERSON, OTHERS[n])) for n in range(3)]
    executor = S3Executor(
        Context(estate(world.endpoint_url), KEYS, Now()), Refusing(world, "get_object", code, olds[1]["key"])
    )
    match = {"terms": [{"column": "uid", "key_set": "user.uid", "type": "bigint"}]}
    parameters = {"bucket": bucket, "plan_id": "p", "prefix": PREFIX, "format": "parquet", "match": match}
    with pytest.raises(PartlyDone, match=code) as caught:
        executor.run(step(Action.S3_REWRITE_ARCHIVE, parameters | {"objects": olds}), None)
    assert [item["key"] for item in caught.value.facts["failed"]] == [olds[1]["key"]]
    assert caught.value.facts["rewritten"] == 2
    assert "secret" not in str(caught.value)
    assert [PERSON in users(world.get(bucket, old["key"])) for old in olds] == [False, True, False]


def test_a_bucket_that_is_refused_does_not_stop_the_others(world: World, tmp_path: Path) -> None:
    buckets = [world.new("one"), world.new("two")]
    for bucket in buckets:
        world.put(bucket, f"{PREFIX}0.parquet", body(PERSON, "2"))
    lakes = [Bucket(world.endpoint_url, bucket) for bucket in buckets]
    plans = [lake.plan() for lake in lakes]
    steps = tuple(s for plan in plans for s in plan.steps)
    both = plans[0].model_copy(update={"steps": steps, "copies": tuple(c for p in plans for c in p.copies)})
    lakes[0].routed = Refusing(world, "head_bucket", "403", buckets[0])
    state = lakes[0].attempt(both, tmp_path / "journal.jsonl")
    assert state is not None
    assert state.state is State.PARTIAL
    assert users(world.get(buckets[0], f"{PREFIX}0.parquet")) == [PERSON, "2"]
    assert users(world.get(buckets[1], f"{PREFIX}0.parquet")) == ["2"]
    assert len(world.versions(buckets[1])) == 1
    assert "403" in state.failed[0].reason


def test_a_key_that_disappears_meanwhile_is_told_and_the_rest_goes_on(world: World, tmp_path: Path) -> None:
    bucket = world.new("gone")
    for n in range(2):
        world.put(bucket, f"{PREFIX}{n}.parquet", body(PERSON, OTHERS[n]))
    lake = Bucket(world.endpoint_url, bucket)
    plan = lake.plan()
    world.client().delete_object(Bucket=bucket, Key=f"{PREFIX}0.parquet")
    state = lake.attempt(plan, tmp_path / "journal.jsonl")
    assert state is not None
    assert state.state is State.PARTIAL
    assert "the object is deleted" in state.failed[0].reason
    assert users(world.get(bucket, f"{PREFIX}1.parquet")) == [OTHERS[1]]
