"""The deletion log's tables, asked in Spark beside other tables."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_tracer.config.proof import DeletionLogKind
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.deletion_log_table import fill_table
from pii_tracer.proof.deletions.entries import EntryState
from tests.proof.deletion_log.grouped import groups
from tests.proof.deletion_log.test_deletion_log import entry
from tests.review.plans import NOW
from tests.sparksession import spark, spark_estate  # noqa: F401

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kind", [DeletionLogKind.DELTA, DeletionLogKind.ICEBERG])
def test_spark_answers_from_the_log(tmp_path: Path, kind: DeletionLogKind, spark: SparkSession) -> None:  # noqa: F811
    log = DeletionLog(tmp_path / "deletion_log.sqlite", "clinic")
    late = NOW + timedelta(days=400)
    log.append(
        groups([entry(), entry(state=EntryState.EXEMPT, format=None, action=None), entry(run_at=late, bytes_removed=9)])
    )
    folder = fill_table(log, "clinic", kind)

    def asked() -> list[tuple[object, ...]]:
        newest = max(folder.glob("log/deletions/metadata/*.metadata.json"), default=folder)
        spark.read.format(kind.value).load(str(newest)).createOrReplaceTempView("deletion_log")
        query = "SELECT seq, state, action, bytes_removed, unix_timestamp(run_at) FROM deletion_log ORDER BY seq"
        return [tuple(row) for row in spark.sql(query).collect()]

    begun = int(NOW.timestamp())
    rows = [
        (1, "erased", "iceberg_delete_rows", None, begun),
        (2, "exempt", None, None, begun),
        (3, "erased", "iceberg_delete_rows", 9, int(late.timestamp())),
    ]
    assert asked() == rows
    log.prune(late, at=late)
    fill_table(log, "clinic", kind)
    spark.catalog.clearCache()
    assert asked() == rows[2:]
