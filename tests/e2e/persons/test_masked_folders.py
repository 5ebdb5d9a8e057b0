"""Bare folders of which single columns are held, from plan to attestation: Parquet, CSV and JSON lines."""

from __future__ import annotations

import base64
import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pii_tracer.cli.main import run
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.cli.small import RECEIVED
from tests.leaks import Person, leaks
from tests.sparksession import small_spark
from tests.waivers import write_waivers

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]

BUYER, EMAIL = "B-771204", "asha.rao@shop.example"
PERSON = Person((EMAIL,), (BUYER,))
ORDERS = [(BUYER if n in (3, 11) else f"B-{n}", EMAIL if n in (3, 11) else f"b{n}@shop.example", n) for n in range(16)]

JOBS = """
INSERT OVERWRITE DIRECTORY '{base}/tables/ledger' USING parquet PARTITIONED BY (day)
SELECT buyer, email, paid, day FROM shop.orders;

INSERT OVERWRITE DIRECTORY '{base}/tables/export' USING csv OPTIONS (header 'true')
SELECT buyer, email, paid FROM shop.orders;

INSERT OVERWRITE DIRECTORY '{base}/tables/feed' USING json SELECT buyer, email, paid FROM shop.orders;

INSERT OVERWRITE DIRECTORY '{base}/tables/strict' USING parquet SELECT buyer, email, paid FROM shop.orders
"""


def hold(name: str, *columns: str) -> dict[str, Any]:
    return {
        "id": name,
        "kind": "retention_duty",
        "datasets": [f"tables/{name}"],
        "columns": list(columns),
        "basis": "commercial code",
        "citation": "s. 257, ten years",
        "from": "2020-01-01T00:00:00+00:00",
        "until": "2036-01-01T00:00:00+00:00",
        "approver": "Dr. Sen",
    }


