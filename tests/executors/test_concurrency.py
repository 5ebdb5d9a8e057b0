"""Writers that commit while a step runs: tried again on the new snapshot, late rows found, no live file ever swept."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from executors.context import IN_FLIGHT_HOURS
from executors.registry import build
from pii_tracer.config.estate_file import Writer
from pii_tracer.lake.formats.delta.vocabulary import DELTA_VACUUM
from pii_tracer.run.executor_protocol import Progress
from tests.executors.formats.delta import test_delta as delta
from tests.executors.formats.iceberg import test_iceberg as iceberg
from tests.executors.race import racing
from tests.executors.world import UID, Steps, bystanders, context, frame, residue, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DELTA_DELETE = delta.DELETE[0]
LATE = f"(500, {UID}, 'late@example.net', 1), (501, 5001, 'b501@example.net', 1)"


def test_delta_merge_that_loses_against_an_update_is_tried_again(
    spark: SparkSession, spark_estate: SparkEstate, tmp_path: Path
) -> None:
    steps = delta.make(spark, spark_estate, "race_update")
    change = f"UPDATE delta.`{steps.location}` SET amount = amount + 1000 WHERE id = 5"
    with racing(spark, steps.ctx, "uid", tmp_path / "race", lambda: spark.sql(change)) as race:
        steps.once(DELTA_DELETE, materialise=False)
    assert (race.written, race.failures, race.statements) == (1, [], 2), "the first attempt met a conflict"
    assert delta.read(spark, steps).where("amount = 1015 AND id = 5").count() == 1, "the writer's change stays"
    assert delta.read(spark, steps).count() == 37
    steps.all(delta.PURGE, delta.VACUUM, delta.CLEAN)
    assert residue(steps.location) == []


@pytest.mark.slow
def test_delta_merge_that_loses_against_an_append_takes_the_late_row_too(
    spark: SparkSession, spark_estate: SparkEstate, tmp_path: Path
) -> None:
    steps = delta.make(spark, spark_estate, "race_append")
    late = f"INSERT INTO delta.`{steps.location}` VALUES {LATE}"
    with racing(spark, steps.ctx, "uid", tmp_path / "race", lambda: spark.sql(late)) as race:
        steps.once(DELTA_DELETE, materialise=False)
    assert (race.written, race.failures, race.statements) == (1, [], 2), "the first attempt met a conflict"
    assert delta.read(spark, steps).count() == 38


@pytest.mark.parametrize(
    ("mode", "isolation"),
    [
        ("copy-on-write", "serializable"),
        ("merge-on-read", "snapshot"),
        pytest.param("merge-on-read", "serializable", marks=pytest.mark.nightly),
        pytest.param("copy-on-write", "snapshot", marks=pytest.mark.nightly),
    ],
)
def test_iceberg_delete_beside_an_append(
    spark: SparkSession, spark_estate: SparkEstate, tmp_path: Path, mode: str, isolation: str
) -> None:
    """Serializable: Iceberg refuses the DELETE and it is tried again. Snapshot: it passes, and the row is found."""
    steps = iceberg.make(spark, spark_estate, f"race_{mode[:4]}_{isolation}", mode, alone=False)
    spark.sql(f"ALTER TABLE {steps.table} SET TBLPROPERTIES ('write.delete.isolation-level'='{isolation}')")
    step, executor = steps.step(iceberg.DELETE[0]), build(steps.ctx)["iceberg"]
    late = f"INSERT INTO {steps.table} VALUES {LATE}"
    with racing(spark, steps.ctx, "uid", tmp_path / "race", lambda: spark.sql(late)) as race:
        executor.run(step, steps.copy)
        assert (race.written, race.failures) == (1, [])
        if isolation == "serializable":
            assert race.statements == 2
        else:
            assert race.statements == 1
            assert executor.verify(step, steps.copy).findings == ("1 row of the person is left",)
        executor.run(step, steps.copy)
        assert executor.verify(step, steps.copy).ok
    assert spark.table(str(steps.table)).count() == 38
    if mode == "merge-on-read":
        steps.all(iceberg.REWRITE)
    steps.all(iceberg.MANIFESTS, iceberg.EXPIRE, iceberg.ORPHANS)
    assert residue(steps.location) == []


@pytest.mark.slow
def test_a_restore_in_the_middle_is_found_and_undone(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Hazard D12, and its twin in Iceberg: until the old versions are gone, one statement brings the person back."""
    steps = delta.make(spark, spark_estate, "restored", **{"delta.enableDeletionVectors": "true"})
    others = bystanders(delta.read(spark, steps))
    steps.all(delta.DELETE, delta.PURGE)
    spark.sql(f"RESTORE TABLE delta.`{steps.location}` TO VERSION AS OF 2")
    assert delta.read(spark, steps).where(f"uid = {UID}").count() == 3
    assert steps.probe(DELTA_DELETE, materialise=False) is Progress.PARTIAL
    steps.all(*delta.SEQUENCE, repeat=True)
    assert residue(steps.location) == []
    assert bystanders(delta.read(spark, steps)) == others
    with pytest.raises(Exception, match=r"(?i)version"):
        spark.sql(f"RESTORE TABLE delta.`{steps.location}` TO VERSION AS OF 2")

    table = iceberg.make(spark, spark_estate, "rolled_back", "merge-on-read")
    others = bystanders(spark.table(str(table.table)))
    before = spark.sql(f"SELECT snapshot_id FROM {table.table}.refs WHERE name = 'main'").first()
    table.all(iceberg.DELETE, iceberg.REWRITE)
    spark.sql(f"CALL lake.system.rollback_to_snapshot('iceberg.rolled_back', {before[0]})")
    assert spark.table(str(table.table)).where(f"uid = {UID}").count() == 4
    assert table.probe(iceberg.DELETE[0]) is Progress.PARTIAL
    table.all(*iceberg.SEQUENCE, repeat=True)
    assert residue(table.location) == []
    assert bystanders(spark.table(str(table.table))) == others


