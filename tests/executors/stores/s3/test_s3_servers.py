"""Whole runs on real servers: versitygw for versions, MinIO for locks, two MinIO servers for replication.

Where they have not been built, the strict stand-in serves (see `tests/storeservers.py`).
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from executors.stores.s3.executor import S3Executor
from pii_tracer.lake.stores.s3.archive_versions import ClientFactory
from pii_tracer.lake.stores.s3.locks_and_uploads import iter_uploads
from pii_tracer.lake.stores.s3.object_versions import NULL, head_version, tags_of
from pii_tracer.model.actions import Action
from pii_tracer.run.executor_protocol import PartlyDone
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.run_state import State
from tests import storeservers
from tests.executors.stores.s3.s3_runs import (
    KEYS,
    OTHERS,
    PERSON,
    PREFIX,
    Bucket,
    Context,
    Deadly,
    body,
    users,
)
from tests.s3support import PLAN
from tests.s3support import step as s3_step
from tests.storeservers import ACCESS, SECRET, Store, signed, store

__all__ = ["signed", "store"]


@pytest.fixture(scope="module")
def locking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A server that tells the locks of its versions: versitygw shows none in HeadObject."""
    serve = storeservers.minio if storeservers.program("minio") else storeservers.standin
    with serve(tmp_path_factory.mktemp("locking")) as running:
        yield running


def fresh(client: Any, name: str) -> str:
    client.create_bucket(Bucket=name)
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    return name


def plant(client: Any, bucket: str) -> None:
    """Three objects that hold the person, old versions and a deleted object too; a neighbour; an unfinished upload."""
    for n in range(3):
        client.put_object(Bucket=bucket, Key=f"{PREFIX}{n}.parquet", Body=body(PERSON, OTHERS[n]))
        client.put_object(Bucket=bucket, Key=f"{PREFIX}{n}.parquet", Body=body(PERSON, OTHERS[n], "9"))
    client.put_object(Bucket=bucket, Key=f"{PREFIX}gone.parquet", Body=body(PERSON))
    client.delete_object(Bucket=bucket, Key=f"{PREFIX}gone.parquet")
    client.put_object(Bucket=bucket, Key=f"{PREFIX}clean.parquet", Body=body(*OTHERS))
    client.put_object(Bucket=bucket, Key="archive/payments-else/1.parquet", Body=body(*OTHERS))


def unfinished(client: Any, bucket: str) -> None:
    upload = client.create_multipart_upload(Bucket=bucket, Key=f"{PREFIX}half.parquet")["UploadId"]
    part = {"Bucket": bucket, "Key": f"{PREFIX}half.parquet", "UploadId": upload, "PartNumber": 1}
    client.upload_part(**part, Body=body(PERSON))
    time.sleep(1.1)  # the server tells its time in whole seconds, and a part's to the nanosecond


def left(client: Any, bucket: str, prefix: str = PREFIX) -> int:
    """Versions under the prefix that hold the person."""
    found = client.list_object_versions(Bucket=bucket, Prefix=prefix).get("Versions", ())
    bodies = (
        client.get_object(Bucket=bucket, Key=v["Key"], VersionId=v["VersionId"])["Body"] for v in found if v["Size"]
    )
    return sum(PERSON in users(stream.read()) for stream in bodies)


def others_are_there(client: Any, bucket: str) -> None:
    """Everybody else's rows, as they were."""
    expected = {f"{PREFIX}{n}.parquet": [OTHERS[n], "9"] for n in range(3)}
    expected |= {f"{PREFIX}clean.parquet": [*OTHERS], "archive/payments-else/1.parquet": [*OTHERS]}
    for key, rows in expected.items():
        assert users(client.get_object(Bucket=bucket, Key=key)["Body"].read()) == rows, key


def idle(plan: Any) -> Any:
    """The plan without the day that an upload must have been idle for: the test's is a second old."""
    steps = []
    for step in plan.steps:
        more = {"idle_hours": 0} if "uploads" in step.parameters else {}
        update = {"parameters": step.parameters | more, "earliest_start": plan.created_at}
        steps.append(step.model_copy(update=update))
    return plan.model_copy(update={"steps": tuple(steps)})


