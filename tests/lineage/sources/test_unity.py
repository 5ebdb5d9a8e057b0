"""Lineage that Databricks noted itself: from exported files, and from a workspace."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pydantic import ValidationError

from pii_tracer.config.catalogs import Catalog
from pii_tracer.config.lineage import LineageSources, SameDataset, UnityLineage
from pii_tracer.lake.catalogs.base import CatalogView
from pii_tracer.lake.catalogs.unity.statement_execution import Clock, Warehouse
from pii_tracer.lineage.dataset_names import Identities
from pii_tracer.lineage.graph.edges import EdgeType, Subtype
from pii_tracer.lineage.harvest import Given, Harvested, harvest_all
from pii_tracer.lineage.sources.unity.fetching import Fetched, fetch_unity
from pii_tracer.model.datasets import Column, ColumnId, DatasetId
from pii_tracer.model.errors import LineageError
from tests.lineage.sources.statement_standin import SCHEMAS, SECRET_TEXT, TOKEN, WAREHOUSE, Lies, Workspace, serving

PEOPLE = DatasetId(namespace="s3://lake", name="people")
ORDERS = DatasetId(namespace="s3://lake", name="orders")
ALIASES = {"main.sales.people": PEOPLE, "main.sales.orders": ORDERS}
COLUMNS = (Column(name="uid", type="bigint"), Column(name="mail", type="string"))
SCHEMA = dict.fromkeys(ALIASES, COLUMNS)
AT = "2026-11-01T10:00:00Z"
NOW = "2026-11-30T10:00:00+00:00"
UNITY = (UnityLineage(tables="t.json", columns="c.json"),)
CREATED = {"uc": {**dict.fromkeys(ALIASES, 0), "main.sales.seen": 0, "main.sales.notes": 0}}
"""What the catalog of the workspace lists."""


def row(source: str = "", target: str = "", job: str = "41", kind: str = "JOB", **more: Any) -> dict[str, Any]:
    """A row with the columns that are not NULL, as Spark writes JSON. An end is a table's name, or a path."""
    made = {"entity_type": kind, "entity_id": job, "event_time": AT, "created_by": "asha.rao@mail.example"}
    for end, text in (("source", source), ("target", target)):
        if text:
            path = "/" in text
            made |= {
                f"{end}_path" if path else f"{end}_table_full_name": text,
                f"{end}_type": "PATH" if path else "TABLE",
            }
    return {key: value for key, value in {**made, **more}.items() if value}


def pair(*columns: str, **more: Any) -> list[dict[str, Any]]:
    """Rows of columns of the same name that go from people into orders."""
    ends = {"source": "main.sales.people", "target": "main.sales.orders", **more}
    return [row(**ends, source_column_name=c, target_column_name=c) for c in columns]


BOTH = row("main.sales.people", "main.sales.orders")


def harvested(
    base: Path, tables: Sequence[Any], columns: Sequence[Any] = (), more: dict[str, Any] | None = None, **given: Any
) -> Harvested:
    """more: of the lineage sources of the estate file."""
    for name, rows in (("t.json", tables), ("c.json", columns)):
        (base / name).write_text("".join(json.dumps(one) + "\n" for one in rows))
    given = {"aliases": ALIASES, "schemas": SCHEMA, "created": CREATED, **given}
    return harvest_all(LineageSources(**{"unity": UNITY, **(more or {})}), Given(base, **given))


def kinds(found: Harvested) -> list[str]:
    return sorted(str(gap.kind) for gap in found.graph.gaps)


# What rows say


def test_a_column_comes_from_another_and_nobody_says_how(tmp_path: Path) -> None:
    """An edge of identity would let rows be deleted by a key that may be another value."""
    found = harvested(tmp_path, [BOTH], pair("uid", "mail"))
    edges = {
        (e.source.column, e.target.column, e.type, e.subtype, e.expression) for e in found.graph.edges_into(ORDERS)
    }
    assert edges == {(c, c, EdgeType.DIRECT, Subtype.TRANSFORMATION, None) for c in ("uid", "mail")}
    assert found.graph.gaps == ()
    (job,) = found.graph.jobs_into(ORDERS)
    assert (job.job, job.inputs, job.sql) == ("t.json: JOB 41", (PEOPLE,), None)
    assert "asha.rao" not in str(found)


def test_a_table_without_its_columns_is_not_complete(tmp_path: Path) -> None:
    assert kinds(harvested(tmp_path, [BOTH])) == ["no_columns"]


def test_a_column_that_is_left_out_is_a_gap(tmp_path: Path) -> None:
    (gap,) = harvested(tmp_path, [BOTH], pair("uid")).graph.gaps
    assert (gap.kind, gap.dataset, "mail" in gap.reason) == ("no_columns", ORDERS, True)