def with_running_writer(world: SparkEstate) -> SparkEstate:
    """The same estate, of which a writer was not stopped."""
    return SparkEstate(world.estate.model_copy(update={"writers": (Writer(job="nightly"),)}), world.base)


def staged(spark: SparkSession, folder: Path, tmp_path: Path) -> Path:
    """A data file that a writer has written into the table's folder and not committed yet."""
    frame(spark, rows(700, 2)).write.parquet(str(tmp_path / "staged"))
    (file,) = (tmp_path / "staged").glob("*.parquet")
    target = folder / "part-00000-in-flight.snappy.parquet"
    shutil.copy(file, target)
    return target


def commit(steps: Steps, file: Path) -> None:
    """The writer's commit, with what the protocol needs."""
    log = steps.location / "_delta_log"
    number = max(int(p.name[:20]) for p in log.glob("0*.json")) + 1
    add = {"path": file.name, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 1}
    (log / f"{number:020}.json").write_text(json.dumps({"add": add | {"dataChange": True}}) + "\n")


def age(path: Path, hours: float) -> None:
    then = time.time() - hours * 3600
    os.utime(path, (then, then))


def test_a_file_in_flight_is_not_swept_and_goes_when_its_writer_is_long_dead(
    spark: SparkSession, spark_estate: SparkEstate, tmp_path: Path
) -> None:
    naive = delta.make(spark, spark_estate, "flight_naive")
    lost = staged(spark, naive.location, tmp_path / "naive")
    with_check = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(with_check, "false")
    spark.sql(f"VACUUM delta.`{naive.location}` RETAIN 0 HOURS")
    spark.conf.set(with_check, "true")
    assert not lost.exists(), "what the engine does by itself: the writer would commit a table that cannot be read"

    base = delta.make(spark, spark_estate, "flight")
    steps = Steps(context(with_running_writer(spark_estate)), "delta", None, base.location, base.format)
    flying = staged(spark, steps.location, tmp_path)
    dead = steps.location / "part-00001-dead.snappy.parquet"
    shutil.copy(flying, dead)
    age(dead, IN_FLIGHT_HOURS + 1)
    steps.all(delta.DELETE, delta.PURGE, delta.VACUUM)
    assert (flying.exists(), dead.exists()) == (True, False)
    commit(steps, flying)
    spark.catalog.clearCache()
    assert delta.read(spark, steps).count() == 39
    steps.all(delta.CLEAN)
    assert residue(steps.location) == []
    assert base.probe(DELTA_VACUUM, retain_hours=0) is Progress.DONE, "committed, it is live for everybody"


