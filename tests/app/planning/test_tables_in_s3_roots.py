"""Roots in S3: each table and bare folder in them is a place of its own, and nothing is erased in one that nobody names."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from tests import storeservers
from tests.app.planning.test_remote import MAIL, OTHERS, PEOPLE, PERSON, Shop
from tests.storeservers import Store, signed

__all__ = ["signed"]

JOBS = "INSERT INTO {} SELECT uid, mail FROM shop.people;\n"
_numbers = iter(range(1000))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with storeservers.standin(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Shop:
    made = Shop(tmp_path, store, f"roots-{next(_numbers)}")
    made.roots.append(f"s3://{made.bucket}/lake")
    return made


def parquet(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    return sink.getvalue()


def requests() -> list[str]:
    """The addresses of what is sent to S3 from now on."""
    sent: list[str] = []
    boto3.DEFAULT_SESSION.events.register("before-send.s3", lambda request, **_: sent.append(request.url))
    return sent


def place(shop: Shop, folder: str) -> str:
    return f"s3://{shop.bucket}/lake/{folder}"


def filled(shop: Shop, *tables: str) -> None:
    """Lineage leads from the persons to these tables."""
    shop.jobs += "".join(map(JOBS.format, tables))


def copies(plan: dict[str, Any]) -> dict[str, str]:
    return {copy["location"].rstrip("/"): copy["strategy"] for copy in plan["copies"] if "versions" not in copy["id"]}


def gaps(plan: dict[str, Any], kind: str) -> dict[str, str]:
    return {g["evidence"].partition(";")[0]: g["reason"] for g in plan["gaps"] if g["kind"] == kind}


def iceberg(shop: Shop, folder: str, rows: pa.Table) -> Any:
    """A table of a catalog that the estate file does not name."""
    database = f"sqlite:///{shop.base / 'others.db'}"
    catalog = SqlCatalog("others", uri=database, warehouse=place(shop, folder), **shop.io)
    catalog.create_namespace_if_not_exists("n")
    table = catalog.create_table("n.t", rows.schema)
    table.append(rows)
    return table


def lines(plan: dict[str, Any]) -> dict[str, dict[str, str]]:
    """What the gaps say to write, by place."""
    told = "under `tables` of the catalog `spark_catalog` of the type `declared`: "
    found = [why.partition(told)[2].partition(" (`pii-tracer init")[0] for why in gaps(plan, "remote_table").values()]
    return {line["location"]: line for line in map(yaml.safe_load, filter(None, found))}


def in_s3(plan: dict[str, Any]) -> dict[str, str]:
    return {at: how for at, how in copies(plan).items() if at.startswith("s3://")}


def test_each_table_is_a_gap_whose_line_makes_it_a_copy(shop: Shop) -> None:
    write_deltalake(place(shop, "crm/tickets"), PEOPLE, storage_options=shop.options)
    iceberg(shop, "ice", PEOPLE)
    for key in ("parts/dt=2026-11-29", "parts/dt=2026-11-30", "days/2026/11/29", "days/2026/11/30"):
        shop.put(f"lake/{key}/a.parquet", parquet(PEOPLE))
    shop.put("lake/hud/t/.hoodie/hoodie.properties", b"hoodie.table.name=t\nhoodie.table.version=9\n")
    shop.put("lake/hud/t/a.parquet", parquet(PEOPLE))
    shop.put("lake/loose.parquet", parquet(PEOPLE))
    shop.put("lake/notes/readme.txt", MAIL.encode())
    filled(shop, f"delta.`{place(shop, 'crm/tickets')}`", *(f"parquet.`{place(shop, t)}`" for t in ("parts", "days")))
    plan = shop.plan()
    assert in_s3(plan) == {}
    left = gaps(plan, "remote_table")
    tables = ("crm/tickets", "days", "hud/t", "ice/n/t", "parts")
    assert sorted(left) == [place(shop, "")[:-1], *(place(shop, table) for table in tables)]
    assert all("contain the person" in why for why in left.values())
    assert "2 of 2 objects contain the person" in left[place(shop, "")[:-1]], "the loose file and the text"
    assert "add their catalog" in left[place(shop, "ice/n/t")]
    assert "a table in a different place may read its files" in left[place(shop, "days")]
    found = lines(plan)
    formats = {at.rpartition("lake/")[2]: line["format"] for at, line in found.items()}
    assert formats == {"crm/tickets": "delta", "days": "parquet", "hud/t": "hudi", "parts": "parquet"}
    for at in map(partial(place, shop), ("crm/tickets", "days", "parts")):
        shop.tables[found[at]["name"]], shop.formats[found[at]["name"]] = at, found[at]["format"]
    assert in_s3(shop.plan()) == {
        place(shop, "crm/tickets"): "delete_by_key",
        place(shop, "days"): "restore_rewrite_archive",
        place(shop, "parts"): "restore_rewrite_archive",
    }


def test_files_that_another_tables_metadata_names_are_not_written_again(shop: Shop) -> None:
    """Tables that nobody names read files of declared ones: an Iceberg table took them over, and a shallow clone."""
    for name in ("events", "origin"):
        write_deltalake(place(shop, name), PEOPLE, storage_options=shop.options)
    for name in ("raw", "free"):
        shop.put(f"lake/{name}/a.parquet", parquet(PEOPLE))
    for name, kind in (("events", "delta"), ("origin", "delta"), ("raw", "parquet"), ("free", "parquet")):
        shop.tables[f"lake.{name}"], shop.formats[f"lake.{name}"] = place(shop, name), kind
    [own] = shop.store.client().list_objects_v2(Bucket=shop.bucket, Prefix="lake/events/part")["Contents"]
    iceberg(shop, "ice", OTHERS).add_files([place(shop, "raw/a.parquet"), f"s3://{shop.bucket}/{own['Key']}"])
    log = "_delta_log/00000000000000000000.json"
    read = shop.store.client().get_object(Bucket=shop.bucket, Key=f"lake/origin/{log}")["Body"].read()
    shop.put(f"lake/clone/{log}", read.replace(b'"path":"', f'"path":"{place(shop, "origin")}/'.encode()))
    filled(shop, "lake.raw", "lake.free", "lake.events", "lake.origin")
    plan = shop.plan()
    assert list(in_s3(plan)) == [place(shop, "free")]
    left = gaps(plan, "remote_table")
    for table in ("raw", "events", "origin"):
        assert "to write them again would break that table" in left[place(shop, table)]
        assert "contain the person" in left[place(shop, table)]


def test_names_that_may_tell_of_persons_are_the_roots(shop: Shop) -> None:
    """Of the person, and of everybody else: a folder's name in a gap would be in the plan."""
    mail = quote(MAIL, safe="").replace("%40", "%2540")
    for name in (str(PERSON), mail, "users/u1", "users/u2", "4417700205", "b@example.org/x"):
        shop.put(f"lake/{name}/a.parquet", parquet(PEOPLE))
    shop.put("lake/other/a.parquet", parquet(OTHERS))
    plan = shop.plan()
    assert sorted(gaps(plan, "remote_table")) == [place(shop, "")[:-1], place(shop, "other")]
    root = gaps(plan, "remote_table")[place(shop, "")[:-1]]
    assert "6 of 6 objects contain the person" in root
    assert not [told for told in (str(PERSON), mail, "4417700205", "users/", "b@ex") if told in json.dumps(plan)]


