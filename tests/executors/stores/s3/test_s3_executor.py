"""The S3 steps against the stand-in: the person survives the naive way, and is gone after the step."""

from __future__ import annotations

import io
import json
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError

from executors.stores.s3.step_base import PLAN_TAG
from pii_tracer.lake.stores.s3.archive_versions import Evidence, iter_version_bytes
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Match, MatchTerm
from pii_tracer.model.errors import PiiTracerError, RunError
from pii_tracer.model.plan import Step
from pii_tracer.run.executor_protocol import PartlyDone, Progress
from sample_lineage import s3_standin
from tests.s3support import (
    MATCH,
    OTHER_REGION,
    PERSON,
    PLAN,
    World,
    parquet,
    standin,
    step,
    table,
    user_rows,
    world,
)

__all__ = ["standin", "world"]

OTHERS = ["1001", "1002", "1003"]
KEY = "archive/2026-01.parquet"


def rewrite(bucket: str, objects: list[dict[str, Any]], **more: Any) -> Step:
    parameters = {"bucket": bucket, "prefix": "archive/", "format": "parquet", "objects": objects, "plan_id": PLAN}
    return step(Action.S3_REWRITE_ARCHIVE, parameters | {"match": MATCH.model_dump()} | more)


def delete(bucket: str, versions: list[dict[str, Any]], **more: Any) -> Step:
    return step(Action.S3_DELETE_VERSIONS, {"bucket": bucket, "versions": versions, "plan_id": PLAN} | more)


def snapshot(*people: str) -> bytes:
    return parquet(table([*people, *OTHERS]), compression="zstd")


def test_naive_delete_leaves_the_person_and_the_steps_do_not(world: World) -> None:
    bucket = world.new("naive")
    old = world.put(bucket, KEY, snapshot(PERSON))
    world.client().delete_object(Bucket=bucket, Key=KEY)
    assert world.holders(bucket) == 1

    bucket = world.new("steps")
    old = world.put(bucket, KEY, snapshot(PERSON), Metadata={"origin": "export"}, Tagging="team=data")
    executor = world.executor()
    facts = executor.run(rewrite(bucket, [old]), None).facts
    assert (facts["rewritten"], facts["rows_dropped"]) == (1, 1)
    assert world.holders(bucket) == 1  # a rewrite alone leaves the old version
    removal = delete(bucket, [old], keep_latest_of=[KEY])
    executor.check(removal, None)
    assert executor.probe(removal, None) is Progress.NOT_STARTED
    assert not executor.verify(removal, None).ok
    facts = executor.run(removal, None).facts
    assert facts["deleted"][0]["version_id"] == old["version_id"]
    assert all(facts["request_ids"])
    assert executor.verify(removal, None).ok
    assert executor.probe(removal, None) is Progress.DONE
    assert world.holders(bucket) == 0
    kept = pq.read_table(io.BytesIO(world.get(bucket, KEY)))
    assert kept.equals(table(OTHERS, ["row 1", "row 2", "row 3"]))
    head = world.client().head_object(Bucket=bucket, Key=KEY)
    assert head["Metadata"] == {"origin": "export", PLAN_TAG: PLAN}
    tags = world.client().get_object_tagging(Bucket=bucket, Key=KEY)["TagSet"]
    assert tags == [{"Key": "team", "Value": "data"}]


def test_restore_waits_and_is_not_asked_for_twice(world: World) -> None:
    bucket = world.new("glacier")
    old = world.put(bucket, KEY, snapshot(PERSON), StorageClass="DEEP_ARCHIVE")
    executor = world.executor()
    assert not executor.verify(rewrite(bucket, [old]), None).ok
    restore = step(Action.S3_RESTORE, {"bucket": bucket, "versions": [old], "days": 2, "tier": "Bulk"})
    assert executor.probe(restore, None) is Progress.NOT_STARTED
    first = executor.run(restore, None)
    assert first.waiting_until is not None
    assert first.facts["requested"] == 1
    assert executor.probe(restore, None) is Progress.PARTIAL
    assert not executor.verify(restore, None).ok
    second = executor.run(restore, None)
    assert second.waiting_until is not None
    assert second.facts["requested"] == 0
    world.advance()
    third = executor.run(restore, None)
    assert third.waiting_until is None
    assert executor.verify(restore, None).ok
    facts = executor.run(rewrite(bucket, [old]), None).facts
    assert facts["rows_dropped"] == 1
    # the new object lies in the same class, so it cannot be read, but S3 tells its checksum
    head = world.client().head_object(Bucket=bucket, Key=KEY, ChecksumMode="ENABLED")
    assert head["StorageClass"] == "DEEP_ARCHIVE"
    assert executor.verify(rewrite(bucket, [old]), None).ok