@pytest.mark.slow
def test_iceberg_spares_a_file_in_flight(spark: SparkSession, spark_estate: SparkEstate, tmp_path: Path) -> None:
    base = iceberg.make(spark, spark_estate, "flight", "copy-on-write")
    steps = Steps(context(with_running_writer(spark_estate)), "iceberg", base.table, base.location, base.format)
    flying = staged(spark, steps.location / "data", tmp_path)
    dead = flying.with_name("dead.parquet")
    shutil.copy(flying, dead)
    age(dead, IN_FLIGHT_HOURS + 1)
    steps.all(*iceberg.SEQUENCE)
    assert (flying.exists(), dead.exists()) == (True, False)
    assert residue(steps.location) == [], "old metadata of our own is not in flight"
    base.all(iceberg.ORPHANS)
    assert not flying.exists(), "with all writers stopped nothing is in flight"


@pytest.mark.slow
def test_a_writer_that_commits_all_the_time_beside_expiry_and_sweep_loses_nothing(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    """Whatever the moment: between what is listed, each thing that is read, and what is removed."""
    base = iceberg.make(spark, spark_estate, "busy", "copy-on-write", alone=False)
    steps = Steps(context(with_running_writer(spark_estate)), "iceberg", base.table, base.location, base.format)
    others = bystanders(spark.table(str(steps.table)))
    steps.all(iceberg.DELETE)
    executor, over, committed = build(steps.ctx)["iceberg"], threading.Event(), []

    def write() -> None:
        while not over.is_set():
            row = (1000 + len(committed), 5000, f"b{len(committed)}@example.net", 1)
            spark.sql(f"INSERT INTO {steps.table} VALUES {row}")
            committed.append(row)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for _ in range(2):
                for action, parameters in (iceberg.MANIFESTS, iceberg.EXPIRE, iceberg.ORPHANS):
                    executor.run(steps.step(action, **parameters), steps.copy)
        finally:
            over.set()
        writing.result()
    assert len(committed) > 2, "it did write meanwhile"
    assert bystanders(spark.table(str(steps.table))) == sorted([*others, *committed])
    for part, column in (("all_data_files", "file_path"), ("all_manifests", "path"), ("snapshots", "manifest_list")):
        named = [
            Path(row[0].removeprefix("file:"))
            for row in spark.sql(f"SELECT {column} FROM {steps.table}.{part}").collect()
        ]
        assert [path for path in named if not path.exists()] == []
    steps.all(iceberg.MANIFESTS, iceberg.EXPIRE, iceberg.ORPHANS)
    assert residue(steps.location) == []


def test_vacuum_with_a_window_removes_what_has_waited_and_says_what_has_not_gone(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    """By the time of removal in the log, as the engine reckons, and not by its word (hazard D3)."""
    steps = delta.make(spark, spark_estate, "waited")
    steps.all(delta.DELETE)
    before = set(steps.location.glob("*.parquet"))
    steps.once(DELTA_VACUUM, retain_hours=50)
    assert set(steps.location.glob("*.parquet")) == before, "removed a moment ago: kept for time travel"
    remove_earlier(steps, hours=51)
    assert steps.probe(DELTA_VACUUM, retain_hours=50) is Progress.PARTIAL
    steps.once(DELTA_VACUUM, retain_hours=50)
    left = [p for p in steps.location.glob("*.parquet") if UID in pq.read_table(p).column("uid").to_pylist()]
    assert left == []
    assert delta.read(spark, steps).count() == 37


def remove_earlier(steps: Steps, hours: int) -> None:
    """Move every removal in the log back in time."""
    for path in (steps.location / "_delta_log").glob("0*.json"):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "remove" in action:
                action["remove"]["deletionTimestamp"] -= hours * 3_600_000
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    for path in steps.location.glob("*.parquet"):
        age(path, hours + 1)
