"""The world does not stand still while a plan runs: who brings the person back is found, and nothing is attested."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.cli.main import run
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.proof.deletions.log_chain import end_file
from pii_tracer.review.plan_file import load_plan
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.run.journal import (
    Journal,
    Kind,
    Record,
    parse,
)
from pii_tracer.run.lease import Lease
from tests.cli.small import RECEIVED
from tests.e2e import clinic
from tests.leaks import leaks
from tests.proof.deletion_log.test_log_chain import by_hand
from tests.run.history import violations

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

JOB = """
INSERT OVERWRITE DIRECTORY '{base}/tables/extract' USING parquet
SELECT patient_no AS no, email, cost FROM med.core.visits
"""
PERSON = [(clinic.PATIENT, clinic.EMAIL, "north", 10)]
COLUMNS = "patient_no string, email string, ward string, cost bigint"


@dataclass(frozen=True)
class Small:
    """An approved plan over one Iceberg table and one folder of files."""

    base: Path
    spark: Any

    def cli(self, *words: str) -> int:
        return run([*words, "--state", str(self.base / "state")])

    def apply(self) -> int:
        words = ["--estate", str(self.base / "pii-tracer.yaml"), "--trusted", str(self.base / "approvers.yaml")]
        return self.cli("apply", str(self.base / "s.plan.json"), *words, "--result", str(self.base / "result.json"))

    def result(self) -> dict[str, Any]:
        found = json.loads((self.base / "result.json").read_text())
        assert isinstance(found, dict)
        return found

    def records(self) -> tuple[Record, ...]:
        return parse(next(self.base.glob("state/runs/*/journal.jsonl")).read_bytes())[0]

    def bring_back(self) -> None:
        """What a late job, a RESTORE or a compaction of old files does: the person's rows are in the table again."""
        frame_of_rows(self.spark, PERSON, COLUMNS).coalesce(1).writeTo("med.core.visits").append()


