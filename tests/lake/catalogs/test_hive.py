"""Tables of a real Hive metastore (2.3.9 and 3.1.3), and what is a gap there."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from thrift.Thrift import TApplicationException

from pii_tracer.app.planning.catalog_text_search import telling_catalogs
from pii_tracer.app.planning.plan_creation import take_lineage
from pii_tracer.app.settings import Settings
from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.lineage import LineageSources
from pii_tracer.lake.catalogs.base import CatalogView
from pii_tracer.lake.catalogs.hive import client, tables
from pii_tracer.lake.catalogs.hive.table_kind_detection import Refused, kept_as
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.model.datasets import Column, Format, KeySet
from pii_tracer.scan.value_forms import build_patterns
from planners.gaps.table_descriptions import table_texts
from planners.locate.subject_survey import World
from tests.hivesupport import AVRO, JSON_SERDE, ORC, PARQUET, STANDALONE, TEXT, Hive, serving
from tests.kits.catalog_kit import CatalogKit, Filled
from tests.lake.catalogs.test_catalogs import ROWS, estate, kinds, sql_catalog, table

NOBODY = "thrift://127.0.0.1:9"


@pytest.fixture(scope="module", params=["2.3.9", pytest.param(STANDALONE, marks=pytest.mark.nightly)])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    with serving(tmp_path_factory.mktemp("hive"), request.param) as server:
        yield server


@pytest.fixture
def hive(running: Hive, tmp_path: Path) -> Iterator[Hive]:
    """The metastore with a database `prod` of a test's own."""
    (tmp_path / "warehouse").mkdir()
    with running.database("prod"):
        yield running


def lake(hive: Hive, **more: Any) -> Estate:
    return estate(lake=Catalog(type=CatalogType.HIVE, uri=hive.uri, **more))


def parquet(folder: Path, rows: pa.Table = ROWS, name: str = "000000_0") -> Path:
    """Rows as Hive writes them, in a file without an ending."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / name)
    return folder


def test_tables_in_all_formats(hive: Hive, tmp_path: Path) -> None:
    from pyarrow import orc

    home = tmp_path / "warehouse"
    people = table(sql_catalog(tmp_path), "prod.people")
    marks = {"table_type": "ICEBERG", "metadata_location": people.metadata_location}
    hive.table("prod.people", tmp_path / "stale", parameters=marks)
    write_deltalake(home / "wallets", ROWS)
    spark = {"spark.sql.sources.provider": "delta"}
    placeholder = f"{hive.folder}/prod.db/wallets-__PLACEHOLDER__"
    hive.table("prod.wallets", placeholder, parameters=spark, options={"path": f"file:{home / 'wallets'}"})
    parquet(home / "plain" / "day=1")
    hive.table("prod.plain", f"file:{home / 'plain'}", partitions={"1": f"file:{home / 'plain' / 'day=1'}"})
    (home / "orcs").mkdir()
    orc.write_table(ROWS, home / "orcs" / "000000_0")
    hive.table("prod.orcs", home / "orcs", ORC)
    (home / "lines").mkdir()
    (home / "lines" / "a.json").write_text('{"uid": 1, "name": "a"}\n')
    hive.table("prod.lines", home / "lines", TEXT, serde=JSON_SERDE)
    (home / "texts").mkdir()
    (home / "texts" / "a.csv").write_text("uid,name\n1,a\n")
    csv = {"spark.sql.sources.provider": "csv"}
    hive.table("prod.texts", home / "texts", TEXT, parameters=csv, options={"header": "true"})
    hive.table("prod.far", tmp_path / "far", AVRO)
    hive.table("prod.gone", home / "gone")
    hive.table("prod.seen", None, kind="VIRTUAL_VIEW", viewOriginalText="SELECT 1", viewExpandedText="SELECT 1")
    found = discover(lake(hive), tmp_path)
    assert {(s.table, s.format, s.location) for s in found.tables} == {
        ("lake.prod.people", ICEBERG, people.location().removeprefix("file://")),
        ("prod.wallets", DELTA, str(home / "wallets")),
        ("prod.plain", Format.PARQUET, str(home / "plain")),
        ("prod.orcs", Format.ORC, str(home / "orcs")),
        ("prod.lines", Format.JSON, str(home / "lines")),
        ("prod.texts", Format.CSV, str(home / "texts")),
    }
    assert sorted(kinds(found)) == [("missing_table", str(home / "gone")), ("outside_roots", str(tmp_path / "far"))]
    assert EstatePaths(lake(hive), tmp_path).aliases["spark_catalog.prod.wallets"]


TRANSACTIONAL = {
    "parameters": {"transactional": "true"},
    "kind": "MANAGED_TABLE",
    "stored": ORC,
    "bucketCols": ["uid"],
    "numBuckets": 2,
}
UNTOLD: list[tuple[str, dict[str, Any]]] = [
    ("transactional", {**TRANSACTIONAL}),
    ("materialized view", {"kind": "MATERIALIZED_VIEW"}),
    ("storage handler", {"parameters": {"storage_handler": "org.apache.hadoop.hive.hbase.HBaseStorageHandler"}}),
    ("stored as directories", {"storedAsSubDirectories": True}),
    ("unknown format", {"stored": "org.example.OddInputFormat"}),
    ("unknown format", {"stored": TEXT}),
    ("unknown format", {"parameters": {"spark.sql.sources.provider": "jdbc"}}),
    ("`lineSep`", {"parameters": {"spark.sql.sources.provider": "csv"}, "options": {"linesep": ";"}}),
    (
        "option of its own",
        {"parameters": {"spark.sql.sources.provider": "json"}, "options": {"primitivesAsString": "true"}},
    ),
    ("different places", {"parameters": {"spark.sql.sources.provider": "parquet"}, "options": {"path": "/elsewhere"}}),
]


@pytest.mark.parametrize(("told", "made"), UNTOLD)
def test_what_is_no_plain_table_is_a_gap_and_not_read_as_one(
    told: str, made: dict[str, Any], hive: Hive, tmp_path: Path
) -> None:
    """Its files are searched like any of no known format, and are nobody's rows to be written again."""
    home = tmp_path / "warehouse"
    parquet(home / "odd" / "delta_0000001_0000001_0000", name="bucket_00000")
    parquet(home / "odd" / "inner")
    hive.table("prod.odd", home / "odd", **made)
    hive.table("prod.inner", home / "odd" / "inner")
    found = discover(lake(hive), tmp_path)
    assert [s.table for s in found.tables] == ["prod.inner"]
    assert sorted(kinds(found)) == [
        ("unknown_file", str(home / "odd" / "delta_0000001_0000001_0000" / "bucket_00000")),
        ("unknown_table", "catalog lake.prod.odd"),
    ]
    assert told in next(g.reason for g in found.gaps if g.kind == "unknown_table")


