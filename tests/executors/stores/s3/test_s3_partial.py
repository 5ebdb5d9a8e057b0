"""One object that cannot be read or written anew holds up nothing but itself, and nothing is called done before it is."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from executors.stores.s3.step_base import read
from pii_tracer.app.execution.run_outputs import rows_deleted, step_facts
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.run_state import RunState, State
from tests.executors.stores.s3.s3_runs import (
    PERSON,
    PREFIX,
    Bucket,
    Deadly,
    body,
    users,
)
from tests.run.history import violations
from tests.s3support import RESTORE_SECONDS, World, cut_short, standin, world

__all__ = ["standin", "world"]

GOOD, BAD = f"{PREFIX}a.parquet", f"{PREFIX}b.parquet"


def planted(world: World, name: str, **more: Any) -> Bucket:
    """Two objects that hold the person, each with an old version that does; the tag of one names the person."""
    bucket = world.new(name)
    for key, other in ((GOOD, "2"), (BAD, "77")):
        world.put(bucket, key, body(PERSON), **more)
        world.put(bucket, key, body(PERSON, other), **more)
    told(world, bucket, PERSON)
    return Bucket(world.endpoint_url, bucket)


def told(world: World, bucket: str, value: str) -> None:
    tags = {"TagSet": [{"Key": "customer", "Value": value}]}
    world.client().put_object_tagging(Bucket=bucket, Key=BAD, Tagging=tags)


def attempt(lake: Bucket, plan: ErasurePlan, journal: Path) -> RunState:
    state = lake.attempt(plan, journal)
    assert state is not None
    assert violations(Journal.open(journal, lake.now).records, plan) == []
    return state


def left(world: World, lake: Bucket) -> Counter[str]:
    """Versions of each object."""
    return Counter(key for key, _ in world.versions(lake.name))


def holding(lake: Bucket, plan: ErasurePlan) -> set[str]:
    """Objects of which a version holds the person, as the verifier reads them."""
    verdict = lake.verdict(next(copy for copy in plan.copies if copy.origin is None))
    return {item.file.partition("?")[0] for item in verdict.residue}


def test_the_versions_of_the_others_go_and_the_steps_stay_open(world: World, tmp_path: Path) -> None:
    lake, journal = planted(world, "open"), tmp_path / "journal.jsonl"
    plan = lake.plan()
    before = world.get(lake.name, BAD)
    for _ in range(2):  # a resume with the object as it is changes nothing more
        state = attempt(lake, plan, journal)
        assert state.state is State.PARTIAL
        assert state.done == ()
        assert len(state.failed) == len(plan.steps) == 3
        assert (left(world, lake), holding(lake, plan)) == ({GOOD: 1, BAD: 2}, {BAD})
        assert users(world.get(lake.name, GOOD)) == ["2"]
        assert world.get(lake.name, BAD) == before
    failed = [r.facts for r in Journal.open(journal, lake.now).records if r.kind is Kind.STEP_FAILED]
    named = {item["key"] for facts in failed for part in ("failed", "held") for item in facts["facts"].get(part, ())}
    assert named == {BAD}
    assert PERSON not in json.dumps(failed)
    told(world, lake.name, "known")
    assert attempt(lake, plan, journal).state is State.COMPLETE
    assert (left(world, lake), holding(lake, plan)) == ({GOOD: 1, BAD: 1}, set())
    assert users(world.get(lake.name, BAD)) == ["77"]
    # the row of the first object is counted, though its old version was gone when the step ended
    assert list(rows_deleted(Journal.open(journal, lake.now).records).values()) == [2]


def test_killed_anywhere_and_resumed_with_the_object_mended_in_between(world: World, tmp_path: Path) -> None:
    deaths = 0
    for moment in range(20):
        lake, journal = planted(world, f"kill{moment}"), tmp_path / f"{moment}.jsonl"
        plan = lake.plan()
        if lake.attempt(plan, journal, Deadly(lake.clients, moment)) is not None:
            break
        deaths += 1
        assert attempt(lake, plan, journal).state is State.PARTIAL
        assert (left(world, lake), holding(lake, plan)) == ({GOOD: 1, BAD: 2}, {BAD})
        told(world, lake.name, "known")
        assert attempt(lake, plan, journal).state is State.COMPLETE
        assert (left(world, lake), holding(lake, plan)) == ({GOOD: 1, BAD: 1}, set())
        assert (users(world.get(lake.name, GOOD)), users(world.get(lake.name, BAD))) == (["2"], ["77"])
    assert deaths >= 4


@pytest.mark.parametrize("broken", [b"no parquet " + PERSON.encode(), body(PERSON)[:-9]])
def test_an_object_that_cannot_be_read_keeps_its_versions_and_no_others(
    world: World, tmp_path: Path, broken: bytes
) -> None:
    lake = planted(world, "torn")
    world.put(lake.name, BAD, broken)
    plan = lake.plan()
    state = attempt(lake, plan, tmp_path / "journal.jsonl")
    assert (state.state, state.done) == (State.PARTIAL, ())
    assert any("cannot be read as parquet" in failed.reason for failed in state.failed)
    assert left(world, lake) == {GOOD: 1, BAD: 3}
    assert world.get(lake.name, BAD) == broken


def test_an_object_without_the_person_that_cannot_be_read_is_not_taken_for_clean(world: World, tmp_path: Path) -> None:
    """Its old versions hold the person and wait: nobody knows whether they are all that is left of others."""
    lake = planted(world, "unread")
    world.put(lake.name, BAD, b"torn")
    attempt(lake, lake.plan(), tmp_path / "journal.jsonl")
    assert left(world, lake)[BAD] == 3


@dataclass
class Refusing:
    """The real clients; the restore of one object is refused."""

    lake: Bucket

    def __call__(self, region: str | None) -> Any:
        client = s3_clients(self.lake.estate)(region)

        class Watched:
            def __getattr__(self, name: str) -> Any:
                return getattr(client, name)

            def restore_object(self, **request: Any) -> Any:
                if request["Key"] == BAD:
                    raise ClientError({"Error": {"Code": "AccessDenied"}}, "RestoreObject")
                return client.restore_object(**request)

        return Watched()


def test_an_object_whose_restore_is_refused_leaves_the_others_to_go_on(world: World, tmp_path: Path) -> None:
    lake, journal = planted(world, "cold", StorageClass="GLACIER"), tmp_path / "journal.jsonl"
    told(world, lake.name, "known")
    lake.windows = {"restore_hours": 12, "restore_check_minutes": 30}
    plan = lake.plan()
    lake.routed = Refusing(lake)
    assert attempt(lake, plan, journal).state is State.PARTIAL
    world.advance(RESTORE_SECONDS + 1)
    lake.now.offset += timedelta(hours=1)
    state = attempt(lake, plan, journal)
    assert state.state is State.PARTIAL
    assert any("its restore was rejected: AccessDenied" in failed.reason for failed in state.failed)
    assert left(world, lake) == {GOOD: 1, BAD: 2}
    facts = step_facts(Journal.open(journal, lake.now).records)
    assert {item["key"] for told in facts.values() for item in told.get("deleted", ())} == {GOOD}
    assert {item["key"] for told in facts.values() for item in told.get("held", ())} == {BAD}
    lake.routed = None
    attempt(lake, plan, journal)
    world.advance(RESTORE_SECONDS + 1)
    lake.now.offset += timedelta(hours=1)
    assert attempt(lake, plan, journal).state is State.COMPLETE
    assert left(world, lake) == {GOOD: 1, BAD: 1}


def test_a_replica_loses_the_old_versions_of_what_has_arrived(world: World, tmp_path: Path) -> None:
    source, replica = world.new("from"), world.new("to")
    world.replicate(source, replica, PREFIX)
    for key, other in ((GOOD, "2"), (BAD, "77")):
        world.put(source, key, body(PERSON, other))
    told(world, source, PERSON)
    lake, there = Bucket(world.endpoint_url, source), Bucket(world.endpoint_url, replica)
    plan, journal = lake.plan(), tmp_path / "journal.jsonl"
    assert Action.S3_AWAIT_REPLICA in {s.action for s in plan.steps}
    state = attempt(lake, plan, journal)
    assert (state.state, state.done) == (State.PARTIAL, ())
    assert left(world, lake) == left(world, there) == {GOOD: 1, BAD: 1}
    assert users(world.get(replica, GOOD)) == ["2"]
    assert users(world.get(replica, BAD)) == [PERSON, "77"]
    told(world, source, "known")
    assert attempt(lake, plan, journal).state is State.COMPLETE
    assert left(world, lake) == left(world, there) == {GOOD: 1, BAD: 1}
    assert (users(world.get(replica, GOOD)), users(world.get(replica, BAD))) == (["2"], ["77"])


def test_a_body_that_ends_early_is_never_rewritten(world: World) -> None:
    """What is missing behind the break would be other persons' rows."""
    bucket = world.new("short")
    put, client = world.put(bucket, "a.csv", b"mail\nanother@x.example\n"), world.client()
    cut_short(client, 23)
    with pytest.raises(RunError, match=r"(IncompleteRead|ResponseStreaming)Error"):
        read(client, bucket, "a.csv", put["version_id"])
