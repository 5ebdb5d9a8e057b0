"""S3 for tests: the stand-in as a process, buckets, and an executor with the real key ring on it."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.awsrequest import AWSResponse
from urllib3 import HTTPResponse

from executors.stores.s3.executor import S3Executor
from executors.value_search_protocol import Finds
from pii_tracer.app.execution.executor_value_search import ScanFinder
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.s3.archive_versions import S3Client, s3_settings
from pii_tracer.lake.stores.s3.clients import S3Clients
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import KeySet, Match, MatchTerm
from pii_tracer.model.plan import Copy, Step
from pii_tracer.model.waivers import MarkKey
from pii_tracer.review.sealed_person_values import KeyRing
from planners.content_digests import keyed
from sample_lineage import s3_standin
from tests.waivers import MARKS

REGION = "ap-south-1"
OTHER_REGION = "eu-central-1"
PERSON = "4000123412341234"
WEAK = "8841302"
PLAN = "plan_0001"
RESTORE_SECONDS = 3600
MATCH = Match(terms=(MatchTerm(column="user_id", key_set="user_id", type="bigint"),))


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3_standin.Standin]:
    """One stand-in for the session; a restore takes an hour, which `World.advance` makes pass."""
    running = s3_standin.start(tmp_path_factory.mktemp("s3"), restore_seconds=RESTORE_SECONDS)
    yield running
    s3_standin.stop(running)


@pytest.fixture
def world(standin: s3_standin.Standin, monkeypatch: pytest.MonkeyPatch) -> World:
    """Buckets with fresh names on the stand-in."""
    for name, value in s3_standin.demo_credentials().items():
        monkeypatch.setenv(name, value)
    return World(standin.endpoint_url)


def estate(endpoint_url: str, archives: list[dict[str, Any]] | None = None, **more: Any) -> Estate:
    """An estate with S3 and nothing else."""
    return Estate.model_validate(
        {
            "version": 1,
            "estate": "test",
            "environment": "local",
            "catalogs": {},
            "roots": [],
            "lineage": {},
            "subjects": [{"name": "user", "source": "users", "key": "user_id"}],
            "s3": {"endpoint_url": endpoint_url, "region": REGION},
            "archives": archives or [],
            "windows": {"restore_hours": 0},
            **more,
        }
    )


@dataclass
class World:
    """A small S3 world: `new` makes buckets, `put` objects, `versions` lists."""

    endpoint_url: str
    suffix: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    _clients: S3Clients | None = field(default=None, init=False, repr=False)

    def client(self, region: str | None = None) -> S3Client:
        """One for a region: to make a client takes longer than most of what it is asked."""
        if self._clients is None:
            session = boto3.DEFAULT_SESSION or boto3.session.Session()
            self._clients = S3Clients(s3_settings(estate(self.endpoint_url)), session)
        return self._clients(region)

    def advance(self, seconds: float = RESTORE_SECONDS) -> None:
        """Time passes on the server, by default as much as a restore takes."""
        s3_standin.advance(self.endpoint_url, seconds)

    def new(self, name: str, region: str = REGION, versioned: bool = True, **more: Any) -> str:
        bucket = f"{name}-{self.suffix}"
        client = self.client(region)
        client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region}, **more)
        if versioned:
            client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        return bucket

    def replicate(self, source: str, target: str, prefix: str = "", status: str = "Enabled") -> None:
        rule = {
            "ID": "all",
            "Status": status,
            "Priority": 1,
            "Filter": {"Prefix": prefix},
            "DeleteMarkerReplication": {"Status": "Disabled"},
            "Destination": {"Bucket": f"arn:aws:s3:::{target}"},
        }
        self.client().put_bucket_replication(
            Bucket=source, ReplicationConfiguration={"Role": "arn:aws:iam::123456789012:role/r", "Rules": [rule]}
        )

    def put(self, bucket: str, key: str, body: bytes, **more: Any) -> dict[str, Any]:
        """Put an object; returns the version as plan parameters name it."""
        answer = self.client().put_object(Bucket=bucket, Key=key, Body=body, **more)
        return {
            "key": key,
            "version_id": answer.get("VersionId", "null"),
            "storage_class": more.get("StorageClass", "STANDARD"),
            "etag": answer["ETag"].strip('"'),
        }

    def get(self, bucket: str, key: str, version_id: str | None = None) -> bytes:
        which = {"VersionId": version_id} if version_id else {}
        with self.client().get_object(Bucket=bucket, Key=key, **which)["Body"] as body:
            data: bytes = body.read()
        return data

    def end_lock(self, bucket: str, version: Mapping[str, Any], mode: str) -> None:
        """A version's retention ended yesterday. The stand-in sets any date, also one that S3 refuses."""
        past = {"Mode": mode, "RetainUntilDate": datetime.now(timezone.utc) - timedelta(days=1)}
        which = {"Bucket": bucket, "Key": version["key"], "VersionId": version["version_id"]}
        self.client().put_object_retention(**which, Retention=past, BypassGovernanceRetention=True)

    def versions(self, bucket: str) -> list[tuple[str, str]]:
        answer = self.client().list_object_versions(Bucket=bucket)
        return [(v["Key"], v["VersionId"]) for part in ("Versions", "DeleteMarkers") for v in answer.get(part, ())]

    def inventory(self, bucket: str, folder: Path) -> Path:
        """The manifest of what S3 Inventory delivers of a bucket as it is now, into `folder/inventory`.

        https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html
        """
        data = folder / "inventory" / "data" / "part.csv.gz"
        data.parent.mkdir(parents=True)
        with gzip.open(data, "wt", newline="") as stream:
            writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
            for item in self.client().list_objects_v2(Bucket=bucket)["Contents"]:
                when = item["LastModified"].astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
                writer.writerow([bucket, quote_plus(item["Key"]), item["Size"], when])
        told = {
            "sourceBucket": bucket,
            "creationTimestamp": str(int(datetime.now(timezone.utc).timestamp() * 1000)),
            "fileFormat": "CSV",
            "fileSchema": "Bucket, Key, Size, LastModifiedDate",
            "files": [{"key": "data/part.csv.gz", "MD5checksum": hashlib.md5(data.read_bytes()).hexdigest()}],
        }
        manifest = folder / "inventory" / "2026-11-23T00-00Z" / "manifest.json"
        manifest.parent.mkdir()
        manifest.write_text(json.dumps(told))
        return manifest

    def holders(self, bucket: str) -> int:
        """How many readable versions hold the person, by decoding."""
        return sum(
            user_rows(self.get(bucket, v["Key"], v["VersionId"])) > 0
            for v in self.client().list_object_versions(Bucket=bucket).get("Versions", ())
        )

    def executor(self, **windows: Any) -> S3Executor:
        return S3Executor(Context(estate(self.endpoint_url, **windows), keyring()))


