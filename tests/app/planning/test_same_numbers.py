"""One whole number as several texts: a job writes `12345` as `12345.0`, and a source may have both as keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.cli.main import run
from tests.app.planning.test_key_of_several import planned
from tests.app.planning.test_keys_written_otherwise import CALM, put
from tests.app.planning.test_keys_written_otherwise import people as source
from tests.app.planning.test_others_rows import HERS, OTHER, PEOPLE, Row, estate
from tests.app.planning.test_others_rows import planned as planned_copy
from tests.cli.small import request
from tests.waivers import write_waivers

NOT_KEYS = "\n    not_keys: [{table: s.tickets, column: ref, reason: of another system, owner: Ops}]\n"


def users(*keys: str, **more: Any) -> dict[str, Any]:
    mails = [f"user{n}@x.example" for n in range(len(keys))]
    return {"user_id": list(keys), "email": mails, "phone": [None] * len(keys), **more}


@pytest.mark.parametrize("keys", [("12345", "12345.0"), ("12345.0", "12345"), ("12345.00", "12345.0")])
def test_two_keys_of_one_number_are_a_gap_of_the_request(tmp_path: Path, keys: tuple[str, str]) -> None:
    """The plan was complete, and deleted the other's rows."""
    plan = planned(tmp_path, users(*keys, "7"), key=keys[0])
    (gap,) = plan["gaps"]
    assert (gap["id"], gap["kind"]) == ("gap-key_of_several-user-R-1", "key_of_several")
    assert "has the same number as 1 other key" in gap["reason"]
    waivers = write_waivers(tmp_path / "waivers.yaml", [gap])
    assert planned(tmp_path, users(*keys, "7"), "--waivers", str(waivers), key=keys[0])["complete"]


@pytest.mark.parametrize("key", ["7", "12345.5", "0012345"])
def test_other_numbers_are_none(tmp_path: Path, key: str) -> None:
    rows = users("7", "12345.5", "0012345", "12345.0", "70", "7.5")
    assert [g for g in planned(tmp_path, rows, key=key)["gaps"] if g["kind"] == "key_of_several"] == []


def test_what_only_former_rows_had_is_none(tmp_path: Path) -> None:
    """A key whose type was mended is the person's own."""
    planned(tmp_path, users("12345.0", "7"), key="7")
    plan = planned(tmp_path, users("12345", "7"), key="12345")
    assert [g for g in plan["gaps"] if g["kind"] == "key_of_several"] == []


@pytest.mark.parametrize("copies", [["12345"], ["12345.0", "12345.00"], [12345], [12345.0]])
def test_a_key_with_a_fraction_is_found_as_the_number(tmp_path: Path, copies: list[Any]) -> None:
    """Its rows stayed in columns of texts without one, and nothing said so."""
    base = source(estate(tmp_path, "parquet"), "12345.0", "P-3")
    put(base, "parquet", *({**CALM, "cust": key} for key in copies))
    plan = planned_copy(base)
    assert plan["gaps"] == []
    assert {c["table"]: c["found"]["rows"] for c in plan["copies"]} == {"s.people": 1, "s.tickets": len(copies)}


def test_an_identifier_that_another_has_as_another_text_deletes_nothing(tmp_path: Path) -> None:
    base = estate(tmp_path, "delta")
    rows = {name: PEOPLE[name].to_pylist() for name in PEOPLE.column_names}
    rows["email"] = ["98765", "98765.0", "1"]
    write_deltalake(base / "lake" / "people", pa.table(rows), mode="overwrite")
    write_deltalake(base / "lake" / "tickets", pa.table({"email": ["98765", "98765.0"], "note": ["a", "b"]}))
    (base / "jobs.sql").write_text("INSERT INTO s.tickets (email, note) SELECT email, city AS note FROM s.people;\n")
    kinds = {gap["kind"] for gap in planned_copy(base)["gaps"]}
    assert "shared_identifier" in kinds


def test_keys_of_several_columns_written_otherwise(tmp_path: Path) -> None:
    """No search finds such keys, so that rows would stay under a clean verdict."""
    base = estate(tmp_path, "parquet")
    file = base / "pii-tracer.yaml"
    file.write_text(file.read_text().replace("key: cust", "key: [city, cust]"))
    asked = base / "request.yaml"
    asked.write_text(asked.read_text().replace("key: 'P-55102'", "key: {city: Pune, cust: P-55102}"))
    (base / "jobs.sql").write_text("INSERT INTO s.tickets (city, cust) SELECT city, cust FROM s.people;\n")
    hers: Row = {"city": "Pune", "cust": HERS["cust"]}
    put(base, "parquet", hers, {"city": "Goa", "cust": OTHER["cust"]})
    assert not [g for g in planned_copy(base)["gaps"] if g["kind"] == "value_not_certain"]
    put(base, "parquet", hers, {**hers, "cust": f"\t{HERS['cust']}"}, {**hers, "city": "Goa"})
    (one, two) = (g for g in planned_copy(base)["gaps"] if g["kind"] == "value_not_certain")
    assert "in 1 row of the persons c" in one["reason"]
    assert "has blanks around a value, or accents in a different Unicode form" in two["reason"]


def test_a_key_with_a_fraction_is_found_in_texts(tmp_path: Path) -> None:
    """Its number was added to its key set, and made all of that weak: the table was said to hold nothing."""
    base = source(estate(tmp_path, "parquet"), "12345.0", "P-3")
    (base / "jobs.sql").write_text("SELECT 1;\n")
    put(base, "parquet", {"ref": "call 12345.0 now"}, {"ref": "b"})
    assert [gap["kind"] for gap in planned_copy(base)["gaps"]] == ["unexpected_copy"]


@pytest.mark.parametrize("second", ["12345.0", "12345"])
def test_a_short_key_of_another_request_hides_nobody(tmp_path: Path, second: str) -> None:
    base = source(estate(tmp_path, "parquet"), "K-88123-XYZ", second, "P-3")
    (base / "second.yaml").write_text(request("customer", second).replace("R-1", "R-2"))
    (base / "jobs.sql").write_text("SELECT 1;\n")
    put(base, "parquet", {"ref": "call K-88123-XYZ now"}, {"ref": "b"})
    given = ["--format", "json", "--out", str(base / "two.plan.json"), "--estate", str(base / "pii-tracer.yaml")]
    requests = [str(base / "request.yaml"), str(base / "second.yaml")]
    assert run(["plan", *requests, *given, "--state", str(base / "state")]) == 3
    plan = json.loads((base / "two.plan.json").read_text())
    assert [gap["kind"] for gap in plan["gaps"]] == ["unexpected_copy"]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_numbers_of_another_system_are_left_out_in_both_texts(tmp_path: Path, kind: str) -> None:
    base = source(estate(tmp_path, kind), "12345.0", "P-3")
    (base / "jobs.sql").write_text("SELECT 1;\n")
    file = base / "pii-tracer.yaml"
    file.write_text(file.read_text().rstrip("\n") + NOT_KEYS)
    put(base, kind, *({"ref": ref, "note": "b"} for ref in ("12345.0", "777.0", "778.0")))
    assert planned_copy(base)["gaps"] == []


def test_a_column_of_numbers_that_merges_two_keys_is_a_gap(tmp_path: Path) -> None:
    """The plan was complete, and deleted the other's row."""
    base = source(estate(tmp_path, "parquet"), "7", "007", "9")
    put(base, "parquet", *({**CALM, "cust": key} for key in (7, 7, 9)))
    (gap,) = planned_copy(base)["gaps"]
    assert gap["kind"] == "value_not_certain"
    assert "1 value of other people in cust" in gap["reason"]
