"""The states of a transactional table of Hive's: the current rows, and every row that its files still have.

Spark reads the ORC files as they are. Which folders count is found by their names, and which rows are deleted by their
numbers (https://orc.apache.org/docs/acid.html).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pii_tracer.lake.formats.hive_acid.folders import BUCKET, AcidFolder, acid_folder, by_partition, partition_values
from pii_tracer.model.locations import engine_path, read_path
from pii_tracer.model.plan import Copy
from pii_tracer.verify.formats.base import State, TableReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Folders = Mapping[str, AcidFolder]
_NUMBER = ["originalTransaction", "bucket", "rowId"]
_WHOLE = (
    "operation + originalTransaction + bucket + rowId + currentTransaction >= 0"
    " AND coalesce(length(CAST(row AS STRING)), 0) >= 0"
)
"""True of every row. ORC's reader mistakes a file whose columns are not all asked for, and this asks for all."""


class HiveAcidReader(TableReader):
    """Transactional tables by their place."""

    def states(self, spark: SparkSession, copy: Copy) -> Iterator[State]:
        location = engine_path(copy.location)
        files = list(_files(spark, location))
        loose = not files
        front = f"{location.rstrip('/')}/"
        yield State("current", lambda: _rows(spark, chosen(files, front, old=False)), kept=True, loose=loose)
        yield State("rows in files", lambda: _rows(spark, chosen(files, front, old=True), deleted=True), loose=loose)


def _files(spark: SparkSession, location: str) -> Iterator[str]:
    """Every file with rows or numbers; Spark lists them, and opens none."""
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    for row in reader.load(read_path(location)).select("path").collect():
        _, above, name = ("", *str(row["path"]).rsplit("/", 2))[-3:]
        if acid_folder(above) and BUCKET.fullmatch(name):
            yield str(row["path"])


def chosen(files: Iterable[str], front: str, *, old: bool) -> Mapping[str, Folders]:
    """By partition, the files that the rows are read from, with the folder of each; by the same rules as planning.

    front: what the paths of all files begin with. old: also those in folders that no reader uses any more.
    """
    lying: dict[str, list[str]] = {}
    for path in sorted(files):
        lying.setdefault(path.removeprefix(front).rpartition("/")[0], []).append(path)
    return {
        name: {
            path: folder
            for folder in (*partition.live, *(partition.old if old else ()))
            for path in lying[f"{name}/{folder.name}".removeprefix("/")]
        }
        for name, partition in by_partition(lying).items()
    }


def _rows(spark: SparkSession, partitions: Mapping[str, Folders], *, deleted: bool = False) -> DataFrame:
    """The rows of all partitions. deleted: also those that are deleted."""
    from pyspark.sql import functions as f

    frames = []
    for partition, files in partitions.items():
        rows = [path for path, folder in files.items() if folder.has_rows]
        gone = [path for path, folder in files.items() if not folder.has_rows]
        if not rows:
            continue
        frame = _read(spark, rows).where("operation = 0")
        # a minor compaction leaves the same row in two folders until the cleaner was there
        frame = frame.dropDuplicates(_NUMBER)
        if gone and not deleted:
            frame = frame.join(_read(spark, gone).select(_NUMBER), _NUMBER, "left_anti")
        frame = frame.select("row.*")
        for name, value in partition_values(partition):
            frame = frame.withColumn(name, f.lit(value).cast("string"))
        frames.append(frame)
    if not frames:
        return spark.createDataFrame([], "row struct<>").select("row.*")
    result = frames[0]
    for frame in frames[1:]:
        result = result.unionByName(frame, allowMissingColumns=True)
    return result


def _read(spark: SparkSession, files: list[str]) -> DataFrame:
    return spark.read.orc([read_path(path) for path in files]).where(_WHOLE)
