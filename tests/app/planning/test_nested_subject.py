"""A subject whose key stands inside a struct, through the commands that need no Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.cli.main import run
from tests.cli.small import declared, request

ESTATE = (
    declared("w", dict.fromkeys(("prod.sales", "prod.mails", "prod.boxes", "prod.cities"), "parquet"))
    + """\
  - name: buyer
    source: prod.sales
    key: KEY
    identifiers: [{column: MAIL, category: email}]
"""
)
JOBS = """\
INSERT OVERWRITE prod.mails SELECT buyer.id AS who, lower(buyer.mail) AS mail FROM prod.sales;
INSERT OVERWRITE prod.boxes SELECT buyer AS sold_to, city FROM prod.sales;
INSERT OVERWRITE prod.cities SELECT city, count(DISTINCT buyer.id) AS n FROM prod.sales GROUP BY city;
"""
BUYERS = [{"id": 4417700100 + n, "mail": f"B{n}@x.example", "old": [f"O{n}@x.example"]} for n in range(3)]
TABLES: dict[str, dict[str, Sequence[Any]]] = {
    "sales": {"buyer": [*BUYERS, None], "city": ["Pune", "Pune", "Goa", "Goa"], "buyer.note": ["n0", "n1", "n2", "n3"]},
    "mails": {"who": [b["id"] for b in BUYERS], "mail": [b["mail"].lower() for b in BUYERS]},
    "boxes": {"sold_to": BUYERS, "city": ["Pune", "Pune", "Goa"]},
    "cities": {"city": ["Pune", "Goa"], "n": [2, 1]},
}
REQUEST = request("buyer", "4417700102")


def estate(base: Path, key: str = "buyer.id", mail: str = "buyer.mail") -> Path:
    for name, columns in TABLES.items():
        (base / "w" / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), base / "w" / name / "part-0.parquet")
    (base / "pii-tracer.yaml").write_text(ESTATE.replace("KEY", key).replace("MAIL", mail))
    (base / "jobs.sql").write_text(JOBS)
    (base / "request.yaml").write_text(REQUEST)
    (base / "policy.yaml").write_text("version: 1\n")
    return base


def called(base: Path, *arguments: str) -> int:
    return run([*arguments, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def test_the_plan_finds_the_person_by_the_field(tmp_path: Path) -> None:
    base = estate(tmp_path)
    assert called(base, "plan", str(base / "request.yaml"), "--format", "json", "--out", str(base / "r.plan.json")) == 0
    text = (base / "r.plan.json").read_text()
    plan = json.loads(text)
    found = {
        c["table"]: (c["carries"], c["match"] and [_label(t) for t in c["match"]["terms"]]) for c in plan["copies"]
    }
    assert found == {
        "prod.sales": ("key", ["buyer.id"]),
        "prod.mails": ("key", ["who"]),
        "prod.boxes": ("key", ["sold_to.id"]),
        "prod.cities": ("aggregate", None),
    }
    assert {c["found"]["rows"] for c in plan["copies"] if c["match"]} == {1}
    assert (plan["complete"], plan["gaps"]) == (True, [])
    assert "4417700102" not in text
    assert "B2@x" not in text


def _label(term: dict[str, Any]) -> str:
    return ".".join([term["column"], *(step["name"] for step in term["access"])])


def test_carriage_shows_the_field_and_the_way_out_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(estate(tmp_path), "carriage", "--format", "json") == 0
    (subject,) = json.loads(capsys.readouterr().out)["subjects"]
    found = {d["table"]: d for d in subject["datasets"]}
    (sold_to,) = found["prod.boxes"]["columns"]
    assert sold_to["finds"] == [".id: `buyer.id`"]
    assert sorted(h["category"] for h in sold_to["holds"]) == ["account_id", "email"]
    assert found["prod.cities"]["groups"] == {"groups": 2, "smallest": 2, "alone": 0}


@pytest.mark.parametrize("command", [("carriage",), ("plan", "request.yaml", "--out", "r.plan.json")])
@pytest.mark.parametrize(
    ("key", "mail", "told"),
    [
        ("buyer.id", "buyer.old", "buyer.old of prod.sales is a list"),
        ("buyer.id", "buyer.old.x", "whose elements are named `element`"),
        ("buyer.nr", "buyer.mail", "the struct `buyer` has no field nr"),
        ("buyer", "buyer.mail", "buyer of prod.sales is a struct"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    key: str,
    mail: str,
    told: str,
) -> None:
    monkeypatch.chdir(estate(tmp_path, key, mail))
    assert called(tmp_path, *command) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert told in shown
    assert "the estate file, `subjects`" in shown


def test_a_column_whose_name_holds_a_dot_is_that_column(tmp_path: Path) -> None:
    """`buyer.note` is no field of `buyer`, so that the plan compares the column of the whole name."""
    base = estate(tmp_path, mail="buyer.note")
    (base / "jobs.sql").write_text(
        "INSERT OVERWRITE prod.mails SELECT buyer.id AS who, `buyer.note` AS mail FROM prod.sales"
    )
    called(base, "carriage", "--format", "json")
    called(base, "plan", str(base / "request.yaml"), "--format", "json", "--out", str(base / "r.plan.json"))
    plan = json.loads((base / "r.plan.json").read_text())
    source = next(c for c in plan["copies"] if c["kind"] == "SOURCE")
    assert [(c["name"], c["category"]) for c in source["columns"]] == [("buyer", "account_id"), ("buyer.note", "email")]


@pytest.mark.parametrize(
    ("there", "told"),
    [
        ({"number": 1, "mail": "m"}, "sold_to has a key in its field id, but the table has no such field"),
        (
            {"id": {"no": 1}, "mail": "m"},
            "sold_to is a key, but the column is a struct: lineage does not show which field has the key",
        ),
    ],
)
def test_a_table_of_another_shape_than_lineage_tells_is_a_gap(tmp_path: Path, there: dict[str, Any], told: str) -> None:
    """The job writes its struct by position, so that the table's own names stay."""
    base = estate(tmp_path)
    values = [
        {
            name: {"no": b["id"]} if isinstance(value, dict) else b["mail" if name == "mail" else "id"]
            for name, value in there.items()
        }
        for b in BUYERS
    ]
    boxes = pa.table({"sold_to": values, "city": ["Pune", "Pune", "Goa"]})
    pq.write_table(boxes, base / "w" / "boxes" / "part-0.parquet")
    assert called(base, "plan", str(base / "request.yaml"), "--format", "json", "--out", str(base / "r.plan.json")) == 3
    plan = json.loads((base / "r.plan.json").read_text())
    assert {c["table"]: c["strategy"] for c in plan["copies"]}["prod.boxes"] == "blocked"
    (gap,) = plan["gaps"]
    assert gap["reason"] == f"lineage says that {told}"


