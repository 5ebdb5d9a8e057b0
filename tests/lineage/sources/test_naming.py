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
    ("path", "name"),
    [
        ("s3://b/raw/user=x/part.csv", "raw/part.csv"),
        ("s3a://b/raw/user=x/day=1/part-00000-abc.snappy.parquet", "raw"),
        ("s3a://b/raw/user=x/day=1/tables.snappy.parquet", "raw/tables.snappy.parquet"),
        ("gs://b/raw/user=x/000000_0", "raw"),
        ("s3://b/raw/user=x/20261130_101112_00007_kmd2p_0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0", "raw"),
        ("s3://b/raw/user=x/some-rows.c000.gz.parquet", "raw"),
        ("abfss://c@a.dfs.core.windows.net/raw/user=x/p.json.gz", "raw/p.json.gz"),
        ("hdfs://n:8020/raw/user=x/part.orc", "/raw/part.orc"),
        ("/w/raw/user=x/part.csv", "/w/raw/part.csv"),
        ("/w/raw/user=x/day/part-0.parquet", "/w/raw/day"),
        ("s3://b/raw/user=x/day/night/told.dat", "raw/day/night/told.dat"),
        ("s3://b/raw/user=x/report.xlsx", "raw/report.xlsx"),
        ("s3://b/user=x/told.csv", "told.csv"),
        ("s3://b/user=x/part-0.parquet", "user="),
        ("/user=x/told.csv", "/told.csv"),
        ("/user=x/part-0.parquet", "/user="),
        ("s3://b/raw/user=*/told.csv", "raw/told.csv"),
        ("s3://b/raw/user=x/*.csv", "raw"),
    ],
)
def test_the_place_of_a_file_in_a_partition_keeps_no_value(path: str, name: str) -> None:
    names = Identities({})
    placed = names.of_path(path)
    assert placed.name == name
    assert names.normal(placed.namespace, placed.name) == placed
    plain = names.without_partitions(path)
    assert "x" not in plain.replace("xlsx", "")
    if not path.startswith("/"):  # of a path in no store nobody knows its dataset
        assert names.of_path(plain) == placed


def test_files_of_other_names_in_one_partition_are_other_datasets() -> None:
    users, shops = "s3://b/land/dt=1/users.csv", "s3://b/land/dt=1/shops.csv"
    assert Identities({}).of_path(users) != Identities({}).of_path(shops)
    assert Identities({}).of_path(users) == Identities({}).of_path(users.replace("dt=1", "dt=2"))
    known = DatasetId(namespace="s3://b", name="land/dt=1/users.csv")
    beside = Identities({"a.users": known})
    assert beside.of_path(users) == known
    assert beside.of_path(shops).name == "land/shops.csv"
    assert beside.of_path(users.replace("dt=1", "dt=2")).name == "land/users.csv"
    assert beside.of_path(users + "/part-0.parquet") == known
    assert beside.of_path(shops + "/part-0.parquet").name == "land/shops.csv"


@pytest.mark.parametrize(
    ("path", "name"),
    [("land/dt=1/users.csv", "land/dt=/users.csv"), ("land/dt=1/users.csv/part-0.csv", "land/dt=/users.csv")],
)
def test_a_known_file_beside_partitions_is_none_of_theirs(path: str, name: str) -> None:
    names = Identities({"a.users": DatasetId(namespace="s3://b", name="land/users.csv")})
    assert names.normal("s3://b", path) == names.normal("s3://b", name) == DatasetId(namespace="s3://b", name=name)


@pytest.mark.parametrize("path", ["t/dt=1/rows.csv", "t/dt=1/h=2/rows.csv", "t/dt=1/part-0.csv", "t/dt=1"])
def test_a_file_in_partitions_of_a_known_table_has_rows_of_it(path: str) -> None:
    table = DatasetId(namespace="s3://b", name="tenant=5/t")
    assert Identities({"a.t": table}).normal("s3://b", "tenant=5/" + path) == table
    assert Identities({"a.t": table}).normal("s3://b", "tenant=6/" + path) != table


def test_a_table_below_a_partition_is_one_of_its_own() -> None:
    assert Identities({}).of_path("s3://b/tenant=5/orders").name == "tenant=5/orders"
    assert Identities({}).of_path("s3://b/raw/part.csv").name == "raw/part.csv"
