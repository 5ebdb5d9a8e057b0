"""A file that only its owner may remove: a task of the plan, confirmed by a signature, and looked at by the run."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from executors.engine.version_profiles import installed_profile
from pii_tracer.cli.main import run
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.app.planning.test_others_rows import HERS, MAIL, OTHER, estate, planned, tickets
from tests.waivers import write_waivers

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

IMMEDIATE = ("--retention", "immediate", "--reason", "test: no writer, no reader")
TASK = {"owner": "support team", "act": "remove the note", "due_days": 3}


def _run(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def test_a_task_is_waited_for_and_a_word_alone_makes_nothing_clean(spark: Any, tmp_path: Path) -> None:
    base, file = estate(tmp_path), tmp_path / "r.plan.json"
    with (base / "pii-tracer.yaml").open("a") as told:
        told.write(f"spark: {{profile: '{installed_profile().name}'}}\n")
    tickets(base, HERS, OTHER)
    note = base / "lake" / "note.txt"
    note.write_text(f"call {MAIL} back")
    spark.sql("CREATE DATABASE IF NOT EXISTS s")
    for name in ("people", "tickets"):
        spark.sql(f"DROP TABLE IF EXISTS s.{name}")
        spark.sql(f"CREATE TABLE s.{name} USING delta LOCATION '{base / 'lake' / name}'")
    (base / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
    made = planned(base, *IMMEDIATE)["gaps"]
    gaps = [gap["id"] for gap in made]
    assert gaps
    write_waivers(base / "waivers.yaml", made, task=TASK)
    assert planned(base, *IMMEDIATE, "--waivers", str(base / "waivers.yaml"))["complete"]
    public = public_pem(generate(base / "approver.pem")).decode()
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public)]))
    signed = ["--role", "privacy officer", "--key", str(base / "approver.pem")]
    assert _run(base, "approve", str(file), "--approver", "Dr. Sen", "--reason", "right", *signed) == 0
    result = base / "result.json"
    applied = ["--trusted", str(base / "approvers.yaml"), "--result", str(result)]
    assert _run(base, "apply", str(file), *applied) == 8
    resume = ["resume", "--state", str(base / "state")]
    evidence = base / "ticket.txt"
    evidence.write_text("done")
    confirm = ["confirm", gaps[0], "--state", str(base / "state"), "--evidence", str(evidence), "--by", "Dr. Sen"]
    assert run([*confirm, "--said", "removed", *signed]) == 0
    assert run(resume) == 9  # the word was given, and the note is still there
    assert "note.txt" in str(json.loads(result.read_text())["residue"])
    note.unlink()
    assert run(resume) == 0
    done = json.loads(result.read_text())
    assert (done["state"], done["residue"], done["bystander_rows_lost"]) == ("complete", [], 0)
    envelope = json.loads(Path(done["attestation"]).read_text())
    exceptions = json.loads(base64.b64decode(envelope["payload"]))["predicate"]["exceptions"]
    (task,) = [e for e in exceptions if e["what"].startswith("tasks/")]
    assert (task["kind"], task["who"]) == ("confirmed", "Dr. Sen")
    assert task["why"].startswith("remove the note: confirmed as privacy officer on ")
