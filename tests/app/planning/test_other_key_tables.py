"""A further table under another key of the person: found by what the source tells, never by a value of two persons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.cli.main import run
from tests.cli.small import declared, request

KEY = "7340219981"
MINE, HIS = "6f1c2a52-93b4-4be1-8a8e-51c90f0a1b11", "0aa3c1de-11f0-4c55-9d0f-d3a2b7c4e922"
SUBJECT = """\
  - name: rider
    source: s.riders
    key: rider_id
    identifiers: [{column: rider_uuid, category: device}]
    tables:
      - {table: s.tickets, key: rider, of: rider_uuid, record_keys: [ticket_no]}
"""
JOBS = """\
CREATE OR REPLACE TABLE m.open AS SELECT upper(rider) AS who, topic FROM s.tickets;
CREATE OR REPLACE TABLE m.notes AS SELECT ticket_no, topic FROM s.tickets;
"""
TABLES = {"s.riders": "delta", "s.tickets": "delta", "m.open": "delta", "m.notes": "delta"}


def planned(base: Path, mine: str | None, his: str | None = HIS, subject: str = SUBJECT) -> dict[str, Any]:
    lake = base / "lake"
    write_deltalake(lake / "riders", pa.table({"rider_id": [7340219981, 7340219982], "rider_uuid": [mine, his]}))
    whose = [MINE, MINE, HIS, None]
    tickets = {"rider": whose, "ticket_no": ["T-100001", "T-100002", "T-100003", "T-100004"], "topic": list("abcd")}
    write_deltalake(lake / "tickets", pa.table(tickets))
    write_deltalake(lake / "open", pa.table({"who": [w and w.upper() for w in whose], "topic": list("abcd")}))
    write_deltalake(lake / "notes", pa.table({"ticket_no": tickets["ticket_no"], "topic": list("abcd")}))
    (base / "pii-tracer.yaml").write_text(declared("lake", TABLES) + subject)
    (base / "jobs.sql").write_text(JOBS)
    (base / "request.yaml").write_text(request("rider", KEY))
    (base / "policy.yaml").write_text("version: 1\n")
    out = base / "r.plan.json"
    run(["plan", str(base / "request.yaml"), "--format", "json", "--out", str(out), "--estate",
         str(base / "pii-tracer.yaml"), "--state", str(base / "state")])  # fmt: skip
    made: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    return made


def rows(plan: dict[str, Any]) -> dict[str, Any]:
    return {c["table"]: (c["strategy"], c["found"]["rows"]) for c in plan["copies"] if c["origin"] is None}


def test_the_table_and_what_is_made_of_it_are_found_by_the_other_key(tmp_path: Path) -> None:
    plan = planned(tmp_path, MINE)
    assert plan["gaps"] == []
    assert rows(plan) == {
        "s.riders": ("delete_by_key", 1),
        "s.tickets": ("delete_by_identifiers", 2),
        "m.open": ("delete_by_identifiers", 2),
        "m.notes": ("delete_through_bridge", 2),
    }
    [tickets] = [c for c in plan["copies"] if c["table"] == "s.tickets"]
    assert [(t["column"], t["key_set"]) for t in tickets["match"]["terms"]] == [("rider", "rider.rider_uuid")]
    assert "named by the estate file" in tickets["reason"]


def test_a_value_that_two_persons_share_is_a_gap_and_deletes_nothing(tmp_path: Path) -> None:
    plan = planned(tmp_path, MINE, MINE)
    assert {g["kind"] for g in plan["gaps"]} >= {"shared_identifier"}
    assert not plan["complete"]
    assert set(rows(plan)) == {"s.riders"}


def test_a_person_without_the_other_key_matches_nothing(tmp_path: Path) -> None:
    plan = planned(tmp_path, None)
    assert set(rows(plan)) == {"s.riders"}
    assert plan["gaps"] == []


@pytest.mark.parametrize("of", ["rider_id", "nothing"])
def test_what_is_no_identifier_of_the_source_is_refused(
    tmp_path: Path, of: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert planned(tmp_path, MINE, subject=SUBJECT.replace("of: rider_uuid", f"of: {of}")) == {}
    assert f"`of: {of}` is not an identifier" in " ".join(capsys.readouterr().err.split())
