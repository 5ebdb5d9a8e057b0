"""The states of a Delta table: every version of its log, and its change data feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pii_tracer.model.locations import engine_path
from pii_tracer.model.plan import Copy
from pii_tracer.verify.formats.base import State, TableReader, quoted_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DeltaReader(TableReader):
    """Delta tables by their place."""

    reads_s3 = True

    def states(self, spark: SparkSession, copy: Copy) -> Iterator[State]:
        reader, location = spark.read.format("delta"), engine_path(copy.location)
        yield State("current", lambda: spark.read.format("delta").load(location), kept=True)
        history = spark.sql(f"DESCRIBE HISTORY delta.{quoted_path(location)}").select("version").collect()
        versions = sorted(int(row["version"]) for row in history)

        def version(number: int) -> Callable[[], DataFrame]:
            return lambda: reader.option("versionAsOf", str(number)).load(location)

        for number in versions:
            yield State(f"version {number}", version(number))
        detail = spark.sql(f"DESCRIBE DETAIL delta.{quoted_path(location)}").select("properties").first()
        feed = detail is not None and (detail["properties"] or {}).get("delta.enableChangeDataFeed") == "true"
        for number in versions if feed else []:
            yield State(f"changes of version {number}", _changes(spark, location, number))


def _changes(spark: SparkSession, location: str, number: int) -> Callable[[], DataFrame]:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    reader = reader.option("startingVersion", str(number)).option("endingVersion", str(number))
    return lambda: reader.load(location)
