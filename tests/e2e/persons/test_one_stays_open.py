"""Three persons in one plan, and one of them is written again while it runs: the two others are attested, she stays open
with the reason, and the next plan erases her."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pii_tracer.app.execution.run_folder import folder_of
from pii_tracer.app.execution.verify_step import is_as_noted
from pii_tracer.app.intake.due_requests_plan import plan_due
from pii_tracer.app.persons_apart.requests_left_open import refuse_unsearched
from pii_tracer.app.planning.plan_files import manifest_path
from pii_tracer.app.proof.request_answers import read_answer, write_answers
from pii_tracer.app.settings import Settings
from pii_tracer.cli.main import run
from pii_tracer.model.errors import Refused
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.entries import Selection
from pii_tracer.proof.open_requests import left_in
from pii_tracer.review import dsse
from pii_tracer.review.plan_file import load_plan
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.run.journal import Journal, Kind, Record, parse, read_journal
from tests.cli.small import declared
from tests.intake.places import ago, opened, took
from tests.leaks import Person, leaks
from tests.proof.attested import requests_of
from tests.sparksession import small_spark
from tests.waivers import write_waivers

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

KEYS = [5517700101 + n for n in range(6)]
MAILS = [f"person{n}@shop.example" for n in range(6)]
SUBJECT = """\
  - name: user
    source: app.users
    key: user_id
    identifiers: [{column: mail, category: email}]
