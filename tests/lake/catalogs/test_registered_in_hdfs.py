"""What catalogs name in HDFS: at declared NameNodes places of the estate, everything else a gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.hdfs import NameNode
from pii_tracer.lake.catalogs import registered_tables
from pii_tracer.lake.catalogs.base import CatalogEntry, Listing, Opaque
from pii_tracer.lake.catalogs.registered_tables import HdfsTable, Registry, read_registry
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.stores.hdfs.places import HdfsFile, HdfsKind, HdfsPlace
from pii_tracer.lake.stores.hdfs.registered_places import with_registered
from pii_tracer.model.datasets import Format
from pii_tracer.model.locations import hdfs_location
from tests.lake.catalogs.test_catalogs import estate

NODE = NameNode(namenode="hdfs://nn:8020", webhdfs=("http://nn:9870",), user="hdfs")


def registry_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listing: Listing) -> Registry:
    def listed(asked: Estate, base: Path) -> list[Listing]:
        return [listing]

    monkeypatch.setattr(registered_tables, "list_catalogs", listed)
    return read_registry(estate().model_copy(update={"hdfs": (NODE,)}), tmp_path, lambda place: True)


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
    assert str(found["/old"].partition_of) == "hdfs://nn/t"
    assert found["/two"].partition_of is None, "nobody knows whose rows lie there"
    assert {path for path, one in found.items() if one.opaque} == {"/acid/base_1", "/mixed"}
    assert found["/acid/inner"].table == "e"
    assert found["/t/.snapshot/s"] == places[-1]
    assert found["/alone"] == place("/alone")
