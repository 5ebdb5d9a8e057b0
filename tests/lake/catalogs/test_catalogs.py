"""Catalogs that list their own tables: SQL, REST and Glue. What they do not answer is a gap, and the rest is read."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import sqlite3
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto import mock_aws
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.config.catalogs import Catalog, CatalogType, DeclaredTable
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.catalogs.glue.tables import list_glue
from pii_tracer.lake.catalogs.registry import catalog_of
from pii_tracer.lake.catalogs.rest import tables
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.iceberg.table_state import newest_metadata
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.rows.current_rows import read_columns
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError
from tests.icebergstores import view
from tests.kits.catalog_kit import CatalogKit, Filled
from tests.restsupport import RestServer, serving
from tests.servers import Json, answering

ROWS = pa.table({"uid": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})


def estate(**catalogs: Catalog) -> Estate:
    return Estate(
        version=1,
        estate="catalogs",
        environment="local",
        catalogs=catalogs,
        roots=("warehouse",),
        lineage=LineageSources(),
        subjects=(Subject(name="customer", source="core.prod.people", key="uid"),),
    )


SQL = Catalog(type=CatalogType.ICEBERG_SQL, uri="sqlite:///catalog.db", warehouse="warehouse")


def sql_catalog(base: Path, name: str = "core") -> SqlCatalog:
    (base / "warehouse").mkdir(exist_ok=True)
    return SqlCatalog(name, uri=f"sqlite:///{base / 'catalog.db'}", warehouse=(base / "warehouse").as_uri())


def table(catalog: Any, name: str, **more: Any) -> Any:
    catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
    made = catalog.create_table(name, schema=ROWS.schema, **more)
    made.append(ROWS)
    return made


def kinds(found: Inventory) -> list[tuple[str, str]]:
    return [(g.kind, g.evidence) for g in found.gaps]


def test_tables_of_an_sql_catalog_have_their_names_and_nested_namespaces(tmp_path: Path) -> None:
    catalog = sql_catalog(tmp_path)
    table(catalog, "prod.people")
    catalog.create_namespace("prod.eu")
    table(catalog, "prod.eu.people")
    made = estate(core=SQL)
    found = discover(made, tmp_path)
    assert [s.table for s in found.tables] == ["core.prod.eu.people", "core.prod.people"]
    assert not found.gaps
    paths = EstatePaths(made, tmp_path)
    assert paths.aliases["core.prod.people"] == found.tables[1].dataset
    assert read_columns(found.tables[1], ["uid"], paths).column("uid").to_pylist() == [1, 2, 3]


def test_what_counts_is_the_metadata_that_the_catalog_points_at(tmp_path: Path) -> None:
    """A commit that failed leaves a metadata file of the same version, or of a later one."""
    made = table(sql_catalog(tmp_path), "prod.people")
    current = Path(made.metadata_location.removeprefix("file://"))
    stray = json.loads(current.read_text()) | {"current-snapshot-id": None, "snapshots": [], "refs": {}}
    for number in ("00001", "00002"):
        (current.parent / f"{number}-ffffffff-0000-4000-8000-000000000000.metadata.json").write_text(json.dumps(stray))
    found = discover(estate(core=SQL), tmp_path)
    assert (found.tables[0].rows, found.tables[0].metadata) == (3, str(current))
    # by the folder alone, the stray one of the later version would have counted, and no row been seen
    alone = discover(estate(), tmp_path)
    assert alone.tables[0].rows == 0
    (current.parent / "00002-ffffffff-0000-4000-8000-000000000000.metadata.json").unlink()
    with pytest.raises(EstateError, match="two Iceberg metadata files"):
        newest_metadata(current.parent.parent)
    assert ("unreadable", str(current.parent)) in kinds(discover(estate(), tmp_path))


def test_a_database_that_is_missing_is_a_gap_and_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    found = discover(estate(core=SQL), tmp_path)
    assert kinds(found) == [("catalog_unreadable", "catalog core")]
    assert not (tmp_path / "catalog.db").exists()


def test_what_a_database_says_beside_the_known_is_a_gap_each(tmp_path: Path) -> None:
    catalog = sql_catalog(tmp_path)
    for name in ("whole", "gone", "torn", "away", "twice"):
        table(catalog, f"prod.{name}")
    table(sql_catalog(tmp_path, "other"), "prod.theirs")
    catalog.register_table("prod.twice_again", catalog.load_table("prod.twice").metadata_location)
    shutil.rmtree(tmp_path / "warehouse" / "prod" / "gone")
    torn = Path(catalog.load_table("prod.torn").metadata_location.removeprefix("file://"))
    torn.write_text("{")
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        database.execute(
            "UPDATE iceberg_tables SET metadata_location = 's3://b/away/metadata/00001-x.metadata.json'"
            " WHERE table_name = 'away'"
        )
    found = discover(estate(core=SQL), tmp_path)
    told = {kind for kind, _ in kinds(found)}
    assert told == {"unreadable", "remote_table", "unknown_catalog", "registered_twice"}
    assert "core.prod.whole" in {s.table for s in found.tables}
    evidence = {e: k for k, e in kinds(found)}
    assert evidence["catalog other.prod.theirs"] == "unknown_catalog"
    assert evidence["s3://b/away"] == "remote_table"
    assert evidence[str(tmp_path / "warehouse" / "prod" / "twice")] == "registered_twice"


def test_a_table_outside_the_roots_is_a_gap_and_is_not_read(tmp_path: Path) -> None:
    table(sql_catalog(tmp_path), "prod.people", location=(tmp_path / "elsewhere").as_uri())
    found = discover(estate(core=SQL), tmp_path)
    assert [kind for kind, _ in kinds(found)] == ["outside_roots"]
    assert not found.tables


def test_a_table_known_to_an_sql_and_a_hadoop_catalog_is_a_gap(tmp_path: Path) -> None:
    table(sql_catalog(tmp_path), "prod.people")
    hadoop = Catalog(type=CatalogType.ICEBERG_HADOOP, warehouse="warehouse")
    found = discover(estate(core=SQL, lake=hadoop), tmp_path)
    assert [kind for kind, _ in kinds(found)] == ["registered_twice"]
    assert "lake.prod.people" in found.gaps[0].reason


def test_metadata_may_lie_in_another_folder(tmp_path: Path) -> None:
    made = table(
        sql_catalog(tmp_path),
        "prod.people",
        properties={"write.metadata.path": (tmp_path / "warehouse" / "logs").as_uri()},
    )
    assert "/logs/" in made.metadata_location
    found = discover(estate(core=SQL), tmp_path)
    (state,) = [s for s in found.tables if s.table]
    assert (state.table, state.rows) == ("core.prod.people", 3)
    assert "external_metadata" in {kind for kind, _ in kinds(found)}


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    with serving(tmp_path_factory.mktemp("rest")) as server:
        yield server


def rest_estate(server: RestServer) -> Estate:
    return estate(lake=Catalog(type=CatalogType.ICEBERG_REST, uri=server.uri))


def test_tables_of_a_rest_catalog(rest: RestServer) -> None:
    catalog = RestCatalog("lake", uri=rest.uri)
    table(catalog, "prod.people")
    catalog.create_namespace(("prod", "eu"))
    table(catalog, "prod.eu.people")
    table(catalog, "prod.torn")
    found = discover(rest_estate(rest), rest.warehouse.parent)
    states = [s for s in found.tables if "/prod/" in s.location]
    assert [s.table for s in states] == ["lake.prod.eu.people", "lake.prod.people", "lake.prod.torn"]
    assert {s.rows for s in states} == {3}
    assert not found.gaps

    # one table whose metadata the server cannot read: a gap, and the others are there
    with refusing(rest, "/namespaces/prod/tables/torn", 500, "RuntimeIOException") as uri:
        half = estate(lake=Catalog(type=CatalogType.ICEBERG_REST, uri=uri))
        found = discover(half, rest.warehouse.parent)
    assert ("catalog_unreadable", "catalog lake.prod.torn") in kinds(found)
    assert {"lake.prod.eu.people", "lake.prod.people"} <= {s.table for s in found.tables}


def test_a_rest_catalog_that_does_not_answer_is_a_gap(tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    nobody = Catalog(type=CatalogType.ICEBERG_REST, uri="http://127.0.0.1:9")
    assert kinds(discover(estate(lake=nobody), tmp_path)) == [("catalog_unreadable", "catalog lake")]


def test_a_rest_catalog_that_has_fallen_silent_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "warehouse").mkdir()
    monkeypatch.setattr(tables, "ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        found = discover(estate(lake=Catalog(type=CatalogType.ICEBERG_REST, uri=uri)), tmp_path)
    assert kinds(found) == [("catalog_unreadable", "catalog lake")]


@contextmanager
def refusing(server: RestServer, part: str, code: int, kind: str) -> Iterator[str]:
    """The server through a door that answers a part of its paths with an error of the REST interface; gives the URI.

    It stands for permissions, and for files that the server itself cannot read: it tries for 93 seconds, then answers.
    """

    class Door(Json):
        def do_GET(self) -> None:
            if part in self.path:
                error = {"error": {"message": "no", "type": kind, "code": code}}
                self.answer(code, json.dumps(error).encode())
                return
            with urllib.request.urlopen(server.uri + self.path) as answer:
                self.answer(answer.status, answer.read())

    with answering(Door) as uri:
        yield uri


def test_a_namespace_that_is_refused_is_a_gap(rest: RestServer) -> None:
    catalog = RestCatalog("lake", uri=rest.uri)
    table(catalog, "secret.people")
    table(catalog, "shown.people")
    with refusing(rest, "/namespaces/secret/tables", 403, "ForbiddenException") as uri:
        half = estate(lake=Catalog(type=CatalogType.ICEBERG_REST, uri=uri))
        found = discover(half, rest.warehouse.parent)
    assert ("catalog_unreadable", "catalog lake.secret") in kinds(found)
    assert "lake.shown.people" in {s.table for s in found.tables}
    # what lies on disk is seen all the same, without its name
    (unnamed,) = [s for s in found.tables if s.location.endswith("/secret/people")]
    assert unnamed.table is None


def test_views_of_a_rest_catalog_are_lineage_and_their_former_versions_are_searched(rest: RestServer) -> None:
    """A view of a dialect that nobody reads is a gap, and so is one that is refused."""
    client = RestCatalog("lake", uri=rest.uri)
    table(client, "shop.people")
    catalog = Catalog(type=CatalogType.ICEBERG_REST, uri=rest.uri)
    view(client, "shop.named", "SELECT uid, name FROM people", ROWS.schema)
    view(client, "shop.strange", "people | project uid", ROWS.schema, dialect="kusto")
    listing = tables.list_rest("lake", catalog)
    [found] = listing.views
    assert (found.name, found.query, found.dialect) == ("lake.shop.named", "SELECT uid, name FROM people", "spark")
    assert (found.written_in, [column.name for column in found.columns]) == (("lake", "shop"), ["uid", "name"])
    assert [(one.kind, one.evidence) for one in listing.gaps] == [("catalog_unreadable", "catalog lake.shop.strange")]
    assert "CREATE VIEW" in listing.gaps[0].reason
    client.create_namespace("noted", {"comment": "asked by asha"})
    texts = {text.parts: text.document for text in tables.texts_of("lake", catalog)}
    assert texts["noted",]["comment"] == "asked by asha"
    assert texts["shop", "strange"]["query"] == ["people | project uid"]
    assert ("shop", "people") not in texts, "its metadata file is searched"
    with refusing(rest, "/namespaces/shop/views", 403, "ForbiddenException") as uri:
        half = Catalog(type=CatalogType.ICEBERG_REST, uri=uri)
        listing, unread = tables.list_rest("lake", half), [one for one in tables.texts_of("lake", half) if one.unread]
    assert [(one.kind, one.evidence) for one in listing.gaps] == [("catalog_unreadable", "catalog lake.shop")]
    assert "lake.shop.people" in {entry.name for entry in listing.entries}
    assert [one.parts for one in unread] == [("shop",)]
    client.drop_view("shop.strange")  # other tests have the server, too


@contextmanager
def older(server: RestServer, views: int | None = None) -> Iterator[str]:
    """The server through a door that does not tell its endpoints, as servers of before did; views: the status that it
    answers to lists of views. Gives the URI."""

    class Door(Json):
        def do_GET(self) -> None:
            if views and self.path.endswith("/views"):
                self.answer(views, b"no")
                return
            with urllib.request.urlopen(server.uri + self.path) as answer:
                told = json.loads(answer.read())
            told.pop("endpoints", None)
            self.answer(200, json.dumps(told).encode())

    with answering(Door) as uri:
        yield uri


def test_a_rest_catalog_that_does_not_tell_its_endpoints_is_asked_for_views(rest: RestServer) -> None:
    """One that has none says so in one of three ways; any other answer is a gap."""
    client = RestCatalog("lake", uri=rest.uri)
    table(client, "older.people")
    view(client, "older.named", "SELECT uid FROM people", ROWS.schema)
    told = {}
    for status in (None, 404, 405, 501, 403, 500):
        with older(rest, status) as uri:
            listing = tables.list_rest("lake", Catalog(type=CatalogType.ICEBERG_REST, uri=uri))
        gaps = [one.evidence for one in listing.gaps if one.evidence.endswith("lake.older")]
        told[status] = ([one.name for one in listing.views if ".older." in one.name], gaps)
    found, nothing, gap = (["lake.older.named"], []), ([], []), ([], ["catalog lake.older"])
    assert told == {None: found, 404: nothing, 405: nothing, 501: nothing, 403: gap, 500: gap}
    client.drop_view("older.named")


@pytest.mark.parametrize("what", ["namespaces", "tables", "views"])
@pytest.mark.parametrize("tokens", [("a",), ("a", "b"), ()], ids=["the same page", "a circle", "no end"])
def test_a_list_of_a_rest_catalog_that_leads_back_or_has_no_end_is_a_gap(
    what: str, tokens: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_PAGES", 5)
    asked: list[str] = []

    class Endless(Json):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            told: dict[str, Any] = {"namespaces": [] if "parent=" in self.path else [["shop"]], "identifiers": []}
            told |= {"defaults": {}, "overrides": {}}
            if path.endswith(f"/{what}") and "parent=" not in self.path:
                asked.append(self.path)
                told["next-page-token"] = tokens[len(asked) % len(tokens)] if tokens else str(len(asked))
            self.answer(200, json.dumps(told).encode())

    with answering(Endless) as uri:
        listing = tables.list_rest("lake", Catalog(type=CatalogType.ICEBERG_REST, uri=uri))
    [gap] = listing.gaps
    assert gap.evidence == ("catalog lake" if what == "namespaces" else "catalog lake.shop")
    assert "EndlessList" in gap.reason
    assert len(asked) == (len(tokens) or 5) + 1


def test_a_view_that_cannot_be_read_is_a_gap_and_the_others_are_read(
    rest: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comments of columns in other columns are searched, too."""
    client = RestCatalog("lake", uri=rest.uri)
    client.create_namespace("odd")
    inner = pa.field("mail", pa.string(), metadata={"doc": "asha's"})
    view(client, "odd.deep", "SELECT who FROM people", pa.schema([pa.field("who", pa.struct([inner]))]))
    view(client, "odd.torn", "SELECT 1", ROWS.schema)
    view(client, ("odd", "v.1"), "SELECT 1", ROWS.schema)
    catalog = Catalog(type=CatalogType.ICEBERG_REST, uri=rest.uri)
    texts = {text.parts: text.document for text in tables.texts_of("lake", catalog)}
    assert ["mail", "asha's"] in texts["odd", "deep"]["columns"]

    def torn(read: Any) -> Any:
        def reading(*given: Any) -> Any:
            if given[-1].name()[-1] == "torn":
                raise ValueError("not as the specification has it")
            return read(*given)

        return reading

    for name in ("view_of", "document_of"):
        monkeypatch.setattr(tables, name, torn(getattr(tables, name)))
    listing, texts_now = tables.list_rest("lake", catalog), list(tables.texts_of("lake", catalog))
    reasons = {one.evidence: one.reason for one in listing.gaps}
    assert "ValueError" in reasons["catalog lake.odd.torn"]
    assert "contains a dot" in reasons["catalog lake.odd.v.1"]
    assert "lake.odd.deep" in {one.name for one in listing.views}
    assert [one.parts for one in texts_now if one.unread] == [("odd", "torn")]
    assert ("odd", "deep") in {one.parts for one in texts_now}
    for left in ("deep", "torn", "v.1"):
        client.drop_view(("odd", left))


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        yield boto3.client("glue", region_name="ap-south-1")


