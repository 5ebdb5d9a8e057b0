"""A bootstrapped Hudi table has the keys of its rows, and reads the rest by position in the files that it was made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.hudi.properties import HUDI_BOOTSTRAPPED
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.gap_kinds import GapKind
from planners.copies.executor_support import unsupported
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]


def bootstrapped(spark: SparkSession, old: Path, table: Path) -> None:
    rows = [(n, 7 if n < 2 else 8, f"person{n // 2}@x.example", 1) for n in range(8)]
    frame_of_rows(spark, rows, "id bigint, who bigint, mail string, ts bigint").coalesce(1).write.parquet(str(old))
    options = {
        "hoodie.table.name": "boot",
        "hoodie.metadata.enable": "false",
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.datasource.write.operation": "bootstrap",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        HUDI_BOOTSTRAPPED: str(old),
        "hoodie.bootstrap.keygen.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector",
    }
    empty = spark.read.parquet(str(old)).limit(0)
    empty.write.format("hudi").options(**options).mode("overwrite").save(str(table))


def test_it_and_what_it_was_made_of_are_left_alone(spark: SparkSession, spark_estate: SparkEstate) -> None:
    folder = spark_estate.base / "bootstrap"
    old, table = folder / "old", folder / "boot"
    folder.mkdir()
    bootstrapped(spark, old, table)
    estate = spark_estate.estate.model_copy(update={"roots": (str(folder),)})
    found = {state.location: state for state in discover(estate, spark_estate.base).tables}
    assert "bootstrapped" in (unsupported(found[str(table)]) or "")
    assert [other.location for other in found[str(old)].sharing] == [str(table)]
    assert [other.location for other in found[str(table)].sharing] == [str(old)]
    shared = [gap for gap in discover(estate, spark_estate.base).gaps if gap.kind == GapKind.SHARED_FILES]
    assert {gap.dataset for gap in shared} >= {found[str(old)].dataset, found[str(table)].dataset}

    # what a run would have done: the person's rows out of the folder, and everybody behind them has another's key
    (file,) = old.glob("*.parquet")
    rows = pq.read_table(file)
    pq.write_table(rows.filter(pc.not_equal(rows["who"], 7)), file)
    for crc in old.glob(".*.crc"):
        crc.unlink()
    spark.catalog.clearCache()
    wrong = spark.read.format("hudi").load(str(table)).where("_hoodie_record_key != id").count()
    assert wrong > 0