def test_columns_of_one_input_say_nothing_of_another(tmp_path: Path) -> None:
    tables = [BOTH, row("main.sales.people", "main.sales.notes"), row("s3://lake/raw", "main.sales.orders")]
    found = harvested(tmp_path, tables, pair("uid", "mail"), aliases={**ALIASES, "main.sales.notes": NOTES})
    assert {(gap.kind, gap.dataset, "s3://lake" in gap.reason) for gap in found.graph.gaps} == {
        ("no_columns", ORDERS, True), ("no_columns", NOTES, True)
    }  # fmt: skip


NOTES = DatasetId(namespace="s3://lake", name="notes")


def test_a_column_that_is_only_read_goes_nowhere(tmp_path: Path) -> None:
    columns = [*pair("uid", "mail"), row("main.sales.people", source_column_name="mail")]
    found = harvested(tmp_path, [BOTH], columns)
    assert (len(found.graph.facts.edges), kinds(found)) == (2, ["no_outputs"])


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([row("main.sales.people")], ["no_outputs"]),
        ([row("main.sales.people", kind="", job="")], ["no_outputs"]),
        ([row("main.sales.people", kind="DBSQL_QUERY")], []),
        ([row("main.sales.people", kind="DASHBOARD_V3")], []),
        ([row("main.sales.people"), BOTH], ["no_columns", "no_outputs"]),
        ([row("main.sales.people", job="42"), BOTH], ["no_columns", "no_outputs"]),
        ([row("", "main.sales.orders")], ["no_columns"]),
        ([row("", "main.sales.orders", kind="DBSQL_QUERY")], []),
        ([row("", "main.sales.orders"), BOTH], ["no_columns", "no_columns"]),
        ([row("main.sales.orders", "main.sales.orders")], ["no_columns"]),
        ([row("main.sales.orders", "main.sales.orders"), row("", "main.sales.orders")], ["no_columns"]),
    ],
)
def test_a_read_without_a_target_and_a_write_without_a_source_are_unknown(
    tmp_path: Path, rows: list[Any], told: list[str]
) -> None:
    """SQL alone shows rows. Of all else nobody knows where it went or came from; and of what came from nowhere, whose
    rows these are."""
    found = harvested(tmp_path, rows)
    assert kinds(found) == told
    blind = any("target_table_full_name" in one and one.get("source_table_full_name") != PEOPLE_NAME for one in rows)
    assert any(not job.inputs for job in found.graph.jobs_into(ORDERS)) is blind


SQL = "INSERT INTO main.sales.orders SELECT uid, mail FROM main.sales.people;\n"
PEOPLE_NAME = "main.sales.people"
SEVERAL = [{**BOTH, "source_path": "", "entity_type": "", "entity_id": ""}]


@pytest.mark.parametrize(
    ("tables", "columns", "told"),
    [
        ([{**BOTH, "entity_id": "42"}], [], ["no_columns"]),
        ([{**BOTH, "entity_id": "42"}], pair("uid", job="42"), ["no_columns"]),
        ([row("", "main.sales.orders", job="42")], [], ["no_columns"]),
        ([row("main.sales.people", job="42")], [], ["no_outputs"]),
        ([row("main.sales.orders", "main.sales.orders", job="42")], [], ["no_columns"]),
        ([], [{**one, "source_column_name": ""} for one in pair("uid")], ["lost_events", "no_columns", "no_columns"]),
        (SEVERAL, [{**one, **SEVERAL[0]} for one in pair("uid", "mail")], ["no_columns"]),
    ],
    ids=["no columns", "a column left out", "no source", "no target", "itself", "no source column", "no entity"],
)
def test_what_another_source_tells_of_the_same_tables_closes_nothing(
    tmp_path: Path, tables: list[Any], columns: list[Any], told: list[str]
) -> None:
    """It may be another job. Nor does one client without a name tell what another one did."""
    (tmp_path / "job.sql").write_text(SQL)
    found = harvested(tmp_path, tables, columns, {"sql": ("job.sql",)})
    assert kinds(found) == told


def test_rows_close_nothing_that_events_leave_open(tmp_path: Path) -> None:
    event = {
        "eventTime": AT, "eventType": "COMPLETE", "producer": "https://x", "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": "7d3b1a52-0000-4000-8000-000000000001"}, "job": {"namespace": "n", "name": "j"},
        "inputs": [PEOPLE.model_dump()], "outputs": [ORDERS.model_dump()],
    }  # fmt: skip
    (tmp_path / "e.json").write_text(json.dumps(event))
    found = harvested(tmp_path, [BOTH], pair("uid", "mail"), {"events": ("e.json",)})
    assert kinds(found) == ["no_columns"]