def test_replica_keeps_old_versions_until_they_are_deleted_there(world: World) -> None:
    source, replica = world.new("src"), world.new("dst", OTHER_REGION)
    world.replicate(source, replica, "archive/")
    old = world.put(source, KEY, snapshot(PERSON))
    executor = world.executor()
    executor.run(rewrite(source, [old]), None)
    executor.run(delete(source, [old], keep_latest_of=[KEY]), None)
    assert world.holders(source) == 0
    assert world.holders(replica) == 1
    waiting = step(
        Action.S3_AWAIT_REPLICA,
        {
            "bucket": replica,
            "region": OTHER_REGION,
            "prefix": "archive/",
            "origin_bucket": source,
            "keys": [KEY],
            "plan_id": PLAN,
        },
    )
    assert executor.run(waiting, None).waiting_until is None
    assert executor.verify(waiting, None).ok
    assert executor.probe(waiting, None) is Progress.DONE
    executor.run(delete(replica, [old], keep_latest_of=[KEY], region=OTHER_REGION), None)
    assert world.holders(replica) == 0
    assert world.get(replica, KEY) == world.get(source, KEY)


def test_a_whole_archive_in_glacier_with_its_replica(world: World) -> None:
    """Restore, rewrite, replicate, delete; then every version is known, though none can be read."""
    source, replica = world.new("cold"), world.new("coldcopy", OTHER_REGION)
    world.replicate(source, replica)
    olds = [world.put(source, f"archive/{i}.parquet", snapshot(PERSON), StorageClass="GLACIER") for i in range(2)]
    keys = [old["key"] for old in olds]
    executor = world.executor()
    restore = step(Action.S3_RESTORE, {"bucket": source, "versions": olds})
    assert executor.run(restore, None).waiting_until is not None
    world.advance()
    assert executor.run(restore, None).waiting_until is None
    facts = executor.run(rewrite(source, olds), None).facts
    written = {(fact["key"], fact["version_id"]): fact["sha256"] for fact in facts["objects"]}
    replicated = {"bucket": replica, "region": OTHER_REGION, "prefix": "", "origin_bucket": source, "keys": keys}
    executor.run(step(Action.S3_AWAIT_REPLICA, replicated), None)
    for bucket in (source, replica):
        before = list(iter_version_bytes(world.client(), bucket, "archive/", datetime.now(timezone.utc), written))
        assert len(before) == 4
        executor.run(delete(bucket, olds, keep_latest_of=keys), None)
        after = list(iter_version_bytes(world.client(), bucket, "archive/", datetime.now(timezone.utc), written))
        assert [version.evidence for version in after] == [Evidence.KNOWN] * 2


def test_replica_that_never_comes_is_an_error_and_its_old_version_is_held(world: World) -> None:
    source, replica = world.new("src"), world.new("dst")
    old = world.put(source, KEY, snapshot(PERSON))
    copy = world.put(replica, KEY, snapshot(PERSON))
    executor = world.executor()
    executor.run(rewrite(source, [old]), None)
    parameters = {"bucket": replica, "prefix": "archive/", "origin_bucket": source, "keys": [KEY], "poll_seconds": 0}
    with pytest.raises(RunError, match="no replication rule"):
        executor.run(step(Action.S3_AWAIT_REPLICA, parameters), None)
    with pytest.raises(PartlyDone) as caught:
        executor.run(delete(replica, [copy], keep_latest_of=[KEY]), None)
    assert caught.value.facts["held"]
    assert caught.value.facts["deleted"] == []
    assert user_rows(world.get(replica, KEY)) == 1


def test_a_slow_replica_is_waited_for(tmp_path: Path, world: World) -> None:
    slow = s3_standin.start(tmp_path, replication_seconds=60, max_seconds=900)
    try:
        there = World(slow.endpoint_url)
        source, replica = there.new("src"), there.new("dst")
        there.replicate(source, replica)
        old = there.put(source, KEY, snapshot(PERSON))
        there.advance(60)
        executor = there.executor()
        executor.run(rewrite(source, [old]), None)
        parameters = {"bucket": replica, "prefix": "archive/", "origin_bucket": source, "keys": [KEY], "plan_id": PLAN}
        hasty = step(Action.S3_AWAIT_REPLICA, parameters | {"poll_seconds": 0})
        outcome = executor.run(hasty, None)
        assert outcome.waiting_until is not None
        assert outcome.facts["arrived"] == 0
        assert executor.probe(hasty, None) is Progress.PARTIAL
        # deleting now would lose everybody else's rows
        with pytest.raises(PartlyDone, match="did not verify"):
            executor.run(delete(replica, [old], keep_latest_of=[KEY]), None)
        threading.Timer(0.3, there.advance, (60,)).start()
        patient = step(Action.S3_AWAIT_REPLICA, parameters | {"poll_seconds": 120})
        assert executor.run(patient, None).waiting_until is None
        executor.run(delete(replica, [old], keep_latest_of=[KEY]), None)
        assert there.holders(replica) == 0
    finally:
        s3_standin.stop(slow)


