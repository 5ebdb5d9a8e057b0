"""A declared key of a table that lineage cannot match: taken where every row bears it out, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.cli.main import run
from tests.cli.small import declared, request

KEY, MAIL = "P-55102", "asha.rao@x.example"
SUBJECT = """\
  - name: member
    source: s.members
    key: member_no
    identifiers: [{column: email, category: email}]
"""
WORD = "    tables: [{table: m.roster_flat, key: member_id}]\n"
HIDDEN = (
    "CREATE OR REPLACE TABLE m.roster_flat AS SELECT shop_udf(member_no) AS member_id, city AS note FROM s.members;\n"
)
ADDED = (
    "CREATE OR REPLACE TABLE m.roster_flat AS SELECT max(member_no) AS member_id, city AS note FROM s.members"
    " GROUP BY city;\n"
)
Rows = list[tuple[str | None, str]]
ROWS: Rows = [(KEY, "Pune"), (KEY, "Goa"), ("P-2", "Goa"), ("P-3", "Goa")]


def planned(base: Path, rows: Rows, jobs: str = HIDDEN, word: str = WORD) -> dict[str, Any]:
    lake = base / "lake"
    mails = [MAIL, "b@x.example", "c@x.example"]
    write_deltalake(lake / "members", pa.table({"member_no": [KEY, "P-2", "P-3"], "email": mails, "city": list("abc")}))
    members, notes = zip(*rows, strict=True)
    write_deltalake(lake / "roster_flat", pa.table({"member_id": list(members), "note": list(notes)}))
    (base / "pii-tracer.yaml").write_text(
        declared("lake", {"s.members": "delta", "m.roster_flat": "delta"}) + SUBJECT + word
    )
    (base / "jobs.sql").write_text(jobs)
    (base / "request.yaml").write_text(request("member", KEY))
    (base / "policy.yaml").write_text("version: 1\n")
    out = base / "r.plan.json"
    run(["plan", str(base / "request.yaml"), "--format", "json", "--out", str(out), "--estate",
         str(base / "pii-tracer.yaml"), "--state", str(base / "state")])  # fmt: skip
    made: dict[str, Any] = json.loads(out.read_text())
    return made


def roster(plan: dict[str, Any]) -> dict[str, Any]:
    [copy] = [c for c in plan["copies"] if c["table"] == "m.roster_flat" and c["origin"] is None]
    assert isinstance(copy, dict)
    return copy


def test_what_every_row_bears_out_wins_over_a_guess(tmp_path: Path) -> None:
    plan = planned(tmp_path, ROWS)
    copy = roster(plan)
    assert (copy["strategy"], copy["found"]["rows"], plan["gaps"]) == ("delete_by_key", 2, [])
    assert "the rows agree" in copy["reason"]


@pytest.mark.parametrize(
    "rows",
    [
        [*ROWS, (None, "Goa")],
        [*ROWS, ("P-99", "Goa")],
        [*ROWS, ("P-2", f"for {MAIL}")],
        [(KEY, "b@x.example"), *ROWS],
        [("P-2", "Goa"), ("P-3", MAIL)],
    ],
    ids=["a row without a key", "a key that nobody has", "the person elsewhere", "somebody else", "no row found"],
)
def test_what_one_row_speaks_against_is_not_taken(tmp_path: Path, rows: Rows) -> None:
    assert roster(planned(tmp_path, rows))["strategy"] != "delete_by_key"


def test_rows_that_several_are_in_are_never_deleted_by_it(tmp_path: Path) -> None:
    assert roster(planned(tmp_path, ROWS, ADDED))["strategy"] != "delete_by_key"


def test_without_a_word_it_is_as_before(tmp_path: Path) -> None:
    assert roster(planned(tmp_path, ROWS, word=""))["strategy"] != "delete_by_key"