HASHED = "INSERT INTO main.sales.orders SELECT 1, 'x' FROM main.sales.people WHERE uid > 3;\n"


@pytest.mark.parametrize(
    ("sql", "tables", "columns", "told"),
    [
        (SQL, [BOTH], pair("uid", "mail"), []),
        (SQL, [BOTH], [], []),
        (SQL, [BOTH, row("main.sales.people")], [], []),
        (SQL, [BOTH, row("", "main.sales.orders")], [], ["no_columns"]),
        (SQL, [{**BOTH, "entity_id": "42"}], [], ["no_columns"]),
        (HASHED, [BOTH], [], ["no_columns"]),
    ],
    ids=["columns", "a table", "a read", "a write without a source", "another job", "decided by it alone"],
)
def test_a_job_that_is_told_elsewhere_by_the_owners_word(
    tmp_path: Path, sql: str, tables: list[Any], columns: list[Any], told: list[str]
) -> None:
    """Only values that go from the one into the other tell a row; nothing tells a write without a source."""
    (tmp_path / "job.sql").write_text(sql)
    word = UnityLineage(tables="t.json", columns="c.json", told_elsewhere=("JOB 41",))
    found = harvested(tmp_path, tables, columns, {"sql": ("job.sql",), "unity": (word,)})
    assert kinds(found) == told
    assert {e.evidence[0].source for e in found.graph.edges_into(ORDERS)} <= {"sql"}


def test_a_job_that_events_tell_is_told_elsewhere(tmp_path: Path) -> None:
    fields = {
        name: {"inputFields": [{**PEOPLE.model_dump(), "field": name, "transformations": [
            {"type": "DIRECT", "subtype": "IDENTITY"}]}]} for name in ("uid", "mail")
    }  # fmt: skip
    out = {**ORDERS.model_dump(), "facets": {"columnLineage": {"_producer": "https://x", "fields": fields,
           "_schemaURL": "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json"}}}  # fmt: skip
    event = {
        "eventTime": AT, "eventType": "COMPLETE", "producer": "https://x", "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": "7d3b1a52-0000-4000-8000-000000000001"}, "job": {"namespace": "n", "name": "j"},
        "inputs": [PEOPLE.model_dump()], "outputs": [out],
    }  # fmt: skip
    (tmp_path / "e.json").write_text(json.dumps(event))
    word = UnityLineage(tables="t.json", columns="c.json", told_elsewhere=("JOB 41",))
    found = harvested(tmp_path, [BOTH], pair("uid", "mail"), {"events": ("e.json",), "unity": (word,)})
    assert found.graph.gaps == ()
    assert {e.subtype for e in found.graph.edges_into(ORDERS)} == {Subtype.IDENTITY}


def test_whole_numbers_name_entities_and_other_values_name_nothing(tmp_path: Path) -> None:
    """Parquet and JSON have ids as numbers. Two jobs are not one because of that."""
    columns = [{**one, "entity_id": 41} for one in pair("uid", "mail")]
    found = harvested(tmp_path, [{**BOTH, "entity_id": 41}, {**row("main.sales.people"), "entity_id": 42}], columns)
    assert kinds(found) == ["no_outputs"]
    assert [job.job for job in found.graph.jobs_into(ORDERS)] == ["t.json: JOB 41"]
    for odd in (41.0, True, ["41"], {"id": 41}):
        made = harvested(tmp_path, [{**BOTH, "entity_id": odd}, {**BOTH, "entity_id": "1\x1b[2J"}])
        assert ["no text in entity_id" in g.reason for g in made.graph.gaps if g.kind == "unreadable_event"] == [True]
        assert "\x1b" not in str(made)


def test_rows_of_many_runs_are_one_fact(tmp_path: Path) -> None:
    columns = [*pair("uid", "mail"), *pair("uid", "mail", event_time="2026-11-03T10:00:00Z")]
    found = harvested(tmp_path, [BOTH], columns)
    (proof,) = found.graph.edges_into(ORDERS)[0].evidence
    assert (proof.source, proof.runs, proof.at) == ("unity", 5, "2026-11-03T10:00:00Z")


# Names


@pytest.mark.parametrize("path", ["s3://lake/people/", "s3a://lake/people", ""])
def test_a_table_is_the_catalogs_by_its_name_and_its_place(tmp_path: Path, path: str) -> None:
    tables = [{**BOTH, "source_table_full_name": "Main.Sales.PEOPLE", "source_path": path}]
    found = harvested(tmp_path, tables)
    assert found.graph.jobs_into(ORDERS)[0].inputs == (PEOPLE,)


