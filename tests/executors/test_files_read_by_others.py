"""Iceberg tables that took over another one's files: each is erased and neither loses a file that it still reads (I7)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from executors.registry import build
from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG,
    ICEBERG_DELETE_ROWS,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_REMOVE_ORPHANS,
    ICEBERG_REWRITE_FILES,
    ICEBERG_REWRITE_MANIFESTS,
)
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import RunError
from tests.executors.world import COLUMNS, UID, Steps, bystanders, context, frame, residue, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ERASE = (
    (ICEBERG_DELETE_ROWS, {}),
    (ICEBERG_REWRITE_FILES, {}),
    (ICEBERG_REWRITE_MANIFESTS, {}),
)


@dataclass(frozen=True)
class Shared:
    """`owner` wrote the files, `taker` has added them. `owner` is a bare folder where it has no table."""

    owner: Steps
    taker: Steps


def make(spark: SparkSession, world: SparkEstate, name: str, bare: bool) -> Shared:
    """Two files: the person and others in the first, others in the second. The taker has a file of its own as well."""
    taker, ctx = f"lake.shared.{name}_taker", context(world)
    spark.sql(f"DROP TABLE IF EXISTS {taker} PURGE")
    spark.sql(f"CREATE TABLE {taker} ({COLUMNS}) USING iceberg")
    if bare:
        folder = world.folder(f"shared_{name}")
        for made in (rows(0, 20, (3, 4)), rows(20, 20)):
            frame(spark, made).write.mode("append").parquet(str(folder))
        owner = Steps(ctx, "files", None, folder, Format.PARQUET)
        data = folder
    else:
        table = f"lake.shared.{name}_owner"
        spark.sql(f"DROP TABLE IF EXISTS {table} PURGE")
        spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg")
        for made in (rows(0, 20, (3, 4)), rows(20, 20)):
            frame(spark, made).writeTo(table).append()
        location = world.base / "warehouse/lake/shared" / f"{name}_owner"
        owner, data = Steps(ctx, "iceberg", table, location, ICEBERG), location / "data"
    spark.sql(
        f"CALL lake.system.add_files(table => 'shared.{name}_taker', source_table => '`parquet`.`{data}`',"
        " check_duplicate_files => false)"
    )
    frame(spark, rows(60, 5)).writeTo(taker).append()
    location = world.base / "warehouse/lake/shared" / f"{name}_taker"
    return Shared(owner, Steps(ctx, "iceberg", taker, location, ICEBERG))


def sharing(steps: Steps) -> dict[str, object]:
    return {"sharing": [{"table": steps.table, "location": str(steps.location)}]}


def forget(other: Steps) -> tuple[Action, dict[str, object]]:
    return ICEBERG_EXPIRE_SNAPSHOTS, {"older_than": None, "retain_last": 1, **sharing(other)}


def test_two_tables_and_one_set_of_files(spark: SparkSession, spark_estate: SparkEstate) -> None:
    naive = make(spark, spark_estate, "naive", bare=False)
    naive.owner.all(*ERASE, (ICEBERG_EXPIRE_SNAPSHOTS, {"older_than": None, "retain_last": 1}))
    with pytest.raises(Exception, match=r"(?i)file.*not.*exist|FileNotFound|FAILED_READ_FILE"):
        bystanders(spark.table(str(naive.taker.table)))  # the naive way broke the other table

    here = make(spark, spark_estate, "two", bare=False)
    before = [bystanders(spark.table(str(s.table))) for s in (here.owner, here.taker)]
    assert residue(here.owner.location)
    for steps, other in ((here.owner, here.taker), (here.taker, here.owner)):
        steps.all(*ERASE, forget(other))
    for steps, other in ((here.owner, here.taker), (here.taker, here.owner)):
        steps.all((ICEBERG_REMOVE_ORPHANS, sharing(other)))
    assert [bystanders(spark.table(str(s.table))) for s in (here.owner, here.taker)] == before
    assert not residue(here.owner.location)
    assert not residue(here.taker.location)
    # a file without the person is still where both read it
    taken = {r[0] for r in spark.sql(f"SELECT file_path FROM {here.taker.table}.files").collect()}
    assert any("two_owner" in path for path in taken)


def test_a_sweep_spares_what_the_other_table_still_reads(spark: SparkSession, spark_estate: SparkEstate) -> None:
    here = make(spark, spark_estate, "order", bare=False)
    here.owner.all(*ERASE, forget(here.taker), (ICEBERG_REMOVE_ORPHANS, sharing(here.taker)))
    assert spark.table(str(here.taker.table)).where(f"uid = {UID}").count() == 2  # not yet erased, and not broken
    assert residue(here.owner.location)


def test_a_bare_folder_whose_files_a_table_has_added(spark: SparkSession, spark_estate: SparkEstate) -> None:
    here = make(spark, spark_estate, "bare", bare=True)
    before = bystanders(spark.table(str(here.taker.table)))
    rewrite = here.owner.step(Action.FILES_REWRITE, format="parquet", codec="snappy", **sharing(here.taker))
    executor = build(here.owner.ctx)["files"]
    with pytest.raises(RunError, match="still reads this file"):
        executor.run(rewrite, here.owner.copy)
    here.taker.all(*ERASE, (ICEBERG_EXPIRE_SNAPSHOTS, {"older_than": None, "retain_last": 1, "sharing": []}))
    here.taker.all((ICEBERG_REMOVE_ORPHANS, {"sharing": []}))
    executor.run(rewrite, here.owner.copy)
    assert executor.verify(rewrite, here.owner.copy).ok
    assert bystanders(spark.table(str(here.taker.table))) == before
    assert not residue(here.owner.location)
    assert not residue(here.taker.location)
    assert sum(pq.read_metadata(p).num_rows for p in Path(here.owner.location).glob("*.parquet")) == 38


def test_a_sharer_that_cannot_be_asked_stops_the_sweep(spark: SparkSession, spark_estate: SparkEstate) -> None:
    here = make(spark, spark_estate, "gone", bare=False)
    step = here.owner.step(ICEBERG_REMOVE_ORPHANS, sharing=[{"table": "lake.shared.nobody", "location": "/nowhere"}])
    there = set(here.owner.location.rglob("*"))
    with pytest.raises(RunError, match="shares files with this one cannot be read"):
        build(here.owner.ctx)["iceberg"].run(step, here.owner.copy)
    assert {p for p in there if p.suffix == ".parquet"} <= set(here.owner.location.rglob("*"))
