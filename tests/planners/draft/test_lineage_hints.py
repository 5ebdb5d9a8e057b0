"""What lineage tells a draft: names of tables, the source of the persons, where data was moved to, jobs that write."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.graph.edges import JobRef
from pii_tracer.model.datasets import Column, DatasetId
from planners.draft.archive_guesses import tables_of_archives
from planners.draft.lineage_hints import TableLineage, called_by_jobs, catalogs_called, moved, writers_of
from planners.draft.subject_guesses import SampledTable, guess_subjects
from planners.draft.table_names import names_of
from tests.lineage.harvesting import harvest

JOBS = """CREATE TABLE crm.people (user_id bigint, mail string, segment string)
USING delta LOCATION '/old/lake/delta/people';
INSERT INTO crm.people SELECT user_id, email AS mail, 'x' AS segment FROM raw.signups;
"""
SIGNUPS, PEOPLE = (DatasetId(namespace="file", name=f"/old/lake/{name}") for name in ("signups", "delta/people"))


@pytest.fixture
def lineage(tmp_path: Path) -> TableLineage:
    (tmp_path / "jobs.sql").write_text(JOBS)
    graph = harvest(LineageSources(sql=("jobs.sql",)), tmp_path, aliases={"raw.signups": SIGNUPS})
    return TableLineage(graph, {"raw.signups": SIGNUPS, "delta.people": PEOPLE})


def table(name: str, columns: dict[str, list[object]], **more: bool) -> SampledTable:
    kinds = {int: "bigint", str: "string"}
    made = tuple(Column(name=c, type=kinds[type(values[0])]) for c, values in columns.items())
    return SampledTable(name, made, columns, len(next(iter(columns.values()))), **more)


MAILS = ["ann@x.example", "bo@x.example"]
DERIVED = table("delta.people", {"user_id": [71, 72], "mail": [*MAILS]})
RAW = table("raw.signups", {"user_id": [71, 72, 72], "email": [*MAILS, MAILS[1]], "signup_id": [1, 2, 3]})


def test_the_source_is_the_table_that_jobs_make_the_others_of(lineage: TableLineage) -> None:
    """By its look the made table is the likelier one: each person is in it once."""
    assert guess_subjects([DERIVED, RAW])[0].source == "delta.people"
    first, second = guess_subjects([DERIVED, RAW], lineage)
    assert (first.source, first.key, first.record_keys) == ("raw.signups", "user_id", ("signup_id",))
    assert second.source == "delta.people"
    assert (first.further, first.mentioned) == ((), ()), "lineage leads there"


@pytest.mark.parametrize("few", [{"user_id": [71, 9], "email": [*MAILS]}, {"user_id": [8, 9], "email": [*MAILS]}])
def test_a_table_that_knows_other_persons_is_no_source_of_those_made_of_it(
    lineage: TableLineage, few: dict[str, list[object]]
) -> None:
    """Such as a staging table of the last day alone."""
    assert guess_subjects([DERIVED, table("raw.signups", few)], lineage)[0].source == "delta.people"


def test_columns_that_no_job_fills_are_named_all_the_same(lineage: TableLineage) -> None:
    other = table("raw.calls", {"user_id": [71, 5], "n": [1, 2]})
    [further] = guess_subjects([DERIVED, RAW, other], lineage)[0].further
    assert (further.table, further.key, further.shared) == ("raw.calls", "user_id", 0.5)


def test_tables_are_called_as_jobs_call_them(lineage: TableLineage) -> None:
    places = {"lake/delta/people": PEOPLE, "lake/signups": SIGNUPS}
    called = called_by_jobs(lineage.graph, places, {"raw.signups"})
    assert called == {"lake/delta/people": "crm.people"}
    assert names_of([*places, "lake/delta/vendors"], (), (), called) == {
        "lake/delta/people": "crm.people",
        "lake/delta/vendors": "crm.vendors",
        "lake/signups": "lake.signups",
    }


def test_two_schemas_in_one_folder_say_nothing_of_a_third_table() -> None:
    called = {"lake/delta/a": "crm.a", "lake/delta/b": "fleet.b"}
    assert names_of([*called, "lake/delta/c"], (), (), called)["lake/delta/c"] == "delta.c"


@pytest.mark.parametrize("name", ["crm.`odd name`", "lake.people", "crm.taken"])
def test_names_that_no_estate_file_can_have_are_not_taken_over(name: str) -> None:
    found = names_of(["delta/people"], ["crm.taken"], ["lake"], {"delta/people": name})
    assert found == {"delta/people": "delta.people"}


def test_no_table_has_a_catalog_for_its_schema() -> None:
    assert names_of(["lake/people"], (), ["lake"]) == {"lake/people": "t_lake.people"}


OLD = ["/old/lake/delta/people", "/old/lake/signups", "/old/dev/people"]


@pytest.mark.parametrize(
    ("named", "here", "way"),
    [
        (OLD, ["/new/lake/delta/people", "/new/lake/signups", "/new/dev/people"], ("/old", "/new")),
        (OLD, ["/new/delta/people", "/new/signups"], ("/old/lake", "/new")),
        (OLD[:1], ["/new/lake/delta/people"], None),
        (OLD[:2], ["/a/lake/delta/people", "/a/lake/signups", "/b/lake/delta/people", "/b/lake/signups"], None),
        ([*OLD, *(f"/old/gone/{n}" for n in range(9))], ["/new/lake/delta/people", "/new/lake/signups"], None),
        (["/lake/a", "/lake/b"], ["/new/lake/a", "/new/lake/b"], ("/lake", "/new/lake")),
        (["/a", "/b"], ["/new/a", "/new/b"], None),
        ([], ["/new/a"], None),
    ],
)
def test_where_data_was_moved_to(named: list[str], here: list[str], way: tuple[str, str] | None) -> None:
    """Also where the old place was another one, where two places are as likely, and where most is not there."""
    assert moved(named, here) == way


def test_many_folders_of_one_name_take_no_time_of_the_square_of_their_number() -> None:
    began = time.process_time()
    moved((f"/old/{n}/data" for n in range(20_000)), (f"/new/{n}/data" for n in range(20_000)))
    assert time.process_time() - began < 5


def job(name: str, statement: str | None, at: str | None = None, namespace: str = "file") -> JobRef:
    made = DatasetId(namespace=namespace, name="/x")
    return JobRef(job=name, sql=None, inputs=(), output=made, at=at, statement=statement)


def test_a_job_is_named_once_by_its_file_and_its_events() -> None:
    jobs = [
        job("01_users", "INSERT INTO a\nSELECT 1"),
        job("app.insert", "INSERT INTO a SELECT 1", at="2026-01-01"),
        job("app.insert", None, at="2026-01-01"),
        job("app.other", "INSERT INTO a SELECT 2", at="2026-01-01"),
        job("app.untold", None, at="2026-01-01"),
        job("03_view", "CREATE VIEW v AS SELECT 1", namespace="view"),
    ]
    assert writers_of(jobs) == ["01_users", "app.other", "app.untold"]


def test_an_archive_is_of_the_table_that_it_is_called_as() -> None:
    tables = {"prod.payments", "dev.payments", "prod.users", "a.calls", "b.calls"}
    keys = ["archive/payments", "archive/users/weekly", "old/calls", "old/x"]
    assert tables_of_archives(keys, tables, "prod.payments") == {
        "archive/payments": "prod.payments",
        "archive/users/weekly": "prod.users",
    }
    assert "archive/payments" not in tables_of_archives(keys, tables)


CALLED = [
    (["prod.sales.orders"], {"glue": ["sales.orders"]}, {"glue": "prod"}),
    (["prod.Sales.ORDERS", "prod.sales.users"], {"glue": ["sales.orders", "sales.users"]}, {"glue": "prod"}),
    (["prod.sales.orders", "old.sales.orders"], {"glue": ["sales.orders"]}, {}),
    (["prod.sales.orders"], {"glue": ["sales.orders"], "rest": ["sales.orders"]}, {}),
    (["prod.sales.orders"], {"glue": ["sales.users"]}, {}),
    (["prod.sales.orders", "prod.x.users", "old.sales.pay"], {"rest": ["sales.orders", "x.users", "sales.pay"]}, {}),
    (["a.s.t", "b.s.u"], {"one": ["s.t"], "two": ["s.t", "s.u"]}, {}),
    (["sales.orders"], {"glue": ["orders", "sales.orders"]}, {}),
    (["rest.sales.orders"], {"glue": ["sales.orders"], "rest": []}, {}),
]


@pytest.mark.parametrize(("unknown", "tables", "called"), CALLED)
def test_what_jobs_call_a_catalog_is_told_by_names_that_nothing_explains(
    unknown: list[str], tables: dict[str, list[str]], called: dict[str, str]
) -> None:
    """Not where two names, or two catalogs, fit as well; and a name that the draft has is that catalog's."""
    assert catalogs_called(unknown, tables) == called
