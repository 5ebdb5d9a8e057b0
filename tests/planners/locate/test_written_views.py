"""Persons who come into a table through a view of it: found by the columns that the view shows, or not at all."""

from __future__ import annotations

import pytest

from pii_tracer.model.datasets import Carries
from tests.planners.estates import carriage, terms

TABLE = {"prod.out": "user_id bigint, email string, city string"}
WHOLE = "INSERT INTO prod.out SELECT user_id, email, city FROM prod.users"


@pytest.mark.parametrize(
    ("view", "writes", "carries", "found"),
    [
        pytest.param(
            "user_id, email",
            "INSERT INTO prod.v SELECT user_id, email FROM prod.users",
            Carries.KEY,
            ["user_id = user_id"],
            id="the view shows the key",
        ),
        pytest.param(
            "city, email",
            "INSERT INTO prod.v SELECT city, email FROM prod.users",
            Carries.IDENTIFIERS,
            ["email = email"],
            id="the view shows an identifier",
        ),
        pytest.param(
            "city",
            f"INSERT INTO prod.v SELECT city FROM prod.users; {WHOLE}",
            Carries.UNKNOWN,
            [],
            id="rows without a key beside rows with one",
        ),
        pytest.param(
            "user_id, city",
            f"UPDATE prod.v SET user_id = 0; {WHOLE}",
            Carries.UNKNOWN,
            [],
            id="the key is overwritten through the view",
        ),
        pytest.param("city", WHOLE, Carries.KEY, ["user_id = user_id"], id="nothing is written through the view"),
    ],
)
def test_rows_that_come_through_a_view(view: str, writes: str, carries: Carries, found: list[str]) -> None:
    made = carriage(f"CREATE VIEW prod.v AS SELECT {view} FROM prod.out; {writes}", tables=TABLE)
    assert (made.carries, terms(made), made.mixed) == (carries, found, ())


def test_rows_of_one_view_lack_what_those_of_another_have() -> None:
    views = "CREATE VIEW prod.v AS SELECT user_id, city FROM prod.out; CREATE VIEW prod.w AS SELECT city FROM prod.out;"
    writes = "INSERT INTO prod.v SELECT user_id, city FROM prod.users; INSERT INTO prod.w SELECT city FROM prod.users"
    made = carriage(f"{views} {writes}", tables=TABLE)
    assert made.carries is Carries.UNKNOWN
    assert "the rows that view prod." in made.reason
