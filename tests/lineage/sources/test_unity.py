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
from pii_tracer.config.lineage import LineageSources, UnityLineage
from pii_tracer.lake.catalogs.base import CatalogView
from pii_tracer.lake.catalogs.unity.statements import Clock, Warehouse
from pii_tracer.lineage.graph.edges import EdgeType, Subtype
from pii_tracer.lineage.harvest import Given, Harvested, harvest_all
from pii_tracer.lineage.sources.unity.fetching import Fetched, fetch_unity
from pii_tracer.model.datasets import Column, ColumnId, DatasetId
from pii_tracer.model.errors import LineageError
from tests.lineage.sources.statement_standin import SCHEMAS, SECRET_TEXT, TOKEN, WAREHOUSE, Workspace, serving

PEOPLE = DatasetId(namespace="s3://lake", name="people")
ORDERS = DatasetId(namespace="s3://lake", name="orders")
ALIASES = {"main.sales.people": PEOPLE, "main.sales.orders": ORDERS}
COLUMNS = (Column(name="uid", type="bigint"), Column(name="mail", type="string"))
SCHEMA = dict.fromkeys(ALIASES, COLUMNS)
AT = "2026-11-01T10:00:00Z"
NOW = "2026-11-30T10:00:00+00:00"
UNITY = (UnityLineage(tables="t.json", columns="c.json"),)


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


def harvested(base: Path, tables: Sequence[Any], columns: Sequence[Any] = (), **given: Any) -> Harvested:
    for name, rows in (("t.json", tables), ("c.json", columns)):
        (base / name).write_text("".join(json.dumps(one) + "\n" for one in rows))
    given = {"aliases": ALIASES, "schemas": SCHEMA, **given}
    return harvest_all(LineageSources(unity=UNITY), Given(base, **given))


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
    assert len(harvested(tmp_path, [BOTH], columns).graph.facts.edges) == 2


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([row("main.sales.people")], ["no_outputs"]),
        ([row("main.sales.people", kind="", job="")], ["no_outputs"]),
        ([row("main.sales.people", kind="DBSQL_QUERY")], []),
        ([row("main.sales.people", kind="DASHBOARD_V3")], []),
        ([row("main.sales.people"), BOTH], ["no_columns"]),
        ([row("main.sales.people", job="42"), BOTH], ["no_columns", "no_outputs"]),
        ([row("", "main.sales.orders")], ["no_columns"]),
        ([row("", "main.sales.orders", kind="DBSQL_QUERY")], []),
        ([row("", "main.sales.orders"), BOTH], ["no_columns"]),
    ],
)
def test_a_read_without_a_target_and_a_write_without_a_source_are_unknown(
    tmp_path: Path, rows: list[Any], told: list[str]
) -> None:
    """SQL alone shows rows, or writes constants. Of all else nobody knows where it went or came from."""
    assert kinds(harvested(tmp_path, rows)) == told


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
def test_a_table_of_another_metastore_is_not_taken_for_one_of_its_name(
    tmp_path: Path, path: str, meant: DatasetId, told: list[str]
) -> None:
    aliases = {"sales.people": PEOPLE, "main.sales.orders": ORDERS}
    found = harvested(tmp_path, [{**BOTH, "source_path": path}], aliases=aliases, schemas={})
    assert found.graph.jobs_into(ORDERS)[0].inputs == (meant,)
    assert set(kinds(found)) >= set(told)


def test_a_table_that_was_made_anew_elsewhere_is_a_gap(tmp_path: Path) -> None:
    found = harvested(tmp_path, [{**BOTH, "target_path": "s3://old/orders"}])
    old = DatasetId(namespace="s3://old", name="orders")
    assert ("unresolved_name", old, ORDERS) in {(g.kind, g.dataset, g.same_as) for g in found.graph.gaps}
    assert found.graph.sources_of(old) == (PEOPLE,)


@pytest.mark.parametrize("path", ["dbfs:/mnt/drop", "/Volumes/main/sales/drop"])
def test_a_path_of_a_workspace_is_no_place_in_a_store(tmp_path: Path, path: str) -> None:
    assert kinds(harvested(tmp_path, [row("main.sales.people", path)])) == ["no_columns", "unresolved_name"]


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
    found = harvested(tmp_path, tables, columns)
    assert kinds(found) == ["unresolved_name"]
    mail = ColumnId(dataset=PEOPLE, column="mail")
    assert ColumnId(dataset=ORDERS, column="mail") in found.graph.columns_downstream(mail)


# Time


