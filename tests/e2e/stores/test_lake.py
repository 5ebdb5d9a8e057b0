"""Tables in a bucket with versions, erased from request to proof: killed on the way, resumed, and searched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, QueryBuilder
from hudi import HudiTableBuilder
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from pii_tracer.review.plan_file import load_plan
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.run.journal import Kind
from tests.e2e import bazaar, harbour
from tests.e2e.processes import REPO, history, run_until
from tests.leaks import Person, leaks, watched_spark
from tests.storeservers import ACCESS, REGION, SECRET, Store, signed
from tests.storeservers import strict_store as store

__all__ = ["signed", "store"]

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]


@dataclass(frozen=True)
class Bazaar:
    """The estate, and everybody's rows before."""

    base: Path
    store: Store
    bucket: str

    module = bazaar.__name__
    front = ""
    tables = (*bazaar.TABLES, *bazaar.HUDI)

    @property
    def options(self) -> dict[str, str]:
        found = {"AWS_ENDPOINT_URL": self.store.endpoint_url, "AWS_REGION": REGION, "AWS_ALLOW_HTTP": "true"}
        return {**found, "AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}

    def words(self, *words: str) -> list[str]:
        return [*words, "--estate", str(self.base / "pii-tracer.yaml"), "--state", str(self.base / "state")]

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of every table, sorted; read by another engine than the one that writes."""
        found = {}
        for name in bazaar.TABLES:
            table = DeltaTable(f"s3://{self.bucket}/lake/{name}", storage_options=self.options)
            query = QueryBuilder().register("t", table).execute("SELECT * FROM t")
            found[name] = _rows(pa.table(query.read_all()))
        for name in bazaar.HUDI:
            uri = f"s3://{self.bucket}/lake/{name}"
            table = HudiTableBuilder.from_base_uri(uri).with_storage_options(self.options).build()
            read = pa.Table.from_batches([pa.record_batch(batch) for batch in table.read()])
            found[name] = _rows(read.select([n for n in read.column_names if not n.startswith("_hoodie_")]))
        return found

    def versions(self, into: Path) -> dict[str, int]:
        """Every version of every object, each as a file; how many there are, by what they are."""
        client = self.store.client()
        counts = {"current": 0, "noncurrent": 0, "markers": 0}
        names = []
        for page in client.get_paginator("list_object_versions").paginate(Bucket=self.bucket, Prefix="lake/"):
            counts["markers"] += len(page.get("DeleteMarkers", ()))
            names += [item["Key"] for item in page.get("DeleteMarkers", ())]
            for number, item in enumerate(page.get("Versions", ())):
                counts["current" if item["IsLatest"] else "noncurrent"] += 1
                names.append(item["Key"])
                answer = client.get_object(Bucket=self.bucket, Key=item["Key"], VersionId=item["VersionId"])
                file = into / f"{number}-{item['VersionId']}-{item['Key'].replace('/', '_')[-150:]}"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(answer["Body"].read())
        (into / "names.txt").write_text("\n".join(names))
        return counts


class Harbour(Bazaar):
    """The same of Iceberg tables."""

    module = harbour.__name__
    front = "lake."
    tables = harbour.TABLES

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """With those of branches and tags; read by PyIceberg, through Arrow's own client of S3."""
        reach = {"s3.endpoint": self.store.endpoint_url, "s3.region": REGION}
        reach |= {"s3.access-key-id": ACCESS, "s3.secret-access-key": SECRET}
        catalog = SqlCatalog("lake", uri=f"sqlite:///{self.base}/catalog.db", **reach)
        found = {}
        for name in harbour.TABLES:
            table = catalog.load_table(f"shop.{name}")
            for ref, at in table.refs().items():
                found[name if ref == "main" else f"{name}@{ref}"] = _rows(
                    table.scan(snapshot_id=at.snapshot_id).to_arrow()
                )
        return found


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


_numbers = iter(range(100))


@pytest.fixture(params=[Bazaar, pytest.param(Harbour, marks=pytest.mark.nightly)])
def estate(store: Store, tmp_path: Path, request: pytest.FixtureRequest) -> Bazaar:
    bucket = f"bazaar-{next(_numbers)}"
    client = store.client()
    client.create_bucket(Bucket=bucket)
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    base = tmp_path / "bazaar"
    command = [sys.executable, "-m", request.param.module, str(base), store.endpoint_url, bucket, REGION]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPO, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return request.param(base, store, bucket)  # type: ignore[no-any-return]


def others(found: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    mine = {bazaar.BUYER, bazaar.MAIL, bazaar.FORMER}
    return {name: [row for row in rows if mine.isdisjoint(row)] for name, rows in found.items() if name != "totals"}


def approved(estate: Bazaar) -> Path:
    """The plan's file, approved."""
    base, file = estate.base, estate.base / "bazaar.plan.json"
    how = ["--retention", "immediate", "--reason", "test: no writer, no reader", "--out", str(file)]
    assert run(estate.words("plan", str(base / "request.yaml"), *how)) == ExitCode.DONE
    public = generate(base / "approver.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public_pem(public).decode())]))
    signed_by = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right"]
    assert run(estate.words("approve", str(file), *signed_by, "--key", str(base / "approver.pem"))) == ExitCode.DONE
    return file


HOLD = {
    "id": "tax",
    "kind": "retention_duty",
    "basis": "Tax Act",
    "citation": "s. 12",
    "approver": "Dr. Sen",
    "columns": ["buyer", "amount"],
    "from": "2026-01-01T00:00:00Z",
    "until": "2031-01-01T00:00:00Z",
}


def test_erased_to_the_last_version_but_for_what_a_hold_keeps(estate: Bazaar, tmp_path: Path) -> None:
    before = estate.rows()
    estate.versions(tmp_path / "before")
    assert leaks(bazaar.PERSON, [tmp_path / "before"]) != []
    assert {row[0] for row in before["letters"]} >= {bazaar.FORMER}, "only the source's history knows this address"
    assert estate.front == "" or {"orders@audit", "orders@quarter"} <= before.keys()
    written, held = estate.base / "pii-tracer.yaml", f"{estate.front}shop.invoices"
    holds = {"holds": [HOLD | {"datasets": [held]}]}
    written.write_text(yaml.safe_dump(yaml.safe_load(written.read_text()) | holds))
    file = approved(estate)
    plan = load_plan(file).plan
    [masked] = [copy for copy in plan.copies if copy.mask]
    assert (masked.table, masked.mask and masked.mask.columns) == (held, ("mail",))
    assert {c.table for c in plan.copies if c.location.startswith("s3://")} == {
        f"{estate.front}shop.{name}" for name in estate.tables
    }
    journal = estate.base / "state" / "runs" / plan.plan_id / "journal.jsonl"

    def clearing() -> bool:
        steps = [r.facts["step"] for r in history(journal) if r.kind is Kind.STEP_INTENT]
        return any("s3-clear-versions" in step for step in steps)

    watched = watched_spark(tmp_path / "spark")
    trusted = ["--trusted", str(estate.base / "approvers.yaml")]
    died = run_until(estate.words("apply", str(file), *trusted), tmp_path / "1", clearing, more=watched)
    assert died.killed, died
    again = ["resume", "--state", str(estate.base / "state"), "--format", "json"]
    last = run_until(again, tmp_path / "2", more=watched)
    assert last.code == 0, last
    result = json.loads(last.stdout)
    assert (result["state"], result["residue"], result["unverified"]) == ("complete", [], [])
    assert result["bystander_rows_lost"] == 0
    after = estate.rows()
    assert others(after) == others(before)
    kept = [(buyer, None, amount) for buyer, _, amount in before["invoices"] if buyer == bazaar.BUYER]
    assert [row for row in after["invoices"] if row[0] == bazaar.BUYER] == kept != []
    all_gone = {name: rows for name, rows in after.items() if name not in ("totals", "invoices")}
    assert all_gone == others(all_gone)
    left = estate.versions(tmp_path / "after")
    assert (left["noncurrent"], left["markers"]) == (0, 0)
    assert leaks(Person((bazaar.MAIL, bazaar.FORMER)), [tmp_path / "after"]) == []
    assert leaks(bazaar.PERSON, [f for f in (tmp_path / "after").iterdir() if "_invoices_" not in f.name]) == []
    said = [tmp_path / "spark", tmp_path / "1.err", tmp_path / "1.out", tmp_path / "2.err", tmp_path / "2.out"]
    assert leaks(bazaar.PERSON, [*said, estate.base / "state", file]) == []
    assert (journal.parent / "attestation.json").exists()


@pytest.mark.parametrize("estate", [Harbour], indirect=True)
def test_retention_is_set_by_the_catalogs_name(estate: Bazaar) -> None:
    file = estate.base / "pii-tracer.yaml"
    rules = {"retention": {"tables": {f"lake.shop.{name}": "pii" for name in harbour.TABLES}}}
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | rules))
    words = estate.words("retention", "enforce", "--apply", "--format", "json")[:-2]  # it keeps no state
    done = run_until(words, estate.base / "said")
    told = json.loads(done.stdout)
    assert (told["applied"], told["failed"]) == (True, [])
    assert {change["location"] for change in told["changes"]} == {
        f"s3://{estate.bucket}/lake/shop/{name}" for name in harbour.TABLES
    }
    assert any(kept["setting"] and "quarter" in kept["setting"] for kept in told["kept"]), (
        "900 days, by whoever made it"
    )
    again = run_until(words, estate.base / "again")
    assert json.loads(again.stdout)["changes"] == []
