"""Partitions in S3 outside of their table's folder: a folder of their own, or a gap."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pii_tracer.config.estate_file import Archive, Estate
from pii_tracer.lake.catalog_only_partitions import PlacesOfPartitions
from pii_tracer.lake.catalogs import registered_tables
from pii_tracer.lake.catalogs.base import CatalogEntry, FilePlace, Listing, Opaque, PartitionsApart
from pii_tracer.lake.catalogs.glue.tables import as_metastore
from pii_tracer.lake.catalogs.hive.table_kind_detection import lies_inside
from pii_tracer.lake.catalogs.hive.table_walk import PartitionEntry, TableWalk, untold_keys
from pii_tracer.lake.catalogs.partitions_elsewhere import names_nobody
from pii_tracer.lake.catalogs.registered_tables import Registry, read_registry
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.stores.s3.deletion_obstacles import Folders
from pii_tracer.model.datasets import Format
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import S3Location, s3_location
from tests.lake.catalogs.test_catalogs import estate

OLD = "s3://b/old/2019"


def table(name: str, location: str, *elsewhere: str, **more: Any) -> CatalogEntry:
    """All of its partitions elsewhere are read as the table is."""
    apart = PartitionsApart(elsewhere, len(elsewhere), len(elsewhere), f"catalog hms.{name}", "MOVE")
    parts = tuple(name.split("."))
    more = {"elsewhere": elsewhere, "apart": apart if elsewhere else None, **more}
    return CatalogEntry(name, parts, more.pop("format", Format.PARQUET), location, **more)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    def read(*entries: CatalogEntry, asked: Estate | None = None, **more: Any) -> Registry:
        def listed(asked: Estate, base: Path) -> list[Listing]:
            return [Listing(entries, (), **more)]

        monkeypatch.setattr(registered_tables, "list_catalogs", listed)
        return read_registry(asked or estate(), tmp_path, lambda place: True)

    return read


def own(found: Registry) -> list[str]:
    return [str(one.location) for one in found.remote if one.partitions_of]


def test_a_folder_of_its_own_is_a_place_of_its_table(registry: Any) -> None:
    roots = estate().model_copy(update={"roots": ("s3://b", "s3://b/old/2019/")})
    found = registry(table("db.t", "s3://b/t", "s3a://b/old/2019/"), asked=roots)
    (place,) = [one for one in found.remote if one.partitions_of]
    assert (str(place.location), place.format, place.title, place.name) == (
        *(OLD, Format.PARQUET, "db.t (a partition)"),
        None,
    )
    assert place.partitions_of == (s3_location("s3://b/t").dataset,)
    assert found.gaps == ()
    assert [(one.title, one.elsewhere) for one in found.partitioned] == [("db.t", (OLD,))]


AROUND: dict[str, dict[str, Any]] = {
    "another table": {"more": (table("db.u", OLD),)},
    "a table around": {"more": (table("db.u", "s3n://b/old/"),)},
    "a table inside": {"more": (table("db.u", f"{OLD}/x"),)},
    "its own table inside": {"place": "s3://b", "at": "s3://b/t"},
    "an Iceberg table": {"more": (table("c.db.u", "s3://b/old", format=ICEBERG, metadata="s3://b/m/1.json"),)},
    "metadata of one": {"more": (table("c.db.u", "s3://b/u", format=ICEBERG, metadata=f"{OLD}/metadata/1.json"),)},
    "a partition of another table": {"more": (table("db.u", "s3://b/u", OLD),)},
    "one around": {"more": (table("db.u", "s3://b/u", "s3://b/old"),)},
    "another partition": {"twice": True},
    "one that is read otherwise": {"more": (table("db.u", "s3://b/u", f"{OLD}/x", apart=None),)},
    "files that are no rows": {"opaque": (Opaque("hms.db.acid", ("s3://b/old",)),)},
    "a volume": {"places": (FilePlace("a volume", "s3://b/old", True),)},
    "an odd spelling": {"more": (table("db.u", "s3://b/x/../old"),)},
    "a declared table": {"declared": "s3://b/old"},
    "a root inside": {"roots": (f"{OLD}/x",)},
    "an archive": {"archive": "old/20"},
    "an archive inside": {"archive": "old/2019/x"},
    "its own odd spelling": {"place": "s3://b/old//2019"},
    "a bucket": {"place": "s3://other"},
    "another store's table": {"at": "/here"},
}


@pytest.mark.parametrize("told", AROUND.values(), ids=AROUND)
def test_what_shares_a_folder_with_anything_stays_a_gap(told: dict[str, Any], registry: Any) -> None:
    place = told.get("place", OLD)
    asked = estate().model_copy(update={"roots": told.get("roots", ())})
    if prefix := told.get("archive"):
        archive = Archive.model_validate({"name": "a", "of": "db.t", "bucket": "b", "prefix": prefix, "format": "orc"})
        asked = asked.model_copy(update={"archives": (archive,)})
    if location := told.get("declared"):
        tables = [{"name": "d.t", "format": "parquet", "location": location}]
        catalogs = {"spark_catalog": {"type": "declared", "tables": tables}}
        asked = Estate.model_validate({**asked.model_dump(mode="json"), "catalogs": catalogs, "s3": {"region": "r"}})
    mine = table("db.t", told.get("at", "s3://b/t"), *([place] * (1 + told.get("twice", False))))
    more = {key: told[key] for key in ("opaque", "places") if key in told}
    found = registry(mine, *told.get("more", ()), asked=asked, **more)
    assert own(found) == []
    (gap,) = [one for one in found.gaps if one.evidence == "catalog hms.db.t"]
    assert (gap.kind, gap.evidence) == ("external_files", "catalog hms.db.t")
    assert "MOVE" in gap.reason
    assert found.partitioned[0].title == "db.t"


def test_what_stays_a_gap_is_told_of_the_table(registry: Any) -> None:
    apart = PartitionsApart((OLD,), 3, 4, "catalog hms.db.t", "MOVE", 1)
    found = registry(table("db.t", "s3://b/t", OLD, "gs://b/x", apart=apart))
    assert found.partitioned[0].left == ("", "gs://b/x")
    assert registry(table("db.t", "s3://b/t", OLD)).partitioned[0].left == ()
    assert registry(table("db.t", "s3://b/t", OLD), unread=True).partitioned[0].left == (OLD,)


def test_while_a_metastore_does_not_tell_all_no_folder_is_a_partitions_own(registry: Any) -> None:
    """A table that it did not tell may read the same files."""
    found = registry(table("db.t", "s3://b/t", OLD), unread=True)
    assert own(found) == []
    (gap,) = found.gaps
    assert "did not list all" in gap.reason


def test_a_metastore_did_not_tell_all_where_tables_or_partitions_were_not_read() -> None:
    walk = TableWalk("hms")
    walk.gap("a format that is not known here", "db", "t", kind=GapKind.UNKNOWN_TABLE)
    walk.view(("db", "v"), SimpleNamespace(viewExpandedText=None, viewOriginalText=None, parameters=None, sd=None))
    assert not walk.listing().unread
    walk.gap("its partitions cannot be listed", "db", "t")
    assert walk.listing().unread


class Told(TableWalk):
    """A table with one partition in its folder and one elsewhere."""

    move = "MOVE"

    def partitions(self, parts: tuple[str, str], table: Any) -> list[PartitionEntry]:
        told = {"Values": ["4711"], "StorageDescriptor": {"Location": "s3a://b/t/x"}}
        other = {"Values": ["1"], "StorageDescriptor": {"Location": "s3a://b/old/2019/"}}
        return [PartitionEntry.of(table, as_metastore(one)) for one in (told, other)]


def test_a_table_that_is_not_read_has_partitions_all_the_same(registry: Any) -> None:
    """A hold on it, and whose the rows are, count for what has files of its partitions."""
    walk = Told("hms")
    walk.table(
        ("db", "t"),
        as_metastore(
            {
                "Parameters": {"transactional": "true"},
                "PartitionKeys": [{"Name": "Cust"}],
                "StorageDescriptor": {"Location": "s3a://b/t"},
            }
        ),
    )
    (one,) = registry(opaque=walk.listing().opaque).partitioned
    assert one.is_named("db.t")
    assert one.is_named("s3://b/t")
    assert (one.dataset, one.elsewhere) == (s3_location("s3://b/t").dataset, (OLD,))
    assert (one.keys, one.untold) == (("Cust",), ("Cust",))


def test_what_may_tell_of_a_person_is_no_place() -> None:
    for place, values in {
        "s3://acme-123456789012/old/day=2019-03-01/hour=07": ("2019-03-01", "07"),
        "s3://b/calls_2019/2019/03/01": ("20190301",),
        "s3://b/calls_2019-03-01": ("20190301",),
        "s3://b/calls_2019": ("a",),
        "s3://b/old/kind=b": ("a",),
        "s3://b/calls/2019-03-01T07": ("2019-03-01T07",),
        "s3://b/calls_2019-03": ("2019", "3"),
        "s3://b/calls_20190301": ("2019", "3", "1"),
        "s3://b/calls/2019-03-01-07/x": ("in", "2019", "03", "01", "07"),
        "s3://b-indigo/calls": ("ind",),
    }.items():
        assert names_nobody(place, values), place
    for place, values in {
        "s3://b/old/cust=4711": (),
        "s3://b/old/9830012345": (),
        "s3://b/old/98-300-12345": (),
        "s3://b/old/asha.rao@mail.example": (),
        "s3://b/old/asha.rao%40mail.example": (),
        "s3://b/old/name=asha": ("asha",),
        "s3://b/old/asha": ("asha",),
        "s3://b/old/a%20b": ("a b",),
        "s3://b/old/of-asha-1": ("asha",),
        "s3://b/old/20191301": ("x",),
        "s3://b/calls_20190301": ("a",),
        "s3://b/old/Asha": ("asha",),
        "s3://b/old/asha_rao": ("Asha Rao",),
        "s3://b/old/a-sha": ("asha",),
        "s3://b/98/30/01/23/45": ("9830012345",),
        "s3://b/old/ab-x": ("AB",),
        "s3://b/old/asha%2540x": (),
        "s3://b/old/%2561sha": ("asha",),
        "s3://b/old/１２３４５６７": (),
        "s3://asha/old": ("asha",),
        "s3://of-asha/old": ("asha",),
    }.items():
        assert not names_nobody(place, values), place
    assert names_nobody("s3://b/old/year=2019/month=3", ("2019", "3"), ("2019", "3"))
    assert not names_nobody("s3://b/old/20190301", ("2019", "3", "1", "20190301"), ("20190301",))
    assert not names_nobody("s3://b/old/20190302", ("2019", "3", "1"))
    assert not names_nobody("s3://b/old/2019031", ("2019", "3", "1"))
    assert not names_nobody("s3://b/old/cust=20190301", ("20190301",), ("20190301",))
    assert not names_nobody("s3://b/old/2010123123", ("2010123123",), ("2010123123",))


def test_what_lies_in_a_tables_folder() -> None:
    azure = "abfss://files@acme.dfs.core.windows.net"
    for place, folder in (
        ("s3a://b/t/day=1", "s3://b/t"),
        ("s3n://b/t/day=1/", "s3://b/t/"),
        ("gs://b/t/day=1/", "gs://b/t"),
        (f"{azure}/t/day=1", f"{azure}/t/"),
        ("hdfs://nn//t/day=1", "hdfs://nn:8020/t"),
        ("s3://b/t/..", "s3://b/t/.."),
        ("s3a://b//t/day=1/", "s3a://b//t"),
        ("gs://b/x/../t/day=1", "gs://b/x/../t/"),
        ("/w/t/day=1", "file:/w/t"),
    ):
        assert lies_inside(place, folder), place
    for place, folder in (
        ("s3a://b/t/../other/day=1", "s3://b/t"),
        ("s3a://b/t/./day=1", "s3://b/t"),
        ("s3a://b//t//day=1", "s3a://b//t"),
        ("s3a://b//t/../day=1", "s3a://b//t"),
        ("s3a://b//t2/day=1", "s3a://b//t"),
        ("s3a://b/x/../t/day=1", "s3a://b/t"),
        ("s3a://b/t//day=1", "s3://b/t"),
        ("s3a://b/t/day=1//", "s3://b/t"),
        ("gs://b/t/../other", "gs://b/t"),
        ("gs://b/t2", "gs://b/t"),
        ("gs://c/t/day=1", "gs://b/t"),
        (f"{azure}/t/../x", f"{azure}/t"),
        ("hdfs://nn/t/../x", "hdfs://nn/t"),
        ("s3://b/t/day=1", "gs://b/t"),
        ("/w/t/../x", "/w/t"),
    ):
        assert not lies_inside(place, folder), place


def test_which_values_the_catalog_alone_has() -> None:
    keys = ("Day", "cust")
    for place, values, untold in (
        ("s3a://b/t/day=1/cust=4711", ("1", "4711"), ()),
        ("s3://b/t/day=1/CUST=a%3Ab/", ("1", "a:b"), ()),
        ("s3://b/t/odd/place1", ("1", "4711"), keys),
        ("s3://b/t/day=1/x", ("1", "4711"), ("cust",)),
        ("s3://b/t/day=1/cust=1", ("1", "4711"), ("cust",)),
        ("s3://b/t2/day=1/cust=4711", ("1", "4711"), keys),
        ("s3://b/t/day=1", ("1",), ("cust",)),
        (None, ("1", "4711"), keys),
    ):
        assert untold_keys(place, "s3://b/t", keys, values) == untold, place
    assert untold_keys("/w/t/day=1", "/w/t", ("day",), ("1",)) == ()


def test_many_partitions_cost_as_much_as_each(registry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 of 100 tables: no place is compared with each other one."""
    entries = [
        table(f"db.t{n}", f"s3://b/t{n}", *(f"s3://b/old/t{n}/day={day}" for day in range(100))) for n in range(100)
    ]
    compared = [0]
    holds = S3Location.holds

    def counted(self: S3Location, other: S3Location) -> bool:
        compared[0] += 1
        return holds(self, other)

    monkeypatch.setattr(S3Location, "holds", counted)
    found = registry(*entries)
    places = PlacesOfPartitions(found.partitioned)
    folders = Folders([one.location for one in found.remote], {}, (), None)  # type: ignore[arg-type]
    assert len(own(found)) == 10_000
    for one in found.remote:
        assert folders._crowded(one.location) is None
        assert folders.without_rows(one.location) is None
        assert len(places.near(str(one.location))) == bool(one.partitions_of)
    assert compared[0] < 50_000
