"""A lake on S3 that Glue alone names: its tables are erased, and what Glue itself keeps of them is searched."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from tests.app.planning.test_remote import MAIL, PEOPLE, PERSON, Shop
from tests.gluesupport import glue_at, glue_door, glue_partition, glue_table
from tests.storeservers import REGION, Store, signed
from tests.storeservers import strict_store as store

__all__ = ["signed", "store"]

COLUMNS = {"uid": "bigint", "mail": "string"}
JOBS = "CREATE TABLE prod.orders USING delta AS SELECT uid, mail FROM shop.people;\n"
VISITS = "CREATE TABLE prod.visits USING parquet AS SELECT uid, mail FROM shop.people;\n"


_numbers = iter(range(100))


@contextmanager
def lake(store: Store, base: Path, **door: Any) -> Iterator[tuple[Shop, Any]]:
    """The shop with Glue as its catalog; every table of it in a database of Glue's."""
    with glue_door(store.endpoint_url, **door) as uri:
        shop = Shop(base, store, f"glue-lake-{next(_numbers)}", jobs=JOBS + VISITS)
        shop.catalogs = f"  aws: {{type: glue, region: {REGION}, endpoint_url: '{uri}'}}\n"
        client = glue_at(store.endpoint_url)
        for database in client.get_databases()["DatabaseList"]:
            client.delete_database(Name=database["Name"])
        client.create_database(DatabaseInput={"Name": "prod"})
        yield shop, client


def orders(shop: Shop, client: Any) -> str:
    place = f"s3://{shop.bucket}/lake/orders"
    write_deltalake(place, PEOPLE, storage_options=shop.options)
    glue_table(client, "orders", place, "delta", COLUMNS)
    return place


def visits(shop: Shop, client: Any) -> str:
    sink = io.BytesIO()
    pq.write_table(PEOPLE, sink)
    place = f"s3://{shop.bucket}/lake/visits"
    for day in ("1", "2"):
        shop.put(f"lake/visits/day={day}/part.parquet", sink.getvalue())
    glue_table(client, "visits", place, "parquet", COLUMNS, {"day": "string"})
    for day in ("1", "2"):
        glue_partition(client, "visits", [day], f"{place}/day={day}")
    return place


def test_tables_that_glue_alone_names_are_copies_with_steps(store: Store, tmp_path: Path) -> None:
    """They were searched, and each was a gap until it was declared in the estate file as well."""
    with lake(store, tmp_path) as (shop, client):
        places = {"prod.orders": orders(shop, client), "prod.visits": visits(shop, client)}
        plan = shop.plan()
    copies = {c["table"]: c for c in plan["copies"]}
    assert {name: copies[name]["location"].rstrip("/") for name in places} == places
    assert {copies[name]["id"] for name in places} <= {step["copy"] for step in plan["steps"]}
    assert {gap["kind"] for gap in plan["gaps"]} == {"unguarded_commits"}


def test_a_partition_elsewhere_is_erased_as_its_table_is(store: Store, tmp_path: Path) -> None:
    """One in a folder of its own. Others, in another store or beside another partition's files, stay a gap."""
    with lake(store, tmp_path) as (shop, client):
        visits(shop, client)
        sink = io.BytesIO()
        pq.write_table(PEOPLE, sink)
        shop.put("other/day=3/part.parquet", sink.getvalue())
        shop.jobs = VISITS
        glue_partition(client, "visits", ["3"], f"s3://{shop.bucket}/other/day=3")
        first = shop.plan()
        glue_partition(client, "visits", ["4"], "gs://other/day=4")
        glue_partition(client, "visits", ["5"], f"s3://{shop.bucket}/other/day=3/5")
        second = shop.plan()
    (copy,) = [c for c in first["copies"] if c["location"].rstrip("/") == f"s3://{shop.bucket}/other/day=3"]
    assert copy["id"] in {step["copy"] for step in first["steps"]}
    assert first["gaps"] == []
    (gap,) = [g for g in second["gaps"] if g["kind"] == "external_files"]
    assert "3 of 5 partitions" in gap["reason"]


