"""Rows that a match finds and that may be somebody else's: the rest of the row, or of the column, speaks against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request

MAIL, PHONE = "ira@x.example", "+353864411209"
ESTATE = (
    declared("w", dict.fromkeys(("crm.clients", "crm.copy"), "parquet"))
    + """\
  - name: client
    source: crm.clients
    key: client_id
    identifiers: [{column: mail, category: email}, {column: phone, category: phone}, {column: tax, category: tax_id}]
"""
)
CLIENTS = {
    "client_id": [71234, 71235, 71236],
    "mail": [MAIL, "bo@x.example", "cy@x.example"],
    "phone": [PHONE, "+353864411210", "+353864411211"],
    "tax": ["T-811-20", "T-811-21", "T-811-22"],
}
DECLARED = "    tables: [{table: crm.copy, key: %s}]\n"


def planned(base: Path, copy: dict[str, Any], jobs: str = "", more: str = "", **changed: Any) -> Any:
    for name, columns in (("clients", CLIENTS | changed), ("copy", copy)):
        (base / "w" / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), base / "w" / name / "part-0.parquet")
    (base / "pii-tracer.yaml").write_text(ESTATE + more)
    (base / "jobs.sql").write_text(jobs)
    (base / "request.yaml").write_text(request("client", "71234"))
    (base / "policy.yaml").write_text("version: 1\n")
    called(base, "plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json"))
    return json.loads((base / "p.plan.json").read_bytes())


def foreign(made: Any) -> list[str]:
    return [gap["reason"] for gap in made["gaps"] if gap["kind"] == "foreign_keys"]


def job(*columns: str) -> str:
    return f"INSERT OVERWRITE crm.copy SELECT {', '.join(columns)} FROM crm.clients;"


def test_a_phone_of_a_family_does_not_delete_the_sons_row(tmp_path: Path) -> None:
    """The source does not know the son, so that the phone is hers alone there."""
    copy = {"mail": [MAIL, "son@y.example", "bo@x.example"], "phone": [PHONE, PHONE, "+353864411210"]}
    made = planned(tmp_path, copy, job("mail", "phone"))
    assert [reason.partition(". ")[0] for reason in foreign(made)] == ["1 row that only phone finds would be deleted"]
    assert not made["applyable"]


@pytest.mark.parametrize("phone", ["unknown", "0000000000", "n/a", "--"])
@pytest.mark.parametrize("columns", [("mail", "phone"), ("phone",)], ids=["beside others", "alone"])
def test_a_value_that_names_nobody_deletes_no_row_and_is_not_sought(
    tmp_path: Path, phone: str, columns: tuple[str, ...]
) -> None:
    """It is hers alone in the source, and everybody's in the copy."""
    copy = {"mail": [MAIL, "p@y.example", "q@y.example"], "phone": [phone] * 3}
    made = planned(
        tmp_path,
        {name: copy[name] for name in columns},
        job(*columns),
        phone=[phone, *CLIENTS["phone"][1:]],
    )
    deleted = {c["table"]: c["found"]["rows"] for c in made["copies"]}
    assert deleted == {"crm.clients": 1, **({"crm.copy": 1} if "mail" in columns else {})}
    assert {gap["kind"] for gap in made["gaps"]} == {"shared_identifier"}
    assert not made["applyable"]


@pytest.mark.parametrize(
    ("mail", "phone", "tax"),
    [
        pytest.param(" IRA@x.example", PHONE, "T-811-20", id="a different form"),
        pytest.param(MAIL, "+353 86 441 1209", "T-811-20", id="signs in a phone"),
        pytest.param("old@y.example", PHONE, "T-811-20", id="two of three agree"),
        pytest.param("", PHONE, None, id="nothing else in the row"),
    ],
)
def test_rows_of_the_person_are_not_called_anybody_elses(
    tmp_path: Path, mail: str, phone: str, tax: str | None
) -> None:
    copy = {"mail": [mail, "bo@x.example"], "phone": [phone, "+353864411210"], "tax": [tax, "T-811-21"]}
    assert foreign(planned(tmp_path, copy, job("mail", "phone", "tax"))) == []


def test_a_column_that_two_identifiers_fill_does_not_contradict_itself(tmp_path: Path) -> None:
    copy = {"contact": [MAIL, PHONE, "bo@x.example"]}
    jobs = job("mail AS contact") + "\nINSERT INTO crm.copy SELECT phone FROM crm.clients;"
    assert foreign(planned(tmp_path, copy, jobs)) == []


def test_a_declared_key_whose_row_has_somebody_elses_address(tmp_path: Path) -> None:
    """Every number is a client's, and the rows show that they count something else."""
    copy = {"driver_id": [71234, 71235], "mail": ["BO@x.example", "cy@x.example"]}
    made = planned(tmp_path, copy, more=DECLARED % "driver_id")
    assert [reason.partition(". ")[0] for reason in foreign(made)] == [
        "1 row that only driver_id finds would be deleted"
    ]
    assert not made["applyable"]


def test_a_declared_key_that_is_another_systems_number(tmp_path: Path) -> None:
    made = planned(tmp_path, {"driver_id": [71234, 7, 8]}, more=DECLARED % "driver_id")
    assert [reason.partition(",")[0] for reason in foreign(made)] == [
        "the estate file declares driver_id as the key here"
    ]
    assert not made["applyable"]


@pytest.mark.parametrize(
    "copy",
    [
        pytest.param({"who": [71234, 71235, 7], "mail": [MAIL, "bo@x.example", None]}, id="the rows agree"),
        pytest.param({"who": [71234, 71235], "seller": ["bo@x.example", None], "to": [MAIL, None]}, id="hers, too"),
        pytest.param({"who": [71234, 71235], "note": ["order 20251129", "by phone"]}, id="nothing of others"),
    ],
)
def test_a_declared_key_that_the_rows_do_not_contradict(tmp_path: Path, copy: dict[str, Any]) -> None:
    assert foreign(planned(tmp_path, copy, more=DECLARED % "who")) == []