"""
JOBS = "INSERT OVERWRITE app.visits SELECT user_id, mail FROM app.users;\n"
NOW = {"retention": "immediate", "reason": "test: no reader"}


def cli(settings: Settings, *words: str) -> int:
    return run([*words, "--estate", str(settings.estate_file), "--state", str(settings.state)])


def rows(folder: Path) -> set[int]:
    return {int(key) for file in folder.glob("*.parquet") for key in pq.read_table(file).column("user_id").to_pylist()}


def write(folder: Path, name: str, *numbers: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table({"user_id": [KEYS[n] for n in numbers], "mail": [MAILS[n] for n in numbers]})
    pq.write_table(table, folder / name)


@pytest.fixture
def settings(spark: Any, tmp_path: Path) -> Settings:
    """Six users in a folder, and a folder made of it. Three of them asked."""
    for name in ("users", "visits"):
        spark.sql(f"DROP TABLE IF EXISTS app.{name}")
        write(tmp_path / "w" / name, "a.parquet", *range(6))
    estate = yaml.safe_load(declared("w", {"app.users": "parquet", "app.visits": "parquet"}) + SUBJECT)
    (tmp_path / "pii-tracer.yaml").write_text(yaml.safe_dump(estate | {"spark": small_spark()}))
    (tmp_path / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
    (tmp_path / "jobs.sql").write_text(JOBS)
    made = Settings(tmp_path / "pii-tracer.yaml", tmp_path / "state")
    asked = "".join(f"R-{n},{KEYS[n]},{ago(9 - n)}\n" for n in range(3))
    took(made, f"id,key,received\n{asked}", given={"subject": "user", "law": "GDPR"})
    return made


def approved(settings: Settings, **options: Any) -> Path:
    """The plan of those who are due, approved."""
    found = plan_due(settings, **NOW, **options)  # type: ignore[arg-type]
    assert found.written is not None
    assert found.marked, found.written.plan.gaps
    signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right", "--unsigned"]
    assert cli(settings, "approve", str(found.written.path), *signed) == 0
    return found.written.path


def applied(settings: Settings, plan: Path) -> tuple[int, dict[str, Any]]:
    file = settings.base / "result.json"
    code = cli(settings, "apply", str(plan), "--result", str(file))
    return code, json.loads(file.read_text())


def when(monkeypatch: pytest.MonkeyPatch, step: str, act: Callable[[], None]) -> None:
    """Let something happen just after a step was verified for the first time."""
    append, happened = Journal.append, []

    def watching(self: Journal, kind: Kind, /, **facts: Any) -> Record:
        record = append(self, kind, **facts)
        if kind is Kind.STEP_VERIFIED and facts["step"].startswith(step) and not happened:
            happened.append(step)
            act()
        return record

    monkeypatch.setattr(Journal, "append", watching)


def states(settings: Settings) -> dict[str, str]:
    return {one.id: one.state.value for one in opened(settings).requests()}


def suppressed(settings: Settings) -> set[str]:
    """Persons on the suppression list as erased."""
    lines = (settings.state / "suppression.jsonl").read_text().splitlines()
    return {entry["subject"] for entry in map(json.loads, lines) if not entry.get("open")}


def test_who_is_written_again_stays_open_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    visits = settings.base / "w" / "visits"
    when(monkeypatch, "c-app.visits/0", lambda: write(visits, "late.parquet", 1))
    key, place = str(settings.state / "keys" / "attest.pem.pub"), ["--state", str(settings.state)]

    def certified(result: dict[str, Any], *words: str) -> int:
        return run(["attest", "certificate", result["plan_id"], *words, *place])

    def proved(result: dict[str, Any], name: str) -> int:
        return run(["attest", "prove", result["plan_id"], "--request", name, *place])

    def closed(result: dict[str, Any]) -> int:
        return run(["close", result["plan_id"], *place])

    plan = approved(settings)
    code, result = applied(settings, plan)
    assert "Attested: 2 of 3 requests; 1 stays open: R-1" in capsys.readouterr().out
    asked = {r.id: r.subject for r in load_plan(plan).plan.requests}
    assert (code, result["state"], result["open_requests"]) == (9, "partial", ["R-1"]), result
    assert {item["copy"] for item in result["residue"]} == {"c-app.visits"}
    assert states(settings) == {"R-0": "erased", "R-1": "carried_over", "R-2": "erased"}
    assert "something of this person is left" in opened(settings).find("R-1").reason
    assert suppressed(settings) == {asked["R-0"], asked["R-2"]}

    folder = settings.state / "runs" / result["plan_id"]
    whole = Path(result["attestation"])
    assert requests_of(whole) == ("R-0", "R-2")
    payload = dsse.unseal(whole.read_bytes(), ()).payload
    assert not any(word.encode() in payload for word in (*asked.values(), *(f'"{name}"' for name in asked)))
    assert dsse.unseal(whole.read_bytes(), ()).statement["predicate"]["open"] == {"requests": 1}
    for name in ("R-0", "R-2"):
        assert proved(result, name) == 0
        proof = folder / "proofs" / f"request-{name}.json"
        assert not any(word in proof.read_text() for word in ("R-1", asked["R-1"]))
        assert run(["attest", "verify", str(proof), "--key", key, "--request", name]) == 0
        assert certified(result, "--request", name) == 0
    assert proved(result, "R-1") == 2
    assert run(["attest", "verify", str(whole), "--key", key]) == 0
    assert certified(result, "--request", "R-1") == 9
    assert certified(result) == 9
    folder = folder_of(settings.state, result["plan_id"])
    assert is_as_noted(folder.verdicts, folder.approved().plan, read_journal(folder.journal)[0])
    signed = [path for path in write_answers(settings, result["plan_id"]) if path.suffix == ".json"]
    answers = [read_answer(path, (Path(key),)) for path in signed]
    assert {one.request: one.outcome.value for one in answers} == {
        "R-0": "erased",
        "R-1": "not_erased",
        "R-2": "erased",
    }
    log = DeletionLog(settings.state / "deletion_log.sqlite", "shop").entries(Selection(newest=True))
    there = {(entry.request_id, entry.state.value) for entry in log if entry.copy_id == "c-app.visits"}
    assert there == {("R-0", "erased"), ("R-1", "deferred"), ("R-2", "erased")}
    assert leaks(Person((MAILS[1], str(KEYS[1]))), [settings.state]) == []

    assert cli(settings, "verify", str(plan)) == 9
    assert "of 1 of 3 requests: R-1" in capsys.readouterr().out
    assert closed(result) == 2
    assert manifest_path(plan).exists()
    monkeypatch.undo()
    again = approved(settings, carried_over=True, source_erased=True)
    assert [request.id for request in load_plan(again).plan.requests] == ["R-1"]
    code, second = applied(settings, again)
    assert (code, second["state"], second["open_requests"]) == (0, "complete", []), second
    assert set(states(settings).values()) == {"erased"}
    assert suppressed(settings) == set(asked.values())
    assert rows(visits) == rows(settings.base / "w" / "users") == set(KEYS[3:])
    assert closed(second) == 2  # its sealed values show that it looked for all that the first run knew
    assert closed(result) == 0
    assert not manifest_path(plan).exists()
    assert closed(second) == 0


def test_what_was_found_of_her_is_looked_for_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Her source is erased, and only the sealed values of the first run find her mail: the next plan takes them. A plan
    that cannot, or did not, erases nobody."""
    late = settings.base / "w" / "late"

    def somebody() -> None:
        late.mkdir()
        pq.write_table(pa.table({"x": [MAILS[1]]}), late / "a.parquet")

    def again(**options: Any) -> tuple[Path, dict[str, str]]:
        found = plan_due(settings, carried_over=True, source_erased=True, **NOW, **options)  # type: ignore[arg-type]
        assert found.written is not None
        gaps = found.written.plan.gaps
        write_waivers(settings.base / "waivers.yaml", [{"id": gap.id, "seen": gap.seen} for gap in gaps])
        return found.written.path, {gap.kind.value: gap.evidence for gap in gaps}

    when(monkeypatch, "suppression/", somebody)
    plan = approved(settings)
    code, result = applied(settings, plan)
    monkeypatch.undo()
    assert (code, result["open_requests"]) == (9, ["R-1"]), result
    place = f"(new) {late}"
    assert {item["copy"] for item in result["residue"]} == {place}

    assert set(again()[1]) == {"unexpected_copy"}
    sealed = manifest_path(plan).read_bytes()
    manifest_path(plan).unlink()
    assert again()[1] == {"key_only": place}
    blind, _ = again(waivers=settings.base / "waivers.yaml")
    manifest_path(plan).write_bytes(sealed)
    made = load_plan(blind).plan
    ring = KeyRing.open(manifest_path(blind), made.subjects_digest, settings.key())
    with pytest.raises(Refused, match="does not search for all values of the person that were known then"):
        refuse_unsearched(settings, made, ring)
    assert states(settings)["R-1"] != "erased"
    assert run(["close", result["plan_id"], "--state", str(settings.state)]) == 2
    assert manifest_path(plan).read_bytes() == sealed