@pytest.mark.parametrize(("created", "told"), [("2026-10-31T00:00:00Z", ["lost_events"]), ("2026-11-02T00:00:00Z", [])])
def test_a_table_that_is_older_than_the_oldest_row_is_a_gap(tmp_path: Path, created: str, told: list[str]) -> None:
    at = round(datetime.fromisoformat(created.replace("Z", "+00:00")).timestamp() * 1_000_000)
    found = harvested(tmp_path, [BOTH], pair("uid", "mail"), created={"main.sales.orders": at})
    assert kinds(found) == told
    assert all(gap.dataset == ORDERS for gap in found.graph.gaps)


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
    found = harvest_all(sources, Given(tmp_path, aliases=ALIASES, schemas=SCHEMA))
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
    found = harvest_all(LineageSources(unity=(UnityLineage(tables="t"),)), Given(tmp_path, aliases=ALIASES))
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
    with pytest.raises(ValidationError, match="give `catalog` and `warehouse`"):
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
    return fetch_unity(sources, catalogs, folder, now, lambda text: None, (waits or Waits()).open)


def graph_of(made: Fetched, base: Path) -> Harvested:
    sources = LineageSources(unity=(UnityLineage(catalog="uc", warehouse=WAREHOUSE),))
    return harvest_all(sources, Given(base, aliases=ALIASES, schemas=SCHEMA, unity=made.flows, gaps=made.gaps))


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
    assert kinds(here) == kinds(there) == ["no_outputs"]
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
        ({"truncated": True}, "cuts the result off"),
        ({"short": True}, "says 2 rows and gives others"),
        ({"expired": 9}, "leads to a place of results that refused: HTTP 403"),
        ({"token_for": 0}, "does not accept the token, or it expired"),
        ({"token_for": 1}, "does not accept the token, or it expired"),
        ({"busy": 99}, r"is too busy \(HTTP 429\)"),
        ({"renamed": True}, "answers with other columns than it was asked for"),
        ({"unreadable": True}, "gives a part of a result that is no list of rows"),
    ],
)
def test_half_an_answer_is_none(tmp_path: Path, lies: dict[str, Any], told: str) -> None:
    """The first time it is an error. Afterwards what was read before stays, with a gap."""
    with serving([BOTH], **lies) as space, pytest.raises(LineageError, match=told) as first:
        fetched(space, tmp_path / "state")
    assert not (tmp_path / "state").exists()
    with serving([BOTH]) as space:
        before = fetched(space, tmp_path / "state")
    kept = next((tmp_path / "state").iterdir()).read_bytes()
    with serving([row("main.sales.orders", "main.sales.people")], **lies) as space:
        after = fetched(space, tmp_path / "state", now="later")
    (gap,) = after.gaps
    assert (gap.kind, NOW in gap.evidence) == ("source_unreachable", True)
    assert after.flows == before.flows
    assert next((tmp_path / "state").iterdir()).read_bytes() == kept
    for text in (str(first.value), gap.reason):
        assert not any(secret in text for secret in (SECRET_TEXT, TOKEN, "sig=", "127.0.0.1"))


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


def test_what_was_gone_before_it_was_read_is_a_gap(tmp_path: Path) -> None:
    with serving([row("main.sales.people", "main.old.gone", event_time="2025-01-02T00:00:00Z")]) as space:
        fetched(space, tmp_path, now="2025-02-01T00:00:00+00:00")
        space.rows["table_lineage"] = [BOTH]
        for _ in range(2):
            (gap,) = fetched(space, tmp_path).gaps
            assert gap.kind == "lost_events"
            assert "between 2025-02-01T00:00:00Z and 2026-11-01T10:00:00Z" in gap.reason


def test_tables_without_a_row_are_a_gap(tmp_path: Path) -> None:
    with serving() as space:
        here = graph_of(fetched(space, tmp_path / "state"), tmp_path)
    for found in (here, harvested(tmp_path, [])):
        (gap,) = found.graph.gaps
        assert (gap.kind, "no row at all" in gap.reason) == ("lost_events", True)


def test_a_catalog_of_another_type_has_no_such_tables(tmp_path: Path) -> None:
    catalogs = {"uc": Catalog.model_validate({"type": "iceberg-rest", "uri": "http://127.0.0.1:1"})}
    sources = (UnityLineage(catalog="uc", warehouse=WAREHOUSE),)
    with pytest.raises(LineageError, match="no catalog of the type `unity`"):
        fetch_unity(sources, catalogs, tmp_path, NOW, lambda text: None)
