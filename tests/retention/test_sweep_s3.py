"""Delta tables in S3: their settings are compared without Spark, and a sweep takes what no version needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake

from pii_tracer.cli.main import run
from sample_lineage import s3_standin
from tests.s3support import REGION, World, standin, world
from tests.sparksession import small_spark

__all__ = ["standin", "world"]

DAY = 86_400
DAYS = ("a b%c", "2026-11-01")
"""The first is percent-encoded in the object's key, and in the log once more."""


@dataclass(frozen=True)
class Lake:
    """An estate with the Delta table `sales.orders` in a bucket; its writer is delta-rs."""

    world: World
    bucket: str
    base: Path
    table: str = "wh/orders"

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.table}"

    @property
    def options(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.world.endpoint_url,
            "AWS_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
            "AWS_CONDITIONAL_PUT": "etag",
        }

    def append(self, *users: int, mode: Any = "append", uri: str | None = None) -> None:
        rows = pa.table({"user_id": list(users), "day": [DAYS[n % 2] for n in range(len(users))]})
        write_deltalake(uri or self.uri, rows, mode=mode, partition_by=["day"], storage_options=self.options)

    def users(self) -> list[int]:
        found = DeltaTable(self.uri, storage_options=self.options).to_pyarrow_table()["user_id"].to_pylist()
        return sorted(found)

    def keys(self) -> set[str]:
        """Of data files."""
        pages = self.world.client().get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self.table)
        found = {item["Key"] for page in pages for item in page.get("Contents", ())}
        return {key for key in found if key.endswith(".parquet") and "_delta_log" not in key}

    def aged(self, days: float) -> None:
        """Everything was written, and removed from the table, so long ago."""
        client, log = self.world.client(), f"{self.table}/_delta_log/"
        for item in client.list_objects_v2(Bucket=self.bucket, Prefix=log)["Contents"]:
            lines = client.get_object(Bucket=self.bucket, Key=item["Key"])["Body"].read().splitlines()
            actions = [json.loads(line) for line in lines]
            for action in actions:
                if "remove" in action:
                    action["remove"]["deletionTimestamp"] -= int(days * DAY * 1000)
            body = "".join(json.dumps(action) + "\n" for action in actions).encode()
            client.put_object(Bucket=self.bucket, Key=item["Key"], Body=body)
        s3_standin.age(self.world.endpoint_url, days * DAY)

    def write(self, *more: dict[str, str], **retention: Any) -> None:
        """The estate file. more: further declared tables."""
        tables = [{"name": "sales.orders", "format": "delta", "location": self.uri}, *more]
        data = {
            "version": 1,
            "estate": "shop",
            "environment": "local",
            "spark": small_spark(),
            "catalogs": {"spark_catalog": {"type": "declared", "tables": tables}},
            "roots": ["here"],
            "lineage": {"sql": []},
            "subjects": [{"name": "c", "source": "sales.orders", "key": "user_id"}],
            "retention": retention,
            "s3": {"endpoint_url": self.world.endpoint_url, "region": REGION},
        }
        (self.base / "here").mkdir(exist_ok=True)
        (self.base / "pii-tracer.yaml").write_text(yaml.safe_dump(data))

    def words(self, *words: str) -> list[str]:
        place = ["--estate", str(self.base / "pii-tracer.yaml"), "--state", str(self.base / "state")]
        return ["retention", *words, *place, "--format", "json"]

    def alone(self, *words: str) -> dict[str, Any]:
        """The one swept table's report, from a process with a session of its own."""
        command = [sys.executable, "-m", "pii_tracer.cli.main", *self.words(*words)]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        [swept] = json.loads(done.stdout)["tables"]
        return dict(swept)


@pytest.fixture
def lake(world: World, tmp_path: Path) -> Lake:
    return Lake(world, world.new("lake"), tmp_path)