def build(base: Path) -> None:
    """Two days, the buyer on each; one ledger file without the buyer; one folder in which the address is required."""
    rows = [{"buyer": b, "email": e, "paid": paid, "day": f"2026-01-0{1 + paid // 8}"} for b, e, paid in ORDERS]
    for name in ("orders", "export", "feed", "strict", "ledger/day=2026-01-01", "ledger/day=2026-01-02"):
        (base / "tables" / name).mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), base / "tables" / "orders" / "part-0.parquet")
    bare = [{name: value for name, value in row.items() if name != "day"} for row in rows]
    for day, part in (("01", bare[:8]), ("02", bare[8:])):
        folder = base / "tables" / "ledger" / f"day=2026-01-{day}"
        pq.write_table(pa.Table.from_pylist(part[:2]), folder / "part-0.parquet")
        pq.write_table(pa.Table.from_pylist(part[2:]), folder / "part-1.parquet", compression="zstd")
    needed = pa.schema([("buyer", "string"), pa.field("email", pa.string(), nullable=False), ("paid", "int64")])
    pq.write_table(pa.Table.from_pylist(bare, needed), base / "tables" / "strict" / "part-0.parquet")
    with (base / "tables" / "export" / "part-0.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ["buyer", "email", "paid"])
        writer.writeheader()
        writer.writerows(bare)
    (base / "tables" / "feed" / "part-0.json").write_text("".join(json.dumps(row) + "\n" for row in bare))
    (base / "jobs.sql").write_text(JOBS.format(base=base))
    declared = [{"name": "shop.orders", "format": "parquet", "location": "tables/orders"}]
    subject = {"name": "buyer", "source": "shop.orders", "key": "buyer"}
    estate = {
        "version": 1,
        "estate": "shop",
        "environment": "local",
        "spark": small_spark(),
        "catalogs": {"spark_catalog": {"type": "declared", "tables": declared}},
        "roots": ["tables"],
        "lineage": {"sql": ["jobs.sql"]},
        "subjects": [{**subject, "identifiers": [{"column": "email", "category": "email"}]}],
        "holds": [
            hold("ledger", "paid", "day"),
            hold("export", "buyer", "paid"),
            hold("feed", "paid"),
            hold("strict", "paid"),
        ],
    }
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    request = {"id": "SHOP-1", "law": "GDPR", "received": RECEIVED}
    (base / "request.yaml").write_text(yaml.safe_dump({**request, "subject": {"type": "buyer", "key": BUYER}}))
    public = generate(base / "key.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))


@dataclass(frozen=True)
class Run:
    """What the run left. files: bytes and inodes of every data file before it."""

    base: Path
    codes: list[int]
    plan: dict[str, Any]
    result: dict[str, Any]
    files: dict[str, tuple[bytes, int]]


@pytest.fixture(scope="module")
def done(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    base = tmp_path_factory.mktemp("shop")
    build(base)
    files = {str(p): (p.read_bytes(), p.stat().st_ino) for p in (base / "tables").rglob("part-*")}
    file, result = base / "p.plan.json", base / "result.json"

    def cli(*given: str) -> int:
        return run([*given, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])

    options = ["--retention", "immediate", "--reason", "test", "--out", str(file), "--format", "json"]
    codes = [cli("plan", str(base / "request.yaml"), *options)]
    write_waivers(base / "waivers.yaml", json.loads(file.read_text())["gaps"])
    codes.append(cli("plan", str(base / "request.yaml"), *options, "--waivers", str(base / "waivers.yaml")))
    signed = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "key.pem")]
    codes.append(cli("approve", str(file), *signed))
    codes.append(cli("apply", str(file), "--trusted", str(base / "approvers.yaml"), "--result", str(result)))
    codes.append(cli("verify", str(file)))
    return Run(base, codes, json.loads(file.read_text()), json.loads(result.read_text()), files)


def rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return pq.ParquetFile(path).read().to_pylist()  # type: ignore[no-any-return]
    text = path.read_text().splitlines()
    return [json.loads(line) for line in text] if path.suffix == ".json" else list(csv.DictReader(text))


def test_rows_stay_with_what_is_held_and_nothing_else(done: Run) -> None:
    tables = done.base / "tables"
    assert [r for r in rows(tables / "feed" / "part-0.json") if r["buyer"] == BUYER] == [
        {"buyer": BUYER, "email": None, "paid": paid} for paid in (3, 11)
    ]
    assert [r for r in rows(tables / "export" / "part-0.csv") if r["buyer"] == BUYER] == [
        {"buyer": BUYER, "email": "", "paid": paid} for paid in ("3", "11")
    ]
    for path, (before, inode) in done.files.items():
        if "/ledger/" in path and path.endswith("part-0.parquet"):
            assert (Path(path).read_bytes(), Path(path).stat().st_ino) == (before, inode), "nobody of concern is in it"
    ledger = [r for p in sorted((tables / "ledger").rglob("part-*")) for r in rows(p)]
    assert [(r["buyer"], r["email"], r["paid"]) for r in ledger] == [
        (buyer, None if buyer == BUYER else email, paid) for buyer, email, paid in ORDERS
    ]


def test_the_plan_and_the_result_say_what_is_kept(done: Run) -> None:
    assert done.codes == [3, 0, 0, 0, 0], done.result
    strategies = {Path(c["location"]).name: c["strategy"] for c in done.plan["copies"]}
    assert strategies == {
        "orders": "delete_by_key",
        "ledger": "mask_columns",
        "export": "mask_columns",
        "feed": "mask_columns",
        "strict": "exempt",
    }
    gaps = {(g["kind"], g["dataset"]["name"].rpartition("/")[2]): g["reason"] for g in done.plan["gaps"]}
    overwritten = {("hold_overwritten", name) for name in ("ledger", "export", "feed", "strict")}
    assert gaps.keys() == overwritten | {("hold_keeps_rest", "strict")}
    assert "email is NOT NULL" in gaps["hold_keeps_rest", "strict"]
    assert done.result["state"] == "complete"
    assert (done.result["residue"], done.result["unverified"], done.result["bystander_rows_lost"]) == ([], [], 0)
    counted = (done.result["copies_total"], done.result["copies_erased"], done.result["copies_exempt"])
    assert counted == (5, 1, 4)


def test_the_proofs_claim_no_more(done: Run) -> None:
    envelope = json.loads(Path(done.result["attestation"]).read_text())
    predicate = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    held = {e["what"]: e["why"] for e in predicate["exceptions"] if e["kind"] == "hold"}
    assert len(held) == 4
    states = {
        (e.copy_id, e.action): e.state.value for e in DeletionLog(Path(done.result["deletion_log"]), "shop").entries()
    }
    assert {state for (_, action), state in states.items() if action == "files_mask_rows"} == {"partial"}
    assert sum(action == "files_mask_rows" for _, action in states) == 3
    left = leaks(PERSON, [done.base / "state", *done.base.glob("p.plan*"), done.base / "result.json"])
    assert left == []
