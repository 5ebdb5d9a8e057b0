"""How small the groups of an aggregate are, measured only where the source's columns tell it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from planners.locate.sql.group_sizes import (
    Dimension,
    Groups,
    dimensions,
    measure,
)
from tests.planners.estates import dataset, graph_of

INTO = "INSERT OVERWRITE prod.out SELECT "


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("city, count(*) AS n FROM prod.users GROUP BY city", (Dimension("city", False),)),
        (
            "city, CAST(paid_at AS DATE) AS day, sum(amount) AS s FROM prod.users GROUP BY city, CAST(paid_at AS DATE)",
            (Dimension("city", False), Dimension("paid_at", True)),
        ),
        ("city, count(user_id) AS n FROM prod.users WHERE amount > 1 GROUP BY city", None),
        ("upper(city) AS c, count(user_id) AS n FROM prod.users GROUP BY upper(city)", None),
        ("count(user_id) AS n FROM prod.users GROUP BY city", None),
        ("count(user_id) AS n FROM prod.users", None),
        (
            "m.city, count(u.user_id) AS n FROM prod.users u JOIN prod.merchants m ON u.city = m.city GROUP BY m.city",
            None,
        ),
    ],
)
def test_what_groups_are_made_by(sql: str, expected: object) -> None:
    assert dimensions(graph_of(INTO + sql), dataset("prod.out"), dataset("prod.users")) == expected


def test_persons_are_counted_not_rows() -> None:
    rows = {"city": ["a", "a", "b", "b", None], "user_id": [1, 2, 3, 3, 4]}
    assert measure(rows, [Dimension("city", False)], "user_id") == Groups(groups=3, smallest=1, alone=2)


def test_days_are_those_of_utc() -> None:
    late = datetime(2026, 11, 20, 23, 30, tzinfo=timezone(timedelta(hours=-2)))
    rows = {"paid_at": [late, datetime(2026, 11, 21, 5, tzinfo=timezone.utc)], "user_id": [1, 2]}
    assert measure(rows, [Dimension("paid_at", True)], "user_id") == Groups(groups=1, smallest=2, alone=0)


def test_an_empty_source_has_no_groups() -> None:
    assert measure({"city": [], "user_id": []}, [Dimension("city", False)], "user_id") == Groups(0, 0, 0)
