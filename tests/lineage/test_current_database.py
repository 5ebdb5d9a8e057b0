"""Names without a database mean tables of the one that USE chose, until the text ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.sql.parse_lines import answer_sql
from pii_tracer.model.datasets import Column, DatasetId
from tests.lineage.harvesting import harvest

TABLES = {f"{where}.{name}": [("id", ""), ("mail", "")] for where in ("a", "b", "c1.d", "c2.d") for name in "st"}
COPY = "INSERT INTO t SELECT id, mail FROM s"


@pytest.mark.parametrize(
    ("dialect", "use", "where"),
    [
        ("spark", "USE b", "b"),
        ("spark", "USE DATABASE `b`", "b"),
        ("spark", "USE a; USE b", "b"),
        ("spark", "USE c2.d", "c2.d"),
        ("databricks", "USE CATALOG c2; USE SCHEMA d", "c2.d"),
        ("trino", "USE c1.d", "c1.d"),
        ("snowflake", "USE DATABASE c2; USE SCHEMA d", "c2.d"),
        ("snowflake", "USE WAREHOUSE w; USE ROLE r; USE SCHEMA b", "b"),
        ("mysql", "USE b", "b"),
        ("postgres", "SET search_path TO b, public", "b"),
        ("oracle", "ALTER SESSION SET CURRENT_SCHEMA = b", "b"),
        ("bigquery", "SET @@dataset_id = 'b'", "b"),
    ],
)
def test_names_are_looked_up_where_use_says(dialect: str, use: str, where: str):
    answer = answer_sql(f"{use}; {COPY}", dialect, TABLES, default_schema="a")
    assert {f"{e['from']} -> {e['to']}" for e in answer["edges"]} == {
        f"{where}.s.{c} -> {where}.t.{c}" for c in ("id", "mail")
    }
    assert answer["complete"], answer["unresolved"]


def test_temporary_views_are_in_no_database():
    text = "USE a; CREATE TEMP VIEW x AS SELECT mail AS m FROM s; USE b; INSERT INTO t (mail) SELECT m FROM x"
    answer = answer_sql(text, "spark", TABLES)
    assert [f"{e['from']} -> {e['to']}" for e in answer["edges"]] == ["a.s.mail -> b.t.mail"]
    assert answer["complete"], answer["unresolved"]


def test_another_file_starts_anew_and_such_a_statement_is_not_run_again(tmp_path: Path):
    """Without its USE, the statement would read and write tables of another database."""
    named = {f"lake.{name}": DatasetId(namespace="file", name=f"/l/{name}") for name in ("a.s", "a.t", "b.s", "b.t")}
    columns = {name: [Column(name="id", type="int"), Column(name="mail", type="string")] for name in named}
    (tmp_path / "1.sql").write_text(f"USE b; {COPY.replace('INTO', 'OVERWRITE')}")
    (tmp_path / "2.sql").write_text(COPY.replace("INTO t", "OVERWRITE a.t").replace("FROM s", "FROM a.s"))
    (tmp_path / "3.sql").write_text(COPY)
    graph = harvest(LineageSources(sql=("1.sql", "2.sql", "3.sql")), tmp_path, aliases=named, schemas=columns)
    wrote = {name: graph.jobs_into(dataset) for name, dataset in named.items()}
    assert [(j.sql is None, j.inputs) for j in wrote["lake.b.t"]] == [(True, (named["lake.b.s"],))]
    assert [(j.sql is None, j.inputs) for j in wrote["lake.a.t"]] == [(False, (named["lake.a.s"],))]
    assert "unresolved_name" in {g.kind for g in graph.gaps}


@pytest.mark.parametrize(("dialect", "schema"), [("tsql", "dbo"), ("snowflake", "public"), ("fabric", "dbo")])
def test_two_dots_leave_out_the_schema_that_a_database_has_of_itself(dialect: str, schema: str):
    tables = {f"{db}.{inner}.{name}": [("id", "")] for db in ("a", "b") for inner in (schema, "x") for name in "st"}
    answer = answer_sql("INSERT INTO b..t SELECT id FROM a..s", dialect, tables)
    assert [f"{e['from']} -> {e['to']}" for e in answer["edges"]] == [f"a.{schema}.s.id -> b.{schema}.t.id"]
    assert answer["complete"], answer["unresolved"]
