"""A small shop: a table of users here, and in a real HDFS the exports that a job made of it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyarrow import orc

from pii_tracer.cli.main import run
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.hdfssupport import Hdfs
from tests.sparksession import small_spark
from tests.waivers import name_what_was_seen

USER, MAIL = "770000000001", "zq.person@example.net"
PERSON = (USER, MAIL)
OTHERS = [(f"88000000{n:04}", f"by{n}@example.org") for n in range(4)]
HELD = {
    "id": "books",
    "kind": "retention_duty",
    "datasets": ["shop.users"],
    "basis": "tax law",
    "citation": "section 1",
    "from": "2020-01-01T00:00:00Z",
    "until": "2036-01-01T00:00:00Z",
    "approver": "Dr. Sen",
}
"""On the table here: what lies in HDFS is then all that is erased, and no Spark is needed."""

REFILLS = "gap-hold_refills-shop.users"


def csv(*people: tuple[str, str]) -> bytes:
    return b"uid,mail\n" + b"".join(f"{uid},{mail}\n".encode() for uid, mail in people)


def lines(*people: tuple[str, str]) -> bytes:
    return b"".join(json.dumps({"uid": uid, "mail": mail}).encode() + b"\n" for uid, mail in people)


def _table(people: Iterable[tuple[str, str]]) -> pa.Table:
    rows = list(people)
    return pa.table({"uid": [u for u, _ in rows], "mail": [m for _, m in rows]})


def parquet(*people: tuple[str, str]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(_table(people), sink)
    return sink.getvalue()


def as_orc(*people: tuple[str, str]) -> bytes:
    sink = io.BytesIO()
    orc.write_table(_table(people), sink)
    return sink.getvalue()


@dataclass
class Shop:
    """root: the folder in HDFS that is the estate's. exports: paths below it that lineage leads to from the users."""

    hdfs: Hdfs
    base: Path
    root: str
    exports: list[str] = field(default_factory=list)
    deletable: list[dict[str, str]] = field(default_factory=list)
    user: str = USER
    key: Any = None
    """Of the request, where it is not the user."""
    users: bytes = b""
    """The users' table, where it is not the usual one."""
    columns: tuple[str, ...] = ("uid", "mail")
    """Those that a job copied."""
    name_node: dict[str, Any] = field(default_factory=dict)
    """What the estate file says of it beside what is usual."""

    @property
    def plan_file(self) -> Path:
        return self.base / "shop.plan.json"

    def put(self, path: str, data: bytes) -> str:
        """A new file below the root; its whole path."""
        whole = f"{self.root}/{path}"
        self.hdfs.put(whole, data)
        return whole

    def export(self, folder: str, name: str, data: bytes) -> str:
        """A file of an export that lineage knows."""
        if folder not in self.exports:
            self.exports.append(folder)
        return self.put(f"{folder}/{name}", data)

    def gaps(self, **more: Any) -> list[str]:
        """The ids of the gaps of a plan that nobody waived, as far as they do not name the place."""
        found = [gap["id"] for gap in self.plan(**more)[1]["gaps"] if gap["waiver"] is None]
        return [one.removeprefix("gap-").partition("-127")[0] for one in found]

    def no_trash(self) -> None:
        """Take away the trash that other tests left."""
        self.hdfs.ask("/user", "DELETE", method="DELETE", recursive="true")

    def read(self, path: str) -> bytes:
        client = self.hdfs.client()
        return client.read(path, 0, client.status(path).size)

    def write(self, **more: Any) -> None:
        """The estate file, the policy, and a request."""
        folder = self.base / "tables" / "users"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part-0.parquet").write_bytes(self.users or parquet(*OTHERS, (self.user, MAIL)))
        table = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
        estate = {
            "version": 1,
            "estate": "shop",
            "environment": "local",
            "spark": small_spark(),
            "catalogs": {"spark_catalog": {"type": "declared", "tables": [table]}},
            **self._places(),
            "lineage": {"events": ["events.ndjson"]},
            "subjects": [
                {
                    "name": "user",
                    "source": "shop.users",
                    "key": "uid",
                    "identifiers": [{"column": "mail", "category": "email"}],
                }
            ],
            "holds": [HELD],
        }
        (self.base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate | more))
        (self.base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
        request = {
            "id": "SHOP-1",
            "law": "GDPR",
            "received": (datetime.now(timezone.utc) - timedelta(days=1)).isoformat(),
            "subject": {"type": "user", "key": self.key or self.user},
        }
        (self.base / "request.yaml").write_text(yaml.safe_dump(request))
        # the held table would fill the exports again: its owner knows
        waiver = {"who": "Ann", "why": "the export was stopped", "until": "2099-01-01T00:00:00Z"}
        (self.base / "waivers.yaml").write_text(yaml.safe_dump({REFILLS: waiver}))
        events = (json.dumps(self._event(n, folder)) + "\n" for n, folder in enumerate(self.exports))
        (self.base / "events.ndjson").write_text("".join(events))

    def _places(self) -> dict[str, Any]:
        """The part of the estate file that says where the exports lie."""
        return {
            "roots": ["tables", f"{self.hdfs.uri}{self.root}"],
            "hdfs": [self.hdfs.declared | {"deletable": self.deletable} | self.name_node],
        }

    def _dataset(self, folder: str) -> dict[str, str]:
        """An export, as lineage names it."""
        return {"namespace": self.hdfs.uri, "name": f"{self.root}/{folder}"}

    def _event(self, number: int, folder: str) -> dict[str, Any]:
        source = {"namespace": "file", "name": str(self.base / "tables" / "users")}
        kind = {"type": "DIRECT", "subtype": "IDENTITY", "masking": False}
        columns = {c: {"inputFields": [{**source, "field": c, "transformations": [kind]}]} for c in self.columns}
        schema = {"schema": {"fields": [{"name": c, "type": "string"} for c in columns]}}
        output = self._dataset(folder)
        return {
            "eventType": "COMPLETE",
            "eventTime": f"2026-10-01T00:{number:02d}:00Z",
            "producer": "https://jobs.example",
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {"runId": f"00000000-0000-0000-0000-{number:012d}"},
            "job": {"namespace": "jobs", "name": f"export {number}"},
            "inputs": [{**source, "facets": schema}],
            "outputs": [{**output, "facets": {**schema, "columnLineage": {"fields": columns}}}],
        }

    def cli(self, *words: str) -> int:
        return run([*words, "--estate", str(self.base / "pii-tracer.yaml"), "--state", str(self.base / "state")])

    def plan(self, **more: Any) -> tuple[int, dict[str, Any]]:
        """The exit code, and the plan as it was written."""
        self.write(**more)
        code, plan = self.planned()
        if name_what_was_seen(self.base / "waivers.yaml", plan["gaps"]):
            return self.planned()
        return code, plan

    def planned(self) -> tuple[int, dict[str, Any]]:
        """As `plan`, of the files as they are."""
        words = ["--retention", "immediate", "--reason", "test", "--out", str(self.plan_file), "--format", "json"]
        words += ["--waivers", str(self.base / "waivers.yaml")]
        code = self.cli("plan", str(self.base / "request.yaml"), *words)
        return code, json.loads(self.plan_file.read_text())

    def approve(self) -> int:
        base = self.base
        public = public_pem(generate(base / "approver.pem")).decode()
        (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public)]))
        signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right", "--key"]
        return self.cli("approve", str(self.plan_file), *signed, str(base / "approver.pem"))

    def apply(self) -> tuple[int, dict[str, Any]]:
        """The exit code, and the run's result."""
        result = self.base / "result.json"
        code = self.cli(
            "apply", str(self.plan_file), "--trusted", str(self.base / "approvers.yaml"), "--result", str(result)
        )
        return code, json.loads(result.read_text()) if result.exists() else {}

    def is_halfway(self) -> bool:
        """Whether half of the plan's steps are verified, or wait."""
        journals = [file.read_text() for file in self.base.glob("state/runs/*/journal.jsonl")]
        steps = len(json.loads(self.plan_file.read_text())["steps"])
        kinds = ('"step_verified"', '"step_waiting"')
        return 2 * sum(text.count(kind) for text in journals for kind in kinds) >= steps

    def verify(self) -> int:
        return self.cli("verify", str(self.plan_file))
