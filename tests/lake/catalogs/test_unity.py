"""Tables of a Unity Catalog metastore (a strict stand-in of its REST interface), and what is a gap there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.app.estate_draft.given_places import read_places
from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.base import CatalogView, Listing
from pii_tracer.lake.catalogs.registry import catalog_of
from pii_tracer.lake.catalogs.unity import client
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.model.datasets import Column, Format
from tests.gcssupport import strict_gcs
from tests.kits.catalog_kit import CatalogKit, Filled
from tests.lake.catalogs.test_catalogs import ROWS, estate, kinds
from tests.unitysupport import TOKEN, Unity, installed, serving, token

__all__ = ["installed", "token"]

pytestmark = pytest.mark.usefixtures("token")
NOBODY = "http://127.0.0.1:9/api/2.1/unity-catalog"


@pytest.fixture(params=[True, False], ids=["databricks", "open source"])
def unity(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Unity]:
    """A metastore of either kind, with one Delta table below the estate's root."""
    with serving(databricks=request.param) as server:
        (tmp_path / "warehouse").mkdir()
        write_deltalake(tmp_path / "warehouse" / "orders", ROWS)
        server.table("main.sales.orders", (tmp_path / "warehouse" / "orders").as_uri())
        yield server


@pytest.fixture
def databricks(tmp_path: Path) -> Iterator[Unity]:
    """One of Databricks' kind, with a schema and nothing in it; the estate's root is empty."""
    with serving() as server:
        (tmp_path / "warehouse").mkdir()
        server.schema("main.sales")
        yield server


def lake(server: Unity, **more: Any) -> Estate:
    return estate(uc=server.made(**more))


def listed(server: Unity, **more: Any) -> Listing:
    return catalog_of(CatalogType.UNITY).tables("uc", server.made(**more), Path())


def reasons(gaps: tuple[InventoryGap, ...]) -> dict[str, str]:
    return {gap.evidence: gap.reason for gap in gaps}


def untyped(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name=name, type="") for name in names)


