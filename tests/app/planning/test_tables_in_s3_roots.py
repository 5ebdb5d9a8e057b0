"""Roots in S3: each table and bare folder in them is a place of its own, whether somebody names it or not."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
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


def test_each_table_is_a_copy_and_what_is_none_stays_a_gap(shop: Shop) -> None:
    write_deltalake(place(shop, "crm/tickets"), PEOPLE, storage_options=shop.options)
    iceberg(shop, "ice", PEOPLE)
    for key in ("parts/dt=2026-11-29", "parts/dt=2026-11-30", "days/2026/11/29", "days/2026/11/30", "lone"):
        shop.put(f"lake/{key}/a.parquet", parquet(PEOPLE))
    shop.put("lake/clean/a.parquet", parquet(OTHERS))
    shop.put("lake/loose.parquet", parquet(PEOPLE))
    shop.put("lake/notes/readme.txt", MAIL.encode())
    filled(shop, f"delta.`{place(shop, 'crm/tickets')}`", *(f"parquet.`{place(shop, t)}`" for t in ("parts", "days")))
    plan = shop.plan()
    there = {at: how for at, how in copies(plan).items() if at.startswith("s3://")}
    assert there == {
        place(shop, "crm/tickets"): "delete_by_key",
        place(shop, "parts"): "restore_rewrite_archive",
        place(shop, "days"): "restore_rewrite_archive",
    }
    left = gaps(plan, "remote_table")
    assert sorted(left) == [place(shop, "")[:-1], place(shop, "ice/n/t")]
    assert "2 of 2 objects hold the person" in left[place(shop, "")[:-1]], "the loose file and the text"
    assert "add their catalog" in left[place(shop, "ice/n/t")]
    assert sorted(g["dataset"]["name"] for g in plan["gaps"] if g["kind"] == "unexpected_copy") == ["lake/lone"]
    assert "lake/clean" in {one["dataset"]["name"] for one in plan["examined"]}


def test_a_declared_name_counts_and_a_day_beside_it_is_told(shop: Shop) -> None:
    for day in ("2026-11-29", "2026-11-30"):
        shop.put(f"lake/days/{day}/a.parquet", parquet(PEOPLE))
    shop.tables["lake.day"], shop.formats["lake.day"] = place(shop, "days/2026-11-29"), "parquet"
    filled(shop, "lake.day")
    plan = shop.plan()
    assert place(shop, "days/2026-11-29") in copies(plan)
    [(at, why)] = gaps(plan, "remote_table").items()
    assert at == place(shop, "days")
    assert f"{place(shop, 'days/2026-11-29')} lies inside its folder" in why


def test_a_hudi_table_needs_a_name_and_is_told_the_line(shop: Shop) -> None:
    shop.put("lake/hud/t/.hoodie/hoodie.properties", b"hoodie.table.name=t\nhoodie.table.version=9\n")
    shop.put("lake/hud/t/a.parquet", parquet(PEOPLE))
    [(at, why)] = gaps(shop.plan(), "remote_table").items()
    assert at == place(shop, "hud/t")
    assert "Hudi's procedures need a table's name: declare it" in why
    assert f"{{name: hud.t, format: hudi, location: '{at}'}}" in why


def test_files_that_another_tables_metadata_names_are_not_written_again(shop: Shop) -> None:
    """An Iceberg table of a catalog that nobody named took over the files of a folder, and of a Delta table."""
    write_deltalake(place(shop, "events"), PEOPLE, storage_options=shop.options)
    shop.put("lake/raw/a.parquet", parquet(PEOPLE))
    shop.put("lake/free/a.parquet", parquet(PEOPLE))
    [own] = shop.store.client().list_objects_v2(Bucket=shop.bucket, Prefix="lake/events/part")["Contents"]
    iceberg(shop, "ice", OTHERS).add_files([place(shop, "raw/a.parquet"), f"s3://{shop.bucket}/{own['Key']}"])
    filled(shop, *(f"parquet.`{place(shop, t)}`" for t in ("raw", "free")), f"delta.`{place(shop, 'events')}`")
    plan = shop.plan()
    assert [at for at in copies(plan) if at.startswith("s3://")] == [place(shop, "free")]
    left = gaps(plan, "remote_table")
    for table in ("raw", "events"):
        assert "to write them again would break that table" in left[place(shop, table)]
        assert "hold the person" in left[place(shop, table)]


def test_a_place_whose_name_tells_of_the_person_is_the_roots(shop: Shop) -> None:
    shop.put(f"lake/{PERSON}/a.parquet", parquet(PEOPLE))
    shop.put("lake/other/a.parquet", parquet(OTHERS))
    filled(shop, f"parquet.`{place(shop, 'other')}`")
    plan = shop.plan()
    [(at, why)] = gaps(plan, "remote_table").items()
    assert at == place(shop, "")[:-1]
    assert "1 of 1 object hold the person" in why
    assert "the names of 1 object hold a value" in why
    assert str(PERSON) not in json.dumps(plan)
