"""A table of a folder catalog, as Spark writes it with Hadoop's checksums: Spark reads it and writes it on afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG_REMOVE_ORPHANS, ICEBERG_REWRITE_HISTORY
from tests.executors.formats.iceberg.test_iceberg import make
from tests.executors.world import UID, frame, residue, rows
from tests.sparksession import SparkEstate, rows_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_spark_reads_and_writes_the_table_on(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "kept", "copy-on-write", alone=True)
    table = str(steps.table)
    spark.sql(f"ALTER TABLE {table} CREATE TAG q1")
    spark.sql(f"DELETE FROM {table} WHERE uid = {UID}")

    def told() -> dict[str, list[str]]:
        spark.catalog.refreshTable(table)
        ids = [row[0] for row in spark.sql(f"SELECT snapshot_id FROM {table}.snapshots").collect()]
        found = {str(n): spark.read.option("snapshot-id", n).table(table) for n in ids}
        found["q1"] = rows_at(spark, table, "tag", "q1")
        return {name: sorted(map(str, read.collect())) for name, read in found.items()}

    before = told()
    assert any(str(UID) in row for row in before["q1"]), "the naive way leaves the person below the tag"
    steps.once(ICEBERG_REWRITE_HISTORY, snapshots=len(before) - 1)
    after = told()
    assert after == {name: [row for row in found if str(UID) not in row] for name, found in before.items()}
    steps.once(ICEBERG_REMOVE_ORPHANS)
    assert residue(spark_estate.base / "warehouse/lake/iceberg/kept") == []
    assert told() == after
    frame(spark, rows(90, 3)).writeTo(table).append()
    assert spark.table(table).where("id >= 90").count() == 3