@pytest.fixture
def small(spark: Any, tmp_path: Path) -> Small:
    base = tmp_path
    catalogs = {"med": {"type": "iceberg-hadoop", "warehouse": "warehouse"}}
    estate = {**clinic.ESTATE, "catalogs": catalogs}
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    request = {"id": "C-2", "law": "GDPR", "received": RECEIVED}
    (base / "request.yaml").write_text(
        yaml.safe_dump({**request, "subject": {"type": "patient", "key": clinic.PATIENT}})
    )
    (base / "jobs.sql").write_text(JOB.format(base=base))
    clinic.use_catalog(base, spark)
    rows = PERSON + [(no, mail, "south", 2) for no, mail in clinic.OTHERS]
    spark.sql("CREATE DATABASE IF NOT EXISTS med.core")
    frame_of_rows(spark, rows, COLUMNS).coalesce(1).writeTo("med.core.visits").using("iceberg").create()
    spark.sql(JOB.format(base=base))
    small, file, where = Small(base, spark), str(base / "s.plan.json"), ["--estate", str(base / "pii-tracer.yaml")]
    words = ["--retention", "immediate", "--reason", "test: no reader", "--out", file]
    assert small.cli("plan", str(base / "request.yaml"), *words, *where) == 0
    public = generate(base / "approver.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public_pem(public).decode())]))
    signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right"]
    assert small.cli("approve", file, *signed, "--key", str(base / "approver.pem"), *where) == 0
    return small


def when(monkeypatch: pytest.MonkeyPatch, step: str, act: Callable[[], None]) -> None:
    """Let something happen just after a step was verified for the first time."""
    append, happened = Journal.append, []

    def watching(self: Journal, kind: Kind, /, **facts: Any) -> Record:
        record = append(self, kind, **facts)
        if kind is Kind.STEP_VERIFIED and facts["step"] == step and not happened:
            happened.append(step)
            act()
        return record

    monkeypatch.setattr(Journal, "append", watching)


def assert_open(small: Small, code: int, *where: str) -> None:
    """Found, told, not attested."""
    result = small.result()
    assert (code, result["state"], result["attestation"]) == (9, "partial", None), result
    assert {r["copy"] for r in result["residue"]} == set(where)


def assert_repaired(small: Small) -> None:
    """The next run does once more what holds no longer: the late row is gone as well, its bytes too."""
    assert small.cli("resume") == 0, small.result()
    result = small.result()
    assert (result["state"], result["residue"], result["bystander_rows_lost"]) == ("complete", [], 0)
    assert result["attestation"]
    assert small.spark.table("med.core.visits").where(f"patient_no = '{clinic.PATIENT}'").count() == 0
    assert small.spark.table("med.core.visits").count() == len(clinic.OTHERS)
    assert violations(small.records(), load_plan(small.base / "s.plan.json").plan) == []


def test_a_tag_made_after_planning_stops_the_run_before_anything_is_touched(small: Small) -> None:
    small.spark.sql("ALTER TABLE med.core.visits CREATE TAG audit")
    assert small.apply() == 6
    result = small.result()
    assert (result["state"], result["attestation"]) == ("blocked", None)
    assert {item["kind"] for item in result["drift"]} == {"refs"}
    assert [r.kind for r in small.records() if r.kind is Kind.STEP_INTENT] == []
    assert small.spark.table("med.core.visits").count() == 5


def test_a_writer_in_the_middle_of_the_plan_is_found(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    when(monkeypatch, "c-med.core.visits/01-iceberg-delete-rows", small.bring_back)
    assert_open(small, small.apply(), "c-med.core.visits")
    assert_repaired(small)


def test_what_comes_back_after_its_verification_is_found_before_the_end(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    when(monkeypatch, "c-med.core.visits/99-verify", small.bring_back)
    assert_open(small, small.apply(), "c-med.core.visits")
    assert_repaired(small)


def test_a_table_made_while_the_plan_ran_is_looked_at(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    def late_job() -> None:
        frame_of_rows(small.spark, PERSON, COLUMNS).coalesce(1).writeTo("med.core.late").using("iceberg").create()

    when(monkeypatch, "c-med.core.visits/99-verify", late_job)
    assert_open(small, small.apply(), "(new) med.core.late")
    small.spark.sql("DROP TABLE med.core.late PURGE")
    assert small.cli("resume") == 0
    assert small.result()["state"] == "complete"
    assert small.result()["attestation"]


def test_what_verify_finds_after_the_run_counts_for_all_that_is_said_later(small: Small) -> None:
    assert small.apply() == 0
    plan, where = str(small.base / "s.plan.json"), ["--estate", str(small.base / "pii-tracer.yaml")]
    assert small.cli("verify", plan, *where) == 0
    assert small.cli("attest", "certificate") == 0
    small.bring_back()
    assert small.cli("verify", plan, *where) == 9
    assert small.cli("attest", "certificate") == 9
    assert small.cli("attest", "answer", "--all", "--out", str(small.base / "sent"), *where) == 0
    (page,) = (small.base / "sent").glob("*.html")
    assert "data was found after the erasure" in page.read_text()
    assert small.cli("close") == 2
    assert (small.base / "s.subjects.sealed").exists()
    assert_open(small, small.cli("resume"), "c-med.core.visits")
    assert_repaired(small)
    assert small.cli("attest", "certificate") == 0


def test_a_row_that_is_gone_from_the_deletion_log_is_noticed_by_all_that_speak_of_the_run(
    small: Small, capsys: pytest.CaptureFixture[str]
) -> None:
    assert small.apply() == 0
    plan, where = str(small.base / "s.plan.json"), ["--estate", str(small.base / "pii-tracer.yaml")]
    attestation = str(next((small.base / "state" / "runs").glob("*/attestation.json")))
    key = str(small.base / "state" / "keys" / "attest.pem.pub")
    log = small.base / "state" / "deletion_log.sqlite"
    end, whole = end_file(log).read_bytes(), log.read_bytes()
    assert run(["attest", "verify", attestation, "--key", key]) == 0
    by_hand(log, f'DELETE FROM "answers {load_plan(Path(plan)).plan.estate}"')
    for changed in ("edited", "gone"):
        if changed == "gone":
            log.unlink()
            end_file(log).unlink()
        capsys.readouterr()
        assert small.cli("verify", plan, *where) == 7
        assert "the deletion log " in capsys.readouterr().err
        assert run(["attest", "verify", attestation, "--key", key]) != 0
        assert "deletion_log" in capsys.readouterr().out
        assert small.cli("close") == 2
        assert (small.base / "s.subjects.sealed").exists()
    log.write_bytes(whole)
    end_file(log).write_bytes(end)
    assert small.cli("verify", plan, *where) == 0
    assert run(["attest", "verify", attestation, "--key", key]) == 0


def test_others_who_write_meanwhile_lose_nothing(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's new row after the verification is looked at again, and is no residue."""

    def somebody_else() -> None:
        row = [("P-9", "new@clinic.example", "west", 5)]
        frame_of_rows(small.spark, row, COLUMNS).coalesce(1).writeTo("med.core.visits").append()

    when(monkeypatch, "c-med.core.visits/99-verify", somebody_else)
    small.apply()
    result = small.result()
    assert (result["residue"], result["bystander_rows_lost"]) == ([], 0)
    assert small.spark.table("med.core.visits").where("patient_no = 'P-9'").count() == 1


@pytest.mark.nightly
def test_a_runner_on_a_host_that_is_gone_needs_a_persons_word(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    folder = small.base / "state" / "runs" / load_plan(small.base / "s.plan.json").plan.plan_id
    Lease.acquire(folder, host="elsewhere")  # never released: its machine is gone, and its lock with it
    (folder / "runner.lock").unlink()
    assert small.apply() == 1
    assert small.cli("resume") == 1
    said = capsys.readouterr().err
    assert "on elsewhere, since " in said
    assert "--take-over" in said
    assert not (folder / "journal.jsonl").exists()
    assert small.cli("resume", "--take-over") == 0
    assert small.result()["state"] == "complete"
    assert [r.facts["token"] for r in small.records() if r.kind is Kind.LEASE] == [2]


def test_an_engine_that_quotes_the_person_in_its_errors_is_not_repeated(
    small: Small,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """Engines put rows into their messages. Every statement that changes something fails so, one after the other."""
    sql, said = type(small.spark).sql, []

    def quoting(self: Any, statement: str, *more: Any, **named: Any) -> Any:
        if statement.lstrip().upper().startswith(("DELETE", "CALL", "ALTER")):
            said.append(statement)
            raise ValueError(f"cannot cast '{clinic.PATIENT}' of ({clinic.PATIENT}, {clinic.EMAIL})") from KeyError(
                clinic.EMAIL
            )
        return sql(self, statement, *more, **named)

    with monkeypatch.context() as failing:
        failing.setattr(type(small.spark), "sql", quoting)
        assert small.apply() == 7
        assert small.cli("resume") == 7
    out, err = capfd.readouterr()
    (tmp_path / "said").write_text("\n".join([out, err, caplog.text, *said]))
    assert said
    assert "ValueError" in out + err
    left = [small.base / "state", *small.base.glob("s.*"), small.base / "result.json", tmp_path / "said"]
    assert leaks(clinic.PERSON, left) == []
