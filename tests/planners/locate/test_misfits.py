"""Keys that a column's type keeps as something else: the scan looks for what is not there, and calls the copy clean."""

from __future__ import annotations

import pytest

from pii_tracer.model.datasets import Column
from pii_tracer.model.key_columns import joined
from planners.copies.scan_evidence import Evidence
from planners.locate.lossy_key_types import _fits, stored_alike
from tests.planners.smalllake import Lake

CLEAN = Evidence(files=3, files_with_person=0, bytes=0)


def kinds(kind: str) -> list[str]:
    """Gaps of a table without any sign of the person, whose key column has this type. The key has ten digits."""
    small = Lake(states={"a": {"columns": (Column(name="uid", type=kind),)}}, seen={"/w/a": CLEAN})
    return [g.kind for g in small.plan().gaps]


def test_a_float_that_cannot_hold_the_key_is_not_called_clean() -> None:
    assert kinds("float") == ["value_not_certain"]
    assert kinds("double") == kinds("bigint") == kinds("string") == kinds("decimal(20,2)") == []


@pytest.mark.parametrize(
    ("value", "kind", "same"),
    [
        ("0055102", "int", False),
        ("0055102", "string", True),
        ("55102", "int", True),
        ("-7", "bigint", True),
        ("P-55", "bigint", False),
        ("12.50", "decimal(10,2)", False),
        ("12.5", "decimal(10,2)", True),
        ("0055102", "decimal(18,0)", False),
        (str(2**53), "double", False),
        (str(2**53 - 1), "double", True),
        ("16777216", "float", False),
        ("2048", "halffloat", False),
        ("2047", "halffloat", True),
        ("2026-01-01", "date", True),
        ("0055", "interval day", True),
    ],
)
def test_what_a_type_keeps_as_it_is(value: str, kind: str, same: bool) -> None:
    assert _fits(value, kind) is same


@pytest.mark.parametrize("other", ["007", "07", "7.000", "+7", "7.", " 7"])
def test_a_column_of_numbers_stores_others_keys_as_the_persons(other: str) -> None:
    everybody = {"7", other, "70", "7.5", "-7", "P-7"}
    assert stored_alike({"7"}, everybody, ["bigint"]) == {other}
    assert stored_alike({"7"}, everybody, ["string"]) == set()


def test_a_key_that_no_column_of_numbers_holds_finds_nobody() -> None:
    assert stored_alike({"007"}, {"007", "7"}, ["bigint"]) == set()


def test_zero_has_no_sign() -> None:
    assert stored_alike({"0"}, {"0", "-0.0", "00", "10"}, ["decimal(10,3)"]) == {"-0.0", "00"}


def test_keys_of_several_columns_are_compared_part_by_part() -> None:
    keys = [joined(parts) or "" for parts in (("Pune", "7"), ("Pune", "007"), ("Goa", "007"), ("Pune", "8"))]
    assert stored_alike({keys[0]}, keys, ["string", "bigint"]) == {keys[1]}