@pytest.mark.parametrize(
    ("path", "meant", "told"),
    [
        ("s3://other/people", DatasetId(namespace="s3://other", name="people"), ["no_columns"]),
        ("", DatasetId(namespace="unresolved", name="main.sales.people"), ["no_columns", "unresolved_name"]),
    ],
)
@pytest.mark.parametrize("alias", ["sales.people", "main.sales.people"])
def test_a_table_of_another_metastore_is_not_taken_for_one_of_its_name(
    tmp_path: Path, path: str, meant: DatasetId, told: list[str], alias: str
) -> None:
    """Another catalog of the estate file has it, perhaps by the same full name."""
    given = {"aliases": {alias: PEOPLE, "main.sales.orders": ORDERS}, "created": {"uc": {"main.sales.orders": 0}}}
    found = harvested(tmp_path, [{**BOTH, "source_path": path}], schemas={}, **given)
    assert found.graph.jobs_into(ORDERS)[0].inputs == (meant,)
    assert set(kinds(found)) >= set(told)


def test_an_export_may_be_of_either_of_two_metastores(tmp_path: Path) -> None:
    found = harvested(tmp_path, [BOTH], pair("uid", "mail"), created={**CREATED, "other": {"main.hr.staff": 0}})
    assert kinds(found) == ["unresolved_name"] * 2
    assert found.graph.jobs_into(ORDERS)[0].inputs == (PEOPLE,)
    placed = {"source_path": "s3://lake/people", "target_path": "s3://lake/orders"}
    columns = [{**one, **placed} for one in pair("uid", "mail")]
    assert kinds(harvested(tmp_path, [{**BOTH, **placed}], columns, created={**CREATED, "other": {}})) == []


def test_a_table_that_was_made_anew_elsewhere_is_a_gap(tmp_path: Path) -> None:
    found = harvested(tmp_path, [{**BOTH, "target_path": "s3://old/orders"}])
    old = DatasetId(namespace="s3://old", name="orders")
    assert ("unresolved_name", old, ORDERS) in {(g.kind, g.dataset, g.same_as) for g in found.graph.gaps}
    assert found.graph.sources_of(old) == (PEOPLE,)


@pytest.mark.parametrize("path", ["dbfs:/mnt/drop", "/Volumes/main/sales/drop", "/mnt/drop", "file:/tmp/x", "s3:///"])
def test_a_path_of_a_workspace_is_no_place_in_a_store_and_none_of_this_machine(tmp_path: Path, path: str) -> None:
    found = harvested(tmp_path, [row("main.sales.people", path)])
    assert kinds(found) == ["no_columns", "unresolved_name"]
    (dataset,) = {gap.dataset for gap in found.graph.gaps}
    assert dataset == DatasetId(namespace="unresolved", name=path)
    same = {"from": "unresolved", "name": path, "to": "s3://lake", "to_name": "drop"}
    more = {"same": (SameDataset.model_validate(same),)}
    assert kinds(harvested(tmp_path, [row("main.sales.people", path)], more=more)) == ["no_columns"]


@pytest.mark.parametrize("place", ["/Volumes/main/raw", "dbfs:/mnt/raw", "/mnt/raw"])
@pytest.mark.parametrize("file", ["", "/", "/day=1", "/part-0.csv"])
def test_no_name_of_a_partition_is_in_the_graph_nor_kept(tmp_path: Path, place: str, file: str) -> None:
    rows = [row("main.sales.people", f"{place}/user=asha.rao@mail.example{file}")]
    found = harvested(tmp_path, rows)
    assert "asha.rao" not in str([found.graph.gaps, sorted(map(str, found.graph.datasets()))])
    with serving(rows) as space:
        assert {f.target.path for f in fetched(space, tmp_path).flows["uc"].seen if f.target} == {place}


def test_a_name_that_nobody_explains_is_a_gap(tmp_path: Path) -> None:
    assert "unresolved_name" in kinds(harvested(tmp_path, [row("main.sales.people", "main.old.gone")]))


def test_a_view_is_left_to_its_query(tmp_path: Path) -> None:
    view = CatalogView(
        "uc", "main.sales.seen", "SELECT uid, mail FROM people", "databricks", ("main", "sales"), COLUMNS
    )
    tables = [
        row("main.sales.people", "main.sales.seen", target_type="VIEW"),
        row("main.sales.seen", "main.sales.orders", source_type="VIEW"),
    ]
    columns = [*pair("uid", "mail", target="main.sales.seen"), *pair("uid", "mail", source="main.sales.seen")]
    found = harvested(tmp_path, tables, columns, views=(view,))
    assert {e.subtype for e in found.graph.edges_into(DatasetId(namespace="view", name="main.sales.seen"))} == {
        Subtype.IDENTITY
    }
    mail = ColumnId(dataset=PEOPLE, column="mail")
    assert ColumnId(dataset=ORDERS, column="mail") in found.graph.columns_downstream(mail)
    assert found.graph.gaps == ()