def test_a_replica_of_a_replica_never_comes_by_itself(world: World) -> None:
    first, second, third = (world.new(name) for name in ("one", "two", "three"))
    world.replicate(first, second)
    world.replicate(second, third)
    old = world.put(first, KEY, snapshot(PERSON))
    executor = world.executor()
    executor.run(rewrite(first, [old]), None)
    parameters = {"bucket": third, "prefix": "archive/", "origin_bucket": second, "keys": [KEY], "poll_seconds": 0}
    with pytest.raises(RunError, match="does not replicate replicas"):
        executor.run(step(Action.S3_AWAIT_REPLICA, parameters), None)


def test_an_object_somebody_wrote_meanwhile_is_not_overwritten(world: World) -> None:
    bucket = world.new("busy")
    first = world.put(bucket, "archive/a.parquet", snapshot(PERSON))
    second = world.put(bucket, "archive/b.parquet", snapshot(PERSON))
    theirs = snapshot("777", PERSON)
    world.put(bucket, "archive/a.parquet", theirs)
    executor = world.executor()
    with pytest.raises(PartlyDone, match="1 of 2") as caught:
        executor.run(rewrite(bucket, [first, second]), None)
    assert world.get(bucket, "archive/a.parquet") == theirs
    assert caught.value.facts["rewritten"] == 1
    assert PERSON not in json.dumps(caught.value.facts) + str(caught.value)
    assert not executor.verify(rewrite(bucket, [first, second]), None).ok
    assert executor.probe(rewrite(bucket, [first, second]), None) is Progress.PARTIAL


