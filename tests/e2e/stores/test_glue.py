"""The whole path on a lake in S3 that Glue alone names: Delta and bare files by place, Iceberg by Glue's catalog in Spark.

Glue and S3 are the stand-ins (`tests/gluesupport.py`): nothing here ran on AWS.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.glue import GlueCatalog

from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.app.planning.test_glue import JOBS, VISITS, lake, orders, store, visits
from tests.app.planning.test_remote import MAIL, PEOPLE, PERSON, Shop
from tests.e2e.processes import run_until
from tests.leaks import Person, leaks
from tests.sparksession import small_spark
from tests.storeservers import REGION, Store, signed

__all__ = ["signed", "store"]

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

CALLS = "CREATE TABLE aws.prod.calls USING iceberg AS SELECT uid, mail FROM shop.people;\n"
HER = Person((MAIL, str(PERSON)))


def catalog(shop: Shop, uri: str) -> GlueCatalog:
    more = {"glue.endpoint": uri, "glue.region": REGION, "warehouse": f"s3://{shop.bucket}/wh", **shop.io}
    return GlueCatalog("aws", **more)


def versions(shop: Shop, into: Path) -> int:
    """Every version of every object, each as a file; how many are not the current one."""
    client, old, number = shop.store.client(), 0, 0
    into.mkdir()
    for page in client.get_paginator("list_object_versions").paginate(Bucket=shop.bucket):
        old += len(page.get("DeleteMarkers", ()))
        for item in page.get("Versions", ()):
            old += not item["IsLatest"]
            number += 1
            answer = client.get_object(Bucket=shop.bucket, Key=item["Key"], VersionId=item["VersionId"])
            (into / f"{number}-{Path(item['Key']).name}").write_bytes(answer["Body"].read())
    return old


def rows(shop: Shop, calls: Any) -> dict[str, list[int]]:
    """The numbers of all people in each table, read by other engines than the one that writes."""
    client, found = shop.store.client(), {}
    place = f"s3://{shop.bucket}/lake/orders"
    found["orders"] = pa.table(DeltaTable(place, storage_options=shop.options).to_pyarrow_table())["uid"].to_pylist()
    found["calls"] = calls.refresh().scan().to_arrow()["uid"].to_pylist()
    found["visits"] = []
    for item in client.list_objects_v2(Bucket=shop.bucket, Prefix="lake/visits/")["Contents"]:
        data = client.get_object(Bucket=shop.bucket, Key=item["Key"])["Body"].read()
        found["visits"] += pq.read_table(io.BytesIO(data))["uid"].to_pylist()
    return {name: sorted(numbers) for name, numbers in found.items()}


def test_the_person_is_erased_from_all_that_glue_names(store: Store, tmp_path: Path) -> None:
    base = tmp_path / "shop"
    base.mkdir()
    with lake(store, base) as (shop, client):
        shop.jobs = JOBS + VISITS + CALLS
        shop.more = f"spark: {json.dumps(small_spark())}\nwriters: [{{job: shop, stopped: true}}]\n"
        orders(shop, client)
        visits(shop, client)
        calls = catalog(shop, store.endpoint_url).create_table("prod.calls", schema=PEOPLE.schema)
        calls.append(PEOPLE)
        calls.append(pa.table({"uid": pa.array([7], pa.int64()), "mail": ["d@x.example"]}))
        shop.write()
        (base / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
        versions(shop, tmp_path / "before")
        before, file = rows(shop, calls), base / "glue.plan.json"

        def words(*more: str) -> list[str]:
            return [*more, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")]

        how = ["--retention", "immediate", "--reason", "test: no writer, no reader", "--out", str(file)]
        assert run(words("plan", str(base / "request.yaml"), *how)) == ExitCode.DONE
        tables = {copy["table"] for copy in json.loads(file.read_text())["copies"]}
        assert tables == {"shop.people", "prod.orders", "prod.visits", "aws.prod.calls"}
        public = generate(base / "approver.pem")
        (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))
        who = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "approver.pem")]
        assert run(words("approve", str(file), *who)) == ExitCode.DONE
        result = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
        done = run_until(words("apply", str(file), *result), tmp_path / "apply")
        assert done.code == ExitCode.DONE, done.stderr[-3000:]
        old, after = versions(shop, tmp_path / "after"), rows(shop, calls)
    told = json.loads((base / "result.json").read_text())
    assert (told["state"], told["residue"], told["bystander_rows_lost"]) == ("complete", [], 0)
    assert leaks(HER, [tmp_path / "before"]) != []
    assert leaks(HER, [tmp_path / "after"]) == []
    assert old == 0, "versions that DELETE leaves"
    assert after == {name: [n for n in numbers if n != PERSON] for name, numbers in before.items()}
