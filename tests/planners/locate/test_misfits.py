"""Keys that a column's type keeps as something else: the scan looks for what is not there, and calls the copy clean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.model.datasets import Column, Format
from pii_tracer.model.keys_as_text import joined
from pii_tracer.model.number_keys import without_fraction
from planners.copies.scan_evidence import Evidence
from planners.locate.lossy_key_types import _types
from planners.locate.sql.column_types import fits, stored, stored_alike
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
        ("7340219981", "int", False),
        ("2147483647", "int", True),
        ("128", "tinyint", False),
        ("12345", "decimal(6,2)", False),
        ("1234", "decimal(6,2)", True),
        ("12.55", "decimal(6,1)", False),
        ("0.1", "float", True),
        ("-0", "int", False),
    ],
)
def test_what_a_type_keeps_as_it_is(value: str, kind: str, same: bool) -> None:
    assert fits(value, kind) is same


@pytest.mark.parametrize(
    "other", ["007", "07", "7.000", "+7", "7.", " 7", "7.9", "6.5", "7e0", "70E-1", str(2**64 + 7)]
)
def test_a_column_of_numbers_stores_others_keys_as_the_persons(other: str) -> None:
    everybody = frozenset({"7", other, "70", "17.5", "-7", "P-7", "7_", "٧", "Infinity", "7e999999999"})
    assert stored_alike({"7"}, everybody, ["bigint"]) == {other}
    assert stored_alike({"7"}, everybody, ["string"]) == set()


@pytest.mark.parametrize(
    ("kind", "mine", "other"),
    [
        ("int", "7", str(2**32 + 7)),
        ("int", str(2**31 - 1), str(2**40)),
        ("tinyint", "-1", "255"),
        ("decimal(5,1)", "7.5", "7.50"),
        ("decimal(5,1)", "7.5", "7.46"),
        ("decimal(5,1)", "7.5", "7.59"),
        ("decimal", "8", "7.5"),
        ("double", "7.5", "75e-1"),
        ("float", "0.1", "0.100000001"),
        ("double", "7", "7d"),
        ("double", "8", "0x1p3"),
        ("float", "7", "7.0F"),
        ("decimal(5,0)", "70", "70e-000"),
        ("bigint", "7", "\x017\x00"),
    ],
)
def test_each_way_to_cast_a_number_counts(kind: str, mine: str, other: str) -> None:
    assert stored_alike({mine}, frozenset({mine, other, "9"}), [kind]) == {other}
    assert stored_alike({mine}, frozenset({mine, other, "9"}), ["string"]) == set()


@given(
    st.sampled_from(["tinyint", "int", "bigint", "decimal(6,2)", "decimal(4,0)", "double", "float"]),
    st.from_regex(r"\s?[+-]?[0-9]{1,11}(\.[0-9]{0,3})?([eE]-?[0-9])?", fullmatch=True),
    st.from_regex(r"-?[0-9]{1,4}(\.[0-9]{1,2})?", fullmatch=True),
)
def test_the_fast_way_finds_what_the_slow_one_finds(kind: str, other: str, mine: str) -> None:
    everybody = frozenset({mine, other, f"0{mine}", f"{mine}0"})
    same = fits(without_fraction(mine), kind)
    slow = {key for key in everybody - {mine} if same and without_fraction(mine) in stored(key, kind)}
    assert stored_alike({mine}, everybody, [kind]) == slow
    assert fits(other, kind) <= (stored(other, kind) == {other})


def test_no_number_is_too_large_for_any_type() -> None:
    others = frozenset(
        f"{sign}{number}" for number in (65004, 65504, 65520, 10**5, 10**39, 10**310) for sign in ("", "-")
    )
    for kind in ("halffloat", "float", "double", "decimal(38,0)", "decimal(5,-2)", "tinyint"):
        assert stored_alike({"7"}, others | {"7"}, [kind]) == set()
    assert fits("-" + "9" * 38, "decimal(38,0)")
    assert not fits("12345", "decimal(5,-2)")


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ({"format": Format.PARQUET, "partition_columns": ("UID",)}, "bigint"),
        ({"format": Format.PARQUET}, "int"),
        ({"format": ICEBERG, "partition_columns": ("uid",)}, "int"),
    ],
)
def test_the_type_of_a_partition_is_made_of_the_values_that_are_there(made: dict[str, Any], kind: str) -> None:
    state = Lake(states={"a": {"columns": (Column(name="uid", type="int"),), **made}})._state("a")
    assert _types(state) == {"uid": kind}


def test_a_key_that_no_column_of_numbers_holds_finds_nobody() -> None:
    assert stored_alike({"007"}, frozenset({"007", "7"}), ["bigint"]) == set()


def test_zero_has_no_sign() -> None:
    assert stored_alike({"0"}, frozenset({"0", "-0.0", "00", "10"}), ["decimal(10,3)"]) == {"-0.0", "00"}


def test_keys_of_several_columns_are_compared_part_by_part() -> None:
    keys = [joined(parts) or "" for parts in (("Pune", "7"), ("Pune", "007"), ("Goa", "007"), ("Pune", "8"))]
    assert stored_alike({keys[0]}, frozenset(keys), ["string", "bigint"]) == {keys[1]}
