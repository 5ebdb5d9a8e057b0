"""Readers that are in the middle of a table when its old files go: whole rows, or an error, and never fewer rows.

A reader here is a plan that Spark has made, files and all, and of which it has read the first file only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.executors.formats.delta import test_delta as delta
from tests.executors.formats.hudi import test_hudi as hudi
from tests.executors.formats.iceberg import test_iceberg as iceberg
from tests.executors.world import UID, Steps
from tests.retention.hoard import Hoard, age_delta, age_files, age_iceberg
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

_ONE_FILE_A_TASK = {"file-open-cost": str(2**27), "split-size": str(2**27)}
"""Iceberg's readers pack small files into one task, Spark's own do not."""


@dataclass
class Reader:
    """seen: the rows that have come so far."""

    rows: Iterator[Any]
    seen: list[Any]

    @classmethod
    def of(cls, frame: DataFrame) -> Reader:
        assert frame.rdd.getNumPartitions() > 1, "one task would have read all of it"
        rows = frame.toLocalIterator()
        return cls(rows, [next(rows)])

    def rest(self) -> list[Any]:
        self.seen.extend(self.rows)
        return sorted(tuple(row) for row in self.seen)


def read(spark: SparkSession, steps: Steps) -> DataFrame:
    """The current version, by id and key alone: as plain rows as Hudi's readers give them, too."""
    if steps.executor == "delta":
        frame = delta.read(spark, steps)
    else:
        frame = spark.read.options(**_ONE_FILE_A_TASK).table(str(steps.table))
    return frame.select("id", "uid")


def made(spark: SparkSession, world: SparkEstate, kind: str, name: str = "read") -> tuple[Steps, Any, Any]:
    """A table of two files, the steps that delete rows, and those that remove files."""
    if kind == "delta":
        return delta.make(spark, world, name), (delta.DELETE, delta.PURGE), (delta.VACUUM, delta.CLEAN)
    if kind == "iceberg":
        steps = iceberg.make(spark, world, name, "copy-on-write", alone=False)
        return steps, (iceberg.DELETE, iceberg.MANIFESTS), (iceberg.EXPIRE, iceberg.ORPHANS)
    return made_of_hudi(spark, world, name), (hudi.DELETE,), (hudi.CLEAN, hudi.METADATA)


def made_of_hudi(spark: SparkSession, world: SparkEstate, name: str) -> Steps:
    """Two partitions: of a few rows in one partition Hudi makes one file."""
    table, folder = f"hudi_cow.{name}", world.folder(f"hudi/cow_{name}")
    spark.sql("CREATE DATABASE IF NOT EXISTS hudi_cow")
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, uid BIGINT, email STRING, half INT) USING hudi PARTITIONED BY (half)"
        f" TBLPROPERTIES (type = 'cow', primaryKey = 'id') LOCATION '{folder}'"
    )
    hudi.frame(spark, hudi.rows(0, 40, (3, 31))).createOrReplaceTempView("made_to_read")
    spark.sql(f"INSERT INTO {table} SELECT id, uid, email, cast(id DIV 20 AS INT) FROM made_to_read")
    return Steps(hudi.context(world), "hudi", table, folder, hudi.HUDI)


@pytest.mark.parametrize("kind", ["delta", "iceberg", pytest.param("hudi", marks=pytest.mark.slow)])
def test_a_reader_of_the_erased_version_gets_all_rows_and_one_of_an_older_version_an_error(
    spark: SparkSession, spark_estate: SparkEstate, kind: str
) -> None:
    steps, rows, files = made(spark, spark_estate, kind)
    old = Reader.of(read(spark, steps))
    steps.all(*rows)
    if kind == "iceberg":  # its DELETE has made one file of the two
        iceberg.append_works(spark, steps)
    spark.catalog.clearCache()
    expected = sorted(tuple(row) for row in read(spark, steps).collect())
    assert UID not in {row[1] for row in expected}
    current = Reader.of(read(spark, steps))
    steps.all(*files)
    assert current.rest() == expected
    with pytest.raises(Exception, match=r"(?i)not.?(exist|found)|no such file"):
        old.rest()


def test_a_sweep_leaves_readers_what_the_class_keeps_for_them(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They opened the newest version, which another writer replaced since: it was removed a moment ago."""
    hoard = Hoard(tmp_path, "swept_under_readers")
    path, table = hoard.delta(spark, "t", 2), hoard.iceberg(spark, 2)
    for name in (f"delta.`{path}`", table):
        spark.sql(f"INSERT INTO {name} SELECT 7, 'v7'")
    hoard.write(tables={"delta/t": "pii", table: "pii"})
    age_files(hoard.base, 40)
    age_delta(spark, path, 30, 2)
    age_iceberg(hoard.iceberg_folder, 30, 1)
    readers = [
        Reader.of(spark.read.format("delta").load(str(path))),
        Reader.of(spark.read.options(**_ONE_FILE_A_TASK).table(table)),
    ]
    for name in (f"delta.`{path}`", table):
        spark.sql(f"INSERT OVERWRITE {name} SELECT 8, 'v8'")
    before = {p for p in hoard.base.rglob("*.parquet") if "_delta_log" not in p.parts}
    assert hoard.command("sweep", "--apply") == 0, capsys.readouterr().out
    gone = {p for p in before if not p.exists()}
    assert {path, hoard.iceberg_folder / "data"} == {p.parent for p in gone}, "something went of each"
    assert [reader.rest() for reader in readers] == [[(1, "v1"), (7, "v7")]] * 2