def test_two_kinds_of_person_in_one_plan_are_no_strangers_in_each_others_tables(tmp_path: Path) -> None:
    base = estate(tmp_path)
    file = base / "pii-tracer.yaml"
    (base / "w" / "staff").mkdir()
    pq.write_table(pa.table({"who": [{"no": "S-70441"}, {"no": "S-70442"}]}), base / "w" / "staff" / "part-0.parquet")
    told = file.read_text() + "  - {name: clerk, source: prod.staff, key: who.no}\n"
    table = "      - {name: prod.staff, format: parquet, location: w/staff}\nroots:"
    file.write_text(told.replace("roots:", table, 1))
    clerk = REQUEST.replace("R-1", "R-2").replace("buyer", "clerk").replace("4417700102", "S-70442")
    (base / "clerk.yaml").write_text(clerk)
    requests = [str(base / "request.yaml"), str(base / "clerk.yaml")]
    assert called(base, "plan", *requests, "--format", "json", "--out", str(base / "r.plan.json")) == 0
    plan = json.loads((base / "r.plan.json").read_text())
    assert plan["gaps"] == []
    assert len(plan["copies"]) == 5
    assert plan["examined"] == []
    # where no lineage leads, a person of either kind is one still
    beside = {**TABLES["mails"], "x": ["S-70442", None, None]}
    pq.write_table(pa.table(beside), base / "w" / "mails" / "part-0.parquet")
    assert called(base, "plan", *requests, "--format", "json", "--out", str(base / "s.plan.json")) == 3
    gaps = json.loads((base / "s.plan.json").read_text())["gaps"]
    assert [g["evidence"] for g in gaps if g["kind"] == "unexpected_copy"] == ["found: clerk.who.no"]
