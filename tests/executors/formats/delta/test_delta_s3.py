"""Delta tables in S3, in buckets that keep versions: what the naive way leaves, and that the steps leave nothing."""

from __future__ import annotations

import io
import uuid
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pii_tracer.lake.formats.delta.vocabulary import (
    DELTA,
    DELTA_CLEAN_LOG,
    DELTA_DELETE_ROWS,
    DELTA_PURGE,
    DELTA_REBUILD,
    DELTA_VACUUM,
)
from pii_tracer.model.actions import Action
from sample_lineage import s3_standin
from tests.executors.s3engine import Declared, declared, pool
from tests.executors.world import EMAIL, UID
from tests.s3support import REGION, World, standin, world

__all__ = ["pool", "standin", "world"]

pytestmark = pytest.mark.spark

DAY = 86_400
SEQUENCE = (
    (DELTA_DELETE_ROWS, {"materialise": False}),
    (DELTA_PURGE, {}),
    (DELTA_VACUUM, {"retain_hours": 0}),
    (DELTA_CLEAN_LOG, {}),
)


@dataclass(frozen=True)
class Lake(Declared):
    """With the Delta table `sales.NAME`."""

    def make(self, partition: str | None = None, more: str = "", **properties: str) -> None:
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self.engine.sql(
            f"CREATE TABLE delta.`{self.path}` (id BIGINT, uid BIGINT, email STRING, amount INT{more}) USING delta"
            + (f" PARTITIONED BY ({partition})" if partition else "")
            + (f" TBLPROPERTIES ({listed})" if listed else "")
        )

    def run(self, *steps: tuple[Action, dict[str, Any]], named: bool = False) -> dict[Action, dict[str, Any]]:
        table = self.sql_name if named else None
        return {action: self.engine.step(action, table, self.location, **words) for action, words in steps}

    def others(self) -> list[tuple[Any, ...]]:
        """Everybody else's rows, as Spark and delta-rs agree on them."""
        found = sorted(self.engine.sql(f"SELECT * FROM delta.`{self.path}` WHERE uid != {UID}"))
        assert len(found) == len({row[0] for row in found})
        return found

    def by_delta_rs(self) -> DeltaTable:
        options = {"AWS_ENDPOINT_URL": self.world.endpoint_url, "AWS_REGION": REGION, "AWS_ALLOW_HTTP": "true"}
        return DeltaTable(self.location, storage_options=options)

    def ids(self) -> list[int]:
        """Of all rows in the files that delta-rs names; it refuses to read rows where there can be deletion vectors."""
        named = pa.table(self.by_delta_rs().get_add_actions(flatten=True))["path"].to_pylist()
        files = [self.world.get(self.bucket, f"wh/{self.name}/{unquote(path)}") for path in named]
        return sorted(n for data in files for n in pq.read_table(io.BytesIO(data))["id"].to_pylist())


@pytest.fixture
def lake(world: World, tmp_path: Path, pool: ProcessPoolExecutor) -> Lake:
    return Lake(*declared(world, tmp_path, pool, DELTA))


def test_the_naive_way_leaves_the_person_in_old_versions(lake: Lake) -> None:
    lake.make()
    lake.engine.append(lake.path, 0, 6, (3, 4))
    lake.engine.sql(f"DELETE FROM delta.`{lake.path}` WHERE uid = {UID}")
    lake.engine.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    lake.engine.sql(f"VACUUM delta.`{lake.path}` RETAIN 0 HOURS")
    lake.engine.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = true")
    now, old = lake.holding()
    assert now, "the log's statistics"
    assert old, "what VACUUM removed"
    assert sorted(lake.by_delta_rs().to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 5]


