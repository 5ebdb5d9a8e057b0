"""What catalogs name in HDFS: at declared NameNodes places of the estate, everything else a gap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.hdfs import NameNode
from pii_tracer.config.stores.object_stores import DeclaredStore, StoredFiles
from pii_tracer.lake.catalogs import registered_tables
from pii_tracer.lake.catalogs.base import CatalogEntry, Listing, Opaque
from pii_tracer.lake.catalogs.registered_tables import HdfsTable, Registry, read_registry
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.stores.hdfs.places import HdfsFile, HdfsKind, HdfsPlace
from pii_tracer.lake.stores.hdfs.registered_places import with_registered
from pii_tracer.lake.stores.s3.table_look_types import TablesAsked
from pii_tracer.model.datasets import Format
from pii_tracer.model.hive_text.layout import Serde, TextColumn, TextLayout, TextPartition, TextTable, digest_of
from pii_tracer.model.locations import hdfs_location
from tests.lake.catalogs.test_catalogs import estate

NODE = NameNode(namenode="hdfs://nn:8020", webhdfs=("http://nn:9870",), user="hdfs")


def registry_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listing: Listing) -> Registry:
    def listed(asked: Estate, base: Path) -> list[Listing]:
        return [listing]

    monkeypatch.setattr(registered_tables, "list_catalogs", listed)
    stores = (DeclaredStore(store="gs://b", places=(StoredFiles(prefix="x"),)),)
    asked = estate().model_copy(update={"hdfs": (NODE,), "object_stores": stores})
    return read_registry(asked, tmp_path, lambda place: True)


def entry(name: str, location: str | None, *partitions: str, metadata: str | None = None) -> CatalogEntry:
    kind = ICEBERG if metadata else Format.PARQUET
    return CatalogEntry(name, tuple(name.split(".")), kind, location, metadata, partitions=partitions)


def place(path: str, kind: HdfsKind = HdfsKind.FOLDER) -> HdfsPlace:
    files = (HdfsFile(f"{path}/a", 1, 1, 1),)
    return HdfsPlace(location=hdfs_location(f"hdfs://nn{path}"), kind=kind, files=files)


def test_tables_and_their_partitions_are_places_and_other_name_nodes_are_gaps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entries = (
        entry("a.near", "hdfs://nn/t", "hdfs://NN:8020/p", "hdfs://far/p"),
        entry("a.far", "hdfs://far/t"),
        entry("a.odd", "hdfs:///t"),
        entry("a.here", str(tmp_path), "hdfs://nn/h"),
        entry("hms.a.ice", "hdfs://nn/i", metadata="hdfs://nn/i/metadata/1.json"),
        entry("hms.a.moved", "hdfs://nn/j", metadata="hdfs://nn/k/1.json"),
    )
    found = registry_of(
        monkeypatch, tmp_path, Listing(entries, (), opaque=(Opaque("hms.a.acid", ("hdfs://nn/acid", "/here")),))
    )
    assert {(one.name, tuple(map(str, one.places))) for one in found.hdfs} == {
        ("a.near", ("hdfs://nn/t", "hdfs://nn/p")),
        ("hms.a.ice", ("hdfs://nn/i",)),
        ("hms.a.moved", ("hdfs://nn/j", "hdfs://nn/k")),
    }
    assert {str(at): title for at, title in found.opaque_hdfs.items()} == {"hdfs://nn/acid": "hms.a.acid"}
    assert [(gap.kind, gap.evidence) for gap in found.gaps] == [
        ("remote_table", "hdfs://far/p"),
        ("remote_table", "hdfs://far/t"),
        ("remote_table", "a.odd"),
        ("external_files", "hdfs://nn/h"),
    ]


def test_a_table_by_an_older_name_of_the_name_node_is_at_the_one_of_now(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    node = NODE.model_copy(update={"namenode": "hdfs://bank", "also": ("hdfs://nn:8020",)})
    monkeypatch.setattr("tests.lake.catalogs.test_registered_in_hdfs.NODE", node)
    entries = (
        entry("a.old", "hdfs://nn:8020/t", "hdfs://bank/p", "hdfs://NN/q"),
        entry("hms.a.ice", "hdfs://nn/i", metadata="hdfs://nn/i/metadata/1.json"),
    )
    listing = Listing(entries, (), opaque=(Opaque("hms.a.acid", ("hdfs://nn/acid",)),))
    found = registry_of(monkeypatch, tmp_path, listing)
    assert [str(place) for one in found.hdfs for place in one.places] == [
        *("hdfs://bank/t", "hdfs://bank/p", "hdfs://bank/q"),
        "hdfs://bank/i",
    ]
    assert found.hdfs[1].file == "hdfs://bank/i/metadata/1.json"
    assert (list(map(str, found.opaque_hdfs)), found.gaps) == (["hdfs://bank/acid"], ())


def test_each_place_is_told_what_the_catalogs_know_of_it() -> None:
    def table(name: str, at: str, *partitions: str) -> HdfsTable:
        beyond = tuple(hdfs_location(f"hdfs://nn{one}") for one in partitions)
        return HdfsTable(name, name, Format.ORC, hdfs_location(f"hdfs://nn{at}"), beyond)

    opaque = {hdfs_location(f"hdfs://nn{at}"): "hms.a.acid" for at in ("/acid", "/mixed/day=1")}
    tables = (table("b", "/t", "/old/day=1"), table("a", "/t"), table("c", "/c", "/two/x"), table("d", "/d", "/two/y"))
    named = Registry(hdfs=(*tables, table("e", "/acid/inner")), opaque_hdfs=opaque)
    paths = ("/t", "/old", "/two", "/acid/base_1", "/acid/inner", "/mixed", "/alone")
    places = [*map(place, paths), place("/t/.snapshot/s", HdfsKind.SNAPSHOT)]
    found = {one.location.path: one for one in with_registered(places, named)}
    assert (found["/t"].table, found["/t"].registered) == ("a", Format.ORC)
    assert list(map(str, found["/old"].partitions_of)) == ["hdfs://nn/t"]
    assert len(found["/two"].partitions_of) == 2
    assert {path for path, one in found.items() if one.opaque} == {"/acid/base_1", "/mixed"}
    assert found["/acid/inner"].table == "e"
    assert found["/t/.snapshot/s"] == places[-1]
    assert found["/alone"] == place("/alone")


def test_two_readings_of_one_folder_are_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In every store; a table that is not understood is another reading than one that is."""
    same = {name: TextTable(columns=COLUMNS, layout=layout(sign)) for name, sign in (("bars", "|"), ("commas", ","))}
    entries, opaque = [], []
    for store in ("hdfs://nn", "s3://b", "gs://b"):
        for name, folder, text in (
            ("one", "two-ways", same["bars"]),
            ("two", "two-ways", same["commas"]),
            ("plain", "half", None),
            ("text", "half", same["bars"]),
            ("known", "unknown", same["bars"]),
            ("a", "alike", same["bars"]),
            ("b", "alike", same["bars"]),
        ):
            made = entry(f"db.{name}", f"{store}/{folder}")
            entries.append(replace(made, format=Format.CSV, text=text))
        opaque.append(Opaque(f"hms.db.odd {store}", (f"{store}/unknown",)))
    found = registry_of(monkeypatch, tmp_path, Listing(tuple(entries), (), opaque=tuple(opaque)))
    for kept, told in ((found.hdfs, found.opaque_hdfs), (found.stored, found.opaque_stored)):
        assert {str(table.location).rpartition("/")[2] for table in kept} == {"alike"}
        assert {str(at).rpartition("/")[2]: title for at, title in told.items()} == {
            "two-ways": "db.one, db.two",
            "half": "db.plain, db.text",
            "unknown": f"db.known, {next(title for title in told.values() if 'odd' in title).rpartition(', ')[2]}",
        }
    assert sorted(gap.evidence for gap in found.gaps if gap.kind == "registered_twice") == [
        f"{store}/{folder}" for store in ("gs://b", "hdfs://nn") for folder in ("half", "two-ways", "unknown")
    ]
    misread = {table.location.key for table in found.remote if "different text" in table.misread}
    assert misread == {"two-ways", "half", "unknown"}
    asked = TablesAsked((), found.remote, {}, (), None, dict)  # type: ignore[arg-type]
    assert {table.location.key for table in asked.by_place if not table.misread} == {"alike"}
    assert all(table.misread for table in asked.by_place if table.location.key == "half")
    texts = found.texts()
    for store in ("hdfs://nn", "s3://b", "gs://b"):
        for folder in ("two-ways", "half", "unknown"):
            assert texts.untold(f"{store}/{folder}")
            assert texts.untold(f"{store}/{folder}/below")
        assert len(texts.untold(store)) == 3, "what lies in a place counts"
        assert not texts.untold(f"{store}/alike")
        read = texts.of(f"{store}/alike/a.csv")
        assert read is not None
        assert (read.layout, read.guessed) == (layout("|"), False)


