"""Lists of keys that become rows again: each row is one person's, and what a list hides stays hidden."""

from __future__ import annotations

import pytest

from pii_tracer.model.datasets import Access, Carries, ElementAccess, FieldAccess
from planners.locate.sql.column_expressions import Fate, locate
from planners.locate.sql.column_references import beyond
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


ELEMENT, KEY, USER_ID = ElementAccess(name="element"), ElementAccess(name="key"), FieldAccess(name="user_id")


@pytest.mark.parametrize(
    ("fields", "access", "left"),
    [
        ((), (ELEMENT, USER_ID), (ELEMENT, USER_ID)),
        (("user_id",), (ELEMENT, USER_ID), (ELEMENT,)),
        (("USER_ID",), (ELEMENT, USER_ID), (ELEMENT,)),
        (("seat",), (ELEMENT, USER_ID), None),
        (("user_id", "x"), (ELEMENT, USER_ID), None),
        (("user_id",), (ELEMENT,), None),
        (("user_id",), (KEY,), None),
        (("user_id",), (USER_ID, ELEMENT), (ELEMENT,)),
    ],
)
def test_a_field_of_a_list_is_the_list_of_the_field(
    fields: tuple[str, ...], access: tuple[Access, ...], left: tuple[Access, ...] | None
) -> None:
    assert beyond(fields, access) == left


@pytest.mark.parametrize(
    ("expression", "fate", "access"),
    [
        ("attendees", Fate.FOUND, (ELEMENT, USER_ID)),
        ("attendees.user_id", Fate.FOUND, (ELEMENT,)),
        ("t.attendees.user_id", Fate.FOUND, (ELEMENT,)),
        ("named_struct('a', attendees)", Fate.FOUND, (FieldAccess(name="a"), ELEMENT, USER_ID)),
        ("attendees[0]", Fate.HIDDEN, ()),
        ("attendees[0].user_id", Fate.HIDDEN, ()),
        ("explode(attendees)", Fate.HIDDEN, ()),
        ("to_json(named_struct('a', attendees))", Fate.HIDDEN, ()),
        ("array_join(attendees.user_id, ',')", Fate.HIDDEN, ()),
    ],
)
def test_where_elements_stand_behind_an_expression(expression: str, fate: Fate, access: tuple[Access, ...]) -> None:
    """What cannot be followed is hidden, and never nowhere."""
    (place,) = locate(expression, "attendees", (ELEMENT, USER_ID))
    assert (place.fate, place.access) == (fate, access)


def test_another_field_of_a_list_is_not_the_key() -> None:
    assert locate("attendees.seat", "attendees", (ELEMENT, USER_ID)) == ()
