"""Hudi tables in S3, in buckets that keep versions: what the naive way leaves, and that the steps leave nothing."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder

from pii_tracer.lake.formats.hudi.vocabulary import (
    HUDI,
    HUDI_CLEAN,
    HUDI_COMPACT,
    HUDI_DELETE_ROWS,
    HUDI_DELETE_SAVEPOINTS,
    HUDI_REBUILD_METADATA,
)
from pii_tracer.model.actions import Action
from tests.executors.s3engine import Declared, declared, pool
from tests.executors.world import UID, rows
from tests.s3support import REGION, World, standin, world
from tests.sparksession import HAS_HUDI

__all__ = ["pool", "standin", "world"]

pytestmark = [pytest.mark.spark, pytest.mark.skipif(not HAS_HUDI, reason="this Spark has no bundle of Hudi")]

SAVEPOINTS = (HUDI_DELETE_SAVEPOINTS, {})
DELETE = (HUDI_DELETE_ROWS, {})
COMPACT = (HUDI_COMPACT, {})
CLEAN = (HUDI_CLEAN, {})
METADATA = (HUDI_REBUILD_METADATA, {})


@dataclass(frozen=True)
class Lake(Declared):
    """With the Hudi table `sales.NAME`."""

    def make(self, kind: str, partition: str | None = None) -> None:
        self.engine.sql("CREATE DATABASE IF NOT EXISTS sales")
        self.engine.sql(
            f"CREATE TABLE {self.sql_name} (id BIGINT, uid BIGINT, email STRING, amount INT) USING hudi"
            + (f" PARTITIONED BY ({partition})" if partition else "")
            + f" LOCATION '{self.path}' TBLPROPERTIES (type = '{kind}', primaryKey = 'id')"
        )

    def insert(self, first: int, count: int, person: tuple[int, ...] = ()) -> None:
        made = ", ".join(f"({n}, {uid}, '{mail}', {amount})" for n, uid, mail, amount in rows(first, count, person))
        self.engine.sql(f"INSERT INTO {self.sql_name} VALUES {made}")

    def savepoint(self) -> None:
        [[instant, *_]] = self.engine.sql(f"CALL show_commits(table => '{self.sql_name}', limit => 1)")
        self.engine.sql(f"CALL create_savepoint(table => '{self.sql_name}', commit_time => '{instant}')")

    def run(self, *steps: tuple[Action, dict[str, Any]]) -> dict[Action, dict[str, Any]]:
        return {action: self.engine.step(action, self.sql_name, self.location, **words) for action, words in steps}

    def others(self) -> list[tuple[Any, ...]]:
        """Everybody else's rows, as Spark and hudi-rs agree on them."""
        names = "id, uid, email, amount"
        found = sorted(self.engine.sql(f"SELECT {names} FROM {self.sql_name} WHERE uid != {UID}"))
        reach = {"aws_endpoint": self.world.endpoint_url, "aws_region": REGION, "allow_http": "true"}
        table = HudiTableBuilder.from_base_uri(self.location).with_storage_options(reach).build()
        read = [row for batch in table.read() for row in pa.record_batch(batch).to_pylist()]
        assert found == sorted(tuple(row[n] for n in names.split(", ")) for row in read if row["uid"] != UID)
        return found


@pytest.fixture
def lake(world: World, tmp_path: Path, pool: ProcessPoolExecutor) -> Lake:
    return Lake(*declared(world, tmp_path, pool, HUDI))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["mor", "cow"])
def test_no_current_object_and_no_version_holds_the_person(lake: Lake, kind: str) -> None:
    """An update of one of her rows, a savepoint, partitions of which one has none but her rows."""
    lake.make(kind, "amount" if kind == "cow" else None)
    lake.insert(0, 6, (3, 4))
    lake.insert(6, 3, (7,))
    lake.engine.sql(f"UPDATE {lake.sql_name} SET email = upper(email) WHERE id IN (4, 5)")
    lake.savepoint()
    others = lake.others()
    assert len(others) == 6

    lake.engine.sql(f"DELETE FROM {lake.sql_name} WHERE uid = {UID}")
    lake.engine.sql(f"CALL run_clean(table => '{lake.sql_name}')")
    assert lake.others() == others
    assert [key for key in lake.holding()[0] if "/.hoodie/" not in key], "deleting and cleaning leaves older slices"

    compact = (COMPACT,) if kind == "mor" else ()
    facts = lake.run(SAVEPOINTS, DELETE, *compact, CLEAN, METADATA)
    assert facts[HUDI_DELETE_SAVEPOINTS]["savepoints_deleted"] == 1
    assert facts[HUDI_CLEAN]["files_removed"] > 0
    assert facts[HUDI_REBUILD_METADATA]["metadata_table"] is True
    lake.rid_of_old_versions()
    assert lake.others() == others

    lake.run(SAVEPOINTS, DELETE, *compact, CLEAN, METADATA)
    lake.clear()
    lake.insert(900, 2)
    assert lake.others()[:-2] == others


@pytest.mark.slow
@pytest.mark.nightly
def test_killed_after_each_thing_it_does(lake: Lake, tmp_path: Path) -> None:
    lake.make("mor")
    lake.insert(0, 4, (1,))
    lake.engine.sql(f"UPDATE {lake.sql_name} SET amount = 7 WHERE id IN (1, 2)")
    lake.savepoint()
    others = lake.others()
    order = (SAVEPOINTS, DELETE, COMPACT, CLEAN, METADATA, lake.clearing())
    deaths = lake.engine.killed(*order, table=lake.sql_name, location=lake.location, journal=tmp_path / "journal")
    told = " ".join(deaths)
    wanted = ("delete_savepoint", "DELETE FROM", "run_compaction", "run_clean", "delete_metadata_table")
    missing = [word for word in (*wanted, "before DeleteObjects", "after DeleteObjects") if word not in told]
    assert not missing, deaths
    assert lake.holding() == ([], [])
    assert lake.others() == others
