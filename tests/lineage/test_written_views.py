"""Writes through views and synonyms reach the tables behind these, whatever file says what the view shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lake.catalogs.base import CatalogView
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.harvest import Given, harvest_all
from pii_tracer.model.datasets import Column, ColumnId, DatasetId
from tests.lineage.conftest import dataset, event

TABLES = {"lake.prod.users": "id mail", "lake.prod.copy": "id mail city", "lake.prod.other": "uid note"}
PLACES = {name: DatasetId(namespace="file", name=f"/lake/{name.split('.')[-1]}") for name in TABLES}
USERS, COPY, OTHER = PLACES.values()
VIEW = "CREATE VIEW prod.v (k, m) AS SELECT id, mail FROM prod.copy"
INSERT = "INSERT INTO prod.v (k, m) SELECT id, mail FROM prod.users"


def harvested(
    tmp_path: Path, *texts: str, dialect: str = "postgres", views: tuple[CatalogView, ...] = (), events: str = ""
) -> LineageGraph:
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.sql").write_text(text)
    (tmp_path / "events.json").write_text(events or "{}")
    schemas = {name: tuple(Column(name=c, type="string") for c in columns.split()) for name, columns in TABLES.items()}
    given = Given(base=tmp_path, aliases=PLACES, schemas=schemas, views=views)
    sources = LineageSources(sql=(".",), events=("events.json",) if events else (), dialect=dialect)
    return harvest_all(sources, given).graph


def reached(graph: LineageGraph, column: str = "mail") -> set[tuple[str, str]]:
    """Columns of tables into which a column of the users goes."""
    found = graph.columns_downstream(ColumnId(dataset=USERS, column=column))
    return {(c.dataset.name, c.column) for c in found if c.dataset in (COPY, OTHER)}


@pytest.mark.parametrize(
    ("view", "write"),
    [
        pytest.param(VIEW, INSERT, id="insert"),
        pytest.param(VIEW, "UPDATE prod.v SET m = u.mail FROM prod.users u WHERE u.id = k", id="update"),
        pytest.param(
            VIEW,
            "MERGE INTO prod.v t USING prod.users s ON t.k = s.id WHEN NOT MATCHED THEN INSERT (k, m) VALUES (s.id, s.mail)",
            id="merge",
        ),
        pytest.param(
            "CREATE VIEW prod.v AS SELECT k, m FROM prod.w; CREATE VIEW prod.w AS SELECT id AS k, mail AS m FROM prod.copy",
            INSERT,
            id="a view of a view",
        ),
        pytest.param(
            "CREATE TABLE prod.w AS SELECT id FROM prod.copy WHERE FALSE; " + VIEW,
            INSERT,
            id="beside another statement",
        ),
        pytest.param(
            "CREATE TEMPORARY VIEW v AS SELECT id AS k, mail AS m FROM prod.copy; " + INSERT.replace("prod.v", "v"),
            "SELECT 1",
            id="a session's view, in its text",
        ),
    ],
)
@pytest.mark.parametrize("view_first", [True, False])
def test_what_is_written_through_a_view_reaches_its_table(
    tmp_path: Path, view: str, write: str, view_first: bool
) -> None:
    assert ("/lake/copy", "mail") in reached(harvested(tmp_path, *((view, write) if view_first else (write, view))))


def test_a_known_view_leaves_no_gap(tmp_path: Path) -> None:
    assert harvested(tmp_path, f"{VIEW}; {INSERT}").gaps == ()


def test_a_synonym_is_a_name_of_its_table(tmp_path: Path) -> None:
    made = harvested(
        tmp_path, "CREATE SYNONYM prod.s FOR prod.copy", INSERT.replace("prod.v (k, m)", "prod.s (id, mail)")
    )
    assert reached(made) == {("/lake/copy", "mail")}
    assert made.gaps == ()


def test_a_view_of_a_catalog_by_a_shorter_name(tmp_path: Path) -> None:
    view = CatalogView("uc", "lake.prod.v", "SELECT id AS k, mail AS m FROM copy", "databricks", ("lake", "prod"))
    assert reached(harvested(tmp_path, INSERT)) == set()
    assert reached(harvested(tmp_path, INSERT, views=(view,))) == {("/lake/copy", "mail")}


def test_a_column_that_the_view_computes_is_a_gap_of_the_table_behind_it(tmp_path: Path) -> None:
    view = "CREATE VIEW prod.v (k, m) AS SELECT id, mail || city FROM prod.copy"
    made = harvested(tmp_path, view, INSERT)
    assert [(gap.dataset, gap.kind) for gap in made.gaps] == [(COPY, "sql_partial")]
    assert "the statement writes m of the view prod.v" in made.gaps[0].reason
    assert harvested(tmp_path, view, INSERT.replace("(k, m) SELECT id, mail", "(k) SELECT id")).gaps == ()


def test_a_run_without_sql_that_writes_what_the_view_does_not_read(tmp_path: Path) -> None:
    made, db = "CREATE VIEW d.s.v AS SELECT id, mail FROM d.s.t", "postgres://db:5432"
    users, table, view = (DatasetId(namespace=db, name=f"d.s.{name}") for name in ("users", "t", "v"))
    facet = {"fields": {"mail": {"inputFields": [{"namespace": db, "name": "d.s.users", "field": "mail"}]}}}

    def told(outputs: list[Any], run: str, inputs: DatasetId, sql: str | None = None) -> str:
        return json.dumps(event(run, "COMPLETE", [dataset(inputs)], outputs, sql=sql))

    defined = told([dataset(view)], "1", table, made)
    written = told([dataset(view, columnLineage=facet)], "2", users)
    graph = harvested(tmp_path, "SELECT 1", events=f"{defined}\n{written}\n")
    assert ColumnId(dataset=table, column="mail") in graph.columns_downstream(ColumnId(dataset=users, column="mail"))


def test_a_view_that_nothing_writes_leads_nowhere_back(tmp_path: Path) -> None:
    made = harvested(tmp_path, VIEW, "INSERT INTO prod.other (uid, note) SELECT k, m FROM prod.v")
    assert made.edges_into(COPY) == ()
    assert made.jobs_into(COPY) == ()


def test_a_name_that_a_catalog_has_as_a_table_is_no_view_any_more(tmp_path: Path) -> None:
    made = harvested(
        tmp_path,
        "CREATE VIEW prod.other AS SELECT id AS uid, mail AS note FROM prod.copy",
        "INSERT INTO prod.other (uid, note) SELECT id, mail FROM prod.users",
    )
    assert reached(made) == {("/lake/other", "note")}


EMPTY = "CREATE TABLE prod.v (k int, m text)"


@pytest.mark.parametrize("in_one_file", [True, False])
@pytest.mark.parametrize(
    "texts",
    [
        pytest.param((VIEW, "DROP VIEW prod.v", EMPTY, INSERT), id="an empty table"),
        pytest.param((VIEW, EMPTY.replace("TABLE", "OR REPLACE TABLE"), INSERT), id="replaced"),
        pytest.param((VIEW, EMPTY.replace("prod.v", "PROD.V"), INSERT), id="in capitals"),
        pytest.param((VIEW.replace("prod.v", "lake.prod.v"), EMPTY, INSERT), id="the view by a longer name"),
        pytest.param((VIEW, EMPTY.replace("prod.v", "lake.prod.v"), INSERT), id="the table by a longer name"),
        pytest.param(
            (VIEW, "DROP VIEW prod.v", "CREATE TABLE prod.t (k int, m text)", "ALTER TABLE prod.t RENAME TO v", INSERT),
            id="a table renamed to it",
        ),
        pytest.param((VIEW, "ALTER VIEW prod.v RENAME TO before", INSERT), id="the view renamed away"),
        pytest.param((VIEW, "DROP VIEW prod.v", INSERT), id="dropped, and the table made elsewhere"),
        pytest.param((INSERT, VIEW, "DROP VIEW prod.v"), id="dropped at the end"),
    ],
)
def test_a_name_that_was_a_view_and_became_a_table_is_a_gap(
    tmp_path: Path, texts: tuple[str, ...], in_one_file: bool
) -> None:
    made = harvested(tmp_path, *((";\n".join(texts),) if in_one_file else texts))
    unresolved = [gap.dataset.name.lower() for gap in made.gaps if gap.dataset and gap.kind == "unresolved_name"]
    assert any(name.endswith("prod.v") for name in unresolved)
    assert reached(made) == set()


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("DROP VIEW IF EXISTS prod.v", id="dropped before it is made"),
        pytest.param("CREATE TABLE raw.v (k int, m text)", id="a table of that name in another schema"),
    ],
)
def test_a_view_stays_one(tmp_path: Path, before: str) -> None:
    made = harvested(tmp_path, f"{before}; {VIEW}; {INSERT}; DROP VIEW prod.v")
    assert made.gaps == ()
    assert reached(made) == {("/lake/copy", "mail")}


def test_a_view_made_again_with_another_query_leads_to_the_tables_of_both(tmp_path: Path) -> None:
    other = "CREATE VIEW prod.v (k, m) AS SELECT uid, note FROM prod.other"
    made = harvested(tmp_path, f"{VIEW}; DROP VIEW prod.v; {other}; {INSERT}")
    assert reached(made) == {("/lake/copy", "mail"), ("/lake/other", "note")}


def test_a_view_that_became_a_table_in_a_known_folder_leads_nowhere_back(tmp_path: Path) -> None:
    made = harvested(tmp_path, f"{VIEW}; DROP VIEW prod.v; {EMPTY} LOCATION '/new/v'; {INSERT}", dialect="spark")
    assert reached(made) == set()
    assert made.jobs_into(DatasetId(namespace="file", name="/new/v"))
