"""Iceberg tables in S3 that are left alone, each with the reason, and what is told of those that are not."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.app.planning.s3_place_search import with_remote
from pii_tracer.app.retention.s3_tables import with_tables_in_s3
from pii_tracer.lake.catalogs import registered_tables
from pii_tracer.lake.catalogs.base import CatalogEntry, Head, Listing
from pii_tracer.lake.erasable_s3_tables import others
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import RefKind
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.deletion_obstacles import Folders
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import S3Location
from pii_tracer.retention.checked_tables import tables_of
from pii_tracer.retention.settings_check import FindingKind, check_tables
from pii_tracer.retention.sweep_rules import targets
from tests.lake.lakehouse import ROWS, House
from tests.s3support import REGION, World, parquet, standin, world

__all__ = ["standin", "world"]

UUID = "2f1c5b0e-7d0f-4c0e-9a52-0d6f4f1c9b11"


@pytest.fixture
def house(world: World, tmp_path: Path) -> House:
    return House(world, world.new("house"), tmp_path)


def pointed(house: House, catalog: str = "core", **texts: str) -> None:
    """Have the catalog's database say something else of its tables."""
    with sqlite3.connect(house.base / f"{catalog}.db") as database:
        for column, text in texts.items():
            database.execute(f"UPDATE iceberg_tables SET {column} = ?", (text,))


def told(house: House, made: Any, **changes: Any) -> None:
    """Have the table's metadata file say something else."""
    data = json.loads(house.read(made.metadata_location)) | changes
    house.put(made.metadata_location, json.dumps(data).encode())


def test_a_table_that_no_catalog_names(house: House) -> None:
    house.table()
    declared = [{"name": "core.prod.orders", "format": "iceberg", "location": house.orders}]
    house.catalogs = {"session": {"type": "declared", "tables": declared}}
    assert "add their catalog" in house.why()


def test_a_table_that_a_catalog_names_and_the_estate_file_declares(house: House) -> None:
    house.table()
    declared = [{"name": "core.prod.orders", "format": "iceberg", "location": house.orders}]
    house.catalogs["session"] = {"type": "declared", "tables": declared}
    assert house.state().table == "core.prod.orders"
    declared[0]["name"] = "prod.other"
    assert "more than one name (core.prod.orders, prod.other)" in house.why()
    declared[0] |= {"name": "core.prod.orders", "format": "delta"}
    assert "two formats: core.prod.orders (delta), core.prod.orders (iceberg)" in house.why()


@pytest.mark.parametrize("second", ["core", "other"])
def test_a_table_with_two_names(house: House, second: str) -> None:
    made = house.table()
    house.catalog(second).register_table("prod.again", made.metadata_location)
    names = ", ".join(sorted(["core.prod.orders", f"{second}.prod.again"]))
    assert f"it has more than one name ({names})" in house.why()


def test_a_name_that_has_a_dot(house: House) -> None:
    house.table()
    pointed(house, table_name="or.ders")
    assert "contains a dot" in house.why()


