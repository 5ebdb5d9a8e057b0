"""The whole path on a lake in S3 that Glue alone names: Delta and bare files by place, Iceberg by Glue's catalog in Spark.

Glue and S3 are the stand-ins (`tests/gluesupport.py`): nothing here ran on AWS.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.glue import GlueCatalog

from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_glue import JOBS, VISITS, lake, orders, store, visits
from tests.app.planning.test_remote import MAIL, PEOPLE, PERSON, Shop
from tests.e2e.stores.lakes import (
    Erasure,
    Rows,
    as_rows,
    delta_rows,
    parquet_rows,
    rows_below,
    versions,
    without_her,
)
from tests.leaks import Person, leaks
from tests.sparksession import small_spark
from tests.storeservers import REGION, Store, signed

__all__ = ["signed", "store"]

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

CALLS = "CREATE TABLE aws.prod.calls USING iceberg AS SELECT uid, mail FROM shop.people;\n"
HER = Person((MAIL, str(PERSON)))


def catalog(shop: Shop, uri: str) -> GlueCatalog:
    """uri: Glue's."""
    more = {"glue.endpoint": uri, "glue.region": REGION, "warehouse": f"s3://{shop.bucket}/wh", **shop.io}
    return GlueCatalog("aws", **more)


def rows(shop: Shop, calls: Any) -> dict[str, Rows]:
    """Everybody's rows in each table, read by other engines than the one that writes."""
    return {
        "orders": delta_rows(shop, f"s3://{shop.bucket}/lake/orders"),
        "calls": as_rows(calls.refresh().scan().to_arrow()),
        "visits": rows_below(shop, "lake/visits/", parquet_rows),
    }


def test_the_person_is_erased_from_all_that_glue_names(store: Store, tmp_path: Path) -> None:
    base = tmp_path / "shop"
    base.mkdir()
    erasure = Erasure(base)
    with lake(store, base) as (shop, client):
        shop.jobs = JOBS + VISITS + CALLS
        shop.more = f"spark: {json.dumps(small_spark())}\nwriters: [{{job: shop, stopped: true}}]\n"
        orders(shop, client)
        visits(shop, client)
        calls = catalog(shop, store.endpoint_url).create_table("prod.calls", schema=PEOPLE.schema)
        calls.append(PEOPLE)
        calls.append(pa.table({"uid": pa.array([7], pa.int64()), "mail": ["d@x.example"]}))
        shop.write()
        versions(shop, tmp_path / "before")
        before = rows(shop, calls)
        code, plan = erasure.plan()
        assert code == ExitCode.DONE
        assert {copy["table"] for copy in plan["copies"]} == {
            *("shop.people", "prod.orders", "prod.visits", "aws.prod.calls"),
        }
        erasure.approve()
        done = erasure.apply(tmp_path / "apply")
        assert done.code == ExitCode.DONE, done.stderr[-3000:]
        left, after = versions(shop, tmp_path / "after"), rows(shop, calls)
    told = json.loads((base / "result.json").read_text())
    assert (told["state"], told["residue"], told["bystander_rows_lost"]) == ("complete", [], 0)
    assert leaks(HER, [tmp_path / "before"]) != []
    assert leaks(HER, [tmp_path / "after"]) == []
    assert [at for at, latest in left.items() if not latest] == [], "versions that DELETE leaves"
    assert after == without_her(before)