def naive(client: Any, bucket: str) -> None:
    """What people do: rewrite or delete the objects by name."""
    for n in range(3):
        client.put_object(Bucket=bucket, Key=f"{PREFIX}{n}.parquet", Body=body(OTHERS[n], "9"))


def test_the_person_leaves_every_version_and_nobody_else_does(store: Store, tmp_path: Path) -> None:
    client = store.client()
    careless, bucket = fresh(client, "careless-lake"), fresh(client, "whole-lake")
    for name in (careless, bucket):
        plant(client, name)
        unfinished(client, name)
    naive(client, careless)
    assert left(client, careless) == 7, "deleting by name leaves the person in every version"
    assert list(iter_uploads(client, careless, PREFIX))
    lake = Bucket(store.endpoint_url, bucket)
    plan = idle(lake.plan())
    state = lake.attempt(plan, tmp_path / "journal.jsonl")
    assert state is not None
    assert (state.state, state.failed) == (State.COMPLETE, ())
    assert left(client, bucket) == 0
    assert all(lake.verdict(copy).clean for copy in plan.copies)
    assert not list(iter_uploads(client, bucket, PREFIX))
    others_are_there(client, bucket)
    # everything is where one current version is: nothing was written twice
    assert len(client.list_object_versions(Bucket=bucket)["Versions"]) == 5
    assert "DeleteMarkers" not in client.list_object_versions(Bucket=bucket)


def test_a_run_that_dies_anywhere_is_resumed_to_the_same_end(store: Store, tmp_path: Path) -> None:
    client = store.client()
    deaths = 0
    for moment in range(40):
        bucket = fresh(client, f"dying-lake-{moment}")
        plant(client, bucket)
        lake = Bucket(store.endpoint_url, bucket)
        plan = lake.plan()
        journal = tmp_path / f"{moment}.jsonl"
        deadly = Deadly(lake.clients, moment)
        if lake.attempt(plan, journal, deadly) is not None:
            break
        deaths += 1
        again = Deadly(lake.clients)
        state = lake.attempt(plan, journal, again)
        assert state is not None
        assert (moment, state.state, state.failed) == (moment, State.COMPLETE, ())
        assert left(client, bucket) == 0
        others_are_there(client, bucket)
        assert len(client.list_object_versions(Bucket=bucket)["Versions"]) == 5, "no object was written twice"
        assert deadly.calls.count("put_object") + again.calls.count("put_object") <= 4
    assert deaths >= 10


def test_a_bucket_that_never_kept_versions_is_treated(store: Store, tmp_path: Path) -> None:
    """versitygw lists its objects as version `null`, and does not find them by that id."""
    client, bucket = store.client(), "plain-lake"
    client.create_bucket(Bucket=bucket)
    key = f"{PREFIX}0.parquet"
    client.put_object(Bucket=bucket, Key=key, Body=body(PERSON, *OTHERS), Tagging="kept=yes")
    lake = Bucket(store.endpoint_url, bucket)
    plan = lake.plan()
    state = lake.attempt(plan, tmp_path / "journal.jsonl")
    assert state is not None
    assert (state.state, state.failed) == (State.COMPLETE, ())
    assert users(client.get_object(Bucket=bucket, Key=key)["Body"].read()) == [*OTHERS]
    assert tags_of(client, bucket, key, NULL) == {"kept": "yes"}
    assert all(lake.verdict(copy).clean for copy in plan.copies)


def test_the_mark_of_a_folder_stops_no_versioned_archive(store: Store, tmp_path: Path) -> None:
    """An empty object whose name ends with `/`, as consoles make; versitygw keeps no versions of it."""
    client, bucket = store.client(), fresh(store.client(), "marked-lake")
    client.put_object(Bucket=bucket, Key=f"{PREFIX}sub/", Body=b"")
    plant(client, bucket)
    lake = Bucket(store.endpoint_url, bucket)
    plan = lake.plan()
    state = lake.attempt(plan, tmp_path / "journal.jsonl")
    assert state is not None
    assert (state.state, state.failed) == (State.COMPLETE, ())
    assert left(client, bucket) == 0
    others_are_there(client, bucket)
    assert f"{PREFIX}sub/" in {item["Key"] for item in client.list_objects_v2(Bucket=bucket)["Contents"]}
    assert all(lake.verdict(copy).clean for copy in plan.copies)