GLUE = Catalog(type=CatalogType.GLUE, region="ap-south-1")


def glue_table(glue: Any, name: str, location: Path | str, more: dict[str, Any]) -> None:
    storage = {"Location": str(location), **more.pop("storage", {})}
    glue.create_table(DatabaseName="prod", TableInput={"Name": name, "StorageDescriptor": storage, **more})


def test_a_list_of_glue_that_leads_back_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over another page, which the client's library does not notice."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    asked: list[str] = []

    class Endless(Json):
        def do_POST(self) -> None:
            asked.append(self.headers["X-Amz-Target"])
            token = "ab"[len(asked) % 2]
            self.answer(200, json.dumps({"DatabaseList": [], "NextToken": token}).encode())

    with answering(Endless) as uri:
        listing = list_glue("lake", Catalog(type=CatalogType.GLUE, region="ap-south-1", endpoint_url=uri))
    [gap] = listing.gaps
    assert "PaginationError" in gap.reason
    assert len(asked) == 3


def test_tables_of_glue_in_all_formats(glue: Any, tmp_path: Path) -> None:
    from deltalake import write_deltalake

    glue.create_database(DatabaseInput={"Name": "prod"})
    warehouse = tmp_path / "warehouse"
    people = table(sql_catalog(tmp_path), "prod.people")
    glue_table(
        glue,
        "people",
        "s3://stale/place",
        {"Parameters": {"table_type": "ICEBERG", "metadata_location": people.metadata_location}},
    )
    write_deltalake(warehouse / "wallets", ROWS)
    spark = {"Parameters": {"spark.sql.sources.provider": "delta"}}
    at = {"SerdeInfo": {"Parameters": {"path": (warehouse / "wallets").as_uri()}}}
    glue_table(glue, "wallets", "file:/nowhere/prod.db/wallets-__PLACEHOLDER__", {**spark, "storage": at})
    (warehouse / "plain").mkdir()
    pq.write_table(ROWS, warehouse / "plain" / "1.parquet")
    glue_table(glue, "plain", warehouse / "plain", {"Parameters": {"classification": "parquet"}})
    glue_table(glue, "gone", warehouse / "gone", {"Parameters": {"classification": "parquet"}})
    glue_table(glue, "odd", warehouse / "odd", {})
    glue_table(glue, "far", "s3://bucket/far", {"Parameters": {"classification": "orc"}})
    coded = base64.b64encode(json.dumps({"originalSql": "SELECT uid FROM plain", "schema": "prod"}).encode()).decode()
    query = {"ViewOriginalText": f"/* Presto View: {coded} */", "ViewExpandedText": "/* Presto View */"}
    glue_table(glue, "seen", "", {"TableType": "VIRTUAL_VIEW", **query})
    glue_table(glue, "silent", "", {"TableType": "VIRTUAL_VIEW"})
    found = discover(estate(aws=GLUE), tmp_path)
    assert {(s.table, s.format) for s in found.tables} == {
        ("aws.prod.people", ICEBERG),
        ("prod.wallets", DELTA),
        ("prod.plain", Format.PARQUET),
    }
    assert sorted(kinds(found)) == [
        ("catalog_unreadable", "catalog aws.prod.silent"),
        ("missing_table", str(warehouse / "gone")),
        ("remote_table", "s3://bucket/far"),
        ("unknown_table", "catalog aws.prod.odd"),
    ]
    assert EstatePaths(estate(aws=GLUE), tmp_path).aliases["spark_catalog.prod.wallets"]
    (view,) = list_glue("aws", GLUE).views
    assert (view.name, view.query, view.dialect, view.written_in) == (
        "prod.seen",
        "SELECT uid FROM plain",
        "trino",
        ("prod",),
    )


