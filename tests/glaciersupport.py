"""Glacier vaults for tests: moto's server with a vault behind it that refuses and delays what Glacier does.

moto ends jobs after seconds of the wall clock, answers with the vault as it is now instead of yesterday's inventory,
keeps outputs for ever, names archives by their MD5 (equal ones become one), takes any checksum, fetches archives that
do not exist and breaks where a deleted one is deleted again. The rules here are from
https://docs.aws.amazon.com/amazonglacier/latest/dev/ (vault-inventory, api-initiate-job-post, api-job-output-get,
deleting-an-archive, api-archive-post, vault-lock). `now` is the service's clock, which tests move.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import boto3
import pytest
from botocore.utils import calculate_tree_hash
from moto.core.exceptions import JsonRESTError
from moto.glacier import responses
from moto.server import ThreadedMotoServer
from werkzeug.serving import WSGIRequestHandler

from pii_tracer.lake.stores.glacier import vault_discovery

REGION = "ap-south-1"
JOB = timedelta(hours=4)
KEPT = timedelta(hours=24)
DAY = timedelta(hours=24)


@dataclass
class Archive:
    body: bytes = field(repr=False)
    description: str
    created: datetime
    tree_hash: str


@dataclass
class Job:
    """A job; what an inventory brings is what was known when it began, what a retrieval brings is read at its end."""

    id: str
    archive_id: str | None
    created: datetime
    output: bytes | dict[str, Any] | None = field(repr=False)
    failed: bool = False

    @property
    def ends(self) -> datetime:
        return self.created + JOB


@dataclass
class StrictGlacier:
    """A running server with one vault, `cold`."""

    endpoint: str
    now: datetime
    archives: dict[str, Archive] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    locked: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    jobs: dict[str, Job] = field(default_factory=dict)
    inventory: dict[str, Any] | None = None
    next_inventory: datetime | None = None

    def empty(self) -> StrictGlacier:
        """The vault as it is when it was just made: the server itself serves all tests of a file."""
        for held in (self.archives, self.deleted, self.locked, self.refused, self.jobs):
            held.clear()
        self.now = datetime.now(timezone.utc).replace(microsecond=0)
        self.inventory, self.next_inventory = None, self.now + DAY / 2
        return self

    def client(self) -> Any:
        return boto3.client("glacier", region_name=REGION, endpoint_url=self.endpoint)

    def put(self, body: bytes, description: str = "snapshot") -> str:
        """Upload an archive as its owner does."""
        answer = self.client().upload_archive(
            accountId="-", vaultName="cold", archiveDescription=description, body=body
        )
        return str(answer["archiveId"])

    def ask(self) -> None:
        """Begin an inventory job, as an owner does before planning."""
        parameters = {"Type": "inventory-retrieval", "Format": "JSON"}
        self.client().initiate_job(accountId="-", vaultName="cold", jobParameters=parameters)

    def readable(self) -> list[bytes]:
        """Every archive's bytes, and every retrieval that can still be downloaded."""
        return [a.body for a in self.archives.values()] + [
            j.output for j in self.jobs.values() if isinstance(j.output, bytes)
        ]

    def advance(self, **time: float) -> None:
        """Let time pass: inventories are made once a day, jobs end, outputs expire."""
        until = self.now + timedelta(**time)
        while self.now < until:
            self.now = min(until, self.now + timedelta(minutes=30))
            self._tick()

    def _tick(self) -> None:
        if self.next_inventory is not None and self.now >= self.next_inventory:
            self.inventory = {
                "VaultARN": "arn",
                "InventoryDate": _text(self.now),
                "ArchiveList": [
                    {
                        "ArchiveId": key,
                        "ArchiveDescription": a.description,
                        "CreationDate": _text(a.created),
                        "Size": len(a.body),
                        "SHA256TreeHash": a.tree_hash,
                    }
                    for key, a in self.archives.items()
                ],
            }
            self.next_inventory += DAY
        for job in list(self.jobs.values()):
            if self.now >= job.ends + KEPT:
                del self.jobs[job.id]
            elif self.now >= job.ends and job.output is None and not job.failed:
                there = self.archives.get(str(job.archive_id))
                job.output, job.failed = (there.body, False) if there else (None, True)