def test_a_null_version_is_never_taken_for_a_later_one(store: Store) -> None:
    client, bucket, key = store.client(), "late-lake", "a/x"
    client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key=key, Body=b"old", Tagging="which=old")
    assert tags_of(client, bucket, key, NULL) == {"which": "old"}
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    client.put_object(Bucket=bucket, Key=key, Body=b"newer", Tagging="which=new")
    assert tags_of(client, bucket, key, NULL) == {"which": "old"}
    assert head_version(client, bucket, key, NULL)["ContentLength"] == 3
    client.delete_object(Bucket=bucket, Key=key, VersionId=NULL)
    for ask in (tags_of, head_version):
        with pytest.raises(ClientError):
            ask(client, bucket, key, NULL)


# --- replication ---


def test_an_object_that_its_owner_deleted_stays_deleted_when_its_version_is_locked(locking: Store) -> None:
    client, bucket, key = locking.client(), "lockmark", f"{PREFIX}gone.parquet"
    client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    until = datetime.now(timezone.utc) + timedelta(days=4)
    lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": until}
    client.put_object(Bucket=bucket, Key=key, Body=body(PERSON, OTHERS[0]), **lock)
    client.delete_object(Bucket=bucket, Key=key)
    version, marker = _versions_of(client, bucket)
    parameters = {"bucket": bucket, "plan_id": PLAN, "versions": [version, marker]}
    # also where the caller may not read locks, and learns of one by the refusal
    lake = Bucket(locking.endpoint_url, bucket)
    executor = S3Executor(Context(lake.estate, KEYS, lake.now), lake.clients)
    with pytest.raises(PartlyDone, match="below its delete marker"):
        executor.run(s3_step(Action.S3_DELETE_VERSIONS, parameters), None)
    outcome = executor.run(s3_step(Action.S3_DELETE_VERSIONS, parameters | {"object_lock": True}), None)
    assert outcome.waiting_until is not None
    assert _versions_of(client, bucket) == [version, marker]
    assert client.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_an_object_whose_retention_is_over_can_be_written_again(locking: Store, tmp_path: Path) -> None:
    client, bucket, key = locking.client(), "lapsed", f"{PREFIX}a.parquet"
    client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    until = datetime.now(timezone.utc) + timedelta(seconds=2)
    lock = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until}
    client.put_object(Bucket=bucket, Key=key, Body=body(PERSON, OTHERS[0]), **lock)
    poll(lambda: datetime.now(timezone.utc) > until + timedelta(seconds=1))
    lake = Bucket(locking.endpoint_url, bucket)
    state = lake.attempt(lake.plan(), tmp_path / "journal.jsonl")
    assert state is not None
    assert (state.state, state.failed) == (State.COMPLETE, ())
    [version] = _versions_of(client, bucket)
    now = client.get_object(Bucket=bucket, Key=key)
    assert users(now["Body"].read()) == [OTHERS[0]]
    assert (now["VersionId"], now.get("ObjectLockMode")) == (version["version_id"], None)


def _versions_of(client: Any, bucket: str) -> list[dict[str, str]]:
    answer = client.list_object_versions(Bucket=bucket)
    found = [*answer.get("Versions", ()), *answer.get("DeleteMarkers", ())]
    return [{"key": item["Key"], "version_id": item["VersionId"]} for item in found]


@dataclass
class Routed:
    """One S3 spread over servers, as regions are: each call goes to the server that has the bucket."""

    servers: dict[str, Any]

    def __call__(self, region: str | None) -> Any:
        return self

    @property
    def meta(self) -> Any:
        return next(iter(self.servers.values())).meta

    def __getattr__(self, name: str) -> Any:
        def call(**request: Any) -> Any:
            return getattr(self.servers[request["Bucket"]], name)(**request)

        return call

    def get_paginator(self, name: str) -> Any:
        outer = self

        class Pages:
            def paginate(self, **request: Any) -> Any:
                return outer.servers[request["Bucket"]].get_paginator(name).paginate(**request)

        return Pages()


@dataclass
class Pair:
    """A bucket and its replica. rate: how the test stops and starts the replication."""

    source: str
    replica: str
    endpoint_url: str
    clients: ClientFactory
    there: Any
    here: Any


