"""A key of several columns along lineage: whole where all of its columns come, and of one person only then."""

from __future__ import annotations

import pytest

from pii_tracer.config.subjects import Subject
from pii_tracer.model.datasets import Carries
from planners.locate.key_location import Carriage
from planners.locate.key_location_answers import whereabouts
from tests.planners.estates import carriage

TENANT = Subject.model_validate(
    {
        "name": "customer",
        "source": "prod.users",
        "key": ["tenant_id", "user_id"],
        "identifiers": [{"column": "email", "category": "email"}],
    }
)
TABLES = {
    "prod.users": "tenant_id bigint, user_id bigint, email string, city string",
    "prod.orders": "tenant_id bigint, user_id bigint, amount double",
    "prod.tenants": "tenant_id bigint, label string",
    "prod.out": "c1 string, c2 string, c3 string",
}
ORDERS = "INSERT OVERWRITE prod.orders SELECT tenant_id, user_id, 1.5 FROM prod.users;\n"
INTO = "INSERT OVERWRITE prod.out "


def told(query: str, before: str = "") -> Carriage:
    return carriage(before + INTO + query, subject=TENANT, tables=TABLES)


def columns(found: Carriage) -> list[tuple[str, ...]]:
    return [(name, *(column for column, _ in trace.beside)) for name, trace in found.terms]


WHOLE = {
    "as they are": ("SELECT tenant_id, user_id, city FROM prod.users", ""),
    "cast": ("SELECT CAST(tenant_id AS STRING) AS t, CAST(user_id AS STRING) AS u, city FROM prod.users", ""),
    "grouped by the whole key": (
        "SELECT tenant_id, user_id, max(email) FROM prod.users GROUP BY tenant_id, user_id",
        "",
    ),
    "newest row of the whole key": (
        "SELECT tenant_id, user_id, first_value(city) OVER (PARTITION BY tenant_id, user_id ORDER BY city) FROM prod.users",
        "",
    ),
    "joined on the whole key": (
        "SELECT o.tenant_id, o.user_id, u.email FROM prod.orders o"
        " JOIN prod.users u ON o.tenant_id = u.tenant_id AND o.user_id = u.user_id",
        ORDERS,
    ),
    "each side gives a column, joined on the whole key": (
        "SELECT o.tenant_id, u.user_id, u.email FROM prod.orders o JOIN prod.users u USING (tenant_id, user_id)",
        ORDERS,
    ),
    "both branches of a union": (
        "SELECT tenant_id, user_id, city FROM prod.users UNION ALL SELECT tenant_id, user_id, '' FROM prod.orders",
        ORDERS,
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_rows_are_found_by_all_columns_together(name: str) -> None:
    query, before = WHOLE[name]
    found = told(query, before)
    assert (found.carries, found.mixed) == (Carries.KEY, ()), found.reason
    assert all(len(one) == 2 for one in columns(found) if one[0] == "c1"), found.terms
    assert ("c1", "c2") in columns(found)


MISSING = {
    "the user alone": ("SELECT user_id, city, '' FROM prod.users", "user_id is copied here, but not tenant_id"),
    "the tenant alone": ("SELECT tenant_id, city, '' FROM prod.users", "tenant_id is copied here, but not user_id"),
    "an expression around one": ("SELECT tenant_id, user_id % 10, city FROM prod.users", "no step can compute"),
    "a branch without the tenant": (
        "SELECT tenant_id, user_id, city FROM prod.users UNION ALL SELECT NULL, user_id, city FROM prod.users",
        "",
    ),
    "columns changed over in a branch": (
        "SELECT tenant_id, user_id, city FROM prod.users UNION ALL SELECT user_id, tenant_id, city FROM prod.users",
        "",
    ),
    "one column from two": ("SELECT concat(tenant_id, '-', user_id), city, '' FROM prod.users", ""),
    "a condition in one column": ("SELECT IF(city = 'x', 0, tenant_id), user_id, '' FROM prod.users", ""),
    "a second insert without the tenant": (
        "SELECT tenant_id, user_id, city FROM prod.users;\nINSERT INTO prod.out SELECT '', user_id, city FROM prod.users",
        "",
    ),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_key_that_is_not_whole_finds_nobody(name: str) -> None:
    """User 17 without the tenant is somebody else in every tenant."""
    query, why = MISSING[name]
    found = told(query)
    assert (found.carries, found.terms) == (Carries.UNKNOWN, ()), found.reason
    assert why in found.reason


def test_a_copy_without_the_tenant_is_found_by_an_identifier() -> None:
    found = told("SELECT user_id, email, city FROM prod.users")
    assert (found.carries, columns(found)) == (Carries.IDENTIFIERS, [("c2",)])


MIXED = {
    "joined on the user alone": (
        "SELECT o.tenant_id, o.user_id, u.email FROM prod.orders o JOIN prod.users u ON o.user_id = u.user_id"
    ),
    "joined on the tenant alone": (
        "SELECT o.tenant_id, u.user_id, u.city FROM prod.orders o JOIN prod.users u ON o.tenant_id = u.tenant_id"
    ),
    "USING the user alone": "SELECT o.tenant_id, u.user_id, u.email FROM prod.orders o JOIN prod.users u USING (user_id)",
    "on each column with another relation": (
        "SELECT o.tenant_id, o.user_id, u.email FROM prod.orders o JOIN prod.users v ON o.tenant_id = v.tenant_id"
        " JOIN prod.users u ON o.user_id = u.user_id"
    ),
    "grouped by the user alone": "SELECT max(tenant_id), user_id, max(email) FROM prod.users GROUP BY user_id",
    "grouped by columns of two relations": (
        "SELECT max(u.tenant_id), u.user_id, max(u.email) FROM prod.orders o JOIN prod.users u ON o.amount > u.city"
        " GROUP BY o.tenant_id, u.user_id"
    ),
    "a window over the user alone": (
        "SELECT tenant_id, user_id, first_value(email) OVER (PARTITION BY user_id ORDER BY city) FROM prod.users"
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_row_in_which_two_persons_can_meet_is_nobodys_to_delete(name: str) -> None:
    found = told(MIXED[name], ORDERS)
    assert found.mixed or not found.terms, (found.carries, found.reason)


def test_one_column_of_the_key_is_lost_where_the_other_is_missing() -> None:
    """What is made of such a copy cannot put a key together out of two that each lack a column."""
    found = told("SELECT user_id, city, '' FROM prod.users")
    assert (found.lost, found.columns["c1"].traces) == (("user_id",), frozenset())


def test_the_answer_shows_the_key_at_each_of_its_columns() -> None:
    found = told("SELECT tenant_id, named_struct('id', user_id) AS who, '' FROM prod.users")
    answer = whereabouts(TENANT, {found.dataset: found}, lambda dataset: dataset.name, {})
    finds = {column.name: column.finds for column in answer.datasets[0].columns}
    assert finds == {"c1": ("(tenant_id, user_id)",), "c2": (".id: (tenant_id, user_id)",)}
