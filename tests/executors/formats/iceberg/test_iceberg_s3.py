"""Iceberg tables in S3, in buckets that keep versions: what the naive way leaves, and that the steps leave nothing."""

from __future__ import annotations

import uuid
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG_DELETE_ROWS,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_REMOVE_ORPHANS,
    ICEBERG_REWRITE_FILES,
    ICEBERG_REWRITE_MANIFESTS,
    ICEBERG_REWRITE_REF,
)
from pii_tracer.model.actions import Action
from sample_lineage import s3_standin
from tests.executors.s3engine import InBucket, engine_of, pool
from tests.executors.world import EMAIL, UID
from tests.restsupport import s3a_jars, serving
from tests.s3support import REGION, World, standin, world

__all__ = ["pool", "standin", "world"]

pytestmark = pytest.mark.spark

DAY = 86_400
SEQUENCE: tuple[tuple[Action, dict[str, Any]], ...] = (
    (ICEBERG_DELETE_ROWS, {}),
    (ICEBERG_REWRITE_FILES, {}),
    (ICEBERG_REWRITE_MANIFESTS, {}),
    (ICEBERG_EXPIRE_SNAPSHOTS, {"older_than": None, "retain_last": 1}),
    (ICEBERG_REMOVE_ORPHANS, {}),
)


@dataclass(frozen=True)
class Lake(InBucket):
    """With the Iceberg table `CATALOG.wh.NAME`."""

    catalog: str

    @property
    def table(self) -> str:
        return f"{self.catalog}.wh.{self.name}"

    def make(self, partition: str | None = None, more: str = "", **properties: str) -> None:
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self.engine.sql(f"CREATE DATABASE IF NOT EXISTS {self.catalog}.wh")
        self.engine.sql(
            f"CREATE TABLE {self.table} (id BIGINT, uid BIGINT, email STRING, amount INT{more}) USING iceberg"
            + (f" PARTITIONED BY ({partition})" if partition else "")
            + (f" TBLPROPERTIES ({listed})" if listed else "")
        )

    def run(self, *steps: tuple[Action, dict[str, Any]]) -> dict[Action, dict[str, Any]]:
        return {action: self.engine.step(action, self.table, self.location, **words) for action, words in steps}

    def others(self) -> list[tuple[Any, ...]]:
        found = sorted(self.engine.sql(f"SELECT * FROM {self.table} WHERE uid != {UID}"))
        assert len(found) == len({row[0] for row in found})
        return found


def made(world: World, base: Path, pool: ProcessPoolExecutor, bucket: str, **of: str) -> Lake:
    """A lake whose estate has one catalog."""
    name, catalog = f"t{uuid.uuid4().hex[:8]}", f"c{uuid.uuid4().hex[:8]}"
    found = engine_of(world, base, pool, f"{catalog}.wh.{name}", {catalog: of})
    return Lake(world, bucket, name, found, catalog)


@pytest.fixture
def lake(world: World, tmp_path: Path, pool: ProcessPoolExecutor) -> Lake:
    bucket = world.new("lake")
    of = {"type": "iceberg-sql", "uri": "sqlite:///catalog.db", "warehouse": f"s3://{bucket}"}
    return made(world, tmp_path, pool, bucket, **of)


def test_the_naive_way_leaves_the_person_in_old_versions(lake: Lake) -> None:
    lake.make()
    lake.engine.append(lake.table, 0, 6, (3, 4))
    lake.engine.sql(f"DELETE FROM {lake.table} WHERE uid = {UID}")
    call = f"CALL {lake.catalog}.system"
    lake.engine.sql(f"{call}.expire_snapshots(table => 'wh.{lake.name}', older_than => TIMESTAMP '2999-01-01')")
    now, old = lake.holding()
    assert now, "the manifest with what was deleted"
    assert old, "what the expiry removed"
    assert [row[0] for row in lake.others()] == [0, 1, 2, 5]