def test_an_object_named_by_the_person_stops_no_plan(shop: Shop) -> None:
    shop.put("lake/parts/a.parquet", parquet(PEOPLE))
    shop.put(f"lake/parts/{PERSON}.txt", b"x")
    shop.tables["lake.parts"], shop.formats["lake.parts"] = place(shop, "parts"), "parquet"
    plan = shop.plan()
    assert "object other than data files" in gaps(plan, "remote_table")[place(shop, "parts")]
    assert str(PERSON) not in json.dumps(plan)


def test_a_declared_table_at_the_root_is_as_one_below_it(shop: Shop) -> None:
    """What lies in its folder is told with it."""
    shop.roots[-1] = place(shop, "t")
    write_deltalake(place(shop, "t"), PEOPLE, storage_options=shop.options)
    write_deltalake(place(shop, "t/inner"), PEOPLE, storage_options=shop.options)
    shop.tables["lake.t"], shop.formats["lake.t"] = place(shop, "t"), "delta"
    filled(shop, "lake.t")
    plan = shop.plan()
    assert in_s3(plan) == {place(shop, "t"): "delete_by_key"}
    assert gaps(plan, "remote_table") == {}
    [strange] = gaps(plan, "strange_files")
    assert strange.startswith(place(shop, "t/inner/"))


def test_the_data_folder_of_a_table_that_nobody_names_is_no_bare_folder(shop: Shop) -> None:
    """Outside of every root, where no search sees the table's metadata; written again, its files would fit it no more."""
    shop.roots.pop()
    iceberg(shop, "ice", PEOPLE)
    at = place(shop, "ice/n/t/data")
    shop.tables["lake.data"], shop.formats["lake.data"] = at, "parquet"
    filled(shop, "lake.data")
    plan = shop.plan()
    assert in_s3(plan) == {}
    assert (
        f"the data folder of a table that no catalog or declaration names ({place(shop, 'ice/n/t')}"
        in gaps(plan, "remote_table")[at]
    )


@pytest.mark.parametrize(
    ("bucket", "told"),
    [("people--use1-az4--x-s3", "a directory bucket"), ("63a8e430-6e0b-46f5--table-s3", "Amazon S3 Tables")],
)
def test_buckets_of_other_kinds_are_gaps_and_not_asked(shop: Shop, bucket: str, told: str) -> None:
    """A table, an archive and a root there."""
    asked = requests()
    shop.tables["lake.t"], shop.formats["lake.t"] = f"s3://{bucket}/t", "delta"
    shop.roots.append(f"s3://{bucket}/raw")
    shop.more = f"archives: [{{name: old, of: lake.t, bucket: {bucket}, prefix: old/, format: parquet}}]\n"
    plan = shop.plan()
    left = gaps(plan, "remote_table")
    assert told in left[f"s3://{bucket}/t"]
    assert told in left[f"s3://{bucket}/raw"]
    assert told in gaps(plan, "s3_bucket")[f"bucket {bucket}"]
    assert asked
    assert not [url for url in asked if bucket in url]
