"""Names of datasets in events that are one dataset, and those that are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.dataset_names import Identities
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.naming_schemes import key_of
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.gap_kinds import LineageGapKind
from tests.lineage.harvesting import harvest

CASES = [json.loads(line) for line in (Path(__file__).parent / "names.jsonl").read_text().splitlines()]
SCHEMA = {"schema": {"fields": [{"name": "id", "type": "string"}, {"name": "mail", "type": "string"}]}}


def dataset(name: list[str], link: list[str] | None = None, source: list[str] | None = None) -> dict[str, Any]:
    facets: dict[str, Any] = dict(SCHEMA)
    if link:
        facets["symlinks"] = {"identifiers": [{"namespace": link[0], "name": link[1], "type": "TABLE"}]}
    if source:
        fields = {c: {"inputFields": [{"namespace": source[0], "name": source[1], "field": c}]} for c in ("id", "mail")}
        facets["columnLineage"] = {"fields": fields}
    return {"namespace": name[0], "name": name[1], "facets": facets}


def event(run: str, inputs: list[Any], outputs: list[Any], job: str = "", sql: str = "") -> dict[str, Any]:
    facets = {"sql": {"query": sql}} if sql else {}
    return {
        "eventType": "COMPLETE",
        "eventTime": "2024-01-01T00:00:00Z",
        "run": {"runId": run},
        "job": {"namespace": "n", "name": job or run, "facets": facets},
        "inputs": inputs,
        "outputs": outputs,
    }


def graph_of(folder: Path, *events: dict[str, Any]) -> LineageGraph:
    (folder / "e.ndjson").write_text("\n".join(map(json.dumps, events)))
    return harvest(LineageSources(events=["e.ndjson"]), folder)


def flows(graph: LineageGraph, source: list[str], target: list[str]) -> bool:
    start, end = (DatasetId(namespace=n, name=t) for n, t in (source, target))
    return all(
        ColumnId(dataset=end, column=c) in graph.columns_downstream(ColumnId(dataset=start, column=c))
        for c in ("id", "mail")
    )


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_names_that_join(case: dict[str, Any], tmp_path: Path) -> None:
    raw, end = ["s3://raw", "in"], ["s3://end", "out"]
    first, second = case["links"]
    graph = graph_of(
        tmp_path,
        event("a", [dataset(raw)], [dataset(case["written"], first, raw)]),
        event("b", [dataset(case["read"], second)], [dataset(end, None, case["read"])]),
    )
    assert flows(graph, raw, end) is (case["expected"] == "joined")
    gaps = [gap for gap in graph.gaps if gap.kind is LineageGapKind.UNRESOLVED_NAME]
    assert len(gaps) == (case["expected"] == "gap")


@pytest.mark.parametrize(
    ("namespace", "prefix"),
    [("snowflake://a", "DB.SC."), ("trino://h:8080", "cat.sc."), ("postgres://h:5432", "db.sc."), ("hive://m", "db.")],
)
@pytest.mark.parametrize("named", ["whole", "last"])
def test_sql_of_an_event_names_its_own_datasets(namespace: str, prefix: str, named: str, tmp_path: Path) -> None:
    people, copy = [namespace, prefix + "people"], [namespace, prefix + "copy"]
    q = prefix if named == "whole" else ""
    sql = f"INSERT INTO {q}copy SELECT id, mail FROM {q}people"
    graph = graph_of(tmp_path, event("a", [dataset(people)], [dataset(copy)], sql=sql))
    assert flows(graph, people, copy)
    assert not graph.gaps


def test_one_text_of_two_jobs_joins_no_dataset_of_the_other(tmp_path: Path) -> None:
    sql = "INSERT INTO copy SELECT id, mail FROM people"
    one, two = ([[f"postgres://{h}:5432", f"d.s.{t}"] for t in ("people", "copy")] for h in ("one", "two"))
    graph = graph_of(
        tmp_path,
        event("a", [dataset(one[0])], [dataset(one[1])], sql=sql),
        event("b", [dataset(two[0])], [dataset(two[1])], sql=sql),
    )
    assert not flows(graph, one[0], two[1])
    assert graph.gaps


@pytest.mark.parametrize(
    ("namespace", "name", "written"),
    [
        ("postgres://h", "d.s.people", '"People"'),
        ("snowflake://a", "D.S.PEOPLE", '"people"'),
        ("bigquery", "p.d.people", "People"),
    ],
)
def test_a_name_in_sql_that_means_another_table_is_not_joined(
    namespace: str, name: str, written: str, tmp_path: Path
) -> None:
    copy = [namespace, name[:4] + "copy"]
    sql = f"INSERT INTO copy SELECT id, mail FROM {written}"
    graph = graph_of(tmp_path, event("a", [dataset([namespace, name])], [dataset(copy)], sql=sql))
    assert not flows(graph, [namespace, name], copy)
    assert graph.gaps


def test_a_dbt_test_is_no_gap(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, event("a", [dataset(["snowflake://a", "D.S.P"])], [], job="p.m.not_null_id.test"))
    assert not graph.gaps


@given(
    st.sampled_from(["snowflake://a", "postgresql://h", "redshift://h", "bigquery", "hdfs://n", "s3a://b", "x://y"]),
    st.text(max_size=20),
)
def test_a_key_has_itself_as_its_key(namespace: str, name: str) -> None:
    assert key_of(*key_of(namespace, name)) == key_of(namespace, name)


@pytest.mark.parametrize(
    ("line", "written", "read"),
    [
        (
            {"from": "postgres://10.0.0.5:5432", "to": "postgres://db.prod:5432"},
            ["postgres://10.0.0.5:5432", "d.s.people"],
            ["postgres://db.prod:5432", "d.s.people"],
        ),
        (
            {"from": "postgres://db:5432", "name": "s.people", "to": "postgres://db:5432", "to_name": "d.s.people"},
            ["postgres://db:5432", "d.s.people"],
            ["postgres://db:5432", "s.people"],
        ),
    ],
)
def test_the_line_that_a_gap_proposes_joins(
    line: dict[str, str], written: list[str], read: list[str], tmp_path: Path
) -> None:
    raw, end = ["s3://raw", "in"], ["s3://end", "out"]
    told = [
        event("a", [dataset(raw)], [dataset(written, None, raw)]),
        event("b", [dataset(read)], [dataset(end, None, read)]),
    ]
    [gap] = graph_of(tmp_path, *told).gaps
    proposed = gap.closes.rpartition("same: ")[2]
    assert sorted(json.loads(proposed)[0].values()) == sorted(line.values())
    for same in (json.loads(proposed), [line]):
        sources = LineageSources.model_validate({"events": ["e.ndjson"], "same": same})
        graph = harvest(sources, tmp_path)
        assert flows(graph, raw, end)
        assert not graph.gaps


def test_an_address_with_a_password_leaves_none_in_the_graph(tmp_path: Path) -> None:
    raw, table = ["s3://raw", "in"], ["postgres://etl:s3cret@db:5432/d", "s.people"]
    graph = graph_of(tmp_path, event("a", [dataset(raw)], [dataset(table, None, raw)]))
    assert flows(graph, raw, ["postgres://db:5432", "d.s.people"])
    assert "s3cret" not in repr(graph.gaps) + repr(sorted(map(str, graph.datasets())))


@pytest.mark.parametrize("declared", ["", "CREATE VIEW staged AS SELECT id, mail FROM parquet.`s3://b/people`;"])
def test_a_view_that_a_program_makes_is_followed_once_its_query_is_given(declared: str, tmp_path: Path) -> None:
    """Spark's `createOrReplaceTempView` of a DataFrame: no text makes the view that the job's SQL reads."""
    people, copy = ["s3://b", "people"], ["s3://b", "copy"]
    sql = "INSERT INTO db.copy SELECT id, mail FROM staged"
    job = event("a", [dataset(people)], [dataset(copy, ["hive://m", "db.copy"])], sql=sql)
    (tmp_path / "e.ndjson").write_text(json.dumps(job))
    (tmp_path / "views.sql").write_text(declared)
    graph = harvest(LineageSources(events=["e.ndjson"], sql=["views.sql"]), tmp_path)
    assert flows(graph, people, copy) is bool(declared)
    kinds = {gap.kind for gap in graph.gaps}
    assert kinds == (set() if declared else {LineageGapKind.UNRESOLVED_NAME, LineageGapKind.NO_COLUMNS})


def test_a_view_over_another_table_explains_nothing_of_an_input(tmp_path: Path) -> None:
    other = "CREATE VIEW staged AS SELECT id, mail FROM parquet.`s3://b/others`;"
    people, copy = ["s3://b", "people"], ["s3://b", "copy"]
    sql = "INSERT INTO db.copy SELECT id, mail FROM staged"
    job = event("a", [dataset(people)], [dataset(copy, ["hive://m", "db.copy"])], sql=sql)
    (tmp_path / "e.ndjson").write_text(json.dumps(job))
    (tmp_path / "views.sql").write_text(other)
    graph = harvest(LineageSources(events=["e.ndjson"], sql=["views.sql"]), tmp_path)
    assert [gap.kind for gap in graph.gaps] == [LineageGapKind.NO_COLUMNS]


@pytest.mark.parametrize(
    "path",
    [
        "s3://b/raw/user=x/part.csv",
        "s3a://b/raw/user=x/day=1/part-00000-abc.snappy.parquet",
        "gs://b/raw/user=x/000000_0",
        "abfss://c@a.dfs.core.windows.net/raw/user=x/p.json.gz",
        "hdfs://n:8020/raw/user=x/part.orc",
        "/w/raw/user=x/part.csv",
    ],
)
def test_the_name_of_a_file_in_a_partition_keeps_no_value(path: str) -> None:
    names = Identities({})
    assert "x" not in names.of_path(path).name.split("raw")[1]
    assert names.of_path(path).name.endswith("raw")
    assert "user=" not in names.without_partitions(path)
    placed = names.of_path("s3://b/raw/user=x/part.csv")
    assert placed == names.of_path("s3://b/raw")


def test_a_table_below_a_partition_is_one_of_its_own() -> None:
    assert Identities({}).of_path("s3://b/tenant=5/orders").name == "tenant=5/orders"
    assert Identities({}).of_path("s3://b/raw/part.csv").name == "raw/part.csv"
