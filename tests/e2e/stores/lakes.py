"""What estates in S3 have in common when a whole path runs on them: people like the person, the commands, other readers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from hudi import HudiTableBuilder
from pyarrow import csv as csv_files
from pyarrow import orc

from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.run.journal import Kind
from tests.app.planning.test_remote import MAIL, PERSON, Shop
from tests.e2e.processes import Ended, history, run_until
from tests.leaks import Person

Rows = list[tuple[int, str]]
Read = Callable[[bytes], Rows]

ALIKE = pa.table(
    {
        "uid": pa.array([PERSON * 10 + 9, int(f"3{PERSON}")], pa.int64()),
        "mail": [f"d{MAIL}", MAIL.replace("asha", "isha")],
    }
)
"""Two whose numbers have hers at the beginning and at the end. An address ends with hers; another differs in a letter."""
HER = Person((), (str(PERSON), MAIL))
"""As words of their own: `ALIKE` have them in longer ones."""


@dataclass(frozen=True)
class Erasure:
    """The commands on the estate file of a folder."""

    base: Path

    @property
    def file(self) -> Path:
        return self.base / "lake.plan.json"

    def words(self, *more: str) -> list[str]:
        return [*more, "--estate", str(self.base / "pii-tracer.yaml"), "--state", str(self.base / "state")]

    def plan(self) -> tuple[int, dict[str, Any]]:
        """The exit code and the plan."""
        (self.base / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
        how = ["--retention", "immediate", "--reason", "test: no writer, no reader", "--out", str(self.file)]
        code = run(self.words("plan", str(self.base / "request.yaml"), *how))
        return code, json.loads(self.file.read_text())

    def approve(self) -> None:
        public = public_pem(generate(self.base / "approver.pem")).decode()
        (self.base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public)]))
        who = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right"]
        assert run(self.words("approve", str(self.file), *who, "--key", str(self.base / "approver.pem"))) == 0

    def apply(self, log: Path, until: Callable[[], bool] = lambda: False) -> Ended:
        """In a process of its own, which is killed when that is so."""
        how = ["--trusted", str(self.base / "approvers.yaml"), "--result", str(self.base / "result.json")]
        return run_until(self.words("apply", str(self.file), *how), log, until)

    def resume(self, log: Path) -> dict[str, Any]:
        """What the run that ends well tells."""
        done = run_until(["resume", "--state", str(self.base / "state"), "--format", "json"], log)
        told: dict[str, Any] = json.loads(done.stdout)
        assert done.code == ExitCode.DONE, (told.get("failed"), told["residue"], told["unverified"])
        return told

    def verify(self) -> int:
        return run(self.words("verify", str(self.file)))

    def steps(self, kind: Kind) -> list[str]:
        """Those of which the run's journal has a record of a kind."""
        journals = (self.base / "state" / "runs").glob("*/journal.jsonl")
        records = (record for journal in journals for record in history(journal))
        return [str(record.facts["step"]) for record in records if record.kind is kind]

    def is_halfway(self) -> bool:
        """Whether half of the plan's steps are verified."""
        return 2 * len(self.steps(Kind.STEP_VERIFIED)) >= len(json.loads(self.file.read_text())["steps"])


def versions(shop: Shop, into: Path, *more: str) -> dict[tuple[str, str], bool]:
    """Every version of every object, each as a file. By key and version: whether it is the current one. more: buckets
    beside that of the shop."""
    client, found = shop.store.client(), dict[tuple[str, str], bool]()
    into.mkdir()
    for bucket in (shop.bucket, *more):
        for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
            for item in page.get("DeleteMarkers", ()):
                found[item["Key"], item["VersionId"]] = False
            for item in page.get("Versions", ()):
                key, version = item["Key"], item["VersionId"]
                answer = client.get_object(Bucket=bucket, Key=key, VersionId=version)
                (into / f"{len(found)}-{Path(key).name}").write_bytes(answer["Body"].read())
                found[key, version] = item["IsLatest"]
    return found


def in_bytes(kind: str, data: bytes) -> pa.Table:
    """The rows of a file. kind: its format, in small letters."""
    if kind == "csv":
        return csv_files.read_csv(io.BytesIO(data))
    if kind == "json":
        return pa.Table.from_pylist([json.loads(line) for line in data.splitlines()])
    return pq.read_table(io.BytesIO(data)) if kind == "parquet" else orc.read_table(io.BytesIO(data))


def as_bytes(kind: str, rows: pa.Table) -> bytes:
    """A file with rows; CSV with a header."""
    sink = io.BytesIO()
    if kind == "json":
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows.to_pylist())
    if kind == "csv":
        csv_files.write_csv(rows, sink)
    elif kind == "parquet":
        pq.write_table(rows, sink)
    else:
        orc.write_table(rows, sink)
    return sink.getvalue()


def as_rows(table: pa.Table) -> Rows:
    """Everybody's number and address."""
    return sorted((int(row["uid"]), str(row["mail"])) for row in table.select(["uid", "mail"]).to_pylist())


def parquet_rows(data: bytes) -> Rows:
    return as_rows(in_bytes("parquet", data))


def orc_rows(data: bytes) -> Rows:
    return as_rows(in_bytes("orc", data))


def json_rows(data: bytes) -> Rows:
    return as_rows(in_bytes("json", data))


def cells(sign: str) -> Read:
    """How text is read whose cells end with a sign."""

    def read(data: bytes) -> Rows:
        return sorted((int(row[0]), row[1]) for row in csv.reader(io.StringIO(data.decode()), delimiter=sign))

    return read


def rows_below(shop: Shop, prefix: str, read: Read, bucket: str = "") -> Rows:
    """The rows of current objects. bucket: another one than that of the shop."""
    client, bucket = shop.store.client(), bucket or shop.bucket

    def found() -> Iterator[tuple[int, str]]:
        for item in client.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]:
            if data := client.get_object(Bucket=bucket, Key=item["Key"])["Body"].read():
                yield from read(data)

    return sorted(found())


def delta_rows(shop: Shop, place: str) -> Rows:
    return as_rows(pa.table(DeltaTable(place, storage_options=shop.options).to_pyarrow_table()))


def hudi_rows(shop: Shop, place: str) -> Rows:
    batches = HudiTableBuilder.from_base_uri(place).with_storage_options(shop.options).build().read()
    return as_rows(pa.Table.from_batches([pa.record_batch(batch) for batch in batches]))


def without_her(rows: dict[str, Rows]) -> dict[str, Rows]:
    return {place: [row for row in found if row[0] != PERSON] for place, found in rows.items()}