def test_a_glue_database_that_is_not_there_is_a_gap(glue: Any, tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    glue.create_database(DatabaseInput={"Name": "prod"})
    named = Catalog(type=CatalogType.GLUE, region="ap-south-1", databases=("prod", "wrong"))
    assert kinds(discover(estate(aws=named), tmp_path)) == [("catalog_unreadable", "catalog aws.wrong")]


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (CatalogType.ICEBERG_REST, {}),
        (CatalogType.ICEBERG_REST, {"uri": "http://user:secret@host/"}),
        (CatalogType.ICEBERG_SQL, {"uri": "sqlite:///c.db"}),
        (CatalogType.ICEBERG_SQL, {"uri": "postgresql://u:p@host/db", "warehouse": "w"}),
        (CatalogType.ICEBERG_SQL, {"uri": "postgresql://host/db?password=x", "warehouse": "w"}),
        (CatalogType.GLUE, {}),
        (CatalogType.ICEBERG_HADOOP, {"warehouse": "w", "uri": "http://x"}),
        (
            CatalogType.DECLARED,
            {"warehouse": "w", "tables": (DeclaredTable(name="a.b", format=DELTA, location="x"),)},
        ),
    ],
)
def test_catalogs_that_cannot_be(kind: CatalogType, keys: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="catalog"):
        Catalog(type=kind, **keys)


