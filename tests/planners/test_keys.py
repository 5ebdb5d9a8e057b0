"""Key resolution: the right person's identifiers, and a warning where a value is not theirs alone."""

from __future__ import annotations

import pytest

from pii_tracer.config import Identifier, Subject
from pii_tracer.errors import PlanError
from planners.keys import SourceRows, Wanted, derive, resolve

CUSTOMER = Subject(
    name="customer",
    source="lake.prod.payments",
    key="user_id",
    identifiers=(Identifier(column="phone", category="phone"),),
    record_keys=("payment_id",),
)
ROWS = SourceRows(
    {
        "user_id": ["7", "7", "8", "9"],
        "phone": ["+91 1", "+91 1", "+91-1", None],
        "payment_id": ["pay_a", "pay_b", "pay_c", "pay_d"],
    }
)


def test_every_identifier_and_row_key_of_the_person_is_resolved() -> None:
    keys = resolve(CUSTOMER, ROWS, [Wanted("R1", "subj_1", "7")])
    assert keys.base["phone"] == (("subj_1", "+91 1"),)
    assert keys.base["payment_id"] == (("subj_1", "pay_a"), ("subj_1", "pay_b"))
    assert keys.others["payment_id"] == {"pay_c", "pay_d"}


def test_a_value_that_an_expression_makes_common_is_counted_as_shared() -> None:
    keys = resolve(CUSTOMER, ROWS, [Wanted("R1", "subj_1", "7")])
    assert derive(keys, "phone", "x").shared == 0
    assert derive(keys, "phone", "regexp_replace(x, '[^0-9]', '')").shared == 1


def test_two_requests_for_the_two_owners_share_nothing_with_others() -> None:
    keys = resolve(CUSTOMER, ROWS, [Wanted("R1", "subj_1", "7"), Wanted("R2", "subj_2", "8")])
    assert derive(keys, "phone", "regexp_replace(x, '[^0-9]', '')").shared == 0


def test_an_unknown_key_is_an_error_that_does_not_repeat_it() -> None:
    with pytest.raises(PlanError) as caught:
        resolve(CUSTOMER, ROWS, [Wanted("R9", "subj_9", "424242")])
    assert "R9" in str(caught.value)
    assert "424242" not in str(caught.value)


def test_short_numbers_are_weak_and_long_ones_are_not() -> None:
    keys = resolve(CUSTOMER, ROWS, [Wanted("R1", "subj_1", "7")])
    assert derive(keys, "user_id", "x").keys.weak
    assert not derive(keys, "user_id", "sha2(CAST(x AS STRING), 256)").keys.weak


def test_values_do_not_show_in_representations() -> None:
    keys = resolve(CUSTOMER, ROWS, [Wanted("R1", "subj_1", "7")])
    shown = repr(keys) + repr(derive(keys, "phone", "x")) + repr(ROWS) + str(derive(keys, "phone", "x").keys)
    assert "+91" not in shown
