"""Spark applications with an event log each, for a test that reads them: `python -m tests.executors.logged FOLDER`.

Two find the person's row of the Delta table in `FOLDER/t`: the first by a literal, the second by a step of a plan. The
third has rows of Iceberg tables deleted, in partitions made of the keys, by a step as well.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from executors.engine.spark_session import open_session
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_DELETE_ROWS
from pii_tracer.model.datasets import Match
from tests.executors.formats.delta.test_delta import DELETE
from tests.executors.test_candidates import BY
from tests.executors.world import COLUMNS, EMAIL, Steps, context
from tests.sparksession import SparkEstate, small_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW = {"spark.sql.shuffle.partitions": "1", "spark.databricks.delta.snapshotPartitions": "1"}

READABLE = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",  # Spark 4 does unless it is told
    "spark.sql.maxPlanStringLength": "1000000",
}


def main(base: Path) -> None:
    told = {"version": 1, "estate": "logged", "environment": "local", "roots": [], "lineage": {}}
    told["catalogs"] = {"lake": {"type": "iceberg-hadoop", "warehouse": "warehouse/lake"}}
    subject = {"name": "customer", "source": "s.t", "key": "uid"}
    estate = Estate.model_validate(told | {"spark": small_spark(FEW), "subjects": [subject]})
    for name in ("literal", "step", "partitions"):
        (base / name).mkdir()
        spark = open_session(estate, base, READABLE | {"spark.eventLog.dir": (base / name).as_uri()})
        if name == "literal":
            spark.sql(f"DELETE FROM delta.`{base}/t` WHERE email = '{EMAIL}' AND id < 4")
        elif name == "partitions":
            partitions(spark, SparkEstate(estate, base))
        else:
            Steps(context(SparkEstate(estate, base)), "delta", None, base / "t", DELTA).once(*DELETE[:1])
        spark.stop()


def partitions(spark: SparkSession, world: SparkEstate) -> None:
    """Partitions of each kind that `test_candidates` sees passed over."""
    written = world.base / "rows.parquet"
    for n, (partition, term) in enumerate(BY.items()):
        table, folder = f"lake.logged.t{n}", world.base / "warehouse/lake/logged" / f"t{n}"
        spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg PARTITIONED BY ({partition})")
        spark.read.parquet(str(written)).writeTo(table).append()
        steps = Steps(context(world), "iceberg", table, folder, ICEBERG, Match(terms=(term,)))
        assert steps.once(ICEBERG_DELETE_ROWS)["rows_deleted"] == 2


if __name__ == "__main__":
    main(Path(sys.argv[1]))
