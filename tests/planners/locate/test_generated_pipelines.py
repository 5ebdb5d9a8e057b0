"""Answers for generated pipelines, against what a delete by them does to real rows."""

from __future__ import annotations

import random

import pytest

from pii_tracer.model.datasets import Carries
from tests.planners.estates import carriage
from tests.planners.locate.generated_pipelines import OTHERS, PERSONS, Maker, Rows, terms_of

DELETED_BY = frozenset({Carries.KEY, Carries.COMPUTED_KEY, Carries.BRIDGE, Carries.IDENTIFIERS})


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_a_delete_by_the_answer_takes_the_person_and_nobody_else(first: int) -> None:
    rows, tried = Rows(), 0
    for seed in range(first, first + 20):
        pipeline = Maker(random.Random(seed)).pipeline()
        found = carriage(";\n".join(pipeline), tables=OTHERS)
        if found.carries not in DELETED_BY or found.mixed:
            continue
        rows.made(pipeline)
        tried += 1
        for person in PERSONS:
            assert rows.difference(pipeline, terms_of(found), person) == (0, 0), (seed, pipeline)
    assert tried > 5


@pytest.mark.parametrize(
    ("query", "term", "wrong"),
    [
        ("SELECT user_id AS c0, manager_id AS c1 FROM prod.users", ("c1", "user_id", "x"), (1, 1)),
        ("SELECT user_id AS c0, city AS c1 FROM prod.users WHERE city = 'Goa'", ("c1", "city", "x"), (0, 1)),
        ("SELECT nullif(user_id, 102) AS c0, email AS c1 FROM prod.users", ("c0", "user_id", "x"), (1, 0)),
        ("SELECT user_id AS c0, coalesce(manager_id, user_id) AS c1 FROM prod.users", ("c1", "user_id", "x"), (1, 1)),
        (
            "SELECT u.user_id AS c0, coalesce(o.owner, u.user_id) AS c1 FROM prod.users u"
            " LEFT JOIN prod.emails o ON o.owner = u.manager_id",
            ("c1", "user_id", "x"),
            (0, 1),
        ),
        (
            "SELECT v.user_id AS c0, u.email AS c1 FROM prod.users v LEFT JOIN prod.users u ON v.manager_id = u.user_id",
            ("c1", "email", "x"),
            (1, 1),
        ),
    ],
)
def test_the_model_sees_a_delete_that_is_wrong(query: str, term: tuple[str, str, str], wrong: tuple[int, int]) -> None:
    assert Rows().difference([f"INSERT OVERWRITE prod.out {query}"], [term], 102) == wrong


@pytest.mark.parametrize(
    ("query", "term"),
    [
        pytest.param(
            "SELECT o.kind AS c0, u.email AS c1 FROM prod.emails o LEFT JOIN prod.users u ON o.owner + 2 = u.manager_id",
            ("c1", "email", "x"),
            id="a row that only the join would bring again",
        ),
        pytest.param(
            "SELECT u.user_id AS c0, o.owner AS c1 FROM prod.users u LEFT JOIN prod.emails o ON o.owner = u.manager_id",
            ("c0", "user_id", "x"),
            id="a row that stays, with a number of nobody's table",
        ),
    ],
)
def test_a_table_of_nobody_loses_no_row_of_a_person(query: str, term: tuple[str, str, str]) -> None:
    assert Rows().difference([f"INSERT OVERWRITE prod.out {query}"], [term], 102) == (0, 0)
