"""A root in S3 whose tables are declared by the lines of their gaps, erased from request to proof, and killed on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from pii_tracer.model.errors import ExitCode
from pii_tracer.review.plan_file import load_plan
from pii_tracer.run.journal import Kind
from tests.app.planning.test_remote import MAIL, OTHERS, PEOPLE, PERSON, Shop
from tests.app.planning.test_tables_in_s3_roots import lines, parquet, place
from tests.e2e.processes import history, run_until
from tests.e2e.stores.test_bare_lake import HER, READ, approved, words
from tests.leaks import leaks
from tests.sparksession import small_spark
from tests.storeservers import Store, signed, strict_store

__all__ = ["signed", "strict_store"]

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]
FILES = tuple(f"{folder}/a.parquet" for folder in ("parts/dt=2026-11-29", "parts/dt=2026-11-30", "days/2026/11/29"))


def _every_version(shop: Shop, into: Path) -> int:
    """Each as a file; how many are noncurrent or markers."""
    client, old = shop.store.client(), 0
    into.mkdir()
    found = client.list_object_versions(Bucket=shop.bucket, Prefix="lake/")
    for number, item in enumerate(found.get("Versions", ())):
        old += not item["IsLatest"]
        answer = client.get_object(Bucket=shop.bucket, Key=item["Key"], VersionId=item["VersionId"])
        (into / f"{number}-{Path(item['Key']).name}").write_bytes(answer["Body"].read())
    return old + len(found.get("DeleteMarkers", ()))


def test_tables_of_a_root_are_erased_once_their_lines_are_written(strict_store: Store, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop", strict_store, "root-lake")
    shop.roots.append(f"s3://{shop.bucket}/lake")
    tickets = place(shop, "crm/tickets")
    write_deltalake(tickets, PEOPLE, storage_options=shop.options)
    for key in FILES:
        shop.put(f"lake/{key}", parquet(PEOPLE))
        shop.put(f"lake/{key}", parquet(PEOPLE))
    shop.put("lake/clean/a.parquet", parquet(OTHERS))
    targets = [*(f"parquet.`{place(shop, t)}`" for t in ("parts", "days")), f"delta.`{tickets}`"]
    shop.jobs = "".join(f"INSERT INTO {t} (uid, mail) SELECT uid, mail FROM shop.people;\n" for t in targets)
    shop.more = f"spark: {json.dumps(small_spark())}\nwriters: [{{job: shop, stopped: true}}]\n"
    for at, line in lines(shop.plan()).items():
        shop.tables[line["name"]], shop.formats[line["name"]] = at, line["format"]
    shop.write()
    file = approved(shop)
    plan = load_plan(file).plan
    assert {copy.table for copy in plan.copies} == {"shop.people", *shop.tables} - {"lake.clean"}
    journal = shop.base / "state" / "runs" / plan.plan_id / "journal.jsonl"

    def begun() -> bool:
        return any(r.kind is Kind.STEP_RESULT and "s3" in r.facts["step"] for r in history(journal))

    apply = words(shop, "apply", str(file), "--trusted", str(shop.base / "approvers.yaml"))
    died = run_until(apply, tmp_path / "1", begun)
    assert died.killed, died
    done = run_until(["resume", "--state", str(shop.base / "state"), "--format", "json"], tmp_path / "2")
    assert done.code == ExitCode.DONE, done
    result = json.loads(done.stdout)
    assert (result["state"], result["residue"], result["unverified"]) == ("complete", [], [])
    assert result["bystander_rows_lost"] == 0
    assert _every_version(shop, tmp_path / "after") == 0
    assert leaks(HER, [tmp_path / "after", shop.base / "state", file]) == []
    for key in (*FILES, "clean/a.parquet"):
        body = shop.store.client().get_object(Bucket=shop.bucket, Key=f"lake/{key}")["Body"].read()
        assert READ["parquet"](body) == OTHERS.to_pylist()
    rows = DeltaTable(tickets, storage_options=shop.options).to_pyarrow_table().to_pylist()
    assert sorted(rows, key=str) == sorted(OTHERS.to_pylist(), key=str)
    assert str(PERSON) not in file.read_text()
    assert MAIL not in file.read_text()
