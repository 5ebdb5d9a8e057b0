"""A Hudi table that logs its changes: a DELETE writes the person once more, and discovery sees that it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.hudi.table_state import hudi_state
from planners.copies.executor_support import unsupported
from tests.executors.formats.hudi.test_hudi import DELETE
from tests.executors.formats.hudi.test_hudi_indexes import make
from tests.executors.world import residue
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]


def test_what_a_delete_takes_out_stands_in_the_log_of_changes(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "changes", **{"hoodie.table.cdc.enabled": "true"})
    state = hudi_state(
        steps.location,
        EstatePaths(
            steps.ctx.estate.model_copy(update={"roots": (str(steps.location.parent),)}), steps.location.parent
        ),
    ).state
    assert state is not None
    assert "logs its changes" in (unsupported(state) or "")
    steps.all(DELETE)
    spark.sql(f"CALL run_clean(table => '{steps.table}', retain_commits => 1)")
    assert any(".cdc" in place for place in map(str, residue(steps.location)))