def test_what_comes_after_the_last_step_is_told_apart_too(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a copy that was verified already, and in what is no copy: of that its owner removes it, and the run looks
    again."""
    late, visits = settings.base / "w" / "late", settings.base / "w" / "visits"

    def somebody() -> None:
        write(late, "a.parquet", 2)
        write(visits, "late.parquet", 1)

    when(monkeypatch, "suppression/", somebody)
    code, result = applied(settings, approved(settings))
    asked = {r.id: r.subject for r in load_plan(next(settings.state.glob("plans/*.plan.json"))).plan.requests}
    assert (code, result["open_requests"]) == (9, ["R-1", "R-2"]), result
    assert states(settings) == {"R-0": "erased", "R-1": "carried_over", "R-2": "carried_over"}
    assert suppressed(settings) == {asked["R-0"]}
    shutil.rmtree(late)
    assert run(["resume", result["plan_id"], "--state", str(settings.state)]) == 9
    assert states(settings) == {"R-0": "erased", "R-1": "carried_over", "R-2": "erased"}
    assert suppressed(settings) == {asked["R-0"], asked["R-2"]}
    folder, key = settings.state / "runs" / result["plan_id"], str(settings.state / "keys" / "attest.pem.pub")
    assert left_in(parse((folder / "journal.jsonl").read_bytes())[0]) == {asked["R-1"]}
    words = ["attest", "verify", str(folder / "attestation.json"), "--key", key]
    assert run([*words, "--request", "R-0", "--request", "R-2"]) == 0
