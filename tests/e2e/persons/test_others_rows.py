"""A person in somebody else's row: planning tells it; who waives it gets what the plan said, residue and nobody's loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from executors.engine.version_profiles import installed_profile
from pii_tracer.cli.main import run
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.app.planning.test_others_rows import (
    HERS,
    MAIL,
    NEIGHBOUR,
    OTHER,
    STRAY,
    estate,
    planned,
    strays,
    tickets,
)
from tests.waivers import write_waivers

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]

IMMEDIATE = ("--retention", "immediate", "--reason", "test: no writer, no reader")


def _run(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def test_what_was_waived_is_the_residue_and_nothing_else(spark: Any, tmp_path: Path) -> None:
    base, file = estate(tmp_path), tmp_path / "r.plan.json"
    with (base / "pii-tracer.yaml").open("a") as told:
        told.write(f"spark: {{profile: '{installed_profile().name}'}}\n")
    tickets(base, HERS, NEIGHBOUR, OTHER, STRAY)
    spark.sql("CREATE DATABASE IF NOT EXISTS s")
    for name in ("people", "tickets"):
        spark.sql(f"DROP TABLE IF EXISTS s.{name}")
        spark.sql(f"CREATE TABLE s.{name} USING delta LOCATION '{base / 'lake' / name}'")
    (base / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
    plan = planned(base, *IMMEDIATE)
    assert len(strays(plan)) == 1
    write_waivers(base / "waivers.yaml", plan["gaps"])
    assert planned(base, *IMMEDIATE, "--waivers", str(base / "waivers.yaml"))["applyable"]
    public = generate(base / "approver.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public_pem(public).decode())]))
    signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right", "--key"]
    assert _run(base, "approve", str(file), *signed, str(base / "approver.pem")) == 0
    trusted = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
    assert _run(base, "apply", str(file), *trusted) == 9
    result = json.loads((base / "result.json").read_text())
    assert {(found["copy"], found["where"]) for found in result["residue"]} == {("c-s.tickets", "data: note")}
    assert (result["copies_erased"], result["rows_erased"], result["bystander_rows_lost"]) == (1, 2, 0)
    left = [row.asDict() for row in spark.sql("SELECT * FROM s.tickets").collect()]
    assert sorted(left, key=str) == sorted((dict(row) for row in (NEIGHBOUR, OTHER, STRAY)), key=str)
    assert MAIL in str(left)
