"""Bare folders in a bucket with versions, in every format, erased from request to proof, and killed on the way."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from pii_tracer.review.plan_file import load_plan
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.run.journal import Kind
from tests import storeservers
from tests.app.planning.test_remote import MAIL, PERSON, Shop
from tests.e2e.processes import history, run_until
from tests.leaks import Person, leaks
from tests.sparksession import small_spark
from tests.storeservers import Store, signed

__all__ = ["signed"]

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]

Rows = list[dict[str, Any]]
EVERYBODY: Rows = [
    {"uid": PERSON + n, "mail": mail, "note": f"größe {n}"}
    for n, mail in enumerate([MAIL, "b@x.example", "c@x.example", "asha.rao2@mail.example"])
]
OTHERS = EVERYBODY[1:]
HER = Person((MAIL, str(PERSON)))
AVRO = {
    "type": "record",
    "name": "lead",
    "fields": [{"name": "uid", "type": "long"}, {"name": "mail", "type": "string"}, {"name": "note", "type": "string"}],
}


def _parquet(rows: Rows) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink, compression="zstd")
    return sink.getvalue()


def _orc(rows: Rows) -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def _avro(rows: Rows) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, AVRO, rows, codec="deflate")
    return sink.getvalue()


def _csv(rows: Rows) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return gzip.compress(text.getvalue().encode())


def _json(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


WRITE: dict[str, tuple[Callable[[Rows], bytes], str]] = {
    "parquet": (_parquet, "day=2026-11-01/1.zstd.parquet"),
    "orc": (_orc, "1.orc"),
    "avro": (_avro, "1.avro"),
    "csv": (_csv, "1.csv.gz"),
    "json": (_json, "1.json"),
}
READ: dict[str, Callable[[bytes], Rows]] = {
    "parquet": lambda data: pq.ParquetFile(io.BytesIO(data)).read().to_pylist(),
    "orc": lambda data: orc.ORCFile(io.BytesIO(data)).read().to_pylist(),
    "avro": lambda data: list(fastavro.reader(io.BytesIO(data))),  # type: ignore[arg-type]
    "csv": lambda data: [
        row | {"uid": int(row["uid"])} for row in csv.DictReader(io.StringIO(gzip.decompress(data).decode()))
    ],
    "json": lambda data: [json.loads(line) for line in data.splitlines()],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """versitygw where it has been built, else the stand-in."""
    with storeservers.versioned(tmp_path_factory.mktemp("store")) as running:
        yield running


def versions(shop: Shop, into: Path) -> tuple[int, int]:
    """Every version of every object, each as a file; how many are noncurrent or markers, and how many there are."""
    client, old, number = shop.store.client(), 0, 0
    into.mkdir()
    for page in client.get_paginator("list_object_versions").paginate(Bucket=shop.bucket, Prefix="bare/"):
        old += len(page.get("DeleteMarkers", ()))
        for item in page.get("Versions", ()):
            old += not item["IsLatest"]
            number += 1
            answer = client.get_object(Bucket=shop.bucket, Key=item["Key"], VersionId=item["VersionId"])
            (into / f"{number}-{Path(item['Key']).name}").write_bytes(answer["Body"].read())
    return old, number


def rows(shop: Shop, kind: str) -> Rows:
    answer = shop.store.client().get_object(Bucket=shop.bucket, Key=f"bare/{kind}/{WRITE[kind][1]}")
    return READ[kind](answer["Body"].read())


def approved(shop: Shop) -> Path:
    base, file = shop.base, shop.base / "bare.plan.json"
    (base / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
    how = ["--retention", "immediate", "--reason", "test: no writer, no reader", "--out", str(file)]
    assert run(words(shop, "plan", str(base / "request.yaml"), *how)) == ExitCode.DONE
    public = generate(base / "approver.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public_pem(public).decode())]))
    signed_by = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right"]
    assert run(words(shop, "approve", str(file), *signed_by, "--key", str(base / "approver.pem"))) == ExitCode.DONE
    return file


def words(shop: Shop, *more: str) -> list[str]:
    return [*more, "--estate", str(shop.base / "pii-tracer.yaml"), "--state", str(shop.base / "state")]


def test_erased_in_every_format_to_the_last_version(store: Store, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop", store, "bare-lake")
    for kind, (write, name) in WRITE.items():
        folder = shop.bare(f"shop.{kind}", kind)
        columns = "uid, mail, note, day" if kind == "parquet" else "uid, mail, note"
        read = columns.replace("note", "mail AS note").replace("day", "'2026-11-01' AS day")
        shop.jobs += f"INSERT INTO shop.{kind} SELECT {read} FROM shop.people;\n"
        shop.put(f"{folder}/{name}", write(EVERYBODY))
        shop.put(f"{folder}/{name}", write(EVERYBODY))
    # the naive way: the object is written over without her
    shop.put("bare/json/1.json", _json(OTHERS))
    shop.more = f"spark: {json.dumps(small_spark())}\n"
    shop.write()
    before = {kind: rows(shop, kind) for kind in WRITE}
    assert before["json"] == OTHERS
    versions(shop, tmp_path / "before")
    assert any("-1.json: " in found for found in leaks(HER, [tmp_path / "before"])), "she is in the former version"
    file = approved(shop)
    plan = load_plan(file).plan
    journal = shop.base / "state" / "runs" / plan.plan_id / "journal.jsonl"

    def rewritten() -> bool:
        steps = [r.facts["step"] for r in history(journal) if r.kind is Kind.STEP_RESULT]
        return any("s3-rewrite-archive" in step for step in steps)

    apply = words(shop, "apply", str(file), "--trusted", str(shop.base / "approvers.yaml"))
    died = run_until(apply, tmp_path / "1", rewritten)
    assert died.killed, died
    done = run_until(["resume", "--state", str(shop.base / "state"), "--format", "json"], tmp_path / "2")
    assert done.code == 0, done
    result = json.loads(done.stdout)
    assert (result["state"], result["residue"], result["unverified"]) == ("complete", [], [])
    assert (result["copies_erased"], result["bystander_rows_lost"]) == (6, 0)
    envelope = json.loads((journal.parent / "attestation.json").read_text())
    others = json.loads(base64.b64decode(envelope["payload"]))["predicate"]["others"]
    assert others == {"compared": 5, "rows_lost": 0, "changed": 0}
    old, number = versions(shop, tmp_path / "after")
    assert (old, number) == (0, len(WRITE))
    assert leaks(HER, [tmp_path / "after"]) == []
    assert {kind: rows(shop, kind) for kind in WRITE} == dict.fromkeys(WRITE, OTHERS)
    assert leaks(HER, [shop.base / "state", file, *tmp_path.glob("[12].*")]) == []
    assert (journal.parent / "attestation.json").exists()
    assert run(words(shop, "recheck")) == ExitCode.DONE
    shop.put("bare/json/2.json", _json(EVERYBODY[:1]))
    assert run(words(shop, "recheck")) == ExitCode.RESIDUE, "a replay brought her back"
