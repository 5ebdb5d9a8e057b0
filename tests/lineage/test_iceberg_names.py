"""`db.t.branch_audit` and `db.t.files` are no tables: what stands behind them is told of the table, or is a gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.dataset_names import VIEW, Identities
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.harvest import Given, harvest_all
from pii_tracer.lineage.sql.parse_lines import answer_sql
from pii_tracer.lineage.sql.text.names_inside_tables import holds_values, parts_of
from pii_tracer.model.datasets import Column, DatasetId
from tests.lineage.conftest import ALIASES, COPY, PAYMENTS, SCHEMAS

BOTH = {("user_id", "uid"), ("pan", "pan")}
SAME = {("user_id", "user_id"), ("pan", "pan")}
REAL = DatasetId(namespace="file", name="/lakehouse/lake/prod/payments/branch_x")


def arrows(graph: LineageGraph, target: DatasetId = COPY) -> set[tuple[str, str]]:
    return {(e.source.column, e.target.column) for e in graph.edges_into(target)}


def sources(graph: LineageGraph, target: DatasetId = COPY) -> set[DatasetId]:
    return {e.source.dataset for e in graph.edges_into(target)}


@pytest.mark.parametrize(
    "name",
    [
        "lake.prod.payments.branch_audit",
        "prod.payments.tag_v1",
        "lake.prod.payments.`branch_audit-2026`",
        "lake.prod.payments.`tag_v1.0`",
        "lake.prod.payments.snapshot_id_10963874102873",
        "lake.prod.payments.at_timestamp_499162860000",
        "lake.prod.payments.changes",
    ],
)
@pytest.mark.parametrize("columns", ["user_id, pan", "*", "p.user_id, p.pan"])
def test_a_read_of_a_branch_or_tag_is_a_read_of_its_table(estate, name: str, columns: str):
    graph = estate(sql={"a.sql": f"INSERT INTO prod.copy SELECT {columns} FROM {name} p WHERE p.pan > '1'"})
    assert graph.gaps == ()
    assert (sources(graph), arrows(graph)) == ({PAYMENTS}, BOTH)
    assert {m.source.dataset for m in graph.memberships_into(COPY)} == {PAYMENTS}


def test_a_version_in_the_clause_still_is_one_of_its_table(estate):
    for clause in ("VERSION AS OF 'audit'", "TIMESTAMP AS OF '2026-01-01'"):
        graph = estate(sql={"a.sql": f"INSERT INTO prod.copy SELECT * FROM lake.prod.payments {clause}"})
        assert (graph.gaps, sources(graph), arrows(graph)) == ((), {PAYMENTS}, BOTH)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("INSERT INTO lake.prod.payments.branch_a SELECT uid, pan FROM prod.copy", {("uid", "user_id"), ("pan", "pan")}),
        ("INSERT OVERWRITE prod.payments.`branch_a-b` SELECT * FROM prod.copy", {("uid", "user_id"), ("pan", "pan")}),
        ("UPDATE lake.prod.payments.branch_a AS t SET pan = c.pan FROM prod.copy c WHERE c.uid = t.user_id",
         {("pan", "pan")}),
        ("MERGE INTO lake.prod.payments.branch_a t USING prod.copy s ON t.user_id = s.uid WHEN MATCHED THEN UPDATE SET"
         " pan = s.pan WHEN NOT MATCHED THEN INSERT (user_id, pan) VALUES (s.uid, s.pan)",
         {("uid", "user_id"), ("pan", "pan")}),
        ("DELETE FROM lake.prod.payments.branch_a WHERE pan = 'x'", set()),
        ("INSERT INTO lake.prod.payments.branch_a SELECT * FROM lake.prod.payments", SAME),
        ("INSERT INTO lake.prod.payments.branch_a SELECT * FROM lake.prod.payments.branch_b", SAME),
    ],
)  # fmt: skip
def test_a_write_to_a_branch_puts_rows_into_its_table(estate, sql: str, expected: set[tuple[str, str]]):
    graph = estate(sql={"a.sql": sql})
    assert graph.gaps == ()
    assert arrows(graph, PAYMENTS) == expected
    assert [job.sql for job in graph.jobs_into(PAYMENTS) if job.sql] == []  # it does not write the table anew


@pytest.mark.parametrize("name", ["tag_v1", "snapshot_id_1", "changes", "files"])
def test_what_cannot_be_written_to_is_a_table_of_that_name(estate, name: str):
    graph = estate(sql={"a.sql": f"INSERT INTO lake.prod.payments.{name} (pan) SELECT pan FROM prod.copy"})
    (gap,) = [g for g in graph.gaps if g.kind == "unresolved_name"]
    assert gap.dataset == DatasetId(namespace="unresolved", name=f"lake.prod.payments.{name}")
    assert graph.edges_into(PAYMENTS) == ()


@pytest.mark.parametrize(
    "name",
    [
        "lake.prod.unknown.branch_x",
        "prod.branch_x",
        "payments.branch_x",
        "branch_x",
        "lake.prod.payments.BRANCH_x",
        "lake.prod.payments.snapshot_id_x",
        "lake.prod.payments.branches",
        "other.prod.payments.branch_x",
    ],
)
def test_any_other_name_stays_one_that_nothing_explains(estate, name: str):
    graph = estate(sql={"a.sql": f"INSERT INTO prod.copy SELECT user_id, pan FROM {name}"})
    assert [(g.kind, g.dataset) for g in graph.gaps] == [
        ("unresolved_name", DatasetId(namespace="unresolved", name=name))
    ]


@pytest.mark.parametrize("known", [True, False], ids=["with its schema", "without a schema"])
def test_a_table_that_is_called_so_is_never_hidden(tmp_path: Path, known: bool):
    (tmp_path / "a.sql").write_text("INSERT INTO prod.copy (uid, pan) SELECT * FROM prod.payments.branch_x")
    columns = (Column(name="a", type="string"), Column(name="b", type="string"))
    schemas = SCHEMAS | ({"lake.prod.payments.branch_x": columns} if known else {})
    given = Given(tmp_path, aliases=ALIASES | {"lake.prod.payments.branch_x": REAL}, schemas=schemas)
    graph = harvest_all(LineageSources(sql=("a.sql",)), given).graph
    assert graph.upstream(COPY) == (REAL,)
    assert arrows(graph) == ({("a", "uid"), ("b", "pan")} if known else set())
    assert bool(graph.gaps) is not known  # another table's columns are not taken for its own


@pytest.mark.parametrize("first", ["a", "z"], ids=["made before", "made in a later file"])
@pytest.mark.parametrize("with_place", [True, False])
def test_a_table_that_a_statement_makes_is_never_hidden(estate, first: str, with_place: bool):
    beside = DatasetId(namespace="file", name="/lakehouse/lake/prod/branch_x")  # not below the folder of `payments`
    place = f" LOCATION '{beside.name}'" if with_place else ""
    graph = estate(
        sql={
            f"{first}.sql": f"CREATE TABLE lake.prod.payments.branch_x USING iceberg{place} AS SELECT pan FROM prod.copy",
            "m.sql": "INSERT INTO prod.copy (pan) SELECT pan FROM lake.prod.payments.branch_x",
        }
    )
    made = beside if with_place else DatasetId(namespace="unresolved", name="lake.prod.payments.branch_x")
    assert sources(graph) == {made}
    assert arrows(graph, made) == {("pan", "pan")}
    assert graph.edges_into(PAYMENTS) == ()
    assert [g.dataset for g in graph.gaps] == ([] if with_place else [made])


@pytest.mark.parametrize(
    "statement", ["ALTER TABLE {} ADD COLUMN x string", "DROP TABLE {}", "CREATE TABLE {} (pan string)"]
)
def test_a_table_that_a_statement_alters_or_drops_is_never_hidden(estate, statement: str):
    name = "lake.prod.payments.branch_x"
    read = f"INSERT INTO prod.copy (pan) SELECT pan FROM {name}"
    graph = estate(sql={"a.sql": read, "b.sql": f"/* so there is one */ {statement.format(name)}"})
    assert sources(graph) == {DatasetId(namespace="unresolved", name=name)}
    assert [g.kind for g in graph.gaps] == ["unresolved_name"]


def test_a_branch_that_was_overwritten_gives_its_name_to_no_table(estate):
    overwrite = "INSERT OVERWRITE lake.prod.payments.branch_x SELECT uid, pan FROM prod.copy"
    graph = estate(sql={"a.sql": f"{overwrite}; INSERT INTO prod.copy SELECT user_id, pan FROM branch_x"})
    assert sources(graph) == {DatasetId(namespace="unresolved", name="branch_x")}


def test_two_tables_that_may_be_meant_are_not_settled_by_a_third():
    names = Identities({"x.db.t.branch_x": REAL, "y.db.t.branch_x": COPY, "lake.db.t": PAYMENTS})
    assert (names.of_rows("db.t.branch_x"), names.part_of("db.t.branch_x")) == (None, None)
    assert names.of_rows("lake.db.t.branch_x") == PAYMENTS


def test_a_view_has_no_branches():
    names = Identities({"lake.db.v": DatasetId(namespace=VIEW, name="lake.db.v")})
    assert names.part_of("lake.db.v.branch_x") is None


def test_a_place_and_a_short_name_have_no_parts():
    for name in ("delta.`/a.b.c/branch_x`", "t.branch_x", "t.files", "branch_x", ""):
        assert list(parts_of(name)) == []


@pytest.mark.parametrize("table", ["history", "metadata_log_entries", "refs", "HISTORY"])
def test_metadata_without_values_of_rows_leaves_nothing_open(estate, table: str):
    graph = estate(sql={"a.sql": f"CREATE TABLE prod.copy AS SELECT * FROM lake.prod.payments.{table}"})
    assert graph.gaps == ()
    assert (graph.upstream(COPY), graph.edges_into(COPY)) == ((PAYMENTS,), ())


VALUES = {
    "files": "lower_bounds",
    "all_data_files": "readable_metrics",
    "delete_files": "upper_bounds",
    "entries": "data_file",
    "all_entries": "readable_metrics",
    "partitions": "partition",
    "manifests": "partition_summaries",
    "all_manifests": "partition_summaries",
    "position_deletes": "row",
    "snapshots": "summary",
}


@pytest.mark.parametrize(("table", "column"), VALUES.items())
@pytest.mark.parametrize("every", [True, False])
def test_metadata_with_values_of_rows_is_a_gap_that_says_so(estate, table: str, column: str, every: bool):
    select = "*" if every else f"{column} AS x"
    graph = estate(sql={"a.sql": f"CREATE TABLE prod.copy AS SELECT {select} FROM lake.prod.payments.{table}"})
    (gap,) = graph.gaps
    assert (gap.kind, gap.dataset) == ("sql_partial", COPY)
    told, name = gap.reason.removeprefix("it reads ").split(". ")[0].split(" of ")
    assert column in told.split(", ")
    assert name == f"lake.prod.payments.{table}"
    assert "values of its rows" in gap.reason
    assert "remove these columns from the statement" in gap.closes
    assert (graph.upstream(COPY), graph.edges_into(COPY)) == ((PAYMENTS,), ())


@pytest.mark.parametrize(
    ("select", "values"),
    [
        ("count(*) AS n, sum(file_size_in_bytes) AS size", False),
        ("spec_id, record_count", False),
        ("file_path, record_count", True),
        ("max(lower_bounds[1]) AS x", True),
        ("readable_metrics.pan.lower_bound AS x", True),
        ("CASE WHEN lower_bounds[1] > 0 THEN 1 ELSE 0 END AS x", False),
        ("a_column_of_a_later_version AS x", True),
    ],
)
def test_the_columns_that_are_taken_decide(estate, select: str, values: bool):
    graph = estate(sql={"a.sql": f"CREATE TABLE prod.copy AS SELECT {select} FROM prod.payments.files f"})
    assert any("values of its rows" in g.reason for g in graph.gaps) is values
    assert bool(graph.gaps) is values


def test_values_out_of_metadata_are_followed_through_views(estate):
    view = "CREATE TEMP VIEW v AS SELECT upper_bounds FROM prod.payments.files"
    graph = estate(sql={"a.sql": f"{view}; CREATE TABLE prod.copy AS SELECT upper_bounds[2] AS x FROM v"})
    assert [(g.kind, g.dataset) for g in graph.gaps] == [("sql_partial", COPY)]


def test_every_column_that_is_not_known_may_hold_values():
    assert holds_values("*")
    assert holds_values("nobody_knows")
    assert not holds_values("RECORD_COUNT")


def test_a_parsed_text_has_the_columns_of_the_table():
    schemas = {"db.t": [("a", "string"), ("b", "string")]}
    told = answer_sql("INSERT INTO db.out SELECT * FROM db.t.branch_x", "spark", schemas)
    assert {e["from"] for e in told["edges"]} == {"db.t.branch_x.a", "db.t.branch_x.b"}
