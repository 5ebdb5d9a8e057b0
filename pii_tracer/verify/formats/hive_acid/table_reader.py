"""The states of a transactional table of Hive's: the current rows, and every row that its files still have.

Spark reads the ORC files as they are. Which folders count, and which rows are deleted, is found here by their names
and numbers alone (https://orc.apache.org/docs/acid.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pii_tracer.model.locations import engine_path, read_path
from pii_tracer.model.plan import Copy
from pii_tracer.verify.formats.base import State, TableReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILE = re.compile(
    r"(?P<partition>.*?)/?(?P<folder>(?P<kind>base|delta|delete_delta)_(?P<first>\d+)(?:_(?P<last>\d+))?[_v\d]*)"
    r"/bucket_[\d_]+\Z"
)
_NUMBER = ["originalTransaction", "bucket", "rowId"]
_WHOLE = (
    "operation + originalTransaction + bucket + rowId + currentTransaction >= 0"
    " AND coalesce(length(CAST(row AS STRING)), 0) >= 0"
)
"""True of every row. ORC's reader mistakes a file whose columns are not all asked for, and this asks for all."""
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class HiveAcidReader(TableReader):
    """Transactional tables by their place."""

    def states(self, spark: SparkSession, copy: Copy) -> Iterator[State]:
        location = engine_path(copy.location)
        files = _files(spark, location)
        loose = not files
        yield State("current", lambda: _rows(spark, files, deleted=False), kept=True, loose=loose)
        yield State("rows in files", lambda: _rows(spark, files, deleted=True), loose=loose)


def _files(spark: SparkSession, location: str) -> dict[str, re.Match[str]]:
    """Every file with rows or numbers, by its path; Spark lists them, and opens none."""
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    listed = [str(row["path"]) for row in reader.load(read_path(location)).select("path").collect()]
    front = location.rstrip("/") + "/"
    return {path: found for path in sorted(listed) if (found := _FILE.match(unquote(path).removeprefix(front)))}


def _rows(spark: SparkSession, files: dict[str, re.Match[str]], *, deleted: bool) -> DataFrame:
    """The rows of all partitions. deleted: also those that are deleted, and those of old folders."""
    from pyspark.sql import functions as f

    frames = []
    for partition in sorted({found["partition"] for found in files.values()}):
        mine = {path: found for path, found in files.items() if found["partition"] == partition}
        base = max((int(found["first"]) for found in mine.values() if found["kind"] == "base"), default=0)
        counts = {
            path: found
            for path, found in mine.items()
            if deleted or (int(found["first"]) == base if found["kind"] == "base" else int(found["last"]) > base)
        }
        rows = [path for path, found in counts.items() if found["kind"] != "delete_delta"]
        gone = [path for path, found in counts.items() if found["kind"] == "delete_delta"]
        if not rows:
            continue
        frame = _read(spark, rows).where("operation = 0")
        # a minor compaction leaves the same row in two folders until the cleaner was there
        frame = frame.dropDuplicates(_NUMBER)
        if gone and not deleted:
            frame = frame.join(_read(spark, gone).select(_NUMBER), _NUMBER, "left_anti")
        frame = frame.select("row.*")
        for part in partition.split("/") if partition else ():
            name, _, value = part.partition("=")
            frame = frame.withColumn(name, f.lit(None if value == _NO_VALUE else unquote(value)).cast("string"))
        frames.append(frame)
    if not frames:
        return spark.createDataFrame([], "row struct<>").select("row.*")
    result = frames[0]
    for frame in frames[1:]:
        result = result.unionByName(frame, allowMissingColumns=True)
    return result


def _read(spark: SparkSession, files: list[str]) -> DataFrame:
    return spark.read.orc([read_path(path) for path in files]).where(_WHOLE)