def test_a_writer_between_the_look_and_the_put_is_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The PUT carries If-Match: even the last moment is covered."""
    bucket = world.new("race")
    old = world.put(bucket, KEY, snapshot(PERSON))
    theirs = snapshot("777")
    executor = world.executor()
    import executors.formats.plain_files.row_removal as module

    real = module.RowRemoval.kept

    def slow(*args: Any) -> Any:
        kept = real(*args)
        world.put(bucket, KEY, theirs)
        return kept

    monkeypatch.setattr(module.RowRemoval, "kept", slow)
    with pytest.raises(PartlyDone, match="somebody changed"):
        executor.run(rewrite(bucket, [old]), None)
    assert world.get(bucket, KEY) == theirs


def test_killed_between_put_and_delete_then_resumed(world: World) -> None:
    bucket = world.new("killed")
    olds = [world.put(bucket, f"archive/{i}.parquet", snapshot(PERSON)) for i in range(3)]
    work = rewrite(bucket, olds)
    assert world.executor().probe(work, None) is Progress.NOT_STARTED
    # a process that died after the first object
    world.executor().run(rewrite(bucket, olds[:1]), None)
    executor = world.executor()
    assert executor.probe(work, None) is Progress.PARTIAL
    facts = executor.run(work, None).facts
    assert [fact.get("resumed", False) for fact in facts["objects"]] == [True, False, False]
    assert facts["rows_dropped"] == 3
    assert all(len(fact["sha256"]) == 64 for fact in facts["objects"])
    assert len(world.versions(bucket)) == 6  # nothing was written twice
    assert executor.probe(work, None) is Progress.DONE
    # and one that died in the middle of the deletes
    keys = [old["key"] for old in olds]
    world.client().delete_object(Bucket=bucket, Key=olds[0]["key"], VersionId=olds[0]["version_id"])
    removal = delete(bucket, olds, keep_latest_of=keys)
    assert executor.probe(removal, None) is Progress.PARTIAL
    facts = executor.run(removal, None).facts
    assert (len(facts["deleted"]), facts["already_gone"]) == (2, 1)
    assert executor.run(removal, None).facts["already_gone"] == 3
    assert world.holders(bucket) == 0
    assert len(world.versions(bucket)) == 3


def test_objects_without_the_person_are_left_alone_and_never_deleted(world: World) -> None:
    bucket = world.new("clean")
    old = world.put(bucket, KEY, snapshot())
    executor = world.executor()
    facts = executor.run(rewrite(bucket, [old]), None).facts
    assert (facts["rewritten"], facts["left_alone"]) == (0, 1)
    assert executor.verify(rewrite(bucket, [old]), None).ok
    # listed as a version to delete, for nobody could read it at planning: other people's rows are in it
    with pytest.raises(PartlyDone, match="did not verify"):
        executor.run(delete(bucket, [old], keep_latest_of=[KEY]), None)
    told = {"format": "parquet", "match": MATCH.model_dump()}
    facts = executor.run(delete(bucket, [old], keep_latest_of=[KEY], **told), None).facts
    assert facts["spared"] == [{"key": KEY, "version_id": old["version_id"]}]
    assert executor.verify(delete(bucket, [old], keep_latest_of=[KEY], **told), None).ok
    assert world.versions(bucket) == [(KEY, old["version_id"])]


def test_an_archived_replica_is_spared_on_the_origins_evidence(world: World) -> None:
    source, replica = world.new("src"), world.new("dst")
    world.replicate(source, replica)
    old = world.put(source, KEY, snapshot(), StorageClass="GLACIER")
    executor = world.executor()
    told = {"keep_latest_of": [KEY], "format": "parquet", "match": MATCH.model_dump(), "origin_bucket": source}
    world.client().restore_object(Bucket=source, Key=KEY, RestoreRequest={"Days": 1})
    world.advance()
    assert executor.run(delete(replica, [old], **told), None).facts["spared"]
    assert world.versions(replica) == [(KEY, old["version_id"])]


def test_an_archived_object_that_nobody_can_read_any_more_is_restored_before_it_is_judged(world: World) -> None:
    """The rewrite left it alone, and its restored copy has lapsed since: it is no error and no delete."""
    bucket = world.new("asleep")
    clean = world.put(bucket, KEY, snapshot(), StorageClass="GLACIER")
    other = world.put(bucket, "archive/other.parquet", snapshot(PERSON))
    world.put(bucket, "archive/other.parquet", snapshot())
    told = {"keep_latest_of": [KEY], "format": "parquet", "match": MATCH.model_dump()}
    executor, work = world.executor(), delete(bucket, [clean, other], **told)
    outcome = executor.run(work, None)
    assert outcome.waiting_until is not None
    assert outcome.facts["restored_again"]["requested"] == 1
    assert [item["version_id"] for item in outcome.facts["deleted"]] == [other["version_id"]]
    assert executor.probe(work, None) is Progress.PARTIAL
    assert not executor.verify(work, None).ok
    world.advance()
    assert executor.run(work, None).facts["spared"] == [{"key": KEY, "version_id": clean["version_id"]}]
    assert executor.verify(work, None).ok
    assert (KEY, clean["version_id"]) in world.versions(bucket)


def behind(bucket: str, world: World, newest: bytes, **more: Any) -> tuple[Step, list[dict[str, Any]]]:
    """A step for two old versions with the person, behind a current one that the plan saw; and the three."""
    olds = [world.put(bucket, KEY, snapshot(PERSON)) for _ in range(2)]
    now = world.put(bucket, KEY, newest, **more)
    told = {"keep_latest_of": [KEY], "format": "parquet", "match": MATCH.model_dump(), "current": [now]}
    return delete(bucket, olds, **told), [*olds, now]


def test_old_versions_go_behind_a_current_one_that_needed_no_rewrite(world: World) -> None:
    bucket = world.new("behind")
    work, [*_, now] = behind(bucket, world, snapshot())
    executor = world.executor()
    assert executor.run(work, None).facts["spared"] == [{"key": KEY, "version_id": now["version_id"]}]
    assert world.versions(bucket) == [(KEY, now["version_id"])]
    assert executor.verify(work, None).ok
    assert executor.probe(work, None) is Progress.DONE


def test_what_came_in_front_of_them_since_the_plan_is_never_taken_for_it(world: World) -> None:
    """It was changed, or an old version was brought back: neither its owner's bytes nor the last good ones may go."""
    executor = world.executor()
    for name, newest, later in (
        ("changed", snapshot(), snapshot("1003")),
        ("back", snapshot(), snapshot(PERSON)),
        ("holds", snapshot(PERSON), None),
    ):
        bucket = world.new(name)
        work, versions = behind(bucket, world, newest)
        if later is not None:
            versions.append(world.put(bucket, KEY, later))
        with pytest.raises(PartlyDone, match="the current version"):
            executor.run(work, None)
        assert {v for _, v in world.versions(bucket)} == {v["version_id"] for v in versions}
        assert not executor.verify(work, None).ok


