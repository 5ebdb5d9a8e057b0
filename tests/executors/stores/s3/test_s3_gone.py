"""An object that its owner, or the bucket's lifecycle, removes while a run waits does not stop the rest."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.run.run_state import State
from tests.executors.stores.s3.s3_runs import (
    OTHERS,
    PERSON,
    PREFIX,
    Bucket,
    body,
)
from tests.s3support import World, standin, world

__all__ = ["standin", "world"]


def parked(world: World, journal: Path, versioned: bool) -> tuple[Bucket, Any]:
    """Three objects that hold the person; the run waits for their restore."""
    lake = Bucket(world.endpoint_url, world.new("gone", versioned=versioned))
    for n in range(3):
        world.put(lake.name, f"{PREFIX}{n}.parquet", body(PERSON, OTHERS[n]), StorageClass="GLACIER")
    plan = lake.plan()
    state = lake.attempt(plan, journal)
    assert state is not None
    assert state.state is State.WAITING
    world.advance(3700)
    lake.now.offset += timedelta(hours=2)
    return lake, plan


@pytest.mark.parametrize("whole", [True, False])
def test_the_others_are_rewritten_and_their_old_versions_go(world: World, tmp_path: Path, whole: bool) -> None:
    journal = tmp_path / "journal.jsonl"
    lake, plan = parked(world, journal, versioned=True)
    key = f"{PREFIX}0.parquet"
    before = world.versions(lake.name)
    first = next(place for place in before if place[0] == key)
    which = {"VersionId": first[1]} if whole else {}
    world.client().delete_object(Bucket=lake.name, Key=key, **which)
    state = lake.attempt(plan, journal)
    assert state is not None
    after = world.versions(lake.name)
    assert sorted(k for k, _ in after if k != key) == [f"{PREFIX}1.parquet", f"{PREFIX}2.parquet"]
    assert not {place for place in before if place != first} & {*after}
    if whole:
        assert state.state is State.COMPLETE
    else:  # what stands behind a marker that came after the plan can be brought back: it is held, and said
        assert ["the object is deleted" in failed.reason for failed in state.failed] == [True]
        assert first in world.versions(lake.name)


def test_an_object_without_versions_that_is_gone_is_no_error(world: World, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    lake, plan = parked(world, journal, versioned=False)
    world.client().delete_object(Bucket=lake.name, Key=f"{PREFIX}0.parquet")
    state = lake.attempt(plan, journal)
    assert state is not None
    assert state.state is State.COMPLETE
    assert [k for k, _ in world.versions(lake.name)] == [f"{PREFIX}1.parquet", f"{PREFIX}2.parquet"]


def test_an_object_that_was_overwritten_meanwhile_is_still_refused(world: World, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    lake, plan = parked(world, journal, versioned=True)
    world.put(lake.name, f"{PREFIX}0.parquet", body(PERSON, "9"))
    state = lake.attempt(plan, journal)
    assert state is not None
    assert any("somebody changed the object" in failed.reason for failed in state.failed)


def test_a_run_ends_where_the_newest_version_never_held_the_person(world: World, tmp_path: Path) -> None:
    lake = Bucket(world.endpoint_url, world.new("front"))
    for people in ((PERSON, "2"), (PERSON, "77"), ("2", "77")):
        newest = world.put(lake.name, f"{PREFIX}0.parquet", body(*people))
    state = lake.attempt(lake.plan(), tmp_path / "journal.jsonl")
    assert state is not None
    assert state.state is State.COMPLETE, [f.reason for f in state.failed]
    assert world.versions(lake.name) == [(f"{PREFIX}0.parquet", newest["version_id"])]


@pytest.mark.parametrize("before", [True, False])
def test_an_object_that_its_owner_changed_keeps_every_version(world: World, tmp_path: Path, before: bool) -> None:
    lake = Bucket(world.endpoint_url, world.new("owner"))
    for people in ((PERSON, "2"), ("2", "77")):
        world.put(lake.name, f"{PREFIX}0.parquet", body(*people))
    world.put(lake.name, f"{PREFIX}1.parquet", body(PERSON), StorageClass="STANDARD" if before else "GLACIER")
    plan, journal = lake.plan(), tmp_path / "journal.jsonl"
    if not before:
        assert lake.attempt(plan, journal) is not None  # parked by the restore
    world.put(lake.name, f"{PREFIX}0.parquet", body("2", "9"))
    world.advance(3700)
    lake.now.offset += timedelta(hours=2)
    state = lake.attempt(plan, journal)
    assert state is not None
    assert state.state is not State.COMPLETE
    assert len([k for k, _ in world.versions(lake.name) if k.endswith("0.parquet")]) == 3
