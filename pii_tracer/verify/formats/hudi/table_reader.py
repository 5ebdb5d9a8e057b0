"""The states of a Hudi table: the current one, and every completed write that can be travelled to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pii_tracer.model.locations import engine_path, read_path
from pii_tracer.model.plan import Copy
from pii_tracer.verify.formats.base import State, TableReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_INSTANT = re.compile(r"/(\d{14,17})(?:_\d{14,17})?\.[a-z]*commit\Z")


class HudiReader(TableReader):
    """Hudi tables by their place."""

    reads_s3 = True

    def states(self, spark: SparkSession, copy: Copy) -> Iterator[State]:
        location = engine_path(copy.location)
        yield State("current", lambda: spark.read.format("hudi").load(location), kept=True)

        def instant(time: str) -> Callable[[], DataFrame]:
            return lambda: spark.read.format("hudi").option("as.of.instant", time).load(location)

        for time in _instants(spark, location):
            yield State(f"instant {time}", instant(time))


def _instants(spark: SparkSession, location: str) -> list[str]:
    """Completed writes on the timeline: in `.hoodie/timeline` since table version 8, in `.hoodie` before.

    Spark lists it, here and in S3; no file is opened.
    """
    literal = read_path(location)
    listed = spark.read.format("binaryFile").load(f"{literal}/.hoodie/{{timeline/,}}*commit").select("path").collect()
    return sorted({match.group(1) for row in listed if (match := _INSTANT.search(row["path"]))})