def test_a_view_that_no_catalog_shows_is_followed_by_its_rows(tmp_path: Path) -> None:
    tables = [
        row("main.sales.people", "main.sales.seen", target_type="VIEW"),
        row("main.sales.seen", "main.sales.orders", source_type="VIEW"),
    ]
    columns = [*pair("uid", "mail", target="main.sales.seen"), *pair("uid", "mail", source="main.sales.seen")]
    found = harvested(tmp_path, tables, columns, created={"uc": dict.fromkeys(ALIASES, 0)})
    assert kinds(found) == ["unresolved_name"]
    mail = ColumnId(dataset=PEOPLE, column="mail")
    assert ColumnId(dataset=ORDERS, column="mail") in found.graph.columns_downstream(mail)


# Time


@pytest.mark.parametrize(
    ("created", "told"),
    [
        ("2026-10-31T00:00:00Z", ["lost_events"]),
        ("2026-11-02T00:00:00Z", []),
        ("2026-11-04T00:00:00Z", ["lost_events"]),
    ],
)
def test_a_table_that_is_older_or_younger_than_all_rows_is_a_gap(tmp_path: Path, created: str, told: list[str]) -> None:
    listed = {"uc": {**CREATED["uc"], "main.sales.orders": micros_of(created)}}
    tables = [BOTH, {**BOTH, "event_time": "2026-11-03T10:00:00Z"}]
    found = harvested(tmp_path, tables, pair("uid", "mail"), created=listed)
    assert kinds(found) == told
    assert all(gap.dataset == ORDERS for gap in found.graph.gaps)


def micros_of(text: str) -> int:
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1_000_000)


@pytest.mark.parametrize(
    ("oldest", "others", "told"),
    [
        ("2026-10-01T00:00:00Z", {}, []),
        ("2026-10-01T00:00:00Z", {"other": {"main.hr.staff": 0}}, ["lost_events"]),
        (None, {}, ["lost_events"]),
    ],
    ids=["one metastore", "perhaps two", "a hole between them"],
)
def test_what_an_older_export_covers(tmp_path: Path, oldest: str | None, others: Any, told: list[str]) -> None:
    """It and the newer one tell of one metastore, where the estate file has no other; and nothing of what is between."""
    placed = {"source_path": "s3://lake/people", "target_path": "s3://lake/orders"}
    old = [{**BOTH, **placed, "event_time": at} for at in ("2026-09-01T00:00:00Z", oldest) if at]
    newer = [{**one, **placed} for one in (BOTH, {**BOTH, "event_time": oldest or AT})]
    (tmp_path / "old.json").write_text("".join(json.dumps(one) + "\n" for one in old))
    unity = (UnityLineage(tables="old.json", columns="c.json"), *UNITY)
    listed = {"uc": {**CREATED["uc"], "main.sales.orders": micros_of("2026-09-15T00:00:00Z")}, **others}
    columns = [{**one, **placed} for one in pair("uid", "mail")]
    assert kinds(harvested(tmp_path, newer, columns, {"unity": unity}, created=listed)) == told


# Files


def full(made: dict[str, Any], table: str) -> dict[str, Any]:
    return {column: made.get(column) for column in SCHEMAS[table] if column != "entity_metadata"}


def write_parquet(file: Path, rows: list[dict[str, Any]]) -> None:
    for one in rows:
        one["event_time"] = datetime.fromisoformat(one["event_time"].replace("Z", "+00:00"))
    pq.write_table(pa.Table.from_pylist(rows), file)


def write_csv(file: Path, rows: list[dict[str, Any]]) -> None:
    text = [",".join(rows[0]), *(",".join("null" if v is None else str(v) for v in one.values()) for one in rows)]
    file.write_text("\n".join(text) + "\n")


def write_quoted(file: Path, rows: list[dict[str, Any]]) -> None:
    with gzip.open(file, "wt", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)


