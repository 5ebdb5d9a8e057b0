"""Hazards of Delta one by one: the place that each names holds the person after the naive way, not after the remedy.

Other places of the same table are not looked at, so that each test is about one hazard (docs/hazards.md, by id). Which
test is about which hazard: tests/hazard_tests.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from executors.formats.delta.checkpoint import Checkpoints
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.delta.transaction_log import live_files
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from tests.executors.formats.delta.test_delta import (
    CHECK,
    CLEAN,
    DELETE,
    PURGE,
    VACUUM,
    append,
    make,
    read,
)
from tests.executors.test_concurrency import remove_earlier
from tests.executors.world import COLUMNS, EMAIL, UID, Steps, bystanders, context, frame, held, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def said(folder: Path) -> str:
    """What the newest commit of a Delta table says of its statement."""
    newest = max((folder / "_delta_log").glob("*.json"))
    return "".join(line for line in newest.read_text().splitlines() if "commitInfo" in json.loads(line))


def bounds(folder: Path) -> list[str]:
    """Statistics of a Delta table's live files."""
    commits = sorted((folder / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    told = {row["add"]["path"]: row["add"]["stats"] for row in actions if "add" in row}
    found = [told[file.path.name] for file in live_files(folder)]
    assert found
    return found


def test_d1_and_d7_files_that_a_delete_took_out_and_its_change_data(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    steps = make(spark, spark_estate, "d1_d7", **{"delta.enableChangeDataFeed": "true"})
    spark.sql(f"DELETE FROM delta.`{steps.location}` WHERE uid = {UID}")
    spark.sql(f"VACUUM delta.`{steps.location}`")
    assert len(held(steps.location, "part-*.parquet")) == 2
    assert held(steps.location, "_change_data/*.parquet")
    others = bystanders(read(spark, steps))
    steps.once(VACUUM[0], **VACUUM[1])
    assert held(steps.location, "*.parquet") == []
    assert bystanders(read(spark, steps)) == others


def vacuum(spark: SparkSession, folder: Path, how: str) -> None:
    """The engine's own, with its check of short times off, which is what people do to be rid of a file now."""
    spark.conf.set(CHECK, "false")
    try:
        spark.sql(f"VACUUM delta.`{folder}` {how}")
    finally:
        spark.conf.unset(CHECK)


def test_d2_d5_d6_and_d10_a_literal_vectors_wide_bounds_and_hidden_files(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    steps = make(spark, spark_estate, "d2_d5_d6_d10", **{"delta.enableDeletionVectors": "true"})
    folder = steps.location
    assert isinstance(folder, Path)
    spark.sql(f"DELETE FROM delta.`{folder}` WHERE email = '{EMAIL}' AND id < 20")
    assert EMAIL in said(folder)
    steps.once(DELETE[0], **DELETE[1])
    assert "MERGE" in said(folder)
    assert EMAIL not in said(folder)
    assert str(UID) not in said(folder)

    assert all(str(UID) in told for told in bounds(folder))
    others = bystanders(read(spark, steps))
    vacuum(spark, folder, "RETAIN 0 HOURS")
    assert held(folder, "part-*.parquet") == sorted(file.path.name for file in live_files(folder)), (
        "under their vectors"
    )
    steps.once(PURGE[0], **PURGE[1])
    assert not any(file.deletion_vector for file in live_files(folder))
    assert not any(str(UID) in told or EMAIL in told for told in bounds(folder))

    crashed = folder / ".spark-staging-1" / "part-0.parquet"
    crashed.parent.mkdir()
    pq.write_table(pa.table({"email": [EMAIL]}), crashed)
    vacuum(spark, folder, "RETAIN 0 HOURS")
    assert held(folder, "*.parquet") == [crashed.relative_to(folder).as_posix()]
    steps.once(VACUUM[0], **VACUUM[1])
    assert held(folder, "*.parquet") == []
    assert bystanders(read(spark, steps)) == others


def test_d3_files_of_which_the_time_that_vacuum_is_given_says_nothing(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    """Delta 3.3 refuses fewer hours than the table's own; 4.1 and later take them, say nothing and remove nothing."""
    steps = make(spark, spark_estate, "d3")
    steps.once(DELETE[0], **DELETE[1])
    remove_earlier(steps, hours=51)
    naive = f"VACUUM delta.`{steps.location}` RETAIN 50 HOURS"
    if spark.version.startswith("3."):
        with pytest.raises(Exception, match="retention"):
            spark.sql(naive)
    else:
        spark.sql(naive)
    assert len(held(steps.location, "part-*.parquet")) == 2
    others = bystanders(read(spark, steps))
    steps.once(VACUUM[0], retain_hours=50)
    assert held(steps.location, "part-*.parquet") == []
    assert bystanders(read(spark, steps)) == others


def test_d4_and_d16_statistics_in_the_log_and_partition_values_in_checkpoints(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    folder = spark_estate.folder("delta/d4_d16")
    frame(spark, rows(0, 6, (3, 4))).write.format("delta").partitionBy("uid").save(str(folder))
    steps, log = Steps(context(spark_estate), "delta", None, folder, DELTA), folder / "_delta_log"
    for action, parameters in (DELETE, PURGE, VACUUM):
        steps.once(action, **parameters)
    assert held(folder, "part-*.parquet") == []
    assert [name for name in held(log, "*.json") if EMAIL in (log / name).read_text()], "bounds of what is gone"
    assert held(log, "*.crc")
    version = Checkpoints(steps.ctx, f"delta.`{folder}`", folder).write()
    assert held(log, f"{version:020}.checkpoint*"), "tombstones, in a checkpoint as the engine writes it"
    others = bystanders(read(spark, steps))
    steps.once(CLEAN[0], **CLEAN[1])
    assert list(log.glob("*.checkpoint*"))
    assert [held(log, kind) for kind in ("*.json", "*.crc", "*.checkpoint*")] == [[], [], []]
    assert bystanders(read(spark, steps)) == others


def test_vacuum_lite_leaves_files_that_were_never_committed(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """No hazard of its own: a clean-up that does less than its name says."""
    steps = make(spark, spark_estate, "lite")
    steps.once(DELETE[0], **DELETE[1])
    stray = steps.location / "part-00000-never-committed.snappy.parquet"
    pq.write_table(pa.table({"email": [EMAIL]}), stray)
    vacuum(spark, steps.location, "LITE RETAIN 0 HOURS")
    assert held(steps.location, "part-*.parquet") == [stray.name], "what the log names went, and nothing else"
    steps.once(VACUUM[0], **VACUUM[1])
    assert held(steps.location, "part-*.parquet") == []


def test_m1_files_of_a_table_that_was_dropped(spark: SparkSession, spark_estate: SparkEstate, tmp_path: Path) -> None:
    """No catalog knows it; discovery walks the folders in `roots`."""
    folder = tmp_path / "lake" / "former"
    spark.sql(f"CREATE TABLE m1_former ({COLUMNS}) USING delta LOCATION '{folder}'")
    append(spark, folder, rows(0, 5, (3,)))
    spark.sql("DROP TABLE m1_former")
    assert not spark.catalog.tableExists("m1_former")
    assert held(folder, "*.parquet")
    walked = spark_estate.estate.model_copy(update={"catalogs": {}, "roots": ("lake",)})
    assert [Path(table.location) for table in discover(walked, tmp_path).tables] == [folder]