def test_properties_of_transactions_are_enough_to_be_no_plain_table() -> None:
    """Servers write them with `transactional` alone, or refuse them; other programs may not."""
    told = SimpleNamespace(
        tableType="MANAGED_TABLE",
        parameters={"transactional_properties": "insert_only"},
        sd=SimpleNamespace(
            location="/lake/odd", inputFormat=PARQUET, parameters={}, serdeInfo=None, storedAsSubDirectories=False
        ),
    )
    kept = kept_as(told)
    assert isinstance(kept, Refused)
    assert "transactional" in kept.reason


def test_partitions_elsewhere_or_in_another_format_are_gaps(hive: Hive, tmp_path: Path) -> None:
    home = tmp_path / "warehouse"
    parquet(home / "plain" / "day=1")
    parquet(home / "plain2" / "day=2")
    places = {"1": home / "plain" / "day=1", "2": home / "plain2" / "day=2", "3": tmp_path / "3"}
    hive.table("prod.plain", home / "plain", partitions=places)
    found = discover(lake(hive), tmp_path)
    (gap,) = found.gaps
    assert (gap.kind, gap.evidence) == ("external_files", "catalog lake.prod.plain")
    assert gap.reason.startswith("2 of 3 partitions are outside of the table's folder, so the plan does not erase them")
    # the one that lies in the estate is met as a folder of its own, and searched
    assert {(s.table, s.location) for s in found.tables} >= {
        ("prod.plain", str(home / "plain")),
        (None, str(home / "plain2")),
    }

    with hive.client() as asked:
        (first, *_) = asked.get_partitions_by_names("prod", "plain", ["day=1"])
        first.sd.inputFormat = ORC
        asked.alter_partition("prod", "plain", first)
    assert ("mixed_formats", "catalog lake.prod.plain") in kinds(discover(lake(hive), tmp_path))


def test_partitions_of_a_transactional_table_are_not_read_either(hive: Hive, tmp_path: Path) -> None:
    away = parquet(tmp_path / "warehouse" / "away")
    partitions = {"1": away}
    hive.table("prod.acid", tmp_path / "warehouse" / "acid", partitions=partitions, **TRANSACTIONAL)
    found = discover(lake(hive), tmp_path)
    assert found.tables == ()
    assert ("unknown_file", str(away / "000000_0")) in kinds(found)


