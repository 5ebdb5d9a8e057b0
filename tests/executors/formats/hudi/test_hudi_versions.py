"""Tables that older Hudi wrote are erased in their own version: raised to a newer one, their writers could not read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_tracer.lake.formats.hudi.table_state import hudi_properties
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.model.errors import RunError
from tests.executors.formats.hudi.test_hudi import (
    CLEAN,
    COMPACT,
    DELETE,
    METADATA,
)
from tests.executors.world import UID, Steps, bystanders, context, frame, residue, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def write(spark: SparkSession, folder: Path, version: str, kind: str, made: list[tuple[int, int, str, int]]) -> None:
    """As a writer of that version does."""
    options = {
        "hoodie.table.name": folder.name,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "amount",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.datasource.write.table.type": {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}[kind],
        "hoodie.write.table.version": version,
        "hoodie.write.auto.upgrade": "false",
    }
    frame(spark, made).write.format("hudi").options(**options).mode("append").save(str(folder))


def table(spark: SparkSession, world: SparkEstate, version: str, kind: str) -> Steps:
    """Two commits, the person in both, and an update of one of her rows."""
    folder = world.folder(f"hudi/version_{version}_{kind}")
    for made in (rows(0, 20, (3, 4)), rows(20, 10, (23,)), rows(3, 1, (3,))):
        write(spark, folder, version, kind, made)
    spark.sql("CREATE DATABASE IF NOT EXISTS hudi_old")
    spark.sql(f"CREATE TABLE hudi_old.{folder.name} USING hudi LOCATION '{folder}'")
    return Steps(context(world), "hudi", f"hudi_old.{folder.name}", folder, HUDI)


def version_of(folder: Path) -> str:
    return hudi_properties(folder)["hoodie.table.version"]


@pytest.mark.parametrize(
    ("version", "kind"),
    [*(pytest.param("6", kind, marks=pytest.mark.nightly) for kind in ("cow", "mor")), ("8", "cow")],
)
def test_a_table_keeps_its_version(spark: SparkSession, spark_estate: SparkEstate, version: str, kind: str) -> None:
    steps = table(spark, spark_estate, version, kind)
    folder = Path(steps.location)
    others = bystanders(spark.table(str(steps.table)))
    steps.all(DELETE, *((COMPACT,) if kind == "mor" else ()), CLEAN, METADATA)
    assert residue(folder) == []
    assert version_of(folder) == version
    assert spark.conf.get("hoodie.write.table.version", "none") == "none", "of other tables nothing is known"
    assert (folder / ".hoodie" / "metadata").exists() == (version != "6"), "Hudi 1.2 would make one of its own version"
    write(spark, folder, version, kind, rows(900, 1))
    spark.catalog.refreshTable(str(steps.table))
    assert version_of(folder) == version
    assert len(bystanders(spark.table(str(steps.table)))) == len(others) + 1
    assert spark.table(str(steps.table)).where(f"uid = {UID}").count() == 0
    assert residue(folder) == []


def test_the_naive_way_raises_the_version(spark: SparkSession, spark_estate: SparkEstate) -> None:
    folder = spark_estate.folder("hudi/naive_version")
    write(spark, folder, "6", "cow", rows(0, 6, (3,)))
    spark.sql("CREATE DATABASE IF NOT EXISTS hudi_old")
    spark.sql(f"CREATE TABLE hudi_old.naive_version USING hudi LOCATION '{folder}'")
    spark.sql(f"DELETE FROM hudi_old.naive_version WHERE uid = {UID}")
    assert version_of(folder) == "9"


def test_a_version_that_nobody_here_writes_is_refused(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = table(spark, spark_estate, "8", "mor")
    properties = Path(steps.location) / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.version=8", "hoodie.table.version=5"))
    with pytest.raises(RunError, match="version 5"):
        steps.once(DELETE[0])
