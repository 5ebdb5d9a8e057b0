"""The answers of test_carriage.py on real rows: a key finds a person's rows, all of them and nobody else's.

Every statement is run by Spark with and without one person. What the match finds must be the difference; where the
answer says that a row can name several people, deleting by the key would have been wrong for somebody.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from typing import Any

import pytest

from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.datasets import Match, MatchTerm
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.locate.key_location import Carriage
from planners.locate.sql.column_types import leaf_type
from planners.locate.subject_survey import Survey, survey
from tests.planners.copies.slow_rows import count_rows
from tests.planners.estates import PERSON, TABLES, Case, carriage, dataset
from tests.planners.locate.test_linkage import CASES, INTO

pytestmark = pytest.mark.spark

CITIES = ["Pune", "Goa", "Pune", "Goa", "Pune"]
USERS = [
    (
        100 + n,
        f"  User{n}@Mail.example ",
        f"+91 90000 0000{n}",
        f"o{n}-{row}",
        100 + (n + 1) % 5,
        CITIES[n],
        float(10 * n + row),
        datetime(2026, 11, 1 + row, n, tzinfo=timezone.utc),
        "d",
    )
    for n in range(5)
    for row in range(3)
]
KINDS = TABLES["prod.users"].replace("decimal(10,2)", "double")
TRANSFERS = [("t1", 100, 101, 1.0), ("t2", 101, 100, 2.0), ("t3", 103, 104, 3.0), ("t4", 102, 102, 4.0)]
MERCHANTS = [(1, "Shop", "Pune"), (2, "Stall", "Goa")]
PERSONS = (100, 104)
UNITED = [
    Case("a branch without the key", "SELECT user_id AS id, phone FROM prod.users UNION ALL SELECT NULL, phone FROM prod.users", CASES[0].carries, ("",)),
    Case("a left join", "SELECT a.user_id, b.phone FROM prod.users a LEFT JOIN prod.users b ON a.user_id = b.user_id AND b.amount > 11", CASES[0].carries, ("",)),
]  # fmt: skip
# in other people's rows of these the person is counted, or decides whether they are there: nothing of theirs to delete
INFLUENCE = {"statistics of a city beside a person", "a manager only asked for"}
FOUND = [c for c in (*CASES, *UNITED) if c.terms and not c.mixed and c.name not in INFLUENCE]
# an inner join of sender and receiver drops the row with either of them: there the job itself deletes it
MIXED = [c for c in CASES if c.terms and c.mixed and "transfers" not in c.sql]

Rows = Counter[str]


@pytest.fixture(scope="module")
def lake(spark: Any) -> Any:
    """A session of its own, with the tables of the cases as views."""
    session = spark.newSession()
    frame_of_rows(
        session, TRANSFERS, TABLES["prod.transfers"].replace("decimal(10,2)", "double")
    ).createOrReplaceTempView("transfers")
    frame_of_rows(session, MERCHANTS, TABLES["prod.merchants"]).createOrReplaceTempView("merchants")
    return session


def result(lake: Any, sql: str, without: int | None = None) -> Any:
    users = [row for row in USERS if row[0] != without]
    frame_of_rows(lake, users, KINDS).coalesce(1).createOrReplaceTempView("users")
    return lake.sql(sql.replace("prod.", ""))


def rows(frame: Any) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def counted(found: list[dict[str, Any]]) -> Rows:
    return Counter(repr(sorted(row.items())) for row in found)


def rows_of(found: Carriage, made: Survey, frame: Any) -> list[dict[str, Any]]:
    """The rows that an answer's terms find."""
    types = {f.name: f.dataType.simpleString() for f in frame.schema.fields}
    terms = tuple(
        MatchTerm(
            column=name,
            access=trace.access,
            key_set=made.derived[trace.origin, trace.expression].keys.name,
            type=leaf_type(types[name], trace.access),
        )
        for name, trace in found.terms
    )
    return [row for row in rows(frame) if count_rows([row], Match(terms=terms), made.key_sets)]


def persons_rows(case: Case, frame: Any, person: int) -> list[dict[str, Any]]:
    """The rows that the answer's terms find."""
    names = ["user_id", "email", "phone", "order_id"]
    texts = {name: [None if (v := row[i]) is None else str(v) for row in USERS] for i, name in enumerate(names)}
    keys = resolve(PERSON, SourceRows(texts), [Wanted("R", "subj", str(person))])
    found = carriage(INTO + case.sql)
    made = survey(PERSON, dataset("prod.users"), {found.dataset: found}, keys)
    return rows_of(found, made, frame)


def left_over(case: Case, lake: Any, person: int) -> tuple[Rows, Rows]:
    """What deleting by the answer leaves, and what should be left: the statement's rows without the person."""
    frame = result(lake, case.sql)
    mine = counted(persons_rows(case, frame, person))
    return counted(rows(frame)) - mine, counted(rows(result(lake, case.sql, without=person)))


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c.name, marks=pytest.mark.nightly if n % 3 else ()) for n, c in enumerate(FOUND)],
)
def test_the_answer_finds_the_persons_rows_and_no_others(case: Case, lake: Any) -> None:
    for person in PERSONS:
        left, right = left_over(case, lake, person)
        assert left == right


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c.name, marks=pytest.mark.nightly if n % 3 else ()) for n, c in enumerate(MIXED)],
)
def test_deleting_where_a_row_can_name_several_people_would_be_wrong(case: Case, lake: Any) -> None:
    differ = [left != right for left, right in (left_over(case, lake, person) for person in (100, 102, 103, 104))]
    assert any(differ)
