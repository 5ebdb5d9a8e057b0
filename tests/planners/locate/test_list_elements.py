"""Lists of keys that become rows again: each row is one person's, and what a list hides stays hidden."""

from __future__ import annotations

import pytest

from pii_tracer.model.datasets import Carries
from tests.planners.estates import carriage, terms

LIST = "INSERT OVERWRITE prod.a SELECT city, collect_list(user_id) AS ids{} FROM prod.users GROUP BY city;\n"
ROWS = "INSERT OVERWRITE prod.out SELECT {} FROM prod.a LATERAL VIEW explode(ids) e AS x"


@pytest.mark.parametrize("columns", ["x AS id", "city, x AS id"])
def test_rows_of_a_list_of_keys_are_found_by_the_key(columns: str) -> None:
    found = carriage(LIST.format("") + ROWS.format(columns))
    assert (found.carries, terms(found), found.mixed) == (Carries.KEY, ["id = user_id"], ())


@pytest.mark.parametrize(
    ("also", "columns"),
    [
        ("", "ids, x AS id"),
        (", max(phone) AS phone", "phone, x AS id"),
        (", max(paid_at) AS day", "day, x AS id"),
        (", collect_list(email) AS mails", "mails, x AS id"),
    ],
)
def test_what_a_group_has_beside_its_list_may_be_anothers(also: str, columns: str) -> None:
    """Naively the rows are deleted by the key, and a neighbour's rows keep the person's value."""
    assert carriage(LIST.format(also) + ROWS.format(columns)).mixed


def test_a_list_of_two_kinds_of_numbers_names_nobody() -> None:
    sql = "INSERT INTO prod.a SELECT city, collect_list(manager_id) AS ids FROM prod.users GROUP BY city;\n"
    found = carriage(LIST.format("") + sql + ROWS.format("city, x AS id"))
    assert found.carries is Carries.UNKNOWN


def test_rows_joined_to_persons_again_are_several_peoples() -> None:
    sql = ROWS.format("x AS id, u.phone") + " JOIN prod.users u ON u.city = prod.a.city"
    assert carriage(LIST.format("") + sql).mixed


def test_one_element_of_a_list_is_nobodys() -> None:
    sql = "INSERT OVERWRITE prod.out SELECT city, ids[0] AS id FROM prod.a"
    assert carriage(LIST.format("") + sql).carries is Carries.UNKNOWN


@pytest.mark.parametrize("expression", ["user_id * 2", "user_id * 10 + 3"])
def test_a_multiple_of_the_key_is_computed(expression: str) -> None:
    found = carriage(f"INSERT OVERWRITE prod.out SELECT {expression} AS k, amount FROM prod.users")
    assert found.carries is Carries.COMPUTED_KEY
