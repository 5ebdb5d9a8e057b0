"""The answers of test_nested_subject.py on real rows: a field of a struct finds a person's rows, and nobody else's.

Every statement is run by Spark with and without one person, as in test_carriage_on_spark.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from pii_tracer.lake.rows.spark_frames import frame_of_rows
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.locate.subject_survey import survey
from tests.planners.estates import Case, dataset
from tests.planners.locate.test_linkage_on_spark import (
    Rows,
    counted,
    rows,
    rows_of,
)
from tests.planners.locate.test_nested_subject import (
    CASES,
    PAYER,
    TABLES,
    carriage,
    spots,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]

PEOPLE = (100, 101, 102, 103)
KINDS = TABLES["prod.pays"].replace("decimal(10,2)", "double")
# other columns of the same digits, and structs with the key's field name, stand in other people's rows
PAYS = [
    (
        (person, "gold" if person % 2 else "tin"),
        PEOPLE[(n + 1) % 4],
        (f"P{n}@Mail.example", "Goa", (f"+91 9000{n}", "403")),
        (f"pay-{n}-{row}", "b1"),
        float(10 * n + row),
        PEOPLE[(n + 1) % 4],
        (PEOPLE[n % 2], "Stall"),
    )
    for n, person in enumerate(PEOPLE)
    for row in range(3)
]
FOUND = [c for c in CASES if c.terms and not c.mixed]
MIXED = [c for c in CASES if c.mixed]


@pytest.fixture(scope="module")
def lake(spark: Any) -> Any:
    """A session of its own: its view `pays` is nobody else's."""
    return spark.newSession()


def result(lake: Any, sql: str, without: int | None = None) -> Any:
    pays = [row for row in PAYS if row[0][0] != without]
    frame_of_rows(lake, pays, KINDS).coalesce(1).createOrReplaceTempView("pays")
    return lake.sql(sql.replace("prod.", ""))


def persons_rows(case: Case, lake: Any, person: int) -> list[dict[str, Any]]:
    """The rows that the answer's terms find."""
    places = {at.column: spot.sql for at, spot in spots().items()}
    frame = result(lake, f"SELECT {', '.join(f'CAST({sql} AS STRING)' for sql in places.values())} FROM pays")
    columns = zip(*frame.collect(), strict=True)
    source = SourceRows(dict(zip(places, columns, strict=True)))
    found = carriage(f"INSERT OVERWRITE prod.out {case.sql}")
    keys = resolve(PAYER, source, [Wanted("R", "subj", str(person))])
    made = survey(PAYER, dataset("prod.pays"), {found.dataset: found}, keys)
    return rows_of(found, made, result(lake, case.sql))


def left_over(case: Case, lake: Any, person: int) -> tuple[Rows, Rows]:
    """What deleting by the answer leaves, and what should be left: the statement's rows without the person."""
    mine = counted(persons_rows(case, lake, person))
    return counted(rows(result(lake, case.sql))) - mine, counted(rows(result(lake, case.sql, without=person)))


@pytest.mark.parametrize("case", FOUND, ids=[c.name for c in FOUND])
def test_the_field_finds_the_persons_rows_and_no_others(case: Case, lake: Any) -> None:
    left, right = left_over(case, lake, 101)
    assert left == right


@pytest.mark.parametrize("case", MIXED, ids=[c.name for c in MIXED])
def test_deleting_where_a_row_can_name_several_people_would_be_wrong(case: Case, lake: Any) -> None:
    differ = [left != right for left, right in (left_over(case, lake, person) for person in PEOPLE)]
    assert any(differ)