def parquet(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(ROWS, folder / "part-0.parquet")
    return folder.as_uri()


class TestUnityKit(CatalogKit):
    @pytest.fixture
    def filled(self, unity: Unity, tmp_path: Path) -> Filled:
        unity.table("main.sales.visits", parquet(tmp_path / "warehouse" / "visits"), "PARQUET")
        return Filled("uc", unity.made(), tmp_path, ("main.sales.orders", "main.sales.visits"))

    @pytest.fixture
    def silent(self) -> Catalog:
        return Catalog(type=CatalogType.UNITY, uri=NOBODY)


def test_tables_in_all_formats(unity: Unity, tmp_path: Path) -> None:
    from pyarrow import orc

    home = tmp_path / "warehouse"
    unity.table("main.sales.visits", parquet(home / "visits"), "PARQUET")
    (home / "orcs").mkdir()
    orc.write_table(ROWS, home / "orcs" / "part-0.orc")
    unity.table("main.raw.orcs", (home / "orcs").as_uri(), "ORC")
    (home / "lines").mkdir()
    (home / "lines" / "a.json").write_text('[{"uid": 1,\n "name": "a"}]\n')
    unity.table("main.raw.lines", str(home / "lines"), "JSON", properties={"option.multiLine": "true"})
    (home / "texts with spaces").mkdir()
    (home / "texts with spaces" / "a.csv").write_text("uid,name\n1,a\n")
    texts = (home / "texts with spaces").as_uri()
    unity.table("dev.raw.texts", texts, "CSV", properties={"option.header": "true"})
    unity.table("main.raw.gone", (home / "gone").as_uri())
    unity.table("main.raw.far", (tmp_path / "far").as_uri())
    unity.table("main.raw.bucket", "s3://bucket/far")
    unity.table("main.raw.blob", "abfss://c@account.dfs.core.windows.net/t")
    unity.table("main.raw.mount", "dbfs:/mnt/t")
    found = discover(lake(unity), tmp_path)
    assert {(s.table, s.format, s.location) for s in found.tables} == {
        ("main.sales.orders", DELTA, str(home / "orders")),
        ("main.sales.visits", Format.PARQUET, str(home / "visits")),
        ("main.raw.orcs", Format.ORC, str(home / "orcs")),
        ("main.raw.lines", Format.JSON, str(home / "lines")),
        ("dev.raw.texts", Format.CSV, str(home / "texts with spaces")),
    }
    assert sorted(kinds(found)) == [
        ("missing_table", str(home / "gone")),
        ("outside_roots", str(tmp_path / "far")),
        ("outside_roots", "dbfs:/mnt/t"),
        ("remote_table", "abfss://c@account.dfs.core.windows.net/t"),
        ("remote_table", "s3://bucket/far"),
    ]
    aliases = EstatePaths(lake(unity), tmp_path).aliases
    assert aliases["main.sales.orders"].name == str(home / "orders")


NO_ROWS_HERE: list[tuple[str, dict[str, Any]]] = [
    ("materialized view", {"table_type": "MATERIALIZED_VIEW"}),
    ("streaming table", {"table_type": "STREAMING_TABLE"}),
    ("a different system", {"table_type": "FOREIGN", "stored": "POSTGRESQL_FORMAT"}),
    ("an object of an unknown kind", {"table_type": "X_NEW"}),
    ("unknown format", {"stored": "DELTASHARING"}),
    ("unknown format", {"stored": "VECTOR_INDEX_FORMAT"}),
    ("unknown format", {"stored": "TEXT"}),
    ("unknown format", {"stored": None}),
    ("this interface does not return the metadata file", {"stored": "ICEBERG"}),
    ("columns have no types", {"stored": "CSV"}),
    ("`lineSep`", {"stored": "CSV", "properties": {"option.header": "true", "option.lineSep": "|"}}),
    ("option of its own", {"stored": "JSON", "properties": {"option.lineSep": ";"}}),
]


@pytest.mark.parametrize(("told", "made"), NO_ROWS_HERE)
def test_what_is_no_plain_table_is_a_gap_and_not_read_as_one(
    told: str, made: dict[str, Any], databricks: Unity, tmp_path: Path
) -> None:
    """Its files are searched like any of no known format, and are nobody's rows to be written again."""
    databricks.table("main.sales.odd", parquet(tmp_path / "warehouse" / "odd"), **made)
    found = discover(lake(databricks), tmp_path)
    assert found.tables == ()
    assert sorted(kinds(found)) == [
        ("unknown_file", str(tmp_path / "warehouse" / "odd" / "part-0.parquet")),
        ("unknown_table", "catalog uc.main.sales.odd"),
    ]
    assert told in next(g.reason for g in found.gaps if g.kind == "unknown_table")


@pytest.mark.parametrize("property", ["delta.feature.catalogManaged", "delta.feature.catalogOwned-preview"])
def test_a_table_whose_catalog_commits_is_a_gap(unity: Unity, tmp_path: Path, property: str) -> None:
    unity.tables["main.sales.orders"]["properties"] = {property: "supported"}
    found = discover(lake(unity), tmp_path)
    assert [s.table for s in found.tables] == ["main.sales.orders"]
    assert kinds(found) == [("unknown_table", "catalog uc.main.sales.orders")]


def test_a_table_that_is_written_as_another_format_as_well_is_a_table_of_the_first(
    unity: Unity, tmp_path: Path
) -> None:
    unity.tables["main.sales.orders"]["data_source_format"] = "DELTA_UNIFORM_ICEBERG"
    found = discover(lake(unity), tmp_path)
    assert [(s.table, s.format) for s in found.tables] == [("main.sales.orders", DELTA)]


def test_shallow_clones_are_tables_like_others(unity: Unity, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "warehouse" / "orders", tmp_path / "warehouse" / "clone")
    unity.table("main.sales.clone", (tmp_path / "warehouse" / "clone").as_uri(), table_type="MANAGED_SHALLOW_CLONE")
    found = discover(lake(unity), tmp_path)
    assert {s.table for s in found.tables} == {"main.sales.orders", "main.sales.clone"}


def test_partitions_that_are_registered_one_by_one_are_a_gap(unity: Unity, tmp_path: Path) -> None:
    place = parquet(tmp_path / "warehouse" / "visits")
    unity.table("main.sales.visits", place, "PARQUET", properties={"partitionMetadataEnabled": "true"})
    found = discover(lake(unity), tmp_path)
    assert ("external_files", "catalog uc.main.sales.visits") in kinds(found)


def test_views_have_their_texts_and_are_no_tables(unity: Unity) -> None:
    created = {"view.catalogAndNamespace.numParts": "2", "view.catalogAndNamespace.part.0": "dev"}
    created |= {"view.catalogAndNamespace.part.1": "raw"}
    unity.view("main.sales.seen", "SELECT * FROM orders", columns=[{"name": "n", "type_text": "int"}])
    unity.view("main.sales.moved", "SELECT 1", properties=created)
    unity.table("main.sales.metric", None, None, table_type="METRIC_VIEW", view_definition="version: 0.1")
    unity.table("main.information_schema.tables", None, "UNITY_CATALOG")
    unity.view("main.information_schema.views", "")
    found = listed(unity)
    assert [entry.name for entry in found.entries] == ["main.sales.orders"]
    assert found.views == (
        CatalogView("uc", "main.sales.moved", "SELECT 1", "databricks", ("dev", "raw"), untyped("uid", "name")),
        CatalogView(
            "uc",
            "main.sales.seen",
            "SELECT * FROM orders",
            "databricks",
            ("main", "sales"),
            (Column(name="n", type="int"),),
        ),
    )
    assert found.gaps == ()


def test_a_view_without_its_text_is_a_gap(unity: Unity) -> None:
    unity.view("main.sales.seen", "")
    assert [gap.evidence for gap in listed(unity).gaps] == ["catalog uc.main.sales.seen"]


# -- volumes and external locations -----------------------------------------------------------------------------------


def test_a_volume_below_the_roots_is_met_as_a_folder(unity: Unity, tmp_path: Path) -> None:
    unity.volume("main.sales.drop", parquet(tmp_path / "warehouse" / "drop"), "MANAGED")
    found = discover(lake(unity), tmp_path)
    assert {(s.table, s.location) for s in found.tables} >= {(None, str(tmp_path / "warehouse" / "drop"))}
    assert found.gaps == ()


def test_a_volume_elsewhere_is_looked_into_or_a_gap(unity: Unity, tmp_path: Path) -> None:
    unity.volume("main.sales.away", (tmp_path / "away").as_uri())
    unity.volume("main.sales.blob", "abfss://c@account.dfs.core.windows.net/v")
    unity.volume("main.sales.far", "abfss://drop@account.dfs.core.windows.net/v")
    unity.volume("main.sales.gone", (tmp_path / "warehouse" / "gone").as_uri())
    unity.volume("main.sales.bucket", "s3://bucket/volume")
    unity.volume("main.sales.mount", "wasbs-or-so://x/y")
    unity.volume("main.sales.untold", None)
    found = discover(lake(unity), tmp_path)
    assert sorted(kinds(found)) == [
        ("catalog_unreadable", "catalog uc.main.sales.untold"),
        ("missing_table", str(tmp_path / "warehouse" / "gone")),
        ("outside_roots", "abfss://drop@account.dfs.core.windows.net/v"),
        ("outside_roots", (tmp_path / "away").as_uri()),
        ("remote_table", "abfss://c@account.dfs.core.windows.net/v"),
        ("remote_table", "s3://bucket/volume"),
        ("remote_table", "wasbs-or-so://x/y"),
    ]
    assert [str(place.location) for place in found.remote] == ["s3://bucket/volume"]


def test_a_volume_in_a_declared_store_is_that_places(unity: Unity, tmp_path: Path) -> None:
    unity.volume("main.sales.drop", "gs://club/drop/in")
    made = lake(unity).model_dump(exclude_defaults=True)
    made["object_stores"] = [
        {"store": "gs://club", "anonymous": True, "endpoint": NOBODY, "places": [{"prefix": "drop"}]}
    ]
    kinds_now = [kind for kind, _ in kinds(discover(Estate.model_validate(made), tmp_path))]
    assert not {"remote_table", "outside_roots"} & set(kinds_now)


@pytest.mark.parametrize(
    ("key", "data", "left"),
    [
        ("lake/exports", b"1", 1),
        ("lake/exports/orders", b"1", 1),
        ("lake/exports", b"", 0),
        ("lake/exports/", b"", 0),
        ("lake/exports/orders/part", b"1", 0),
    ],
)
def test_an_object_with_the_key_of_a_folder_around_a_place_is_told(
    databricks: Unity, tmp_path: Path, key: str, data: bytes, left: int
) -> None:
    """An empty one stands for the folder, and one with bytes is in no place."""
    databricks.location("lake", "gs://club/lake")
    with strict_gcs() as gcs:
        gcs.bucket("club")
        gcs.put("club", key, data)
        made = lake(databricks).model_dump(exclude_defaults=True)
        places = [{"prefix": "lake/exports/orders"}]
        made["object_stores"] = [{"store": "gs://club", "anonymous": True, "endpoint": gcs.endpoint, "places": places}]
        drawn = Estate.model_validate(made)
        found = discover(drawn, tmp_path)
    assert EstatePaths(drawn, tmp_path).registry.gaps == (), "only discovery lists what lies there"
    told = [gap.reason for gap in found.gaps if gap.kind == "outside_roots"]
    assert [reason.startswith("1 object of the external location lake") for reason in told] == [True] * left


def test_external_locations_beyond_the_roots_are_gaps(unity: Unity, tmp_path: Path) -> None:
    unity.location("inner", (tmp_path / "warehouse" / "x").as_uri())
    unity.location("outer", "s3://bucket/all")
    unity.location("hidden", None)
    found = discover(lake(unity), tmp_path)
    assert sorted(kinds(found)) == [("catalog_unreadable", "catalog uc.hidden"), ("outside_roots", "s3://bucket/all")]
    assert found.remote == ()
    named = discover(lake(unity, databases=("main",)), tmp_path)
    assert named.gaps == ()


# -- scope ------------------------------------------------------------------------------------------------------------


def test_only_what_the_estate_file_names_is_asked_for(unity: Unity) -> None:
    unity.table("dev.raw.orders", "file:///dev")
    unity.table("main.raw.orders", "file:///raw")
    unity.table("other.raw.orders", "file:///other")
    names = [entry.name for entry in listed(unity, databases=("main.sales", "DEV")).entries]
    assert names == ["dev.raw.orders", "main.sales.orders"]


def test_a_catalog_or_schema_that_is_not_listed_is_a_gap(unity: Unity) -> None:
    found = listed(unity, databases=("wrong", "main.wrong", "main.sales"))
    assert [gap.evidence for gap in found.gaps] == ["catalog uc.wrong", "catalog uc.main.wrong"]
    assert len(found.entries) == 1


@pytest.mark.parametrize(
    "kind", ["FOREIGN_CATALOG", "DELTASHARING_CATALOG", "SYSTEM_CATALOG", "INTERNAL_CATALOG", "odd"]
)
def test_catalogs_of_others_are_gaps_and_not_asked_for(databricks: Unity, tmp_path: Path, kind: str) -> None:
    databricks.catalog("away", catalog_type=kind)
    databricks.table("away.s.t", None)
    found = discover(lake(databricks), tmp_path)
    assert kinds(found) == [("unknown_catalog", "catalog uc.away")]
    assert databricks.asked.count("/schemas") == 1


def test_a_metastore_or_a_catalog_without_anything_is_a_gap(databricks: Unity) -> None:
    databricks.catalog("empty")
    assert [gap.evidence for gap in listed(databricks).gaps] == ["catalog uc.empty"]
    databricks.catalogs.clear()
    assert [gap.evidence for gap in listed(databricks).gaps] == ["catalog uc"]


# -- half answers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [False, True])
def test_a_list_is_read_to_its_last_page(unity: Unity, empty: bool) -> None:
    unity.lies.empty = empty
    for number in range(7):
        unity.table(f"main.sales.t{number}", f"file:///t{number}")
    assert len(listed(unity).entries) == 8


def test_a_list_that_leads_back_is_a_gap(unity: Unity) -> None:
    unity.lies.circle = True
    for number in range(5):
        unity.table(f"main.sales.t{number}", f"file:///t{number}")
    found = listed(unity)
    assert [gap.evidence for gap in found.gaps] == ["catalog uc.main.sales"]
    assert "an incomplete list" in found.gaps[0].reason
    assert unity.asked.count("/tables") == 3


def test_a_list_without_an_end_is_a_gap(unity: Unity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_PAGES", 2)
    for number in range(5):
        unity.table(f"main.sales.t{number}", f"file:///t{number}")
    assert [gap.evidence for gap in listed(unity).gaps] == ["catalog uc.main.sales"]


PRIVILEGES = {
    "main": {"USE CATALOG"},
    "main.sales": {"USE SCHEMA"},
    "main.sales.orders": {"SELECT"},
    "main.sales.drop": {"READ VOLUME"},
}


@pytest.mark.parametrize(
    ("grants", "evidence", "grant"),
    [
        ({}, "catalog uc", "USE CATALOG on each, or BROWSE"),
        ({"main": {"BROWSE"}}, "catalog uc.main.sales.orders", "grant SELECT"),
        ({"main": {"BROWSE"}}, "catalog uc.main.sales.drop", "READ VOLUME"),
        ({**PRIVILEGES, "main.sales": set()}, "catalog uc.main", "USE SCHEMA or BROWSE"),
        ({**PRIVILEGES, "main.sales.orders": {"BROWSE"}}, "catalog uc.main.sales.orders", "grant SELECT"),
        (PRIVILEGES, None, ""),
    ],
)
def test_what_the_account_may_not_see_is_a_gap_with_what_to_grant(
    databricks: Unity, grants: dict[str, set[str]], evidence: str | None, grant: str
) -> None:
    databricks.table("main.sales.orders", "file:///orders")
    databricks.volume("main.sales.drop", "file:///drop")
    databricks.admin, databricks.grants = False, grants
    found = reasons(listed(databricks).gaps)
    assert (grant in found[evidence]) if evidence else found == {}


def test_a_schema_that_may_not_be_read_is_a_gap_and_the_rest_is_read(
    databricks: Unity, monkeypatch: pytest.MonkeyPatch
) -> None:
    databricks.table("main.raw.t", "file:///t")
    use = Unity._use
    databricks.table("main.sales.orders", "file:///orders")
    monkeypatch.setattr(Unity, "_use", lambda self, name, what: use(self, name, what) or _deny(name == "main.sales"))
    found = listed(databricks)
    assert [entry.name for entry in found.entries] == ["main.raw.t"]
    assert [gap.evidence for gap in found.gaps] == ["catalog uc.main.sales"] * 2
    assert "HTTP 403, PERMISSION_DENIED" in found.gaps[0].reason
    assert "grant the account USE CATALOG on `main`, USE SCHEMA on `main.sales`, and SELECT" in found.gaps[0].reason
    assert "etl-robot" not in str(found.gaps)


def _deny(denied: bool) -> None:
    from tests.unitysupport import Refusal

    if denied:
        raise Refusal(403, "PERMISSION_DENIED")


@pytest.mark.parametrize("given", [None, "wrong"])
def test_a_bad_token_is_a_gap_that_names_the_variable(
    unity: Unity, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    monkeypatch.delenv("PII_TRACER_CATALOG_UC_TOKEN")
    if given:
        monkeypatch.setenv("PII_TRACER_CATALOG_UC_TOKEN", given)
    (gap,) = listed(unity).gaps
    assert ("does not accept the token" in gap.reason) is bool(given)
    assert "HTTP 401" in gap.reason
    assert "set PII_TRACER_CATALOG_UC_TOKEN" in gap.reason


@pytest.mark.parametrize(("busy", "waits"), [([(429, "7"), (503, "")], [7.0, 2.0]), ([(429, "1")] * 6, [1.0] * 5)])
def test_a_busy_server_is_waited_for(
    unity: Unity, monkeypatch: pytest.MonkeyPatch, busy: list[tuple[int, str]], waits: list[float]
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(client, "sleep", waited.append)
    unity.lies.busy = list(busy)
    found = listed(unity)
    assert waited == waits
    assert [gap.evidence for gap in found.gaps] == (["catalog uc"] if len(busy) > 5 else [])
    assert "token" not in str(found.gaps)


def test_a_silent_server_is_asked_once(unity: Unity, monkeypatch: pytest.MonkeyPatch) -> None:
    unity.schema("main.second")
    asked: list[str] = []
    answers = client.ask

    def ask(url: str, **more: Any) -> bytes:
        if "/tables" in url or asked:
            asked.append(url)
            raise client.NoAnswer("does not answer: TimeoutError")
        return answers(url, **more)

    monkeypatch.setattr(client, "ask", ask)
    found = listed(unity)
    assert len(asked) == 1
    assert {gap.evidence for gap in found.gaps} == {"catalog uc.main.sales", "catalog uc.main.second", "catalog uc"}


TABLE = {
    "name": "t",
    "catalog_name": "main",
    "schema_name": "sales",
    "table_type": "EXTERNAL",
    "data_source_format": "DELTA",
}


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"tables": {"name": "t"}},
        {"tables": "t"},
        {"tables": 7},
        {"tables": [], "next_page_token": 7},
        {"tables": [{**TABLE, "storage_location": 7}]},
        {"tables": [{**TABLE, "properties": {"a": 1}}]},
        {"tables": [{**TABLE, "name": ""}]},
        {"tables": [{**TABLE, "name": "a\nb"}]},
        {"tables": [{**TABLE, "catalog_name": "dev"}]},
        {"tables": [{**TABLE, "storage_location": "file:///a"}, {**TABLE, "storage_location": "file:///b"}]},
    ],
)
def test_an_answer_of_another_kind_is_a_gap(unity: Unity, answer: Any) -> None:
    unity.lies.instead["/tables"] = answer
    found = listed(unity)
    assert [gap.evidence for gap in found.gaps] == ["catalog uc.main.sales"]
    assert found.entries == ()


def test_an_entry_that_two_pages_have_counts_once(unity: Unity) -> None:
    unity.lies.instead["/tables"] = {"tables": [{**TABLE, "storage_location": "file:///a"}] * 2}
    assert len(listed(unity).entries) == 1


def test_a_server_without_a_list_that_newer_ones_have_is_a_gap(unity: Unity, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests import unitysupport

    monkeypatch.delitem(unitysupport._LISTS, "/external-locations")
    (gap,) = listed(unity).gaps
    assert "HTTP 404" in gap.reason


@pytest.mark.parametrize(
    "uri",
    [
        "https://host",
        "https://host/api/2.1/unity-catalog?x=1",
        "https://user:secret@host/api/2.1/unity-catalog",
        "thrift://host/api/2.1/unity-catalog",
    ],
)
def test_addresses_that_are_none(uri: str) -> None:
    with pytest.raises(ValueError, match="unity catalog"):
        Catalog(type=CatalogType.UNITY, uri=uri)


def test_a_first_estate_file_knows_the_address(tmp_path: Path) -> None:
    found = read_places(["https://host/api/2.1/unity-catalog", "https://host/iceberg"], tmp_path)
    assert json.loads(json.dumps(found.catalogs)) == {
        "unity": {"type": "unity", "uri": "https://host/api/2.1/unity-catalog"},
        "rest": {"type": "iceberg-rest", "uri": "https://host/iceberg"},
    }


def test_the_token_is_nowhere(unity: Unity) -> None:
    unity.lies.instead["/tables"] = []
    assert TOKEN not in str(listed(unity))