WRITERS: dict[str, Callable[[Path, list[dict[str, Any]]], None]] = {
    "part-0.snappy.parquet": write_parquet,
    "part-0.csv": write_csv,
    "part-0.csv.gz": write_quoted,
    "part-0.json": lambda file, rows: file.write_text("".join(json.dumps(one) + "\n" for one in rows)) and None,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_export_tells_the_same(tmp_path: Path, name: str) -> None:
    for folder, table, rows in (("t", "table_lineage", [BOTH]), ("c", "column_lineage", pair("uid", "mail"))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "_SUCCESS").touch()
        WRITERS[name](tmp_path / folder / name, [full(one, table) for one in rows])
    sources = LineageSources(unity=(UnityLineage(tables="t", columns="c"),))
    found = harvest_all(sources, Given(tmp_path, aliases=ALIASES, schemas=SCHEMA, created=CREATED))
    assert found.graph.gaps == ()
    assert len(found.graph.edges_into(ORDERS)) == 2
    assert [(s.source, s.read, s.unit) for s in found.summary.sources if s.unit == "rows"] == [
        ("t", 1, "rows"),
        ("c", 2, "rows"),
    ]


@pytest.mark.parametrize("name", ["part-0.snappy.parquet", "part-0.csv"])
def test_a_file_without_a_column_that_is_read_is_a_gap(tmp_path: Path, name: str) -> None:
    made = full(BOTH, "table_lineage")
    del made["target_path"]
    WRITERS[name](tmp_path / name, [made])
    found = harvest_all(LineageSources(unity=(UnityLineage(tables=name),)), Given(tmp_path, aliases=ALIASES))
    assert [("target_path" in g.reason) for g in found.graph.gaps if g.kind == "unreadable_event"] == [True]


@pytest.mark.parametrize(
    ("tables", "columns", "reason"),
    [
        ([{"user": "x"}], [], "neither a source nor a target"),
        ([{**BOTH, "event_time": "yesterday"}], pair("uid", "mail"), "no time"),
        ([BOTH], [*pair("uid", "mail"), BOTH], "names no column"),
    ],
)
def test_a_row_that_says_too_little_is_a_gap(
    tmp_path: Path, tables: list[Any], columns: list[Any], reason: str
) -> None:
    gaps = [g for g in harvested(tmp_path, tables, columns).graph.gaps if g.kind == "unreadable_event"]
    assert [reason in g.reason for g in gaps] == [True]


def test_broken_files_are_gaps_and_stop_nothing(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.parquet").write_bytes(b"PAR1")
    (tmp_path / "t" / "b.csv").write_text('entity_type,"entity\n')
    (tmp_path / "t" / "c.json").write_text("[not json\n" + json.dumps(BOTH) + "\n")
    given = Given(tmp_path, aliases=ALIASES, created=CREATED)
    found = harvest_all(LineageSources(unity=(UnityLineage(tables="t"),)), given)
    assert {g.evidence for g in found.graph.gaps if g.kind == "unreadable_event"} == {
        "t/a.parquet:1", "t/b.csv:1", "t/c.json:1"
    }  # fmt: skip
    assert found.graph.sources_of(ORDERS) == (PEOPLE,)


def test_a_table_with_a_history_is_no_export(tmp_path: Path) -> None:
    """Old files of it have rows that are gone."""
    write_deltalake(tmp_path / "t", pa.Table.from_pylist([full(BOTH, "table_lineage")]).drop_columns(["created_by"]).cast(
        pa.schema([(c, pa.string()) for c in SCHEMAS["table_lineage"] if c not in ("entity_metadata", "created_by")])
    ))  # fmt: skip
    with pytest.raises(LineageError, match="a table with a history"):
        harvest_all(LineageSources(unity=(UnityLineage(tables="t"),)), Given(tmp_path))


@pytest.mark.parametrize(
    "given", [{}, {"catalog": "uc"}, {"columns": "c"}, {"catalog": "uc", "warehouse": "x", "tables": "t"}]
)
def test_a_source_is_a_workspace_or_files(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="give either `catalog` and `warehouse`"):
        UnityLineage(**given)


# A workspace


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PII_TRACER_CATALOG_UC_TOKEN", TOKEN)


class Waits:
    def __init__(self) -> None:
        self.all: list[float] = []

    def open(self, name: str, catalog: Catalog, warehouse: str) -> Warehouse:
        return Warehouse(name, catalog, warehouse, Clock(lambda: sum(self.all), self.all.append))


def fetched(
    space: Workspace, folder: Path, waits: Waits | None = None, now: str = NOW, warehouse: str = WAREHOUSE
) -> Fetched:
    catalogs = {"uc": Catalog.model_validate({"type": "unity", "uri": space.uri})}
    sources = (UnityLineage(catalog="uc", warehouse=warehouse),)
    names = Identities({**ALIASES, "main.sales.daily": DatasetId(namespace="s3://lake", name="daily/day=1")})
    opened = (waits or Waits()).open
    return fetch_unity(sources, catalogs, folder, now, lambda text: None, names.without_partitions, opened)


def graph_of(made: Fetched, base: Path) -> Harvested:
    sources = LineageSources(unity=(UnityLineage(catalog="uc", warehouse=WAREHOUSE),))
    given = Given(base, aliases=ALIASES, schemas=SCHEMA, created=CREATED, unity=made.flows, gaps=made.gaps)
    return harvest_all(sources, given)


def test_a_workspace_tells_what_an_export_tells(tmp_path: Path) -> None:
    tables = [BOTH, {**BOTH, "event_time": "2026-11-03T10:00:00Z"}, row("main.sales.people", job="42")]
    columns = [*pair("uid", "mail"), *pair("uid", job="43"), *pair("mail", job="44")]
    with serving(tables, columns, states=("PENDING", "RUNNING")) as space:
        waits = Waits()
        made = fetched(space, tmp_path / "state", waits)
        assert sum("/result/chunks/" in one for one in space.asked) == 1
    assert waits.all == [1.0, 2.0] * 2
    assert made.gaps == ()
    here, there = graph_of(made, tmp_path), harvested(tmp_path, tables, columns)
    assert {(e.source, e.target, e.subtype) for e in here.graph.facts.edges} == {
        (e.source, e.target, e.subtype) for e in there.graph.facts.edges
    }
    assert kinds(here) == kinds(there) == ["no_columns", "no_columns", "no_outputs"]
    (file,) = (tmp_path / "state").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    assert "asha.rao" not in file.read_text()


def test_a_busy_workspace_is_asked_again_when_it_says(tmp_path: Path) -> None:
    waits = Waits()
    with serving([BOTH], busy=2) as space:
        assert fetched(space, tmp_path, waits).gaps == ()
    assert waits.all == [7.0, 7.0]


def test_an_expired_link_is_replaced(tmp_path: Path) -> None:
    with serving([BOTH], expired=2) as space:
        assert fetched(space, tmp_path).flows["uc"].rows == 1
        assert sum(one.startswith("GET /storage/") for one in space.asked) == 3


@pytest.mark.parametrize(
    ("lies", "told"),
    [
        ({"ends": "FAILED"}, r"failed to run a query \(BAD_REQUEST\)"),
        ({"ends": "CANCELED"}, "ended a query before its result was read"),
        ({"ends": "CLOSED"}, "ended a query before its result was read"),
        ({"states": ("RUNNING",) * 200}, "has not finished a query after 1800 seconds"),
        ({"truncated": True}, "truncated the result"),
        ({"short": True}, "announced 2 rows, but sent a different number"),
        ({"expired": 9}, "redirects to a results store that refused: HTTP 403"),
        ({"token_for": 0}, "does not accept the token, or it expired"),
        ({"token_for": 1}, "does not accept the token, or it expired"),
        ({"busy": 99}, r"is too busy \(HTTP 429\)"),
        ({"renamed": True}, "sent different columns than requested"),
        ({"unreadable": True}, "sent a part of a result that is not a list of rows"),
        ({"link": "https://[store.example/x?sig=secret-1"}, "sent a link without an address to a result"),
    ],
)
def test_half_an_answer_is_none(tmp_path: Path, lies: dict[str, Any], told: str) -> None:
    """The first time it is an error. Afterwards what was read before stays, with a gap."""
    with serving([BOTH], **lies) as space:
        with pytest.raises(LineageError, match=told) as first:
            fetched(space, tmp_path / "state")
        assert not (tmp_path / "state").exists()
        space.lies = Lies()
        before = fetched(space, tmp_path / "state")
        kept = next((tmp_path / "state").iterdir()).read_bytes()
        space.rows["table_lineage"], space.lies, space.links = (
            [row("main.sales.orders", "main.sales.people")],
            Lies(**lies),
            0,
        )
        after = fetched(space, tmp_path / "state", now="later")
    (gap,) = after.gaps
    assert (gap.kind, NOW in gap.evidence) == ("source_unreachable", True)
    assert after.flows == before.flows
    assert next((tmp_path / "state").iterdir()).read_bytes() == kept
    for text in (str(first.value), gap.reason):
        assert not any(secret in text for secret in (SECRET_TEXT, TOKEN, "sig=", "127.0.0.1", "store.example"))


def test_a_warehouse_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with serving([BOTH]) as space, pytest.raises(LineageError, match="correct `warehouse`"):
        fetched(space, tmp_path, warehouse="0000000000000000")


def test_what_the_tables_forget_stays_known(tmp_path: Path) -> None:
    old, new = row("main.sales.people", "main.old.gone", event_time="2025-11-02T00:00:00Z"), BOTH
    with serving([old]) as space:
        fetched(space, tmp_path, now="2026-11-01T12:00:00+00:00")
        space.rows["table_lineage"] = [new]
        made = fetched(space, tmp_path)
    assert {f.target.name for f in made.flows["uc"].seen if f.target} == {"main.old.gone", "main.sales.orders"}
    assert made.gaps == ()


def test_names_of_partitions_are_not_kept(tmp_path: Path) -> None:
    """They are values of rows, except where a table lies right there."""
    paths = ["s3://lake/drop/user=asha.rao@mail.example/", "s3://lake/daily/day=1/user=asha.rao@mail.example"]
    with serving([row(path, "main.sales.orders") for path in paths]) as space:
        made = fetched(space, tmp_path)
    assert {f.source.path for f in made.flows["uc"].seen if f.source} == {"s3://lake/drop", "s3://lake/daily/day=1"}
    assert "asha.rao" not in next(tmp_path.iterdir()).read_text()


def test_what_was_gone_before_it_was_read_is_a_gap(tmp_path: Path) -> None:
    with serving([row("main.sales.people", "main.old.gone", event_time="2025-01-02T00:00:00Z")]) as space:
        fetched(space, tmp_path, now="2025-02-01T00:00:00+00:00")
        space.rows["table_lineage"] = [BOTH]
        for _ in range(2):
            (gap,) = fetched(space, tmp_path).gaps
            assert gap.kind == "lost_events"
            assert "between 2025-02-01T00:00:00Z and 2026-11-01T10:00:00Z" in gap.reason


@pytest.mark.parametrize("table", ["table_lineage", "column_lineage"])
def test_a_table_that_had_rows_and_has_none_is_a_gap(tmp_path: Path, table: str) -> None:
    """Those that came in the meantime may be gone, too, so that the time of the last reading stays."""
    with serving([BOTH], pair("uid", "mail")) as space:
        fetched(space, tmp_path, now="2026-11-02T00:00:00+00:00")
        rows, space.rows[table] = space.rows[table], []
        for now in ("2027-11-30T00:00:00+00:00", "2027-12-30T00:00:00+00:00"):
            made = fetched(space, tmp_path, now=now)
            (gap,) = made.gaps
            assert (gap.kind, f"{table} had rows when it was read at 2026-11-02" in gap.reason) == ("lost_events", True)
            assert len(made.flows["uc"].seen) == 3
        space.rows[table] = [{**one, "event_time": "2028-01-10T00:00:00Z"} for one in rows]
        (gap,) = fetched(space, tmp_path, now="2028-01-30T00:00:00+00:00").gaps
        assert f"{table} has no rows between 2026-11-02T00:00:00Z and 2028-01-10T00:00:00Z" in gap.reason
        space.rows[table] = rows
        assert len(fetched(space, tmp_path, now="2028-02-01T00:00:00+00:00").gaps) == 1


def test_rows_of_another_workspace_are_not_taken_for_those_of_this_one(tmp_path: Path) -> None:
    """Neither under the same key, nor where two keys make one name of a file, nor from a file that was moved."""
    with serving([row("main.sales.people", "main.old.gone")]) as space:
        fetched(space, tmp_path)
    (old,) = tmp_path.iterdir()
    with serving([BOTH]) as space:
        made = fetched(space, tmp_path)
        assert [f.target.name for f in made.flows["uc"].seen if f.target] == ["main.sales.orders"]
        (new,) = set(tmp_path.iterdir()) - {old}
        new.write_bytes(old.read_bytes())
        with pytest.raises(LineageError, match="cannot be read"):
            fetched(space, tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [{"version": 7}, {"at": {"table_lineage": "junk"}}, {"at": {"x": NOW}}, {"flows": "negative"}, {"source": "x"}],
    ids=str,
)
def test_a_file_that_is_not_as_it_was_kept_is_an_error(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with serving([BOTH]) as space:
        fetched(space, tmp_path)
        (file,) = tmp_path.iterdir()
        kept = json.loads(file.read_bytes())
        if "flows" in wrong:
            wrong = {"flows": [[kept["flows"][0][0], [-5, 10**30, 1]]]}
        file.write_text(json.dumps({**kept, **wrong}))
        with pytest.raises(LineageError, match="cannot be read"):
            fetched(space, tmp_path)


def test_tables_without_a_row_are_a_gap(tmp_path: Path) -> None:
    with serving() as space:
        here = graph_of(fetched(space, tmp_path / "state"), tmp_path)
    for found in (here, harvested(tmp_path, [])):
        (gap,) = found.graph.gaps
        assert (gap.kind, "has no row of" in gap.reason) == ("lost_events", True)


def test_a_catalog_of_another_type_has_no_such_tables(tmp_path: Path) -> None:
    catalogs = {"uc": Catalog.model_validate({"type": "iceberg-rest", "uri": "http://127.0.0.1:1"})}
    sources = (UnityLineage(catalog="uc", warehouse=WAREHOUSE),)
    with pytest.raises(LineageError, match="is not a catalog of the type `unity`"):
        fetch_unity(sources, catalogs, tmp_path, NOW, lambda text: None, str)