def mc(folder: Path, *words: str) -> None:
    """MinIO's client, which knows how to set up replication as `services` of MinIO want it."""
    found = storeservers.program("mc")
    assert found
    subprocess.run(
        [found, "--config-dir", str(folder), "--quiet", *words], check=True, capture_output=True, timeout=120
    )


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    if storeservers.program("minio") is None or storeservers.program("mc") is None:
        with storeservers.standin(tmp_path / "standin") as both:
            client = both.client()
            source, replica = fresh(client, "lake-source"), fresh(client, "lake-replica")
            rule = {
                "ID": "all",
                "Status": "Enabled",
                "Priority": 1,
                "Filter": {"Prefix": ""},
                "DeleteMarkerReplication": {"Status": "Enabled"},
                "Destination": {"Bucket": f"arn:aws:s3:::{replica}"},
            }
            rules = {"Role": "arn:aws:iam::123456789012:role/r", "Rules": [rule]}
            client.put_bucket_replication(Bucket=source, ReplicationConfiguration=rules)
            routed = Routed({source: client, replica: client})
            yield Pair(source, replica, both.endpoint_url, routed, client, client)
        return
    with storeservers.minio(tmp_path / "one") as one, storeservers.minio(tmp_path / "two") as two:
        here, there = one.client(), two.client()
        source, replica = fresh(here, "lake-source"), fresh(there, "lake-replica")
        config = tmp_path / "mc"
        mc(config, "alias", "set", "one", one.endpoint_url, ACCESS, SECRET)
        remote = two.endpoint_url.replace("http://", f"http://{ACCESS}:{SECRET}@")
        mc(config, "replicate", "add", f"one/{source}", "--remote-bucket", f"{remote}/{replica}",
           "--replicate", "delete-marker,existing-objects")  # fmt: skip
        yield Pair(source, replica, one.endpoint_url, Routed({source: here, replica: there}), there, here)


def arrived(pair: Pair) -> bool:
    """Whether every version of the source is in the replica, and every marker (which may get an id of its own)."""

    def ids(client: Any, bucket: str) -> tuple[set[str], set[str]]:
        answer = client.list_object_versions(Bucket=bucket)
        return {v["VersionId"] for v in answer.get("Versions", ())}, {m["Key"] for m in answer.get("DeleteMarkers", ())}

    here, there = ids(pair.here, pair.source), ids(pair.there, pair.replica)
    return here[0] <= there[0] and here[1] <= there[1]


def poll(condition: Callable[[], bool], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


def test_replicas_keep_every_version_until_they_get_their_own_deletes(pair: Pair, tmp_path: Path) -> None:
    plant(pair.here, pair.source)
    poll(lambda: arrived(pair))
    # the naive way: the source is cleaned version by version, and the replica keeps them all
    client = pair.here
    old = client.put_object(Bucket=pair.source, Key="naive/x.parquet", Body=body(PERSON))["VersionId"]
    poll(lambda: arrived(pair))
    client.delete_object(Bucket=pair.source, Key="naive/x.parquet", VersionId=old)
    assert left(client, pair.source, "naive/") == 0
    assert left(pair.there, pair.replica, "naive/") == 1
    lake = Bucket(pair.endpoint_url, pair.source, routed=pair.clients)
    plan = lake.plan()
    assert {c.kind.value for c in plan.copies} == {"ARCHIVE", "OBJECT_VERSION", "REPLICA"}
    assert any(s.action.value == "s3_await_replica" for s in plan.steps)
    journal = tmp_path / "journal.jsonl"
    states = []

    def goes_on() -> bool:
        state = lake.attempt(plan, journal)
        assert state is not None
        assert state.state in (State.COMPLETE, State.WAITING), state.failed
        states.append(state.state)
        lake.now.offset += timedelta(minutes=2)  # the run looks again when it said so
        return state.state is State.COMPLETE

    poll(goes_on)
    assert left(pair.here, pair.source) == 0
    assert left(pair.there, pair.replica) == 0
    others_are_there(pair.here, pair.source)
    others_are_there(pair.there, pair.replica)
    assert all(lake.verdict(copy).clean for copy in plan.copies)
    assert [r.kind for r in Journal.open(journal).records].count(Kind.RUN_FINISHED) == len(states)
