"""An estate in S3 under Glue: tables of each kind, a view, clones, old versions, an archive and people like the person.

It is planned, and what is missing in the estate file is told; erased, killed in the middle, resumed and verified. Glue
and S3 are the stand-ins (`tests/gluesupport.py`): nothing here ran on AWS.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_glue import COLUMNS, lake
from tests.app.planning.test_glue_text import described
from tests.app.planning.test_hive_s3 import as_orc, parquet
from tests.app.planning.test_remote import MAIL, OTHERS, PEOPLE, PERSON, Shop
from tests.e2e.stores.lakes import (
    ALIKE,
    HER,
    Erasure,
    Rows,
    as_bytes,
    as_rows,
    cells,
    delta_rows,
    hudi_rows,
    json_rows,
    orc_rows,
    parquet_rows,
    rows_below,
    versions,
    without_her,
)
from tests.e2e.stores.test_glue import catalog
from tests.gluesupport import glue_partition, glue_table
from tests.hivetextsupport import LAZY, OPEN_CSV
from tests.hudistores import in_and_out, made_by_hand
from tests.leaks import leaks
from tests.sparksession import HAS_HUDI, small_spark
from tests.sparkstatements import in_spark
from tests.storeservers import Store, signed
from tests.storeservers import strict_store as store

__all__ = ["signed", "store"]

pytestmark = pytest.mark.e2e

ALL = pa.concat_tables([PEOPLE, ALIKE])
STAYING = pa.concat_tables([OTHERS, ALIKE])
JOBS = "".join(
    f"CREATE TABLE {name} USING {kind} AS SELECT {uid} AS uid, mail{more} FROM {source};\n"
    for name, kind, source, uid, more in (
        ("aws.prod.calls", "iceberg", "shop.people", "uid", ""),
        ("prod.orders", "delta", "shop.people", "uid", ""),
        ("prod.trips", "hudi", "shop.people", "CAST(uid AS STRING)", ""),
        ("prod.visits", "parquet", "shop.people", "uid", ", '1' AS day"),
        ("prod.bills", "orc", "shop.people", "uid", ""),
        ("prod.lines", "json", "shop.people", "uid", ""),
        ("prod.members", "csv", "shop.people", "uid", ""),
        ("prod.letters", "csv", "shop.people", "uid", ""),
        ("prod.report", "parquet", "prod.named", "uid", ""),  # a view over the orders
        ("prod.orders_dev", "delta", "prod.orders", "uid", ""),
    )
)
PERSONS = pa.table({"uid": pa.array([PERSON], pa.int64()), "mail": [MAIL]})


def text(rows: pa.Table, sign: str) -> bytes:
    return "".join(f"{row['uid']}{sign}{row['mail']}\n" for row in rows.to_pylist()).encode()


def pairs(rows: pa.Table) -> list[tuple[str, str]]:
    return [(str(row["uid"]), row["mail"]) for row in rows.to_pylist()]


class Estate:
    """The shop, with tables that Glue names; each has the person, but for the one of people like the person."""

    def __init__(self, shop: Shop, client: Any, uri: str, statistics: dict[str, Any]) -> None:
        """statistics: of columns, as Glue tells them."""
        self.shop, self.client, self.at = shop, client, f"s3://{shop.bucket}/lake"
        self.statistics = statistics
        self.erasure = Erasure(shop.base)
        self.far = f"{shop.bucket}-far"
        self.calls = catalog(shop, uri).create_table("prod.calls", schema=PEOPLE.schema)
        s3 = shop.store.client()
        s3.create_bucket(Bucket=self.far)
        s3.put_bucket_versioning(Bucket=self.far, VersioningConfiguration={"Status": "Enabled"})
        self._tables_with_history()
        self._bare()
        self._copies()
        archive = {"name": "old", "of": "prod.visits", "bucket": shop.bucket, "prefix": "archive/", "format": "parquet"}
        shop.more = (
            f"spark: {json.dumps(small_spark())}\nwriters: [{{job: shop, stopped: true}}]\n"
            f"archives: [{json.dumps(archive)}]\n"
        )
        shop.jobs = JOBS
        shop.roots += [f"s3://{shop.bucket}", f"s3://{self.far}"]

    def _tables_with_history(self) -> None:
        """The naive way was taken in each, and she came again: she is in old snapshots, versions and slices, too."""
        shop = self.shop
        self.calls.append(ALL)
        self.calls.delete(f"uid = {PERSON}")
        self.calls.append(PERSONS)
        snapshot = self.calls.current_snapshot()
        assert snapshot is not None
        self.calls.manage_snapshots().create_tag(snapshot.snapshot_id, "quarter").commit()
        orders = f"{self.at}/orders"
        write_deltalake(orders, ALL, storage_options=shop.options)
        DeltaTable(orders, storage_options=shop.options).delete(f"uid = {PERSON}")
        write_deltalake(orders, PERSONS, mode="append", storage_options=shop.options)
        glue_table(self.client, "orders", orders, "delta", COLUMNS)
        glue_table(self.client, "trips", f"{self.at}/trips", "hudi", COLUMNS | {"uid": "string"})

    def _bare(self) -> None:
        shop, client, at = self.shop, self.client, self.at
        for day in ("1", "2"):
            shop.put(f"lake/visits/day={day}/part.parquet", parquet(ALL))
        glue_table(client, "visits", f"{at}/visits", "parquet", COLUMNS, {"day": "string"})
        for rows in (ALL, STAYING, ALL):
            shop.store.client().put_object(Bucket=self.far, Key="2019/part.parquet", Body=parquet(rows))
        places = {"1": f"{at}/visits/day=1", "2": f"{at}/visits/day=2", "3": f"s3://{self.far}/2019"}
        for day, place in places.items():
            glue_partition(client, "visits", [day], place)
        shop.put("lake/bills/000000_0", as_orc(ALL))
        shop.put("lake/bills/000000_0", as_orc(STAYING))  # the naive way: she is in the former version
        shop.put("lake/bills/000000_1", as_orc(PEOPLE))
        glue_table(client, "bills", f"{at}/bills", "orc", COLUMNS)
        shop.put("lake/lines/0.json", as_bytes("json", ALL))
        shop.put("lake/lines/1.json", as_bytes("json", PERSONS))
        shop.store.client().delete_object(Bucket=shop.bucket, Key="lake/lines/1.json")
        glue_table(client, "lines", f"{at}/lines", "json", COLUMNS)
        shop.put("lake/members/0", text(ALL, "|"))
        described(client, "members", f"{at}/members/", LAZY, {"field.delim": "|"})
        shop.put("lake/letters/0.csv", text(ALL, ","))
        described(client, "letters", f"{at}/letters", OPEN_CSV, {"separatorChar": ","})
        shop.put("lake/strangers/0.parquet", parquet(ALIKE))
        glue_table(client, "strangers", f"{at}/strangers", "parquet", COLUMNS)
        shop.put("archive/2019/0.parquet", parquet(ALL))
        shop.put("archive/2019/0.parquet", parquet(PEOPLE))

    def _copies(self) -> None:
        """A view, what a job made of it, a clone that lineage knows, and a folder that somebody copied by hand."""
        shop, client = self.shop, self.client
        view = {"Name": "named", "TableType": "VIRTUAL_VIEW", "StorageDescriptor": {"Columns": columns()}}
        view |= dict.fromkeys(("ViewOriginalText", "ViewExpandedText"), "SELECT uid, mail FROM prod.orders")
        client.create_table(DatabaseName="prod", TableInput=view)
        shop.put("lake/report/0.parquet", parquet(ALL))
        glue_table(client, "report", f"{self.at}/report", "parquet", COLUMNS)
        write_deltalake(f"{self.at}/orders_dev", ALL, storage_options=shop.options)
        glue_table(client, "orders_dev", f"{self.at}/orders_dev", "delta", COLUMNS)
        shop.put("scratch/visits/day=1/part.parquet", parquet(ALL))

    def trips(self, *, by_spark: bool) -> None:
        """The Hudi table: as Spark writes it, or one that is good enough to be planned."""
        self.shop.write()
        if by_spark:
            place = f"{self.at}/trips".replace("s3://", "s3a://")
            in_spark(self.shop.base, "s3", in_and_out("prod.trips", place, pairs(ALL), (str(PERSON), MAIL)))
            return
        for path, data in made_by_hand(*pairs(ALL)).items():
            self.shop.put(f"lake/trips/{path}", data)

    def noted(self) -> None:
        """Somebody wrote her address into a comment and a parameter, and took both away: Glue keeps the old version.

        Her number is the least of its column, as Glue counted them.
        """
        least = {"MinimumValue": PERSON, "MaximumValue": 10 * PERSON, "NumberOfNulls": 0}
        self.statistics["uid"] = {"Type": "LONG", "LongColumnStatisticsData": least}
        told = self.client.get_table(DatabaseName="prod", Name="orders")["Table"]
        clean = {key: told[key] for key in ("Name", "TableType", "StorageDescriptor", "Parameters")}
        dirty = {**clean, "StorageDescriptor": {**clean["StorageDescriptor"], "Columns": columns(f"such as {MAIL}")}}
        dirty["Parameters"] = clean["Parameters"] | {"requested-by": MAIL}
        for one in (dirty, clean):
            self.client.update_table(DatabaseName="prod", TableInput=one)

    def forget_notes(self) -> None:
        """As the gaps say: `batch-delete-table-version`, `delete-column-statistics-for-table`."""
        self.statistics.clear()
        told = self.client.get_table_versions(DatabaseName="prod", TableName="orders")["TableVersions"]
        old = [one["VersionId"] for one in told if MAIL in json.dumps(one["Table"], default=str)]
        for version in old:
            self.client.delete_table_version(DatabaseName="prod", TableName="orders", VersionId=version)
        assert old != []

    def declare_the_copy(self) -> None:
        """The way out that the gap of a folder without a name shows: its table, and how it came."""
        shop = self.shop
        shop.jobs += "CREATE TABLE scratch.visits USING parquet AS SELECT uid, mail, day FROM prod.visits;\n"
        shop.tables["scratch.visits"], shop.formats["scratch.visits"] = f"s3://{shop.bucket}/scratch/visits", "parquet"

    def planned(self) -> tuple[int, dict[str, Any]]:
        self.shop.write()
        return self.erasure.plan()

    def rows(self) -> dict[str, Rows]:
        """Everybody's rows in each place, by other readers than those that write."""
        shop, at = self.shop, self.at
        readers = {
            "lake/visits/": parquet_rows,
            "lake/report/": parquet_rows,
            "lake/strangers/": parquet_rows,
            "scratch/visits/": parquet_rows,
            "archive/": parquet_rows,
            "lake/bills/": orc_rows,
            "lake/lines/": json_rows,
            "lake/members/": cells("|"),
            "lake/letters/": cells(","),
        }
        found = {prefix: rows_below(shop, prefix, read) for prefix, read in readers.items()}
        found["far"] = rows_below(shop, "2019/", parquet_rows, self.far)
        found |= {name: delta_rows(shop, f"{at}/{name}") for name in ("orders", "orders_dev")}
        found["trips"] = hudi_rows(shop, f"{at}/trips")
        calls = self.calls.refresh()
        for ref, told in calls.metadata.refs.items():
            found[f"calls@{ref}"] = as_rows(calls.scan(snapshot_id=told.snapshot_id).to_arrow())
        return found


