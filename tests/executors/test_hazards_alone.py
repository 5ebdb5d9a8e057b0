"""Hazards one by one: the place that each names holds the person after the naive way, and no more after the remedy.

Other places of the same table are not looked at, so that each test is about one hazard (docs/hazards.md, by id).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from executors.delta_log import live_adds
from pii_tracer.actions import Action
from pii_tracer.estate.discover import discover
from pii_tracer.model import Format
from tests.executors.test_delta import CHECK, DELETE, PURGE, VACUUM, append, make, read
from tests.executors.test_iceberg import EXPIRE, ORPHANS
from tests.executors.test_iceberg import make as make_iceberg
from tests.executors.world import COLUMNS, EMAIL, UID, Steps, bystanders, context, frame, residue, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def held(folder: Path, pattern: str) -> list[str]:
    """Files of one kind in which the person stands, or is decoded."""
    return [name for name in residue(folder) if Path(name).match(pattern)]


def said(folder: Path) -> str:
    """What the newest commit of a Delta table says of its statement."""
    newest = max((folder / "_delta_log").glob("*.json"))
    return "".join(line for line in newest.read_text().splitlines() if "commitInfo" in json.loads(line))


def bounds(folder: Path) -> list[str]:
    """Statistics of a Delta table's live files."""
    found = [add["stats"] for add in live_adds(folder)]
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


def test_d5_d6_and_d10_a_literal_wide_bounds_and_hidden_files(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "d5_d6_d10", **{"delta.enableDeletionVectors": "true"})
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
    steps.once(PURGE[0], **PURGE[1])
    assert not any(str(UID) in told or EMAIL in told for told in bounds(folder))

    crashed = folder / ".spark-staging-1" / "part-0.parquet"
    crashed.parent.mkdir()
    pq.write_table(pa.table({"email": [EMAIL]}), crashed)
    spark.conf.set(CHECK, "false")
    try:
        spark.sql(f"VACUUM delta.`{folder}` RETAIN 0 HOURS")
    finally:
        spark.conf.unset(CHECK)
    assert held(folder, "*.parquet") == [crashed.relative_to(folder).as_posix()]
    steps.once(VACUUM[0], **VACUUM[1])
    assert held(folder, "*.parquet") == []
    assert bystanders(read(spark, steps)) == others


def test_i6_files_that_no_snapshot_names(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make_iceberg(spark, spark_estate, "i6", "copy-on-write", alone=False)
    location = Path(steps.location)
    stray = location / "data" / "00000-crashed.parquet"
    pq.write_table(pa.table({"email": [EMAIL]}), stray)
    spark.sql(f"ALTER TABLE {steps.table} SET TBLPROPERTIES ('comment' = 'for {EMAIL}')")
    spark.sql(f"ALTER TABLE {steps.table} UNSET TBLPROPERTIES ('comment')")
    steps.once(Action.ICEBERG_DELETE_ROWS)
    others = bystanders(spark.table(steps.table))
    spark.sql(
        "CALL lake.system.expire_snapshots(table => 'iceberg.i6', retain_last => 1, older_than => TIMESTAMP '2099-01-01 00:00:00')"
    )
    assert stray.is_file()
    old = held(location / "metadata", "*.metadata.json")
    assert old, "metadata of former times names the person"
    for action, parameters in (EXPIRE, ORPHANS):
        steps.once(action, **parameters)
    assert not stray.exists()
    assert held(location / "metadata", "*.metadata.json") == []
    assert bystanders(spark.table(steps.table)) == others


def test_f2b_the_checksum_of_a_rewritten_file(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Hadoop writes one beside each file; it is of the old bytes, and every reader that compares it fails."""
    naive, folder = spark_estate.folder("f2b_naive"), spark_estate.folder("f2b")
    for place in (naive, folder):
        frame(spark, rows(0, 10, (3,))).write.mode("overwrite").parquet(str(place))
    [part] = naive.glob("part-*.parquet")
    kept = pq.read_table(part).filter(pa.compute.field("uid") != UID)
    pq.write_table(kept, part)
    with pytest.raises(Exception, match=r"(?i)checksum"):
        spark.read.parquet(str(naive)).collect()
    steps = Steps(context(spark_estate), "files", None, folder, Format.PARQUET)
    steps.once(Action.FILES_REWRITE, format="parquet")
    assert spark.read.parquet(str(folder)).count() == 9
    [part] = folder.glob("part-*.parquet")
    assert not (folder / f".{part.name}.crc").exists()


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
