"""A key that a copy writes otherwise than the source: no match compares it, the search after the run finds it, and so
planning says it before anything is deleted."""

from __future__ import annotations

import shutil
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.app.planning.test_others_rows import (
    HERS,
    KEY,
    MAIL,
    NEIGHBOUR,
    OTHER,
    PEOPLE,
    REQUEST,
    WRITERS,
    Row,
    estate,
    planned,
)

COMPOSED = unicodedata.normalize("NFC", "José-5510")
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)
CALM: Row = {**HERS, "email": "none", "note": "nothing"}
"""Nothing of the person in the row but its key."""


def people(base: Path, *keys: str) -> Path:
    """Other keys in the source, and a request for the first."""
    shutil.rmtree(base / "lake" / "people")  # its history would know the others
    rows = {**{n: PEOPLE[n].to_pylist()[: len(keys)] for n in PEOPLE.column_names}, "cust": list(keys)}
    write_deltalake(base / "lake" / "people", pa.table(rows))
    (base / "request.yaml").write_text(REQUEST.replace(KEY, keys[0]))
    return base


def put(base: Path, kind: str, *rows: Row) -> None:
    WRITERS[kind](base / "lake" / "tickets" / f"part-0.{kind}", *rows)


def the_gap(plan: dict[str, Any], table: str = "s.tickets") -> dict[str, Any]:
    (gap,) = (g for g in plan["gaps"] if g["id"] == f"gap-others_rows-{table}-cust")
    return dict(gap)


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_signs_blanks_and_case_in_every_format(tmp_path: Path, kind: str) -> None:
    base = estate(tmp_path, kind)
    others = [f" {KEY}", f"{KEY}\t", f"{KEY}\u00a0", f'"{KEY}"', KEY.lower(), f"no. {KEY}", "P-55\u200b102"]
    put(base, kind, HERS, *({**CALM, "cust": key} for key in others), NEIGHBOUR, OTHER)
    plan = planned(base)
    gap = the_gap(plan)
    assert plan["gaps"] == [gap]
    assert gap["reason"].startswith(f"in {len(others)} rows cust has a value of the persons in a different form")
    assert "so these rows would remain" in gap["reason"]
    assert "ask the owner to write the key as the source has it" in gap["evidence"]


@pytest.mark.parametrize("hers", [COMPOSED, DECOMPOSED])
def test_accents_that_are_composed_in_another_way(tmp_path: Path, hers: str) -> None:
    base = people(estate(tmp_path, "parquet"), hers, "P-3")
    (other,) = {COMPOSED, DECOMPOSED} - {hers}
    put(base, "parquet", {**CALM, "cust": hers}, OTHER)
    assert planned(base)["gaps"] == []
    put(base, "parquet", {**CALM, "cust": hers}, {**CALM, "cust": other}, OTHER)
    assert the_gap(planned(base))["reason"].startswith("in 1 row cust has a value of the persons in a different form")


def test_two_persons_whose_keys_only_accents_or_blanks_part(tmp_path: Path) -> None:
    """The search takes the other's key for hers: nothing of the other is deleted, and planning says what stays."""
    base = people(estate(tmp_path, "parquet"), COMPOSED, DECOMPOSED)
    put(base, "parquet", *({**CALM, "cust": key} for key in (COMPOSED, DECOMPOSED)))
    plan = planned(base)
    assert the_gap(plan)
    assert the_gap(plan, "s.people")
    assert {copy["table"]: copy["found"]["rows"] for copy in plan["copies"]} == {"s.people": 1, "s.tickets": 1}


def test_an_identifier_in_the_column_of_keys_is_not_the_key_in_another_writing(tmp_path: Path) -> None:
    base = estate(tmp_path, "parquet")
    put(base, "parquet", HERS, {**OTHER, "cust": MAIL})
    gap = the_gap(planned(base))
    assert gap["reason"].startswith("1 row that is not the persons' contains them in cust: the plan finds rows by cust")


def test_a_short_number_with_a_fraction_or_blanks(tmp_path: Path) -> None:
    base = people(estate(tmp_path, "csv"), "471100", "P-3")
    put(base, "csv", *({**CALM, "cust": key} for key in ("471100", "471100.0", "471100.00")), OTHER)
    assert planned(base)["gaps"] == []
    put(base, "csv", *({**CALM, "cust": key} for key in ("471100", " 471100", "471100.000")), OTHER)
    assert the_gap(planned(base))["reason"].startswith("in 2 rows cust has a value of the persons in a different form")