def test_text_is_read_by_its_table_where_hdfs_keeps_it() -> None:
    bars, semicolons = layout("|"), layout(";")
    other = TextPartition(folder=digest_of(PurePosixPath("day=2")), layout=semicolons)
    text = TextTable(columns=COLUMNS, layout=bars, keys=("day",), others=(other,))
    table = HdfsTable("visits", "db.visits", Format.CSV, hdfs_location("hdfs://nn/wh/visits"), text=text)
    kinds = {
        "/wh/visits": HdfsKind.FOLDER,
        "/wh/visits/old": HdfsKind.FOLDER,
        "/wh/.snapshot/s1": HdfsKind.SNAPSHOT,
        "/wh/visits/day=2/.snapshot/s2": HdfsKind.SNAPSHOT,
        "/user/ann/.Trash": HdfsKind.TRASH,
        "/wh/visits/.hive-staging_1": HdfsKind.TEMPORARY,
        "/far": HdfsKind.FOLDER,
    }
    inside = {
        "/wh/visits": {"day=1/f": bars, "day=2/f": semicolons, "f": None},
        "/wh/visits/old": {"f": bars, "day=2/f": semicolons},
        "/wh/.snapshot/s1": {"visits/day=2/f": semicolons, "visits/f": bars, "calls/f": None},
        "/wh/visits/day=2/.snapshot/s2": {"f": semicolons},
        "/user/ann/.Trash": {
            "Current/wh/visits/day=1/f": bars,
            "261129120000/wh/visits/day=2/f": semicolons,
            "Current/wh/visits1764453300123/day=2/f": semicolons,
            "Current/wh/visits/day=21764453300123/f": semicolons,
            "Current/wh/visits/day=21764453300123/1764453300123/f1764453300123": semicolons,
            "Current/wh1764453300123/visits/f": bars,
            "Current/wh/visits176445330012/f": None,
            "Current/wh/calls/day=2/f": None,
        },
        "/wh/visits/.hive-staging_1": {"-ext-10000/day=2/f": semicolons},
        "/far": {"f": None},
    }
    places = [
        HdfsPlace(
            location=hdfs_location(f"hdfs://nn{path}"),
            kind=kind,
            files=tuple(HdfsFile(f"{path}/{name}", 1, 1, 1) for name in inside[path]),
        )
        for path, kind in kinds.items()
    ]
    found = {one.location.path: one for one in with_registered(places, Registry(hdfs=(table,)))}
    for path, files in inside.items():
        told = {name: found[path].searched_as(f"{path}/{name}") for name in files}
        wanted = {**files, "f": bars} if path == "/wh/visits" else files
        assert {name: one and one.layout for name, one in told.items()} == wanted, path
    rows = {name: found["/wh/visits"].rows_of(f"/wh/visits/{name}") for name in inside["/wh/visits"]}
    assert {name: one and one.layout for name, one in rows.items()} == inside["/wh/visits"]
    assert found["/wh/visits"].fingerprint() != places[0].fingerprint(), "another reading is another state"
    assert found["/far"] == places[-1]


def test_a_table_of_text_inside_another_place_is_nobodys_rows() -> None:
    text = TextTable(columns=COLUMNS, layout=layout("|"))
    table = HdfsTable("hms.t", "db.t", Format.CSV, hdfs_location("hdfs://nn/wh/a=1"), text=text)
    inside = HdfsPlace(
        location=hdfs_location("hdfs://nn/wh"), kind=HdfsKind.FOLDER, files=(HdfsFile("/wh/a=1/f", 1, 1, 1),)
    )
    found = with_registered([inside, place("/"), place("/other")], Registry(hdfs=(table,)))
    assert [one.opaque for one in found] == ["hms.t", None, None]


COLUMNS = (TextColumn(name="uid", type="string"),)


def layout(sign: str) -> TextLayout:
    return TextLayout(serde=Serde.DELIMITED, delimiter=sign)
