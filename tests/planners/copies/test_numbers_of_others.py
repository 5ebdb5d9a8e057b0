"""What a number with a fraction means beside others' values: it is compared as the number, too."""

from __future__ import annotations

import pytest

from pii_tracer.config.subjects import Subject
from planners.copies.derived_keys import derive
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.copies.nobodys_values import nobodys

CUSTOMER = Subject(name="customer", source="s.people", key="cust", identifiers=(), record_keys=())


@pytest.mark.parametrize("value", ["9999999999.0", "0.00", "999.0", "0000000000"])
def test_a_number_that_names_nobody_does_not_with_a_fraction(value: str) -> None:
    assert nobodys([("r", value)], "phone") == {value}


@pytest.mark.parametrize("value", ["9845011111.0", "9845011111", "99.0", "999.5"])
def test_other_numbers_may_name_somebody(value: str) -> None:
    assert nobodys([("r", value)], "phone") == set()


@pytest.mark.parametrize("keys", [("A-12345.0", "A-12345"), ("A-12345", "A-12345.0")])
def test_what_an_expression_makes_one_number_of_two_keys_deletes_nothing(keys: tuple[str, str]) -> None:
    """Both rows of the copy were deleted: the number of one is a text of the other's."""
    rows = SourceRows({"cust": [*keys, "A-7"]})
    known = resolve(CUSTOMER, rows, [Wanted("R-1", "r", keys[0])])
    found = derive(known, "cust", "substring(x, 3)")
    assert (found.shared, found.keys.values, found.blind) == (1, (), True)


@pytest.mark.parametrize("keys", [("12345.0", "12345"), ("12345", "12345.000"), ("12345.0000", "12345.000")])
def test_keys_themselves_are_a_gap_of_the_request_instead(keys: tuple[str, str]) -> None:
    known = resolve(CUSTOMER, SourceRows({"cust": list(keys)}), [Wanted("R-1", "r", keys[0])])
    assert derive(known, "cust", "x").shared == 0
    assert known.same_key["R-1"].other_texts == 1