def test_a_database_that_is_not_there_is_a_gap(hive: Hive, tmp_path: Path) -> None:
    hive.table("prod.plain", parquet(tmp_path / "warehouse" / "plain"))
    found = discover(lake(hive, databases=("wrong", "prod")), tmp_path)
    assert [s.table for s in found.tables] == ["prod.plain"]
    assert kinds(found) == [("catalog_unreadable", "catalog lake.wrong")]


def test_what_the_client_cannot_read_is_a_gap_and_the_rest_is_read(hive: Hive, tmp_path: Path) -> None:
    """Thrift's Python has no room for lists as keys, which places of skewed values have."""
    from hive_metastore.ttypes import SkewedInfo

    home = tmp_path / "warehouse"
    hive.table("prod.plain", parquet(home / "plain"))
    skewed = SkewedInfo(["uid"], [["1"]], {("1",): str(home / "skewed" / "uid=1")})
    hive.table("prod.skewed", home / "skewed", skewedInfo=skewed, storedAsSubDirectories=True)
    found = discover(lake(hive), tmp_path)
    assert [s.table for s in found.tables] == ["prod.plain"]
    assert kinds(found) == [("catalog_unreadable", "catalog lake.prod.skewed")]


def test_views_have_their_queries_and_are_no_tables(hive: Hive, tmp_path: Path) -> None:
    view = {"kind": "VIRTUAL_VIEW", "columns": {"who": "bigint"}}
    told = {"viewOriginalText": "SELECT uid FROM people", "viewExpandedText": "SELECT uid FROM prod.people"}
    hive.table("prod.by_hive", None, **view, **told)
    hive.table("prod.by_spark", None, **view, **told, parameters={"spark.sql.create.version": "3.5.9"})
    hive.table("prod.silent", None, **view)
    found = tables.list_hive("lake", Catalog(type=CatalogType.HIVE, uri=hive.uri, databases=("prod",)))
    who = (Column(name="who", type="bigint"),)
    assert found.views == (
        CatalogView("lake", "prod.by_hive", "SELECT uid FROM prod.people", "hive", ("prod",), who),
        CatalogView("lake", "prod.by_spark", "SELECT uid FROM people", "spark", ("prod",), who),
    )
    assert found.entries == ()
    assert [gap.evidence for gap in found.gaps] == ["catalog lake.prod.silent"]


def test_a_job_that_reads_a_view_reads_the_iceberg_table_behind_it(hive: Hive, tmp_path: Path) -> None:
    """Hive and Spark's session catalog call an Iceberg table of the metastore by its database alone."""
    people = table(sql_catalog(tmp_path), "prod.people")
    marks = {"table_type": "ICEBERG", "metadata_location": people.metadata_location}
    hive.table("prod.people", people.location(), parameters=marks)
    hive.table("prod.copy", parquet(tmp_path / "warehouse" / "copy"))
    query = "SELECT uid, name FROM prod.people"
    columns = {"who": "bigint", "called": "string"}
    hive.table("prod.seen", None, kind="VIRTUAL_VIEW", columns=columns, viewExpandedText=query, viewOriginalText=query)
    (tmp_path / "job.sql").write_text("INSERT OVERWRITE prod.copy SELECT who AS uid, called AS name FROM prod.seen")
    made = lake(hive).model_copy(update={"lineage": LineageSources(sql=("job.sql",))})
    inventory = discover(made, tmp_path)
    graph = take_lineage(
        Settings(tmp_path / "pii-tracer.yaml", tmp_path / "state"), made, inventory, lambda _: None
    ).graph
    at = {state.table: state.dataset for state in inventory.tables}
    (uid,) = (edge for edge in graph.edges_into(at["prod.copy"]) if edge.target.column == "uid")
    (origin,) = (edge.source for edge in graph.edges_into(uid.source.dataset) if edge.target == uid.source)
    assert (uid.source.column, origin.column, origin.dataset) == ("who", "uid", at["lake.prod.people"])


def test_other_catalogs_of_hive_3_are_a_gap(hive: Hive, tmp_path: Path) -> None:
    from hive_metastore.ttypes import Catalog as HiveCatalog
    from hive_metastore.ttypes import CreateCatalogRequest, DropCatalogRequest

    with hive.client() as asked:
        try:
            asked.create_catalog(CreateCatalogRequest(HiveCatalog("other", None, (tmp_path / "other").as_uri())))
        except TApplicationException:  # a server of before
            assert discover(lake(hive), tmp_path).gaps == ()
            return
    found = discover(lake(hive), tmp_path)
    with hive.client() as asked:
        asked.drop_catalog(DropCatalogRequest("other"))
    assert kinds(found) == [("unknown_catalog", "catalog lake.other")]


