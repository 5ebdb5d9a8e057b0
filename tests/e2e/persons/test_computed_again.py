"""Tables of aggregates in bare files, here and in S3 under Glue, that their owner computes again: waited for, and looked
at by the run."""

from __future__ import annotations

import base64
import csv
import json
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from executors.engine.version_profiles import installed_profile
from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.app.planning.test_bare_lake_plan import parquet
from tests.app.planning.test_glue import lake, store
from tests.app.planning.test_remote import Shop
from tests.gluesupport import glue_table
from tests.storeservers import Store, signed
from tests.waivers import write_waivers

__all__ = ["signed", "store"]

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

JOBS = (
    "INSERT OVERWRITE shop.counts SELECT count(uid) AS people FROM shop.people;\n"
    "INSERT OVERWRITE prod.totals SELECT sum(people) AS people FROM shop.counts;\n"
)
SIGNED = ("--role", "privacy officer", "--key")


@pytest.fixture
def glue(store: Store, tmp_path: Path) -> Iterator[tuple[Shop, Any]]:
    """The shop with Glue as its catalog, and Glue's client."""
    with lake(store, tmp_path) as found:
        yield found


def words(shop: Shop, *more: str) -> list[str]:
    return [*more, "--estate", str(shop.base / "pii-tracer.yaml"), "--state", str(shop.base / "state")]


def counts(shop: Shop, people: int) -> None:
    """The job of the local table: one CSV file of the same name each time."""
    folder = shop.base / "w" / "counts"
    folder.mkdir(exist_ok=True)
    (folder / "part-0.csv").write_text(f"people\n{people}\n")


def totals(shop: Shop, people: int) -> str:
    """The job of the table in the bucket with versions; the id of the version that it wrote."""
    rows = pa.table({"people": pa.array([people], pa.int64())})
    return str(shop.put("bare/totals/part-0.parquet", parquet(rows))["VersionId"])