def test_the_doctor_says_which_catalog_answers_and_which_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import yaml

    from pii_tracer.cli.main import run

    table(sql_catalog(tmp_path, "good"), "prod.people")
    good = {"type": "iceberg-sql", "uri": "sqlite:///catalog.db", "warehouse": "warehouse"}
    made = {
        "version": 1,
        "estate": "t",
        "environment": "local",
        "catalogs": {"core": {"type": "iceberg-sql", "uri": "sqlite:///none.db", "warehouse": "w"}, "good": good},
        "roots": ["w"],
        "lineage": {},
        "subjects": [{"name": "user", "source": "core.a.users", "key": "uid"}],
    }
    (tmp_path / "pii-tracer.yaml").write_text(yaml.safe_dump(made))
    run(["doctor", "--estate", str(tmp_path / "pii-tracer.yaml"), "--format", "json"])
    findings = json.loads(capsys.readouterr().out)
    (told,) = [f for f in findings if "catalog core" in str(f)]
    assert "docs/catalogs.md" in told["mend"]
    (answers,) = [f for f in findings if f["what"] == "catalog good"]
    assert (answers["level"], answers["detail"]) == ("ok", "1 table")


NOBODY = "http://127.0.0.1:9"


class TestSqlKit(CatalogKit):
    @pytest.fixture
    def filled(self, tmp_path: Path) -> Filled:
        for name in ("prod.people", "prod.eu.people"):
            table(sql_catalog(tmp_path), name)
        return Filled("core", SQL, tmp_path, ("core.prod.people", "core.prod.eu.people"))

    @pytest.fixture
    def silent(self) -> Catalog:
        return SQL


