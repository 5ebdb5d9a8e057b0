"""The whole path on a lake in S3 that a real Hive metastore alone names: killed once, resumed, and searched to the byte.

Iceberg's table is written by its catalog on Spark; all others are known by their places.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyarrow import orc
from pyiceberg.table import StaticTable

from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from pii_tracer.review.plan_file import load_plan
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.run.journal import Kind
from tests.app.planning.test_hive_s3 import COLUMNS, as_orc, calls, fill, parquet
from tests.app.planning.test_remote import MAIL, PEOPLE, PERSON, Shop
from tests.e2e.processes import history, run_until
from tests.hivesupport import Hive, serving
from tests.leaks import Person, leaks
from tests.sparksession import small_spark
from tests.storeservers import Store, signed
from tests.storeservers import strict_store as store

__all__ = ["signed", "store"]

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

HER = Person((MAIL, str(PERSON)))
ALIKE = pa.table({"uid": pa.array([PERSON + 10], pa.int64()), "mail": [MAIL.replace("asha", "isha")]})
"""Somebody whose number and address differ from hers in one place."""
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


def versions(shop: Shop, into: Path) -> dict[tuple[str, str], bool]:
    """Every version of every object, each as a file. By key and version: whether it is the current one."""
    client, found = shop.store.client(), dict[tuple[str, str], bool]()
    into.mkdir()
    for bucket in (shop.bucket, f"{shop.bucket}-far"):
        for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
            for item in page.get("DeleteMarkers", ()):
                found[item["Key"], item["VersionId"]] = False
            for item in page.get("Versions", ()):
                key, version = item["Key"], item["VersionId"]
                answer = client.get_object(Bucket=bucket, Key=key, VersionId=version)
                (into / f"{len(found)}-{Path(key).name}").write_bytes(answer["Body"].read())
                found[key, version] = item["IsLatest"]
    return found


def _csv(split: str) -> Callable[[bytes], list[int]]:
    return lambda data: [int(row[0]) for row in csv.reader(io.StringIO(data.decode()), delimiter=split)]


def _parquet(data: bytes) -> list[int]:
    found: list[int] = pq.read_table(io.BytesIO(data))["uid"].to_pylist()
    return found


PLAIN: dict[str, Callable[[bytes], list[int]]] = {
    "wh/core.db/calls/": _parquet,
    "old/": _parquet,
    "ext/plain/": _parquet,
    "ext/strangers/": _parquet,
    "archive/": _parquet,
    "ext/bills/": lambda data: orc.read_table(io.BytesIO(data))["uid"].to_pylist(),
    "ext/lines/": lambda data: [json.loads(line)["uid"] for line in data.splitlines()],
    "ext/members/": _csv("|"),
    "ext/letters/": _csv(","),
}


def rows(shop: Shop, hive: Hive) -> dict[str, list[int]]:
    """The numbers of all people in each place, by other readers than those that write."""
    client = shop.store.client()

    def numbers(prefix: str, read: Callable[[bytes], list[int]]) -> Iterator[int]:
        bucket = f"{shop.bucket}-far" if prefix == "old/" else shop.bucket
        for item in client.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]:
            if data := client.get_object(Bucket=bucket, Key=item["Key"])["Body"].read():
                yield from read(data)

    found: dict[str, list[int]] = {prefix: sorted(numbers(prefix, read)) for prefix, read in PLAIN.items()}
    orders = DeltaTable(f"s3://{shop.bucket}/ext/orders", storage_options=shop.options)
    found["orders"] = sorted(pa.table(orders.to_pyarrow_table())["uid"].to_pylist())
    with hive.client() as asked:
        pointer = asked.get_table("core", "ice").parameters["metadata_location"]
    ice = StaticTable.from_metadata(pointer, properties=shop.io)
    found["ice"] = sorted(ice.scan().to_arrow()["uid"].to_pylist())
    return found


def test_the_person_is_erased_from_all_that_the_metastore_names(store: Store, tmp_path: Path) -> None:
    base = tmp_path / "shop"
    base.mkdir()
    (tmp_path / "hive").mkdir()
    with serving(tmp_path / "hive", store=store) as hive, hive.database("core"):
        shop = Shop(base, store, "hive-whole")
        shop.catalogs = f"  hms: {{type: hive, uri: '{hive.uri}'}}\n"
        names = lake(shop, hive)
        shop.write()
        (base / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
        untouched = {at for at in versions(shop, tmp_path / "before") if at[0].startswith("ext/strangers/")}
        before, file = rows(shop, hive), base / "hive.plan.json"

        def words(*more: str) -> list[str]:
            return [*more, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")]

        how = ["--retention", "immediate", "--reason", "test: no writer, no reader", "--out", str(file)]
        assert run(words("plan", str(base / "request.yaml"), *how)) == ExitCode.DONE, json.loads(file.read_text())[
            "gaps"
        ]
        plan = load_plan(file).plan
        assert {copy.table for copy in plan.copies if copy.table} == names
        assert {copy.location for copy in plan.copies if "-far/" in copy.location} == {
            f"s3://{shop.bucket}-far/old/2019/"
        }
        public = generate(base / "approver.pem")
        (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))
        who = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "approver.pem")]
        assert run(words("approve", str(file), *who)) == ExitCode.DONE
        journal = base / "state" / "runs" / plan.plan_id / "journal.jsonl"

        def rewritten() -> bool:
            steps = [r.facts["step"] for r in history(journal) if r.kind is Kind.STEP_RESULT]
            return any("s3-rewrite-archive" in step for step in steps)

        apply = words("apply", str(file), "--trusted", str(base / "approvers.yaml"))
        died = run_until(apply, tmp_path / "1", rewritten)
        assert died.killed, died
        done = run_until(["resume", "--state", str(base / "state"), "--format", "json"], tmp_path / "2")
        assert done.code == ExitCode.DONE, done.stderr[-3000:]
        found = versions(shop, tmp_path / "after")
        after = rows(shop, hive)
        assert run(words("verify", str(file))) == ExitCode.DONE
    told: dict[str, Any] = json.loads(done.stdout)
    assert (told["state"], told["residue"], told["unverified"]) == ("complete", [], [])
    assert told["bystander_rows_lost"] == 0
    assert leaks(HER, [tmp_path / "before"]) != []
    assert leaks(HER, [tmp_path / "after"]) == []
    assert untouched == {at for at in found if at[0].startswith("ext/strangers/")}
    assert [at for at, latest in found.items() if not latest] == [], "versions that DELETE leaves"
    assert after == {place: [n for n in numbers if n != PERSON] for place, numbers in before.items()}
