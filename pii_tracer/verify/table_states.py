"""The states of a copy that Spark can read: the current one, every snapshot or version, every branch and tag."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.model.errors import ScanError
from pii_tracer.model.identities import Format
from pii_tracer.model.locations import engine_path
from pii_tracer.model.plan import TEXTS, Copy
from pii_tracer.scan.file_scan import walk_files
from pii_tracer.verify.avro_rows import avro_frame
from pii_tracer.verify.csv_rows import csv_frame
from pii_tracer.verify.nessie_states import NESSIE, nessie_states
from pii_tracer.verify.parquet_rows import beyond_spark, parquet_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_WRITTEN = (Format.CSV, Format.JSON)
_INSTANT = re.compile(r"/(\d{14,17})(?:_\d{14,17})?\.(?:commit|deltacommit|replacecommit)\Z")


@dataclass(frozen=True)
class State:
    """One state: `load` gives its rows when called. kept: must be the same for other people after the run.

    loose: files without a schema (JSON, or no files at all): a column is there only as long as a row has a value in it.
    written: values are texts as somebody wrote them (CSV, JSON).
    """

    name: str
    load: Callable[[], DataFrame]
    kept: bool = False
    loose: bool = False
    written: bool = False


def states(spark: SparkSession, copy: Copy) -> Iterator[State]:
    """Every state of a copy, the current one first. A copy that stands for one branch or tag has only that state.

    Raises:
        ScanError: an Iceberg copy without a table name, or a bare folder in S3.
    """
    if copy.s3_table and copy.format not in (DELTA, ICEBERG, HUDI):
        raise ScanError(
            f"rows of {copy.format} tables in S3 are not read",
            where=copy.table or copy.location,
            todo="plan again: only Delta, Iceberg and Hudi tables are erased there as tables",
        )
    if NESSIE in copy.facts:
        yield from (State(name, load, kept) for name, load, kept in nessie_states(spark, copy))
    elif copy.format is ICEBERG:
        yield from _iceberg(spark, copy)
    elif copy.format is DELTA:
        yield from _delta(spark, copy)
    elif copy.format is HUDI:
        yield from _hudi(spark, copy)
    else:
        written = copy.format in _WRITTEN
        yield State("current", lambda: _files(spark, copy), kept=True, loose=_loose(copy), written=written)


def _quoted(name: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in name.split("."))


def _path(location: str) -> str:
    return "`" + location.replace("`", "``") + "`"


def _iceberg(spark: SparkSession, copy: Copy) -> Iterator[State]:
    if copy.table is None:
        raise ScanError(
            f"the Iceberg copy {copy.id} has no table name to read it by",
            where=copy.location,
            todo="declare the catalog it belongs to in the estate file",
        )
    table = _quoted(copy.table)

    def at(option: str, value: str) -> Callable[[], DataFrame]:
        # since Spark 4, Iceberg takes only Spark's own option, for snapshots, branches and tags alike
        name = option if spark.version.startswith("3.") else "versionAsOf"
        return lambda: spark.read.option(name, value).table(table)

    only = copy.facts.get("ref")
    refs = spark.sql(f"SELECT name, type FROM {table}.refs ORDER BY name").collect()
    if only is None:
        yield State("current", lambda: spark.read.table(table), kept=True)
    for ref in refs:
        if ref["name"] == only or (only is None and ref["name"] != "main"):
            kind = ref["type"].lower()
            stays = ref["name"] not in copy.facts.get("lapsing_refs", ())
            yield State(f"{kind} {ref['name']}", at(kind, ref["name"]), kept=stays)
    if only is None:
        rows = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()
        for row in rows:
            yield State(f"snapshot {row['snapshot_id']}", at("snapshot-id", str(row["snapshot_id"])))


def _delta(spark: SparkSession, copy: Copy) -> Iterator[State]:
    reader, location = spark.read.format("delta"), engine_path(copy.location)
    yield State("current", lambda: spark.read.format("delta").load(location), kept=True)
    history = spark.sql(f"DESCRIBE HISTORY delta.{_path(location)}").select("version").collect()
    versions = sorted(int(row["version"]) for row in history)

    def version(number: int) -> Callable[[], DataFrame]:
        return lambda: reader.option("versionAsOf", str(number)).load(location)

    for number in versions:
        yield State(f"version {number}", version(number))
    detail = spark.sql(f"DESCRIBE DETAIL delta.{_path(location)}").select("properties").first()
    feed = detail is not None and (detail["properties"] or {}).get("delta.enableChangeDataFeed") == "true"
    for number in versions if feed else []:
        yield State(f"changes of version {number}", _changes(spark, location, number))


def _changes(spark: SparkSession, location: str, number: int) -> Callable[[], DataFrame]:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    reader = reader.option("startingVersion", str(number)).option("endingVersion", str(number))
    return lambda: reader.load(location)


def _hudi(spark: SparkSession, copy: Copy) -> Iterator[State]:
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
    literal = re.sub(r"[\\*?\[\]{},]", r"\\\g<0>", location)
    listed = spark.read.format("binaryFile").load(f"{literal}/.hoodie/{{timeline/,}}*commit").select("path").collect()
    return sorted({match.group(1) for row in listed if (match := _INSTANT.search(row["path"]))})


def _files(spark: SparkSession, copy: Copy) -> DataFrame:
    folder = Path(copy.location)
    files = _data_files(folder)
    if not files and folder.is_dir():  # a place that is gone is no empty folder: reading it fails
        return spark.createDataFrame([], "struct<>")
    if copy.format is Format.AVRO and files:
        return avro_frame(spark, folder, files)
    if copy.format is Format.PARQUET and beyond_spark(files):
        return parquet_frame(spark, folder, files)
    if copy.format is Format.CSV:
        return csv_frame(spark, copy, folder, files)
    reader = spark.read.option("recursiveFileLookup", "false")
    if copy.format is Format.JSON:
        # as texts: with types that Spark guesses, one row less could make another type of everybody's numbers
        reader = reader.option("primitivesAsString", "true")
        if texts := {name.lower() for name in copy.facts.get(TEXTS, ())}:
            reader = reader.schema(_as_texts(reader.format("json").load(copy.location).schema, texts))
    else:
        # else the columns of one file are taken for everybody's, and what others have more is compared with nothing
        reader = reader.option("mergeSchema", "true")
    return reader.format(copy.format.value).load(copy.location)


def _as_texts(schema: StructType, names: Collection[str]) -> StructType:
    """The schema with text for some columns: an object is given as it is written, whatever other lines have there."""
    from pyspark.sql.types import StringType, StructField, StructType

    fields = [StructField(f.name, StringType()) if f.name.lower() in names else f for f in schema.fields]
    return StructType(fields)


def _loose(copy: Copy) -> bool:
    """A folder without data files has no schema either, whatever its format."""
    return copy.format is Format.JSON or not _data_files(Path(copy.location))


def _data_files(folder: Path) -> list[Path]:
    """Files that Spark takes for data: not empty, and no part of the way begins with `.`, or with `_` without `=`.

    Raises:
        ScanError: a folder cannot be listed.
    """
    found = []
    for name, path in walk_files(folder) if folder.is_dir() else ():
        parts = PurePath(name).parts
        hidden = any(part[0] == "." or (part[0] == "_" and "=" not in part) for part in parts)
        if not hidden and path.is_file() and path.stat().st_size:
            found.append(path)
    return found