class TestRestKit(CatalogKit):
    @pytest.fixture
    def filled(self, rest: RestServer) -> Filled:
        catalog = RestCatalog("lake", uri=rest.uri)
        if not catalog.table_exists("kit.people"):
            table(catalog, "kit.people")
        made = Catalog(type=CatalogType.ICEBERG_REST, uri=rest.uri)
        return Filled("lake", made, rest.warehouse.parent, ("lake.kit.people",))

    @pytest.fixture
    def silent(self) -> Catalog:
        return Catalog(type=CatalogType.ICEBERG_REST, uri=NOBODY)


class TestGlueKit(CatalogKit):
    @pytest.fixture
    def filled(self, glue: Any, tmp_path: Path) -> Filled:
        glue.create_database(DatabaseInput={"Name": "prod"})
        people = table(sql_catalog(tmp_path), "prod.people")
        marks = {"table_type": "ICEBERG", "metadata_location": people.metadata_location}
        glue_table(glue, "people", people.location(), {"Parameters": marks})
        return Filled("aws", GLUE, tmp_path, ("aws.prod.people",))


class TestFolderKit(CatalogKit):
    @pytest.fixture
    def filled(self, tmp_path: Path) -> Filled:
        table(sql_catalog(tmp_path), "prod.people")
        made = Catalog(type=CatalogType.ICEBERG_HADOOP, warehouse="warehouse")
        return Filled("lake", made, tmp_path, ("lake.prod.people",))


