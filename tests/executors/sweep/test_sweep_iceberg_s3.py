"""The sweep of Iceberg tables in S3, from an S3 Inventory that is older than the newest files."""

from __future__ import annotations

import json
import sqlite3
import uuid
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.model.locations import S3Location, location_of
from sample_lineage import s3_standin
from tests.executors.formats.iceberg.test_iceberg_s3 import DAY, Lake, made
from tests.executors.s3engine import pool
from tests.s3support import World, standin, world

__all__ = ["pool", "standin", "world"]

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(world: World, tmp_path: Path, pool: ProcessPoolExecutor) -> Lake:
    """Four versions of a table, the first of them kept by a tag; what the metadata calls `s3a` is `s3` elsewhere."""
    bucket = world.new("lake")
    of = {"type": "iceberg-sql", "uri": "sqlite:///catalog.db", "warehouse": f"s3a://{bucket}"}
    found = made(world, tmp_path, pool, bucket, **of)
    given = found.engine.estate.model_dump(mode="json", by_alias=True, exclude_unset=True)
    (tmp_path / "pii-tracer.yaml").write_text(yaml.safe_dump(given | {"retention": {"tables": {found.table: "pii"}}}))
    found.make()
    for number in range(4):
        found.engine.sql(f"INSERT OVERWRITE {found.table} SELECT {number}, 1, 'a', 7")
    [[first]] = found.engine.sql(f"SELECT snapshot_id FROM {found.table}.snapshots ORDER BY committed_at LIMIT 1")
    found.engine.sql(f"ALTER TABLE {found.table} CREATE TAG q3 AS OF VERSION {first}")
    return found


def aged(lake: Lake, days: int) -> None:
    """Every snapshot but the last, and every object, looks as if it had been made so long ago."""
    with sqlite3.connect(lake.engine.base / "catalog.db") as catalog:
        [[pointed]] = catalog.execute("SELECT metadata_location FROM iceberg_tables")
    place = location_of(pointed)
    assert isinstance(place, S3Location)
    told = json.loads(lake.world.get(lake.bucket, place.key))
    for entry in (*told["snapshots"], *told["snapshot-log"]):
        entry["timestamp-ms"] -= 0 if entry["snapshot-id"] == told["current-snapshot-id"] else days * DAY * 1000
    lake.world.put(lake.bucket, place.key, json.dumps(told).encode())
    s3_standin.age(lake.world.endpoint_url, days * DAY)


def swept(lake: Lake, *words: str) -> dict[str, Any]:
    """The one table's report."""
    place = ["--estate", str(lake.engine.base / "pii-tracer.yaml"), "--state", str(lake.engine.base / "state")]
    code, printed = lake.engine.command("retention", "sweep", *words, *place, "--format", "json")
    told = json.loads(printed)
    assert (code, told["skipped"]) == (0, [])
    return dict(told["tables"][0])


def data_files(lake: Lake) -> set[str]:
    return {key for key in sorted(lake.keys()) if "/data/" in key}


def orphan(lake: Lake, body: bytes = b"left by a writer that died") -> str:
    return lake.put(f"data/00000-1-{uuid.uuid4()}-00001.parquet", body)


def test_what_no_version_needs_goes_and_nothing_else(lake: Lake, tmp_path: Path) -> None:
    dead, again, empty = orphan(lake), orphan(lake), lake.put("data//00000-9-" + f"{uuid.uuid4()}.parquet")
    aged(lake, 40)
    manifest = lake.world.inventory(lake.bucket, tmp_path)
    lake.world.put(lake.bucket, again, b"written again since")
    new = orphan(lake)
    lake.engine.sql(f"INSERT INTO {lake.table} SELECT 4, 2, 'b', 7")
    before = data_files(lake)

    told = swept(lake, "--inventory", str(manifest))
    assert (told["failed"], told["snapshots"], [held["ref"] for held in told["held"]]) == (None, 2, ["q3"])
    assert (told["changed"], told["keeps_versions"]) == (1, True)
    assert data_files(lake) == before
    done = swept(lake, "--inventory", str(manifest), "--apply")
    assert (done["failed"], done["files"], done["bytes"]) == (None, told["files"], told["bytes"])
    gone = before - data_files(lake)
    assert dead in gone
    assert len(gone) == 3, "the orphan, and the rows of the two snapshots that were expired"
    assert {again, new, empty} <= data_files(lake)

    lake.engine.sql(f"REFRESH TABLE {lake.table}")
    assert [row[0] for row in lake.others()] == [3, 4]
    assert [row[0] for row in lake.engine.sql(f"SELECT id FROM {lake.table}.tag_q3")] == [0]
    left = lake.world.client().list_object_versions(Bucket=lake.bucket, Prefix=dead)
    assert [v["IsLatest"] for v in left["Versions"]] == [False], "its bytes stay as an old version, as was told"
    assert swept(lake, "--inventory", str(manifest), "--apply")["files"] == 0


def test_an_inventory_that_does_not_name_the_metadata_is_refused(lake: Lake, tmp_path: Path) -> None:
    """Of the data alone, for example: another table's metadata inside the folder would not be seen."""
    dead = orphan(lake)
    aged(lake, 40)
    when = int((datetime.now(timezone.utc) - timedelta(days=40)).timestamp() * 1000)
    listing = tmp_path / "listing.csv"
    rows = [f"s3://{lake.bucket}/{key},7,false,{when}" for key in sorted(data_files(lake))]
    listing.write_text("\n".join(["path,length,isDir,modificationTime", *rows]) + "\n")
    place = ["--estate", str(tmp_path / "pii-tracer.yaml"), "--state", str(tmp_path / "state"), "--format", "json"]
    code, printed = lake.engine.command("retention", "sweep", "--apply", "--inventory", str(listing), *place)
    [told] = json.loads(printed)["tables"]
    assert (code, "no metadata of this table" in told["failed"]) == (7, True)
    assert dead in data_files(lake)