def test_what_its_owner_computes_again_is_waited_for_and_looked_at(
    spark: Any, glue: tuple[Shop, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    shop, client = glue
    base = shop.base
    shop.jobs = JOBS
    shop.tables["shop.counts"], shop.formats["shop.counts"] = "w/counts", "csv"
    glue_table(client, "totals", f"s3://{shop.bucket}/bare/totals", "parquet", {"people": "bigint"})
    shop.more = f"spark: {{profile: '{installed_profile().name}'}}\n"
    file, result = base / "r.plan.json", base / "result.json"
    counts(shop, 3)
    totals(shop, 3)
    shop.write()
    (base / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    for name in ("people", "counts"):
        spark.sql(f"DROP TABLE IF EXISTS shop.{name}")
    spark.sql(f"CREATE TABLE shop.people USING parquet LOCATION '{base / 'w' / 'people'}'")

    def planned(*more: str) -> dict[str, Any]:
        how = ["--retention", "immediate", "--reason", "test", "--out", str(file), *more]
        assert run(words(shop, "plan", str(base / "request.yaml"), *how)) in (ExitCode.DONE, ExitCode.INCOMPLETE)
        made: dict[str, Any] = json.loads(file.read_text())
        return made

    gaps = {gap["id"]: gap for gap in planned()["gaps"]}
    assert set(gaps) == {"gap-no_way-shop.counts", "gap-no_way-prod.totals"}
    waivers = {}
    for gap, team in zip(gaps.values(), ("sales", "finance"), strict=True):
        path = write_waivers(base / "one.yaml", [gap], task={"owner": team, "act": f"run the job of {team} again"})
        waivers[team] = path.read_text()
    (base / "waivers.yaml").write_text("".join(waivers.values()))
    plan = planned("--waivers", str(base / "waivers.yaml"))
    assert plan["complete"]
    assert plan["applyable"]
    public = public_pem(generate(base / "approver.pem")).decode()
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public)]))
    key = [*SIGNED, str(base / "approver.pem")]
    assert run(words(shop, "approve", str(file), "--approver", "Dr. Sen", "--reason", "right", *key)) == 0
    evidence = base / "log.txt"
    evidence.write_text("done")

    def confirm(gap: str, began: datetime) -> None:
        told = ["--evidence", str(evidence), "--by", "Dr. Sen", "--said", "it ran", "--began", began.isoformat()]
        assert run(["confirm", gap, "--state", str(base / "state"), *told, *key]) == 0

    def resumed(expected: int) -> dict[str, Any]:
        assert run(["resume", "--state", str(base / "state")]) == expected
        told: dict[str, Any] = json.loads(result.read_text())
        return told

    def left(told: dict[str, Any]) -> set[str]:
        assert all("not recomputed" in item["where"] for item in told["residue"])
        return {item["file"] for item in told["residue"]}

    planned_at = datetime.now(timezone.utc)
    counts(shop, 3)  # between the plan and the erasure: it still counts the person
    applied = ["--trusted", str(base / "approvers.yaml"), "--result", str(result)]
    assert run(words(shop, "apply", str(file), *applied)) == ExitCode.WAITING
    assert left(json.loads(result.read_text())) == set()
    confirm("gap-no_way-shop.counts", planned_at)
    assert resumed(ExitCode.WAITING)["residue"] == [], "the job began before the erasure"
    confirm("gap-no_way-shop.counts", datetime.now(timezone.utc))
    assert left(resumed(ExitCode.RESIDUE)) == {"part-0.csv"}, "the word was given, and the job did not run"
    counts(shop, 2)
    assert left(resumed(ExitCode.WAITING)) == set(), "what is computed from it comes behind it"
    old = [v["VersionId"] for v in versions(shop)]
    time.sleep(1.1)  # S3 tells times to the second: what was written in that of the note is not shown to be new
    began = datetime.now(timezone.utc)
    totals(shop, 2)
    confirm("gap-no_way-prod.totals", began)
    (name,) = left(resumed(ExitCode.RESIDUE))
    assert name == f"part-0.parquet?versionId={old[0]}", "the former version is still there"
    assert run(words(shop, "verify", str(file))) == ExitCode.RESIDUE
    shop.store.client().delete_object(Bucket=shop.bucket, Key="bare/totals/part-0.parquet", VersionId=old[0])
    done = resumed(ExitCode.DONE)
    assert (done["state"], done["residue"], done["copies_erased"], done["copies_confirmed"]) == ("complete", [], 1, 2)
    capsys.readouterr()
    assert run(words(shop, "verify", str(file))) == ExitCode.DONE
    shown = capsys.readouterr().out
    assert shown.count("computed again by its owner, not erased, and no proof by bytes") == 2
    assert "1/3 copies without the person" in shown
    envelope = json.loads(Path(done["attestation"]).read_text())
    predicate = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    exceptions = predicate["exceptions"]
    said = {e["what"]: e for e in exceptions if e["what"].startswith("c-")}
    assert set(said) == {"c-shop.counts", "c-prod.totals"}
    assert all(e["why"].startswith("computed again by its owner, not erased") for e in said.values())
    assert all("counts themselves were not compared" in e["why"] for e in said.values())
    words_of_owners = [one for one in predicate["not_proved"] if "owner's word" in one]
    assert [one.partition(":")[0] for one in words_of_owners] == ["c-shop.counts", "c-prod.totals"]
    assert {e["what"] for e in exceptions} >= {"gap-no_way-shop.counts", "gap-no_way-prod.totals"}
    public_key = str(base / "state" / "keys" / "attest.pem.pub")
    assert run(["attest", "verify", done["attestation"], "--key", public_key]) == 0
    where = ["--state", str(base / "state"), "--estate", str(base / "pii-tracer.yaml")]
    capsys.readouterr()
    assert run(["attest", "answer", plan["plan_id"], "--request", plan["requests"][0]["id"], *where]) == 0
    signed_answer = capsys.readouterr().out.split()[0]
    assert run(["attest", "verify-answer", signed_answer, "--key", public_key, "--format", "json"]) == 0
    standing = {item["what"]: item["standing"] for item in json.loads(capsys.readouterr().out)["items"]}
    assert [standing[name] for name in ("shop.people", "shop.counts", "prod.totals")] == ["erased", *["answered"] * 2]
    assert run(["log", "export", str(base / "log.csv"), *where]) == 0
    rows = list(csv.DictReader((base / "log.csv").open()))
    assert {row["copy_id"] for row in rows if row["state"] == "erased"} == {"c-shop.people"}
    assert [row["state"] for row in rows if row["step_id"] == "c-prod.totals/99-verify"] == ["blocked", "confirmed"]


def versions(shop: Shop) -> list[dict[str, Any]]:
    found = shop.store.client().list_object_versions(Bucket=shop.bucket, Prefix="bare/totals/")
    listed: list[dict[str, Any]] = found["Versions"]
    return listed