class TestDeclaredKit(CatalogKit):
    @pytest.fixture
    def filled(self, tmp_path: Path) -> Filled:
        """It lists those of its tables that no file tells how to read; the folder of a Parquet table says all."""
        (tmp_path / "warehouse" / "plain").mkdir(parents=True)
        (tmp_path / "warehouse" / "plain" / "1.csv").write_text("1;a\n2;b\n")
        columns = ({"name": "uid", "type": "bigint"}, {"name": "name", "type": "string"})
        declared = {"name": "prod.plain", "format": "csv", "location": "warehouse/plain", "options": {"sep": ";"}}
        catalog = Catalog.model_validate({"type": "declared", "tables": [{**declared, "columns": columns}]})
        return Filled("session", catalog, tmp_path, ("prod.plain",))


def test_a_type_without_an_adapter_is_refused() -> None:
    with pytest.raises(ValueError, match="no installed adapter knows this type of catalogs"):
        Catalog.model_validate({"type": "toy", "uri": "http://x"})


def test_properties_of_namespaces_in_a_sql_catalog_are_told(tmp_path: Path) -> None:
    """Of this catalog alone. A database that does not have them, or does not answer, is told as unread."""
    sql_catalog(tmp_path).create_namespace("crm", {"owner": "asha@x.example"})
    sql_catalog(tmp_path, "other").create_namespace("crm", {"owner": "ben@x.example"})
    (told,) = catalog_of(CatalogType.ICEBERG_SQL).texts("core", SQL, tmp_path)
    assert (told.parts, told.unread) == (("crm",), None)
    assert told.document["owner"] == "asha@x.example"
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        database.execute("DROP TABLE iceberg_namespace_properties")
    (told,) = catalog_of(CatalogType.ICEBERG_SQL).texts("core", SQL, tmp_path)
    assert told.unread == "OperationalError"