@dataclass(frozen=True)
class Context:
    """The execution context as far as S3 needs it."""

    estate: Estate
    keyring: KeyRing
    now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    told: Callable[[str], Sequence[Mapping[str, Any]]] = lambda step: ()
    note: Callable[[str, Mapping[str, Any]], None] = lambda step, facts: None
    finds: Finds = ScanFinder
    marks: MarkKey = MARKS
    others: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def everything(self) -> tuple[KeySet, ...]:
        return self.keyring.key_sets

    def nobodys(self, copy: Copy | None) -> Mapping[str, frozenset[str]]:
        return self.others

    def holds(self, text: str) -> bool:
        return self.finds(self.everything).in_text(text)


def keyring() -> KeyRing:
    return KeyRing(
        (
            KeySet(name="user_id", origin="users.user_id", weak=False, values=(("subj_1", PERSON),)),
            KeySet(name="short", origin="users.short", weak=True, values=(("subj_1", WEAK),)),
        )
    )


def table(users: list[str], notes: list[str] | None = None) -> pa.Table:
    return pa.table(
        {
            "user_id": pa.array([int(user) for user in users], pa.int64()),
            "note": pa.array(notes or [f"row {i}" for i in range(len(users))], pa.string()),
        }
    )


def parquet(data: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(data, sink, **options)
    return sink.getvalue()


def user_rows(data: bytes) -> int:
    return sum(str(value) == PERSON for value in pq.read_table(io.BytesIO(data)).column("user_id").to_pylist())


def step(action: Action, parameters: dict[str, Any]) -> Step:
    moment = datetime(2026, 11, 21, tzinfo=timezone.utc)
    return Step.model_validate(
        {
            "id": "step_1",
            "copy": None,
            "action": action,
            "executor": "s3",
            "parameters": keyed(parameters, MARKS),
            "depends_on": (),
            "hazards": (),
            "preconditions": (),
            "verification": "list again",
            "irreversible": False,
            "earliest_start": moment,
            "earliest_finish": moment,
            "latest_start": moment,
            "estimate": {},
            "reason": "test",
        }
    )


def cut_short(client: Any, told: int, etag: str = "e", begin: bytes = b"mail") -> None:
    """From now on each GetObject tells `told` bytes and sends `begin` alone, as a connection that breaks off does."""
    headers = {"Content-Length": str(told), "ETag": f'"{etag}"', "Date": "Sat, 21 Nov 2026 10:00:00 GMT"}

    def short(request: Any, **_: Any) -> AWSResponse:
        raw = HTTPResponse(io.BytesIO(begin), headers, 200, preload_content=False)
        return AWSResponse(request.url, 200, headers, raw)

    client.meta.events.register("before-send.s3.GetObject", short)