def checked(lake: Lake, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    capsys.readouterr()
    code = run(lake.words("check"))
    return code, json.loads(capsys.readouterr().out)


def test_settings_of_a_table_in_s3_are_compared(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.append(1, 2)
    lake.write(tables={"sales.orders": "week"}, classes={"week": 6})
    code, found = checked(lake, capsys)
    told = {(v["table"], v["setting"]) for v in found["violations"]}
    assert (code, told) == (
        4,
        {("sales.orders", f"delta.{name}") for name in ("deletedFileRetentionDuration", "logRetentionDuration")},
    )


def test_a_table_in_s3_that_was_not_read_is_no_table_in_order(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """Its bucket is there and its log is not, or it is of a format that is not read there: it was passed before."""
    other = {"name": "sales.other", "format": "iceberg", "location": f"s3://{lake.bucket}/wh/other"}
    lake.write(other, tables={})
    code, found = checked(lake, capsys)
    told = {(v["kind"], v["table"]) for v in found["violations"]}
    assert (code, told) == (4, {("unread", lake.uri), ("unread", f"s3://{lake.bucket}/wh/other")})


@pytest.mark.parametrize("rewritten", [False, True])
def test_a_clone_in_s3_keeps_its_origin_from_being_swept(
    lake: Lake, capsys: pytest.CaptureFixture[str], rewritten: bool
) -> None:
    """Also one that has written every file anew: its older versions read the origin's."""
    lake.append(1)
    lake.append(2)
    [first, *_] = sorted(lake.keys())
    client, log = lake.world.client(), "_delta_log/00000000000000000000.json"
    lines = client.get_object(Bucket=lake.bucket, Key=f"{lake.table}/{log}")["Body"].read().decode().splitlines()
    clone = []
    for line in map(json.loads, lines):
        if "add" in line:
            line["add"]["path"] = f"s3a://{lake.bucket}/{quote_plus(first, safe='/=')}"
        if "commitInfo" in line:
            line["commitInfo"] |= {"operation": "CLONE", "operationParameters": {"source": f"delta.`{lake.uri}`"}}
        clone.append(json.dumps(line))
    client.put_object(Bucket=lake.bucket, Key=f"dev/orders/{log}", Body="\n".join(clone).encode())
    if rewritten:
        lake.append(3, mode="overwrite", uri=f"s3://{lake.bucket}/dev/orders")
    dev = {"name": "dev.orders", "format": "delta", "location": f"s3a://{lake.bucket}/dev/orders"}
    kept = {"classes": {"long": 30}, "tables": {"sales.orders": "long", "dev.orders": "long"}}
    lake.write(dev, **kept)
    capsys.readouterr()
    assert run(lake.words("sweep", "--table", "sales.orders")) == 0
    [skipped] = json.loads(capsys.readouterr().out)["skipped"]
    assert skipped["reason"] == "dev.orders is a shallow clone that reads its files"


@pytest.mark.slow
@pytest.mark.spark
def test_what_no_version_needs_goes_and_nothing_else(lake: Lake, tmp_path: Path) -> None:
    """A bucket that keeps versions; an inventory that is older than the newest files."""
    lake.append(1, 2)
    lake.append(3, 4, mode="overwrite")
    client = lake.world.client()
    old = lake.keys()
    stray, again, new = (f"{lake.table}/day=x/part-0-{uuid.uuid4()}.parquet" for _ in range(3))
    somebodys = f"{lake.table}/finance.parquet"
    for key in (stray, again, somebodys):
        client.put_object(Bucket=lake.bucket, Key=key, Body=b"left by a writer")
    lake.aged(40)
    manifest = lake.world.inventory(lake.bucket, tmp_path)
    client.put_object(Bucket=lake.bucket, Key=again, Body=b"written again since")
    client.put_object(Bucket=lake.bucket, Key=new, Body=b"not listed")
    lake.append(5, 6)
    live = {f"{lake.table}/{path}" for path in _paths(lake)}
    going = (old - live) | {stray}
    assert len(going) == 3
    lake.write(tables={"sales.orders": "month"}, classes={"month": 30})
    before = lake.keys()
    told = lake.alone("sweep", "--inventory", str(manifest))
    assert (told["failed"], told["files"], told["changed"], told["strange"]) == (None, 3, 1, 1)
    assert told["keeps_versions"]
    assert lake.keys() == before
    done = lake.alone("sweep", "--apply", "--inventory", str(manifest))
    assert (done["failed"], done["files"]) == (None, 3)
    assert before - lake.keys() == going
    assert lake.users() == [3, 4, 5, 6]
    swept = client.list_object_versions(Bucket=lake.bucket, Prefix=stray)
    assert [v["IsLatest"] for v in swept["Versions"]] == [False], "its bytes stay as an old version, as was told"


def _paths(lake: Lake) -> list[str]:
    """Of the current version's files, as keys below the table."""
    from urllib.parse import unquote

    actions = DeltaTable(lake.uri, storage_options=lake.options).get_add_actions(flatten=True)
    return [unquote(path) for path in pa.table(actions)["path"].to_pylist()]