def test_partitions_that_a_template_leads_elsewhere_are_a_gap(store: Store, tmp_path: Path) -> None:
    with lake(store, tmp_path) as (shop, client):
        visits(shop, client)
        told = client.get_table(DatabaseName="prod", Name="visits")["Table"]
        told = {key: told[key] for key in ("Name", "TableType", "StorageDescriptor", "PartitionKeys", "Parameters")}
        told["Parameters"] |= {"storage.location.template": f"s3://{shop.bucket}/other/${{day}}/"}
        client.update_table(DatabaseName="prod", TableInput=told)
        plan = shop.plan()
    (gap,) = [g for g in plan["gaps"] if g["kind"] == "external_files"]
    assert "template" in gap["reason"]
    (known,) = plan["partitioned"]
    assert known["elsewhere"]


def test_what_a_template_leads_to_is_no_folder_of_another_tables_partition(store: Store, tmp_path: Path) -> None:
    """Both tables read the file there: it was erased as the other one's alone."""
    with lake(store, tmp_path) as (shop, client):
        visits(shop, client)
        sink = io.BytesIO()
        pq.write_table(PEOPLE, sink)
        shop.put("other/x_3/part.parquet", sink.getvalue())
        glue_partition(client, "visits", ["3"], f"s3://{shop.bucket}/other/x_3")
        shop.jobs = VISITS
        assert shop.plan()["gaps"] == []
        glue_table(client, "made", f"s3://{shop.bucket}/lake/made", "parquet", COLUMNS, {"day": "string"})
        told = client.get_table(DatabaseName="prod", Name="made")["Table"]
        told = {key: told[key] for key in ("Name", "TableType", "StorageDescriptor", "PartitionKeys", "Parameters")}
        told["Parameters"] |= {"storage.location.template": f"s3://{shop.bucket}/other/x_${{day}}/"}
        client.update_table(DatabaseName="prod", TableInput=told)
        plan = shop.plan()
    reasons = [g["reason"] for g in plan["gaps"] if g["kind"] == "external_files"]
    assert len(reasons) == 2
    assert any("1 of 3 partitions" in reason for reason in reasons)


def test_text_is_read_by_its_serializer_and_not_by_the_name_of_a_file(store: Store, tmp_path: Path) -> None:
    """Its first line was taken for the names of its columns, and the person in it was nobody's. Cells end with another
    sign here: no lineage explains what is in them."""
    with lake(store, tmp_path) as (shop, client):
        shop.put("lake/leads/1.csv", f"{PERSON},{MAIL}\n4417700199,z@x.example\n".encode())
        glue_table(client, "leads", f"s3://{shop.bucket}/lake/leads", "csv", COLUMNS)
        plan = shop.plan()
    assert {g["kind"] for g in plan["gaps"]} >= {"unexpected_copy"}
    assert "prod.leads" not in {c["table"] for c in plan["copies"]}


def _comment(told: dict[str, Any]) -> None:
    told["StorageDescriptor"]["Columns"][1]["Comment"] = f"such as {MAIL}"


def _parameter(told: dict[str, Any]) -> None:
    told["Parameters"]["requested-by"] = MAIL


def _bound(told: dict[str, Any]) -> None:
    told["Parameters"]["spark.sql.statistics.colStats.mail.max"] = MAIL


