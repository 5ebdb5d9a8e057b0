"""Hudi tables that somebody restores in the middle of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from executors.registry import build
from pii_tracer.lake.formats.hudi.vocabulary import HUDI_DELETE_ROWS, HUDI_REBUILD_METADATA
from pii_tracer.run.executor_protocol import Progress
from tests.executors.formats.hudi.test_hudi import (
    CLEAN,
    DELETE,
    METADATA,
    SAVEPOINTS,
    make,
)
from tests.executors.world import UID, bystanders, residue
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_a_restored_savepoint_brings_the_person_back(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Until the savepoint is deleted and the old slices are cleaned, one call undoes the DELETE."""
    steps = make(spark, spark_estate, "restored", "cow")
    others = bystanders(spark.table(str(steps.table)))
    steps.all(DELETE)
    saved = spark.sql(f"CALL show_savepoints(table => '{steps.table}')").first()[0]
    spark.sql(f"CALL rollback_to_savepoint(table => '{steps.table}', instant_time => '{saved}')")
    spark.catalog.refreshTable(str(steps.table))
    assert spark.table(str(steps.table)).where(f"uid = {UID}").count() == 3
    assert steps.probe(HUDI_DELETE_ROWS) is Progress.PARTIAL
    steps.all(SAVEPOINTS, DELETE, CLEAN, METADATA)
    assert residue(steps.location) == []
    assert bystanders(spark.table(str(steps.table))) == others

    spark.sql(f"INSERT INTO {steps.table} VALUES (700, {UID}, 'late@example.net', 1)")
    steps.all(DELETE, CLEAN)
    rebuilt = build(steps.ctx)["hudi"].verify(steps.step(HUDI_REBUILD_METADATA), steps.copy)
    assert rebuilt.findings == ("the metadata table is older than the last clean",)
    steps.all(METADATA)
    assert residue(steps.location) == []