class Half:
    """A metastore that tells less than it names, or breaks in the middle."""

    def __init__(self, real: Any, **changed: Any) -> None:
        self._real, self._changed = real, changed

    def ask(self, method: str, *arguments: Any) -> Any:
        answer = self._real.ask(method, *arguments)
        return self._changed[method](answer) if method in self._changed else answer


def refuse(_: Any) -> Any:
    raise ConnectionResetError


@pytest.mark.parametrize(
    ("changed", "evidence"),
    [
        ({"get_table_objects_by_name": lambda told: told[1:]}, "catalog lake.prod.first"),
        ({"get_all_tables": refuse}, "catalog lake.prod"),
        ({"get_table_objects_by_name": refuse, "get_table": lambda _: None}, "catalog lake.prod.first"),
        ({"get_partitions_by_names": lambda told: told[1:]}, "catalog lake.prod.first"),
        ({"get_partition_names": refuse}, "catalog lake.prod.first"),
    ],
)
def test_half_an_answer_is_a_gap(
    changed: Any, evidence: str, hive: Hive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "warehouse"
    hive.table("prod.first", home / "first", partitions={"1": parquet(home / "first" / "day=1")})
    hive.table("prod.second", parquet(home / "second"))
    monkeypatch.setattr(tables.Metastore, "ask", lambda store, *a: Half(_Asked(store), **changed).ask(*a))
    found = discover(lake(hive), tmp_path)
    assert ("catalog_unreadable", evidence) in kinds(found)


class _Asked:
    def __init__(self, store: client.Metastore) -> None:
        self._store = store

    def ask(self, method: str, *arguments: Any) -> Any:
        return ASK(self._store, method, *arguments)


ASK = client.Metastore.ask


def test_a_metastore_that_has_fallen_silent_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "warehouse").mkdir()
    monkeypatch.setattr(client, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"thrift://127.0.0.1:{silent.getsockname()[1]}"
        found = discover(estate(lake=Catalog(type=CatalogType.HIVE, uri=uri)), tmp_path)
    assert kinds(found) == [("catalog_unreadable", "catalog lake")]


def test_the_next_server_of_several_is_asked_and_a_broken_connection_is_made_anew(hive: Hive) -> None:
    with client.Metastore(f"{NOBODY},{hive.uri}") as store:
        assert "prod" in store.ask("get_all_databases")
        store._transport.close()
        assert "prod" in store.ask("get_all_databases")


@pytest.mark.parametrize(
    "uri", ["http://host:9083", "thrift://user:secret@host:9083", "thrift://host:9083/path", "thrift://host,host2"]
)
def test_addresses_that_are_none(uri: str) -> None:
    with pytest.raises(ValueError, match="hive catalog"):
        Catalog(type=CatalogType.HIVE, uri=uri)


class TestHiveKit(CatalogKit):
    @pytest.fixture
    def filled(self, hive: Hive, tmp_path: Path) -> Filled:
        people = table(sql_catalog(tmp_path), "prod.people")
        marks = {"table_type": "ICEBERG", "metadata_location": people.metadata_location}
        hive.table("prod.people", people.location(), parameters=marks)
        hive.table("prod.plain", parquet(tmp_path / "warehouse" / "plain"))
        made = Catalog(type=CatalogType.HIVE, uri=hive.uri)
        return Filled("lake", made, tmp_path, ("lake.prod.people", "prod.plain"))

    @pytest.fixture
    def silent(self) -> Catalog:
        return Catalog(type=CatalogType.HIVE, uri=NOBODY)


EMAIL = "lena.virtanen@example.org"
PATTERNS = build_patterns(
    (
        KeySet(name="customer.email", origin="email", weak=False, values=(("s", EMAIL),)),
        KeySet(name="customer.uid", origin="uid", weak=True, values=(("s", "4711"),)),
    )
)


def statistics(hive: Hive, name: str, column: str, low: int, high: int) -> None:
    """What ANALYZE TABLE writes."""
    from hive_metastore import ttypes as t

    database, _, table_name = name.partition(".")
    described = t.ColumnStatisticsDesc(isTblLevel=True, dbName=database, tableName=table_name)
    data = t.ColumnStatisticsData(longStats=t.LongColumnStatsData(lowValue=low, highValue=high, numNulls=0, numDVs=2))
    made = t.ColumnStatistics(described, [t.ColumnStatisticsObj(column, "bigint", data)])
    with hive.client() as asked:
        asked.update_table_column_statistics(made)


def test_what_the_metastore_keeps_beside_rows_is_searched(hive: Hive, tmp_path: Path) -> None:
    """Statistics, properties cut into parts, names of partitions and the text of views, of tables of any format."""
    home = tmp_path / "warehouse"
    hive.table("prod.clean", home / "clean", parameters={"comment": "someone@example.org"})
    hive.table("prod.noted", home / "noted", kind="MANAGED_TABLE", parameters={"comment": f"ask {EMAIL}"})
    cut = {
        "spark.sql.sources.schema.part.0": f'{{"a": "{EMAIL[:7]}',
        "spark.sql.sources.schema.part.1": f'{EMAIL[7:]}"}}',
    }
    hive.table("prod.cut", home / "cut", parameters=cut)
    hive.table("prod.parted", home / "parted", partitions={EMAIL: home / "parted" / "day=1"})
    view = f"SELECT * FROM prod.clean WHERE email = '{EMAIL}'"
    hive.table("prod.seen", None, kind="VIRTUAL_VIEW", viewOriginalText=view, viewExpandedText=view)
    hive.table("prod.bound", home / "bound")
    statistics(hive, "prod.bound", "uid", 12, 4711)
    hive.table("prod.other", home / "other", columns={"amount": "bigint"})
    statistics(hive, "prod.other", "amount", 12, 4711)
    hive.table("prod.spark", home / "spark", parameters={"spark.sql.statistics.colStats.uid.max": "4711"})
    hive.table("prod.drawn", home / "drawn", parameters={"spark.sql.statistics.colStats.uid.histogram": "AAAA"})
    found = telling_catalogs(lake(hive, databases=("prod",)), tmp_path, PATTERNS, lambda _: None)
    assert {one.title: one.places for one in found if one.places} == {
        "catalog lake.prod.noted": ("properties and comments",),
        "catalog lake.prod.cut": ("properties and comments",),
        "catalog lake.prod.parted": ("names and properties of partitions",),
        "catalog lake.prod.seen": ("text of a view",),
        "catalog lake.prod.bound": ("column statistics",),
        "catalog lake.prod.spark": ("column statistics",),
    }
    assert [one.title for one in found if one.unread] == ["catalog lake.prod.drawn"]
    world = World(None, None, {}, lambda _: False, catalogs=found)  # type: ignore[arg-type]
    gaps = table_texts((), world)
    assert "UPDATE STATISTICS" in next(gap.evidence for gap in gaps if "prod.bound" in gap.evidence)
    assert len({gap.id for gap in gaps}) == 7
    assert EMAIL not in str(gaps)


def test_a_waiver_of_a_text_stays_while_writers_change_the_rest_of_the_entry(hive: Hive, tmp_path: Path) -> None:
    """Each insert and each ANALYZE sets `transient_lastDdlTime` and `numRows`."""
    hive.table("prod.noted", tmp_path, parameters={"steward": EMAIL, "transient_lastDdlTime": "1", "numRows": "2"})
    hive.table("prod.bound", tmp_path)
    statistics(hive, "prod.bound", "uid", 12, 4711)

    def shown() -> list[str]:
        found = telling_catalogs(lake(hive, databases=("prod",)), tmp_path, PATTERNS, lambda _: None)
        world = World(None, None, {}, lambda _: False, catalogs=found)  # type: ignore[arg-type]
        return sorted(gap.seen for gap in table_texts((), world))

    def change(**parameters: str) -> None:
        with hive.client() as asked:
            noted = asked.get_table("prod", "noted")
            noted.parameters = {**parameters, "note": "loaded"}
            asked.alter_table("prod", "noted", noted)

    waived = shown()
    change(numRows="3", transient_lastDdlTime="9", metadata_location="file:///m/2.json", steward=EMAIL)
    statistics(hive, "prod.bound", "uid", 11, 4711)
    assert shown() == waived
    for another in ({"steward": f"{EMAIL}, she left"}, {"steward": EMAIL, "owner": EMAIL}, {"owner": EMAIL}):
        change(**another)
        assert shown() != waived
    change(steward=EMAIL)
    assert shown() == waived
    statistics(hive, "prod.bound", "uid", 4711, 4711)
    assert shown() != waived


def test_texts_of_a_metastore_that_does_not_answer_are_unread(tmp_path: Path) -> None:
    nobody = estate(lake=Catalog(type=CatalogType.HIVE, uri=NOBODY))
    (one,) = telling_catalogs(nobody, tmp_path, PATTERNS, lambda _: None)
    assert (one.title, one.places, len(one.unread)) == ("catalog lake", (), 1)