def _text(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _refusal(code: str, status: int = 400) -> JsonRESTError:
    error = JsonRESTError(code, "refused")
    error.code = status
    return error


def tree_hash(body: bytes) -> str:
    return str(calculate_tree_hash(io.BytesIO(body)))  # type: ignore[arg-type]


@contextmanager
def strict_glacier() -> Iterator[StrictGlacier]:
    """Start a server whose vault answers as Glacier does."""
    patch = pytest.MonkeyPatch()
    for name, value in {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}.items():
        patch.setenv(name, value)
    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    running = StrictGlacier(f"http://{host}:{port}", datetime.now(timezone.utc)).empty()

    def path(response: Any) -> list[str]:
        parts = str(response.parsed_url.path).strip("/").split("/")
        if parts[2] != "cold":
            raise _refusal("ResourceNotFoundException", 404)
        return parts[3:]

    def upload(self: Any) -> Any:
        path(self)
        checksum = tree_hash(self.body)
        if self.headers.get("x-amz-sha256-tree-hash") != checksum:
            raise _refusal("InvalidParameterValueException")
        key = uuid.uuid4().hex * 2
        description = self.headers.get("x-amz-archive-description") or ""
        running.archives[key] = Archive(bytes(self.body), description, running.now, checksum)
        return 201, {"x-amz-archive-id": key, "x-amz-sha256-tree-hash": checksum, "status": 201}, ""

    def delete(self: Any) -> Any:
        key = path(self)[-1]
        if key in running.locked:
            raise _refusal("AccessDeniedException", 403)
        if key not in running.archives and key not in running.deleted:
            raise _refusal("ResourceNotFoundException", 404)
        running.archives.pop(key, None)
        running.deleted.add(key)
        return 204, {"status": 204}, ""

    def initiate(self: Any) -> Any:
        path(self)
        asked = json.loads(self.body)
        inventory = asked["Type"] == "inventory-retrieval"
        if (inventory and running.inventory is None) or (not inventory and asked["ArchiveId"] not in running.archives):
            raise _refusal("ResourceNotFoundException", 404)
        if asked.get("ArchiveId") in running.refused:
            raise _refusal("PolicyEnforcedException")
        job = Job(uuid.uuid4().hex, asked.get("ArchiveId"), running.now, running.inventory if inventory else None)
        running.jobs[job.id] = job
        return 202, {"x-amz-job-id": job.id, "status": 202}, ""

    def listed(self: Any) -> Any:
        path(self)
        found = []
        for job in running.jobs.values():
            done = running.now >= job.ends
            status = "InProgress" if not done else "Failed" if job.failed else "Succeeded"
            told = {"JobId": job.id, "CreationDate": _text(job.created), "StatusCode": status, "Completed": done}
            told["Action"] = "ArchiveRetrieval" if job.archive_id else "InventoryRetrieval"
            told |= {"ArchiveId": job.archive_id} if job.archive_id else {}
            found.append(told | ({"CompletionDate": _text(job.ends)} if done else {}))
        start = int(self._get_param("marker") or 0)  # two a page, so that pages are read
        marker = str(start + 2) if start + 2 < len(found) else None
        return 200, {}, json.dumps({"JobList": found[start : start + 2], "Marker": marker})

    def output(self: Any) -> Any:
        job = running.jobs.get(path(self)[-2])
        if job is None:
            raise _refusal("ResourceNotFoundException", 404)
        if running.now < job.ends or job.output is None:
            raise _refusal("InvalidParameterValueException")
        return 200, {}, job.output if isinstance(job.output, bytes) else json.dumps(job.output)

    answers = {
        "upload_archive": upload,
        "delete_archive": delete,
        "initiate_job": initiate,
        "list_jobs": listed,
        "get_job_output": output,
    }
    patch.setattr(WSGIRequestHandler, "date_time_string", lambda *_: format_datetime(running.now, usegmt=True))
    for name, answer in answers.items():
        patch.setattr(responses.GlacierResponse, name, answer)
    vault_discovery._client.cache_clear()
    try:
        yield running
    finally:
        server.stop()
        patch.undo()
        vault_discovery._client.cache_clear()


@pytest.fixture(scope="module")
def server() -> Iterator[StrictGlacier]:
    """A stand-in for a module's tests."""
    with strict_glacier() as running:
        yield running


@pytest.fixture
def glacier(server: StrictGlacier) -> StrictGlacier:
    """The stand-in without any vault."""
    return server.empty()
