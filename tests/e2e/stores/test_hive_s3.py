"""The whole path on a lake in S3 that a real Hive metastore alone names: killed once, resumed, and searched to the byte.

Iceberg's table is written by its catalog on Spark; all others are known by their places.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from pii_tracer.model.errors import ExitCode
from pii_tracer.run.journal import Kind
from tests.app.planning.test_hive_s3 import COLUMNS, as_orc, calls, fill, parquet
from tests.app.planning.test_remote import PEOPLE, Shop
from tests.e2e.stores.lakes import (
    ALIKE,
    HER,
    Erasure,
    Rows,
    as_rows,
    cells,
    delta_rows,
    json_rows,
    orc_rows,
    parquet_rows,
    rows_below,
    versions,
    without_her,
)
from tests.hivesupport import Hive, serving
from tests.leaks import leaks
from tests.sparksession import small_spark
from tests.storeservers import Store, signed
from tests.storeservers import strict_store as store

__all__ = ["signed", "store"]

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

WITHOUT_LOCKS = {"spark.hadoop.iceberg.engine.hive.lock-enabled": "false"}
"""The tables of its locks are made by Hive's schema tool, which Spark does not bring."""


def lake(shop: Shop, hive: Hive) -> set[str]:
    """Tables of each kind, a partition in another bucket, old versions, an archive, and a table that she is not in. The
    names of those that she is in."""
    at = f"{shop.bucket}/ext"
    names = set(fill(shop, hive)) | {"core.calls", "core.plain", "shop.people"}
    far = f"{shop.bucket}-far"
    client = shop.store.client()
    client.create_bucket(Bucket=far)
    client.put_bucket_versioning(Bucket=far, VersioningConfiguration={"Status": "Enabled"})
    for rows_there in (PEOPLE, PEOPLE.slice(1), pa.concat_tables([PEOPLE, ALIKE])):
        client.put_object(Bucket=far, Key="old/2019/0.parquet", Body=parquet(rows_there))
    calls(shop, hive, {"1": f"s3a://{shop.bucket}/wh/core.db/calls/day=1", "2": f"s3n://{far}/old/2019/"})
    shop.put("wh/core.db/calls/day=1/0.parquet", parquet(pa.concat_tables([PEOPLE, ALIKE])))
    hive.table("core.plain", f"s3://{at}/plain", columns=COLUMNS)
    shop.jobs += "INSERT INTO core.plain SELECT uid, mail FROM shop.people;\n"
    shop.put("ext/plain/0.parquet", parquet())
    shop.put("ext/plain/0.parquet", parquet(PEOPLE.slice(1)))  # the naive way: she is in the former version
    shop.put("ext/plain/1.parquet", parquet())
    client.delete_object(Bucket=shop.bucket, Key="ext/plain/1.parquet")
    shop.put("ext/bills/000000_1", as_orc(ALIKE))
    hive.table("core.strangers", f"s3a://{at}/strangers", columns=COLUMNS)
    shop.put("ext/strangers/0.parquet", parquet(ALIKE))
    shop.put("archive/2019/0.parquet", parquet())
    archive = {"name": "old", "of": "core.plain", "bucket": shop.bucket, "prefix": "archive/", "format": "parquet"}
    shop.more = (
        f"spark: {json.dumps(small_spark(WITHOUT_LOCKS))}\nwriters: [{{job: shop, stopped: true}}]\n"
        f"archives: [{json.dumps(archive)}]\n"
    )
    return names


PLAIN = {
    "wh/core.db/calls/": parquet_rows,
    "old/": parquet_rows,
    "ext/plain/": parquet_rows,
    "ext/strangers/": parquet_rows,
    "archive/": parquet_rows,
    "ext/bills/": orc_rows,
    "ext/lines/": json_rows,
    "ext/members/": cells("|"),
    "ext/letters/": cells(","),
}


def rows(shop: Shop, hive: Hive) -> dict[str, Rows]:
    """Everybody's rows in each place, by other readers than those that write."""
    far = f"{shop.bucket}-far"
    found = {at: rows_below(shop, at, read, far if at == "old/" else "") for at, read in PLAIN.items()}
    found["orders"] = delta_rows(shop, f"s3://{shop.bucket}/ext/orders")
    with hive.client() as asked:
        pointer = asked.get_table("core", "ice").parameters["metadata_location"]
    found["ice"] = as_rows(StaticTable.from_metadata(pointer, properties=shop.io).scan().to_arrow())
    return found


def test_the_person_is_erased_from_all_that_the_metastore_names(store: Store, tmp_path: Path) -> None:
    base = tmp_path / "shop"
    base.mkdir()
    (tmp_path / "hive").mkdir()
    erasure = Erasure(base)
    with serving(tmp_path / "hive", store=store) as hive, hive.database("core"):
        shop = Shop(base, store, "hive-whole")
        shop.catalogs = f"  hms: {{type: hive, uri: '{hive.uri}'}}\n"
        names, far = lake(shop, hive), f"{shop.bucket}-far"
        shop.write()
        untouched = {at for at in versions(shop, tmp_path / "before", far) if at[0].startswith("ext/strangers/")}
        before = rows(shop, hive)
        code, plan = erasure.plan()
        assert code == ExitCode.DONE, plan["gaps"]
        assert {copy["table"] for copy in plan["copies"] if copy["table"]} == names
        assert {copy["location"] for copy in plan["copies"] if f"{far}/" in copy["location"]} == {
            f"s3://{far}/old/2019/"
        }
        erasure.approve()

        def rewritten() -> bool:
            return any("s3-rewrite-archive" in step for step in erasure.steps(Kind.STEP_RESULT))

        died = erasure.apply(tmp_path / "1", rewritten)
        assert died.killed, died
        told = erasure.resume(tmp_path / "2")
        found = versions(shop, tmp_path / "after", far)
        after = rows(shop, hive)
        assert erasure.verify() == ExitCode.DONE
    assert (told["state"], told["residue"], told["unverified"]) == ("complete", [], [])
    assert told["bystander_rows_lost"] == 0
    assert leaks(HER, [tmp_path / "before"]) != []
    assert leaks(HER, [tmp_path / "after"]) == []
    assert untouched == {at for at in found if at[0].startswith("ext/strangers/")}
    assert [at for at, latest in found.items() if not latest] == [], "versions that DELETE leaves"
    assert after == without_her(before)