def columns(comment: str = "") -> list[dict[str, str]]:
    return [{"Name": name, "Type": kind, "Comment": comment} for name, kind in COLUMNS.items()]


@pytest.fixture
def estate(store: Store, tmp_path: Path) -> Iterator[Estate]:
    base = tmp_path / "shop"
    base.mkdir()
    statistics: dict[str, Any] = {}
    with lake(store, base, statistics=statistics) as (shop, client):
        yield Estate(shop, client, store.endpoint_url, statistics)


def test_what_the_estate_file_lacks_is_told_and_what_it_says_then_is_enough(estate: Estate) -> None:
    """A folder that somebody copied by hand is found by what is in it; so is what Glue keeps of an old version."""
    estate.trips(by_spark=False)
    estate.noted()
    code, plan = estate.planned()
    told = {(gap["kind"], gap["evidence"].partition(":")[0]): gap["reason"] for gap in plan["gaps"]}
    assert code == ExitCode.INCOMPLETE
    assert {kind for kind, _ in told} == {"remote_table", "table_text"}, told
    assert "a folder of data files lies in S3 and is not erased" in told["remote_table", "s3"]
    orders = told["table_text", "catalog aws.prod.orders"]
    assert "old versions" in orders
    assert "column statistics" in orders
    estate.forget_notes()
    estate.declare_the_copy()
    code, plan = estate.planned()
    assert (code, [gap["reason"] for gap in plan["gaps"]]) == (ExitCode.DONE, [])
    names = {line.split()[2] for line in estate.shop.jobs.splitlines()}
    assert {copy["table"] for copy in plan["copies"] if copy["table"]} == names | {"shop.people"}
    assert [item["table"] for item in plan["examined"]] == ["prod.strangers"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not HAS_HUDI, reason="this Spark has no bundle of Hudi")