@pytest.mark.parametrize("partition", [pytest.param("email", marks=[pytest.mark.slow, pytest.mark.nightly]), "day"])
def test_no_current_object_and_no_version_holds_the_person(lake: Lake, partition: str) -> None:
    """Deletion vectors, a change data feed, a partition that is the person's own; a table known by its name."""
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    lake.make(partition, ", day STRING", **properties)
    days = {"day": "concat('a b%', id % 2)"}
    lake.engine.append(lake.path, 0, 5, (3, 4), **days)
    lake.engine.append(lake.path, 5, 4, (8,), **days)
    lake.engine.sql(f"UPDATE delta.`{lake.path}` SET amount = 7 WHERE id IN (4, 5, 8)")
    lake.engine.sql(f"DELETE FROM delta.`{lake.path}` WHERE id IN (3, 6)")
    dead = lake.put(f"part-00000-{uuid.uuid4()}-c000.snappy.parquet", EMAIL.encode())
    s3_standin.age(lake.world.endpoint_url, 2 * DAY)
    flying = lake.put(f"part-00000-{uuid.uuid4()}-c000.snappy.parquet")
    strange = lake.put("finance.parquet")
    others = lake.others()
    assert len(others) == 5

    facts = lake.run(*SEQUENCE, named=True)
    assert facts[DELTA_DELETE_ROWS]["rows_deleted"] == 2
    assert facts[DELTA_VACUUM]["strange_left"] == 1
    kept = lake.rid_of_old_versions()
    assert {flying, strange} <= kept
    assert dead not in kept
    assert lake.others() == others
    assert lake.ids() == [row[0] for row in others]

    again = lake.run(*SEQUENCE, named=True)
    assert again[DELTA_DELETE_ROWS]["rows_deleted"] == 0
    lake.clear()
    lake.engine.append(lake.path, 900, 2, **days)
    assert lake.others()[:-2] == others


@pytest.mark.nightly
def test_a_table_is_rebuilt_from_what_its_erased_source_gives(lake: Lake, world: World) -> None:
    lake.make()
    lake.engine.append(lake.path, 0, 6, (3,))
    totals = replace(lake, name="totals")
    query = f"SELECT amount % 2 AS slot, max(email) AS best FROM {lake.sql_name} GROUP BY 1"
    lake.engine.sql(f"CREATE TABLE delta.`{totals.path}` USING delta AS {query}")
    lake.run(*SEQUENCE, named=True)
    lake.clear()
    assert not any(lake.name in key for keys in lake.holding() for key in keys)
    lake.engine.sql(f"INSERT INTO delta.`{totals.path}` VALUES (99, '{EMAIL}')")
    rebuild = (DELTA_REBUILD, {"sql": f"INSERT OVERWRITE delta.`{totals.path}` {query}"})
    totals.run(rebuild, *SEQUENCE[1:])
    now, old = lake.holding()
    assert now == []
    assert old
    totals.clear()
    assert lake.holding() == ([], [])
    left = {(0, "b4@example.net"), (1, "b5@example.net")}
    assert set(lake.engine.sql(f"SELECT * FROM delta.`{totals.path}`")) == left
    assert {tuple(row.values()) for row in totals.by_delta_rs().to_pyarrow_table().to_pylist()} == left


@pytest.mark.slow
def test_killed_after_each_thing_it_does(lake: Lake, tmp_path: Path) -> None:
    lake.make("email", **{"delta.enableDeletionVectors": "true"})
    lake.engine.append(lake.path, 0, 3, (1,))
    lake.put(f"part-00000-{uuid.uuid4()}-c000.snappy.parquet", EMAIL.encode())
    s3_standin.age(lake.world.endpoint_url, 2 * DAY)
    others = lake.others()
    order = (*SEQUENCE, lake.clearing())
    deaths = lake.engine.killed(*order, location=lake.location, journal=tmp_path / "journal")
    told = " ".join(deaths)
    assert all(word in told for word in ("MERGE", "REORG", "VACUUM", "before DeleteObjects", "after DeleteObjects"))
    assert lake.holding() == ([], [])
    assert lake.others() == others
    assert lake.ids() == [0, 2]