def test_a_catalog_with_branches(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nessie names a table once for each branch that has it."""
    file = house.table().metadata_location

    def entry(ref: str, name: str) -> CatalogEntry:
        head = Head("nes", ref, RefKind.NESSIE_BRANCH, None, default=ref == "main")
        return CatalogEntry(name, ("prod", "orders"), ICEBERG, None, file, head)

    listing = Listing((entry("main", "nes.prod.orders"), entry("dev", "nes.prod.`orders@dev`")), ())
    monkeypatch.setattr(registered_tables, "list_catalogs", lambda *_: [listing])
    assert "belongs to a catalog with branches (Nessie)" in house.why()


def test_metadata_on_this_machine_of_a_table_in_s3(house: House) -> None:
    made = house.table()
    (house.base / "w" / "metadata").mkdir(parents=True)
    file = house.base / "w" / "metadata" / "1.metadata.json"
    file.write_bytes(house.read(made.metadata_location))
    pointed(house, metadata_location=str(file))
    house.more["roots"] = ["w"]
    assert "metadata file of this table is outside S3" in house.why()


def test_metadata_beyond_the_folder(house: House) -> None:
    made = house.table()
    away = f"s3://{house.bucket}/away/metadata/1.metadata.json"
    house.put(away, house.read(made.metadata_location))
    pointed(house, metadata_location=away)
    why = f"is not in its folder, {house.orders}"
    assert why in house.why(f"s3://{house.bucket}/away")
    inventory = with_remote(house.inventory(), house.estate, house.paths, lambda _: None)
    reasons = {str(place.location): str(place.untreated) for place in inventory.remote}
    assert why in reasons[house.orders], "its metadata leads there"


def test_a_location_that_is_written_otherwise_is_the_same(house: House) -> None:
    made = house.table()
    told(house, made, location=house.orders.replace("s3:", "s3a:") + "/")
    assert house.state().rows == 3


@pytest.mark.parametrize(
    "name", ["write.data.path", "write.object-storage.path", "write.folder-storage.path", "write.metadata.path"]
)
def test_properties_that_lead_new_files_elsewhere(house: House, name: str) -> None:
    made = house.table()
    told(house, made, properties={name: f"s3a://{house.bucket}/hot/orders"})
    assert f"its property {name} puts new files outside of its folder, in s3://{house.bucket}/hot/orders" in house.why()
    told(house, made, properties={name: "/mnt/hot/orders"})
    assert "references a file outside S3" in house.why()
    told(house, made, properties={name: f"{house.orders}/hot"})
    assert house.state().properties[name].endswith("/hot")


def test_a_data_file_beyond_the_folder(house: House) -> None:
    made = house.table()
    added = f"s3://{house.bucket}/landing/1.parquet"
    house.put(added, parquet(ROWS))
    made.add_files([added])
    assert "its metadata references 1 file outside of its folder" in house.why()
    with made.transaction() as change:
        change.overwrite(ROWS)
    assert "1 file" in house.why(), "an older snapshot names it"


@pytest.mark.parametrize("kind", ["metadata-log", "statistics", "partition-statistics"])
def test_other_files_beyond_the_folder(house: House, kind: str) -> None:
    made = house.table()
    away = f"s3://{house.bucket}/old/{UUID}"
    number = made.current_snapshot().snapshot_id
    statistics = {"snapshot-id": number, "statistics-path": away, "file-size-in-bytes": 1}
    entry = {
        "metadata-log": {"metadata-file": away, "timestamp-ms": 1},
        "statistics": {**statistics, "file-footer-size-in-bytes": 1, "blob-metadata": []},
        "partition-statistics": statistics,
    }[kind]
    told(house, made, **{kind: [entry]})
    assert "its metadata references 1 file outside of its folder" in house.why()


def test_two_tables_that_share_a_file(house: House) -> None:
    orders, copies = house.table(), house.table("prod.copies")
    copies.add_files(orders.inspect.files().column("file_path").to_pylist())
    assert house.why() == "the table core.prod.copies reads its files"
    assert house.why(f"{house.warehouse}/prod/copies").endswith("; it reads files of the table core.prod.orders")


@pytest.mark.parametrize("why", ["names", "property", "statistics"])
def test_a_table_that_cannot_be_erased_reads_anothers_files_all_the_same(house: House, why: str) -> None:
    """Its metadata counts, though part of it leads out of S3."""
    orders, copies = house.table(), house.table("prod.copies")
    copies.add_files(orders.inspect.files().column("file_path").to_pylist())
    copies = house.catalog().load_table("prod.copies")
    if why == "names":
        house.catalog().register_table("prod.twice", copies.metadata_location)
    elif why == "property":
        told(house, copies, properties={"write.data.path": "/mnt/hot"})
    else:
        away = {"snapshot-id": 1, "statistics-path": "/mnt/1.stats", "file-size-in-bytes": 1}
        told(house, copies, **{"partition-statistics": [away]})
    assert "core.prod.copies reads its files" in house.why()


def test_a_table_that_another_one_says_it_lies_in(house: House) -> None:
    """A table that was registered from a copy of the metadata writes into the folder of the first."""
    made = house.table()
    away = f"s3://{house.bucket}/away/metadata/1.metadata.json"
    house.put(away, house.read(made.metadata_location))
    house.catalog().register_table("prod.moved", away)
    assert house.why() == "the table core.prod.moved reads its files"


def test_files_of_a_delta_table(house: House) -> None:
    place = f"s3://{house.bucket}/delta/t"
    access = {"AWS_ENDPOINT_URL": house.world.endpoint_url, "AWS_REGION": REGION, "AWS_ALLOW_HTTP": "true"}
    write_deltalake(place, ROWS, storage_options={**access, "AWS_CONDITIONAL_PUT": "etag"})
    listed = house.world.client().list_objects_v2(Bucket=house.bucket, Prefix="delta/t/")["Contents"]
    made = house.table()
    made.add_files([f"s3://{house.bucket}/{o['Key']}" for o in listed if o["Key"].endswith(".parquet")])
    tables = [{"name": "p.t", "format": "delta", "location": place}]
    house.catalogs["session"] = {"type": "declared", "tables": tables}
    assert house.why(place) == "the table core.prod.orders reads its files"
    assert house.why().endswith("it reads files of the table p.t")


def test_a_place_inside_its_folder(house: House) -> None:
    house.table()
    house.more["roots"] = [f"{house.orders}/data/inner"]
    assert "/data/inner is inside its folder" in house.why()


def test_a_bucket_that_is_replicated(house: House) -> None:
    house.table()
    house.world.replicate(house.bucket, house.world.new("copy"), prefix="wh/")
    assert "is replicated" in house.why()


def test_a_bucket_that_locks(world: World, tmp_path: Path) -> None:
    house = House(world, world.new("locked", ObjectLockEnabledForBucket=True), tmp_path)
    house.table()
    assert "Object Lock" in house.why()


def test_a_manifest_that_is_gone(house: House) -> None:
    made = house.table()
    (manifest,) = made.current_snapshot().manifests(made.io)
    house.drop(manifest.manifest_path)
    assert house.why().startswith("a manifest cannot be read: FileNotFoundError; repair the table")


def test_a_damaged_table_that_writes_into_anothers_folder(house: House) -> None:
    house.table()
    theirs = house.table("prod.theirs", properties={"write.data.path": f"{house.orders}/data/hot"})
    (manifest,) = theirs.current_snapshot().manifests(theirs.io)
    house.drop(manifest.manifest_path)
    assert "a manifest cannot be read" in house.why(f"{house.warehouse}/prod/theirs")
    assert house.why() == "the table core.prod.theirs reads its files"


@pytest.mark.parametrize("change", ["gone", "another"])
def test_a_catalog_that_tells_something_else_a_moment_later(house: House, change: str) -> None:
    """What it did not name before would not be looked at."""
    house.table()
    before = house.inventory()
    assert before.tables
    if change == "gone":
        house.catalog().drop_table("prod.orders")
    else:
        house.table("prod.late", properties={"write.data.path": f"{house.orders}/data/late"})
    with pytest.raises(EstateError, match="changed while it was listed") as refused:
        with_remote(before, house.estate, house.paths, lambda _: None)
    assert refused.value.where == house.orders


def test_metadata_that_is_gone_or_damaged(house: House) -> None:
    made = house.table()
    house.put(made.metadata_location, b"{")
    assert "metadata file that its catalog references cannot be read: JSONDecodeError" in house.why()
    house.put(made.metadata_location, json.dumps({"location": house.orders, "format-version": 9}).encode())
    assert "the Iceberg metadata cannot be read: ValidationError" in house.why()
    house.drop(made.metadata_location)
    assert "metadata file that its catalog references cannot be read: FileNotFoundError" in house.why()


def test_files_on_another_store(house: House) -> None:
    made = house.table()
    told(house, made, location="gs://elsewhere/orders")
    assert "`gs` locations" in house.why()
    pointed(house, metadata_location=f"s3://no-such-bucket-{house.bucket}/t/metadata/1.metadata.json")
    assert "S3 refuses to show it (NoSuchBucket)" in house.why(f"s3://no-such-bucket-{house.bucket}/t")


def test_other_tables_and_roots(house: House) -> None:
    house.table()
    root = f"s3://{house.bucket}/loose"
    house.more["roots"] = [root]
    (reason,) = [p.untreated for p in house.inventory().remote if str(p.location) == root]
    assert reason == others()


def test_a_data_file_that_is_missing_is_told(house: House) -> None:
    made = house.table()
    (file,) = made.inspect.files().column("file_path").to_pylist()
    house.drop(file)
    assert house.kinds() == [("missing_files", file)]


def test_files_of_somebody_are_told(house: House) -> None:
    house.table()
    for name in (f"data/00000-0-{UUID}.parquet", "data/_SUCCESS", "metadata/version-hint.text"):
        house.put(f"{house.orders}/{name}", b"x")
    for marker in ("data/", "data/day=1/", "data_$folder$"):
        house.put(f"{house.orders}/{marker}", b"")
    assert house.kinds() == []
    house.put(f"{house.orders}/data/notes of the finance team.csv", b"mine")
    assert house.kinds() == [("strange_files", f"{house.orders}/data/notes of the finance team.csv")]


def test_metadata_of_another_table_is_told(house: House) -> None:
    made = house.table()
    for _ in range(2):
        made.append(ROWS)
    with made.transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "1"})
    assert house.kinds() == [], "former metadata of its own is its own"
    theirs = house.table(catalog="theirs")
    del house.catalogs["theirs"]
    ((kind, evidence),) = house.kinds()
    assert kind == "strange_files"
    assert evidence in {theirs.metadata_location, theirs.metadata.metadata_log[0].metadata_file}


def test_a_catalog_that_was_set_back_is_told(house: House) -> None:
    """Rows that only the younger metadata names are nowhere else: to the sweep they are orphans."""
    made = house.table()
    older = made.metadata_location
    made.append(ROWS)
    younger = made.refresh().metadata_location
    assert house.kinds() == []
    pointed(house, metadata_location=older)
    assert house.kinds() == [("strange_files", younger)]
    pointed(house, metadata_location=younger)
    stale = json.loads(house.read(older)) | {"table-uuid": str(made.metadata.table_uuid)}
    house.put(f"{house.orders}/metadata/00007-{UUID}.metadata.json", json.dumps(stale).encode())
    assert house.kinds() == [], "a commit that failed before the last one"


def test_a_table_of_the_first_version(house: House) -> None:
    made = house.table(properties={"format-version": "1"})
    assert made.metadata.format_version == 1
    state = house.state()
    assert (state.format_version, state.rows, state.files) == (1, 3, 1)


@pytest.mark.parametrize(
    ("key", "folded"),
    [("wh//orders", True), ("wh/../orders", True), ("wh/./orders", True), ("wh/..orders", False), ("", False)],
)
def test_a_name_that_spark_folds(house: House, key: str, folded: bool) -> None:
    clients = s3_clients(house.estate)
    place = S3Path.of(S3Location(bucket=house.bucket, key=key), clients)
    told = Folders((), {}, (), clients).against(place)
    assert ("which Spark's file system folds into another place's name" in (told or "")) is folded


def test_rows_that_were_staged_are_told(house: House) -> None:
    made = house.table()
    made.append(pa.table({"uid": [9], "name": ["staged"]}), snapshot_properties={"wap.id": "w1"}, branch="wap")
    staged = made.refresh().metadata.snapshots[-1].snapshot_id
    made.manage_snapshots().remove_branch("wap").commit()
    assert house.kinds() == [("staged_snapshot", f"snapshot {staged}")]


def test_retention_looks_at_it_and_its_references(house: House) -> None:
    made = house.table()
    head = made.refresh().metadata.current_snapshot_id
    made.manage_snapshots().create_tag(head, "quarter", max_ref_age_ms=86_400_000).commit()
    inventory = with_tables_in_s3(house.inventory(), house.estate, house.base)
    [table] = tables_of(inventory, house.paths, lambda state: ("mail",))
    assert table.names[0] == "core.prod.orders"
    assert [(ref.name, ref.max_ref_age_ms) for ref in table.refs] == [("main", None), ("quarter", 86_400_000)]
    found = check_tables(house.estate.retention, [table])
    assert {finding.kind for finding in found} == {FindingKind.UNCLASSIFIED, FindingKind.TOO_LONG}
    rules = house.estate.retention.model_copy(update={"tables": {"core.prod.orders": "pii"}})
    now = datetime.now(timezone.utc)
    [target], _ = targets(rules, (), [table], inventory, now, swept_catalogs={"core"})
    assert (target.sql_name, str(target.location), target.pointed) == ("core.prod.orders", house.orders, True)
    wanted, skipped = targets(rules, (), [table], inventory, now)
    assert wanted == ()
    assert [one.reason for one in skipped] == [
        "tables of this catalog are not swept: expire their snapshots in the catalog"
    ]


def test_a_table_with_metadata_of_another_is_not_swept(house: House) -> None:
    """Rows of the other one look like orphans, and are named like them."""
    house.table()
    house.table(catalog="theirs")
    del house.catalogs["theirs"]
    inventory = with_tables_in_s3(house.inventory(), house.estate, house.base)
    tables = tables_of(inventory, house.paths, lambda state: ("mail",))
    rules = house.estate.retention.model_copy(update={"tables": {"core.prod.orders": "pii"}})
    wanted, [skipped] = targets(rules, (), tables, inventory, datetime.now(timezone.utc), swept_catalogs={"core"})
    assert wanted == ()
    assert "of a different table" in skipped.reason


def test_the_inventory_has_the_table_and_no_gap(house: House) -> None:
    house.table()
    inventory = with_remote(house.inventory(), house.estate, house.paths, lambda _: None)
    assert [(state.table, state.location) for state in inventory.tables] == [("core.prod.orders", house.orders)]
    (place,) = inventory.remote
    assert (place.untreated, place.unlisted, bool(place.versions)) == (None, None, True)
    assert inventory.gaps == ()