def test_an_estate_of_twelve_tables_is_erased_though_the_run_is_killed(estate: Estate, tmp_path: Path) -> None:
    shop, erasure = estate.shop, estate.erasure
    estate.declare_the_copy()
    estate.trips(by_spark=True)
    assert estate.planned()[0] == ExitCode.DONE
    erasure.approve()
    found = versions(shop, tmp_path / "before", estate.far)
    strangers, before = {at for at in found if "/strangers/" in at[0]}, estate.rows()
    assert erasure.apply(tmp_path / "1", erasure.is_halfway).killed
    told = erasure.resume(tmp_path / "2")
    found, after = versions(shop, tmp_path / "after", estate.far), estate.rows()
    assert erasure.verify() == ExitCode.DONE
    assert (told["state"], told["residue"], told["unverified"]) == ("complete", [], [])
    assert told["bystander_rows_lost"] == 0
    assert after == without_her(before)
    assert after != before
    assert leaks(HER, [tmp_path / "before"]) != []
    assert leaks(HER, [tmp_path / "after"]) == []
    assert [at for at, latest in found.items() if not latest] == [], "versions that DELETE leaves"
    assert strangers == {at for at in found if "/strangers/" in at[0]}
    assert leaks(HER, [shop.base / "state", tmp_path / "1.err", tmp_path / "2.err", tmp_path / "2.out"]) == []
