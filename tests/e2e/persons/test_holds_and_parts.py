"""First a part of the erasure, then the rest with a hold: what is left out or kept is said, and nothing more is claimed."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.cli.main import run
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.entries import Selection
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.e2e import clinic
from tests.leaks import leaks

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

HOLD = {
    "id": "charts",
    "kind": "retention_duty",
    "datasets": ["care.charts"],
    "basis": "medical records act",
    "citation": "s. 4, ten years",
    "from": "2020-01-01T00:00:00+00:00",
    "until": "2036-01-01T00:00:00+00:00",
    "approver": "Dr. Sen",
}
ADDRESS = {**HOLD, "id": "address", "datasets": ["med.core.mailing"], "columns": ["mail_hash"], "until": "indefinite"}
"""Only the hash of the address is held: the ward beside it is not."""
PERSON = "SELECT count(*) FROM {} WHERE {} = 'P-55102'"


@dataclass(frozen=True)
class Run:
    """What one plan and its run left. person: rows of the patient per table, after the run."""

    codes: list[int]
    plan: dict[str, Any]
    result: dict[str, Any]
    person: dict[str, int]


def whole_run(base: Path, spark: Any, name: str, *words: str) -> Run:
    file = base / f"{name}.plan.json"

    def cli(*given: str) -> int:
        return run([*given, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])

    options = ["--retention", "immediate", "--reason", "test", "--out", str(file), "--format", "json"]
    codes = [cli("plan", str(base / "request.yaml"), *options, *words)]
    signed = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "key.pem")]
    codes.append(cli("approve", str(file), *signed))
    result = base / f"{name}.result.json"
    codes.append(cli("apply", str(file), "--trusted", str(base / "approvers.yaml"), "--result", str(result)))
    codes.append(cli("verify", str(file)))
    tables = {
        "visits": ("med.core.visits", "patient_no"),
        "charts": ("care.charts", "chart_no"),
        "extract": (f"parquet.`{base}/tables/extract`", "patient.no"),
    }
    person = {table: spark.sql(PERSON.format(*where)).collect()[0][0] for table, where in tables.items()}
    return Run(codes, json.loads(file.read_text()), json.loads(result.read_text()), person)


@pytest.fixture(scope="module")
def runs(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run, Path]:
    base = tmp_path_factory.mktemp("clinic")
    clinic.build(base, spark)
    public = generate(base / "key.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))
    part = whole_run(base, spark, "part", "--only", f"{base}/tables/extract")
    estate = {**clinic.ESTATE, "holds": [HOLD, ADDRESS]}
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    return part, whole_run(base, spark, "rest"), base


def test_a_part_is_done_and_is_not_the_erasure(runs: tuple[Run, Run, Path]) -> None:
    part = runs[0]
    assert part.codes == [3, 0, 3, 3]
    assert (part.plan["complete"], part.plan["applyable"]) == (False, True)
    assert part.result["state"] == "partial"
    assert part.result["attestation"] is None
    assert len(part.result["left_out"]) == len(runs[1].plan["copies"])  # all that the second plan finds
    assert (part.result["copies_total"], part.result["copies_erased"]) == (1, 1)
    assert part.person == {"visits": 2, "charts": 2, "extract": 0}


def test_what_is_held_stays_and_the_rest_is_gone(runs: tuple[Run, Run, Path]) -> None:
    rest = runs[1]
    assert rest.codes == [0, 0, 0, 0]
    strategies = {c["table"]: c["strategy"] for c in rest.plan["copies"]}
    assert (strategies["care.charts"], strategies["med.core.mailing"]) == ("exempt", "mask_columns")
    assert rest.result["state"] == "complete"
    assert rest.result["copies_exempt"] == 2
    assert rest.result["copies_erased"] == rest.result["copies_total"] - 2
    assert rest.result["residue"] == []
    assert rest.result["bystander_rows_lost"] == 0
    assert rest.person == {"visits": 0, "charts": 2, "extract": 0}


def test_where_one_column_is_held_the_others_are_gone(runs: tuple[Run, Run, Path], spark: Any) -> None:
    hashed = hashlib.sha256(clinic.EMAIL.lower().encode()).hexdigest()
    mine = spark.table("med.core.mailing").where(f"mail_hash = '{hashed}'")
    assert sorted(map(tuple, mine.collect())) == [(hashed, None), (hashed, None)]
    others = spark.table("med.core.mailing").where(f"mail_hash <> '{hashed}'")
    assert others.count() == 2 * len(clinic.OTHERS)
    assert others.where("ward IS NULL").count() == 0
    report = Path(runs[1].result["report"]).read_text()
    assert "med.core.mailing, column mail_hash" in report


def test_the_attestation_names_what_stays(runs: tuple[Run, Run, Path]) -> None:
    envelope = json.loads(Path(runs[1].result["attestation"]).read_text())
    predicate = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    exception, part = sorted(predicate["exceptions"], key=lambda e: e["what"])
    assert (part["kind"], part["what"], part["until"]) == ("hold", "c-med.core.mailing", None)
    assert "mail_hash" in part["why"]
    assert (exception["kind"], exception["what"], exception["who"]) == ("hold", "c-care.charts", "Dr. Sen")
    assert "medical records act, s. 4, ten years" in exception["why"]
    assert exception["until"].startswith("2036-01-01")


def log_of(base: Path, **asked: Any) -> list[dict[str, Any]]:
    log = DeletionLog(base / "state" / "deletion_log.sqlite", "clinic")
    return [entry.model_dump(mode="json") for entry in log.entries(Selection(newest=True, **asked))]


def test_the_deletion_log_says_how_everything_stands(runs: tuple[Run, Run, Path]) -> None:
    part, rest, base = runs
    rows = log_of(base, plan=part.plan["plan_id"])
    left = {row["dataset"] for row in rows if row["state"] == "deferred"}
    assert left == set(part.result["left_out"])
    assert {row["state"] for row in rows} == {"erased", "deferred"}
    rows = log_of(base, plan=rest.plan["plan_id"])
    held = sorted((row["copy_id"], row["approver"], row["action"]) for row in rows if row["state"] == "exempt")
    assert held == [("c-care.charts", "Dr. Sen", None), ("c-med.core.mailing", "Dr. Sen", None)]
    assert {row["copy_id"] for row in rows if row["state"] == "partial"} == {"c-med.core.mailing"}
    assert {row["state"] for row in rows} == {"erased", "exempt", "partial"}
    tables = [row for row in rows if row["action"] and row["action"].startswith("iceberg")]
    planned = {row["copy_id"]: row["snapshot_planned"] for row in tables}
    for row in tables:
        assert row["manifest"].startswith("sha256:")
        assert row["manifest_before"].startswith("sha256:")
        assert row["run_id"]
    deleted = [row for row in tables if row["action"] == "iceberg_delete_rows"]
    assert deleted
    for row in deleted:
        assert row["snapshot_before"] == planned[row["copy_id"]] != row["snapshot_after"]
        assert row["manifest"] != row["manifest_before"]
    expired = [row for row in tables if row["action"] in ("iceberg_expire_snapshots", "iceberg_remove_orphans")]
    assert sum(row["files_removed"] for row in expired) > 0
    assert sum(row["bytes_removed"] for row in expired) > 0


def test_every_file_that_is_gone_is_named_by_what_it_was(runs: tuple[Run, Run, Path]) -> None:
    rest, base = runs[1], runs[2]
    envelope = json.loads(Path(rest.result["attestation"]).read_text())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    gone = {s["name"]: s["digest"].get("sha256") for s in statement["subject"]}
    files = {name: digest for name, digest in gone.items() if digest}
    assert any(name.endswith(".parquet") for name in files)
    assert any(name.endswith(".metadata.json") for name in files)
    for name, digest in files.items():
        path = Path(name)
        assert not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != digest
    seen = [step["seen"] for step in statement["predicate"]["steps"] if step["action"] == "iceberg_delete_rows"]
    assert all(facts["manifest"] != facts["manifest_before"] for facts in seen)
    assert str(base / "tables" / "charts") not in gone, "what stays by right is not called gone"


def test_no_value_of_the_patient_is_in_what_both_runs_leave(runs: tuple[Run, Run, Path]) -> None:
    base = runs[2]
    assert leaks(clinic.PERSON, [base / "state", *base.glob("*.plan.*"), *base.glob("*.approval*")]) == []