@pytest.mark.parametrize("write", [_comment, _parameter, _bound], ids=["comment", "parameter", "bound of Spark's"])
@pytest.mark.parametrize("old", [False, True], ids=["now", "before"])
def test_what_glue_keeps_of_a_table_is_searched(store: Store, tmp_path: Path, write: Any, old: bool) -> None:
    """`update-table` archives the text that it takes away: the person stays in the old version."""
    with lake(store, tmp_path) as (shop, client):
        orders(shop, client)
        clean = client.get_table(DatabaseName="prod", Name="orders")["Table"]
        clean = {key: clean[key] for key in ("Name", "TableType", "StorageDescriptor", "Parameters")}
        dirty = {**clean, "StorageDescriptor": {**clean["StorageDescriptor"], "Columns": _columns()}}
        dirty["Parameters"] = dict(clean["Parameters"])
        write(dirty)
        client.update_table(DatabaseName="prod", TableInput=dirty)
        if old:
            client.update_table(DatabaseName="prod", TableInput=clean)
        plan = shop.plan()
    (gap,) = [g for g in plan["gaps"] if g["kind"] == "table_text"]
    assert ("old version" in gap["reason"]) is old
    assert "aws glue" in gap["evidence"]


def test_a_waiver_of_a_text_stays_when_glue_keeps_one_more_old_version(store: Store, tmp_path: Path) -> None:
    with lake(store, tmp_path) as (shop, client):
        orders(shop, client)
        told = client.get_table(DatabaseName="prod", Name="orders")["Table"]
        told = {key: told[key] for key in ("Name", "TableType", "StorageDescriptor", "Parameters")}

        def shown(**parameters: str) -> list[str]:
            client.update_table(DatabaseName="prod", TableInput={**told, "Parameters": told["Parameters"] | parameters})
            return [gap["seen"] for gap in shop.plan()["gaps"] if gap["kind"] == "table_text"]

        shown(steward=MAIL)
        waived = shown(steward=MAIL, transient_lastDdlTime="1")
        assert shown(steward=MAIL, transient_lastDdlTime="2") == waived
        assert shown(steward=f"{MAIL}, she left") != waived


def _columns() -> list[dict[str, str]]:
    return [{"Name": name, "Type": kind} for name, kind in COLUMNS.items()]


@pytest.mark.parametrize("make", [orders, visits], ids=["a table", "a table with partitions"])
def test_a_bound_of_the_key_in_statistics_is_found(store: Store, tmp_path: Path, make: Any) -> None:
    bounds: Mapping[str, Any] = {
        "Type": "LONG",
        "LongColumnStatisticsData": {"MinimumValue": PERSON, "MaximumValue": 9, "NumberOfNulls": 0},
    }
    with lake(store, tmp_path, statistics={"uid": bounds}) as (shop, client):
        make(shop, client)
        plan = shop.plan()
    (gap,) = [g for g in plan["gaps"] if g["kind"] == "table_text"]
    assert "column statistics" in gap["reason"]


@pytest.mark.parametrize(
    ("operation", "error", "kind", "word"),
    [
        ("GetDatabases", "AccessDeniedException", "catalog_unreadable", "glue:GetDatabases"),
        ("GetTables", "AccessDeniedException", "catalog_unreadable", "Lake Formation"),
        ("GetTables", "ExpiredTokenException", "catalog_unreadable", "new ones"),
        ("GetPartitions", "AccessDeniedException", "catalog_unreadable", "GetPartitions"),
        ("GetTableVersions", "AccessDeniedException", "catalog_unreadable", "old versions"),
        ("GetTableVersions", "AccessDeniedException", "catalog_unreadable", "GetTableVersions"),
        ("GetColumnStatisticsForTable", "AccessDeniedException", "catalog_unreadable", "column statistics"),
        ("GetColumnStatisticsForTable", "EntityNotFoundException", "catalog_unreadable", "column statistics"),
        ("GetColumnStatisticsForPartition", "ThrottlingException", "catalog_unreadable", "again later"),
    ],
)
def test_what_glue_refuses_is_a_gap(
    store: Store, tmp_path: Path, operation: str, error: str, kind: str, word: str
) -> None:
    with lake(store, tmp_path, refused={operation: error}) as (shop, client):
        orders(shop, client)
        visits(shop, client)
        plan = shop.plan()
    assert not plan["complete"]
    assert any(g["kind"] == kind and word in g["reason"] for g in plan["gaps"]), plan["gaps"]
