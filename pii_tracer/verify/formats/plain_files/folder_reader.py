"""Rows of bare folders of files, which have one state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pii_tracer.model.datasets import Format
from pii_tracer.model.hive_text.layout import text_of
from pii_tracer.model.locations import read_path
from pii_tracer.model.plan import Copy
from pii_tracer.scan.folder_scan import walk_files
from pii_tracer.verify.formats.base import State, TableReader
from pii_tracer.verify.formats.plain_files.avro_rows import avro_frame
from pii_tracer.verify.formats.plain_files.csv_rows import csv_frame
from pii_tracer.verify.formats.plain_files.hive_text_rows import text_frame
from pii_tracer.verify.formats.plain_files.json_rows import json_frame
from pii_tracer.verify.formats.plain_files.parquet_beyond_spark import beyond_spark, parquet_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WRITTEN = (Format.CSV, Format.JSON)


class FolderReader(TableReader):
    """Folders of Parquet, ORC, Avro, CSV or JSON files."""

    def states(self, spark: SparkSession, copy: Copy) -> Iterator[State]:
        written = copy.format in _WRITTEN
        yield State("current", lambda: _files(spark, copy), kept=True, loose=_loose(copy), written=written)


def _files(spark: SparkSession, copy: Copy) -> DataFrame:
    folder = Path(copy.location)
    files = _data_files(folder)
    if not files and folder.is_dir():  # a place that is gone is no empty folder: reading it fails
        return spark.createDataFrame([], "struct<>")
    if copy.format is Format.AVRO and files:
        return avro_frame(spark, folder, files)
    if copy.format is Format.PARQUET and beyond_spark(files):
        return parquet_frame(spark, folder, files)
    if (text := text_of(copy.facts)) is not None:
        return text_frame(spark, text, folder, files, copy.places.columns if copy.places else ())
    if copy.format is Format.CSV:
        return csv_frame(spark, copy, folder, files)
    if copy.format is Format.JSON:
        return json_frame(spark, copy, folder, files)
    # else the columns of one file are taken for everybody's, and what others have more is compared with nothing
    reader = spark.read.option("recursiveFileLookup", "false").option("mergeSchema", "true")
    return reader.format(copy.format.value).load(read_path(copy.location))


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