def test_a_current_one_that_sleeps_again_is_restored_before_what_is_behind_it_goes(world: World) -> None:
    bucket = world.new("coldfront")
    work, [*_, now] = behind(bucket, world, snapshot(), StorageClass="GLACIER")
    executor = world.executor()
    assert executor.run(work, None).waiting_until is not None
    assert len(world.versions(bucket)) == 3
    world.advance()
    assert executor.run(work, None).waiting_until is None
    assert world.versions(bucket) == [(KEY, now["version_id"])]


def test_more_than_a_thousand_versions_and_none_but_the_listed(world: World) -> None:
    bucket = world.new("many")
    client = world.client()
    ids = [client.put_object(Bucket=bucket, Key="archive/k", Body=b"x")["VersionId"] for _ in range(1004)]
    ids.append(client.delete_object(Bucket=bucket, Key="archive/k")["VersionId"])
    neighbour = world.put(bucket, "archive/k2", b"y")
    spare, listed = client.put_object(Bucket=bucket, Key="archive/k", Body=b"z")["VersionId"], ids
    with pytest.raises(ClientError, match="MalformedXML"):
        client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "archive/k", "VersionId": v} for v in listed]})
    versions = [{"key": "archive/k", "version_id": version} for version in listed]
    facts = world.executor().run(delete(bucket, versions), None).facts
    assert len(facts["deleted"]) == 1005
    assert len(facts["request_ids"]) == 3  # the marker goes by itself, when every version behind it is gone
    assert sorted(world.versions(bucket)) == sorted([("archive/k", spare), ("archive/k2", neighbour["version_id"])])


def test_a_locked_version_is_reported_and_the_others_go(world: World) -> None:
    bucket = world.new("locked", ObjectLockEnabledForBucket=True)
    olds = [world.put(bucket, KEY, snapshot(PERSON)) for _ in range(3)]
    world.client().put_object_legal_hold(
        Bucket=bucket, Key=KEY, VersionId=olds[1]["version_id"], LegalHold={"Status": "ON"}
    )
    removal = delete(bucket, olds)
    with pytest.raises(PartlyDone, match="AccessDenied") as caught:
        world.executor().run(removal, None)
    assert [item["version_id"] for item in caught.value.facts["failed"]] == [olds[1]["version_id"]]
    assert len(caught.value.facts["deleted"]) == 2
    assert world.versions(bucket) == [(KEY, olds[1]["version_id"])]
    assert not world.executor().verify(removal, None).ok


def test_an_unversioned_object_is_overwritten_in_place_and_then_not_deleted(world: World) -> None:
    bucket = world.new("flat", versioned=False)
    old = world.put(bucket, KEY, snapshot(PERSON))
    executor = world.executor()
    executor.run(rewrite(bucket, [old]), None)
    facts = executor.run(delete(bucket, [old], keep_latest_of=[KEY]), None).facts
    assert facts["replaced_in_place"] == [{"key": KEY, "version_id": "null"}]
    assert pq.read_table(io.BytesIO(world.get(bucket, KEY))).num_rows == 3
    assert executor.run(rewrite(bucket, [old]), None).facts["objects"][0]["resumed"]


def test_metadata_that_holds_the_person_is_not_copied_on(world: World) -> None:
    bucket = world.new("meta")
    old = world.put(bucket, KEY, snapshot(PERSON), Metadata={"exported-for": PERSON})
    with pytest.raises(PartlyDone, match="metadata, a header or a tag") as caught:
        world.executor().run(rewrite(bucket, [old]), None)
    assert PERSON not in json.dumps(caught.value.facts) + str(caught.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"format": "delta"}, "not supported"),
        ({"match": None}, "does not name the columns"),
        ({"match": Match(terms=(MatchTerm(column="a", key_set="none", type="int"),)).model_dump()}, "no key set"),
        ({"bucket": "no-such-bucket-here"}, "cannot be reached"),
        ({"objects": "x"}, "parameters are not valid: objects"),
        ({"objects": [{"key": f"archive/{PERSON}.parquet", "version_id": "v"}]}, "name of an object"),
    ],
)
def test_check_refuses_what_cannot_work(world: World, more: dict[str, Any], message: str) -> None:
    bucket = more.get("bucket") or world.new("check")
    with pytest.raises(PiiTracerError, match=message) as caught:
        world.executor().check(rewrite(**{"bucket": bucket, "objects": []} | more), None)
    assert PERSON not in str(caught.value)