@pytest.mark.parametrize("version", ["2", pytest.param("3", marks=pytest.mark.nightly)])
def test_no_current_object_and_no_version_holds_the_person(lake: Lake, version: str) -> None:
    """Delete files or vectors, a partition that is the person's own, what a dead writer and a stranger left."""
    properties = {"format-version": version, "write.delete.mode": "merge-on-read"}
    lake.make("email, day", ", day STRING", **properties)
    days = {"day": "concat('a b%', id % 2)"}
    lake.engine.append(lake.table, 0, 5, (3, 4), **days)
    lake.engine.append(lake.table, 5, 4, (8,), **days)
    lake.engine.sql(f"UPDATE {lake.table} SET amount = 7 WHERE id IN (4, 5, 8)")
    lake.engine.sql(f"DELETE FROM {lake.table} WHERE id IN (3, 6)")
    lake.engine.sql(f"ALTER TABLE {lake.table} CREATE TAG quarter")
    dead = lake.put(f"data/00000-1-{uuid.uuid4()}-00001.parquet", EMAIL.encode())
    s3_standin.age(lake.world.endpoint_url, 2 * DAY)
    flying = lake.put(f"data/00000-2-{uuid.uuid4()}-00001.parquet")
    strange = lake.put("data/finance.parquet")
    others = lake.others()
    assert len(others) == 5

    rewrite = (ICEBERG_REWRITE_REF, {"ref": "quarter", "kind": "tag"})
    facts = lake.run(rewrite, *SEQUENCE)
    assert facts[ICEBERG_DELETE_ROWS]["rows_deleted"] == 2
    kept = lake.rid_of_old_versions()
    assert {flying, strange} <= kept
    assert dead not in kept
    assert lake.others() == others
    assert sorted(lake.engine.sql(f"SELECT id FROM {lake.table}.tag_quarter")) == [(row[0],) for row in others]

    again = lake.run(*SEQUENCE)
    assert again[ICEBERG_DELETE_ROWS]["rows_deleted"] == 0
    lake.clear()
    lake.engine.append(lake.table, 900, 2, **days)
    assert lake.others()[:-2] == others


@pytest.mark.slow
@pytest.mark.nightly
def test_killed_after_each_thing_it_does(lake: Lake, tmp_path: Path) -> None:
    lake.make("email", **{"write.delete.mode": "merge-on-read"})
    lake.engine.append(lake.table, 0, 3, (1,))
    lake.put(f"data/00000-1-{uuid.uuid4()}-00001.parquet", EMAIL.encode())
    s3_standin.age(lake.world.endpoint_url, 2 * DAY)
    others = lake.others()
    order = (*SEQUENCE, lake.clearing())
    deaths = lake.engine.killed(*order, location=lake.location, journal=tmp_path / "journal", table=lake.table)
    told = " ".join(deaths)
    assert all(word in told for word in ("DELETE", "rewrite_data_files", "expire_snapshots", "before DeleteObjects"))
    assert lake.holding() == ([], [])
    assert lake.others() == others


def test_a_file_that_is_missing_or_a_table_inside_stops_the_sweep(lake: Lake) -> None:
    lake.make()
    lake.engine.append(lake.table, 0, 3, (1,))
    inner = lake.put("data/x/metadata/00000-a.metadata.json")
    with pytest.raises(AssertionError, match="folder contains a different table"):
        lake.run(SEQUENCE[-1])
    lake.world.client().delete_object(Bucket=lake.bucket, Key=inner)
    data = min(key for key in lake.keys() if key.endswith(".parquet"))  # noqa: SIM118
    lake.world.client().delete_object(Bucket=lake.bucket, Key=data)
    with pytest.raises(AssertionError, match="1 file referenced by the table cannot be found"):
        lake.run(SEQUENCE[-1])


def test_by_the_name_of_a_rest_catalog(lake: Lake, world: World, tmp_path: Path, pool: ProcessPoolExecutor) -> None:
    """Iceberg's own server; it writes metadata files by itself, here as `s3://`."""
    lake.engine.sql("SELECT 1")  # has the jars fetched that the server needs, too
    bucket = world.new("rest")
    hadoop = {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.endpoint": world.endpoint_url,
        "fs.s3a.endpoint.region": REGION,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
    }
    with serving(tmp_path, f"s3://{bucket}", hadoop, s3a_jars()) as server:
        by_rest = made(world, tmp_path, pool, bucket, type="iceberg-rest", uri=server.uri)
        by_rest.make(**{"write.delete.mode": "merge-on-read"})
        by_rest.engine.append(by_rest.table, 0, 4, (2,))
        others = by_rest.others()
        by_rest.run(*SEQUENCE)
        assert [len(found) > 0 for found in by_rest.holding()] == [False, True]
        by_rest.clear()
        assert by_rest.holding() == ([], [])
        assert by_rest.others() == others
