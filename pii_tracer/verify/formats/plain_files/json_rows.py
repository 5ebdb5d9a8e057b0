"""JSON folders for the verifier: Spark reads them, files of lines as lines and others as one document each."""

from __future__ import annotations

import io
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.lake.formats.plain_files.data_file import DataFile, data_file, decompressed, partition_values
from pii_tracer.model.datasets import Format
from pii_tracer.model.locations import read_path
from pii_tracer.model.plan import TEXTS, Copy
from pii_tracer.scan.rows.json_documents import begins_document

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType


def json_frame(spark: SparkSession, copy: Copy, folder: Path, files: list[Path]) -> DataFrame:
    """The rows of JSON files. Where only some files are documents, columns are united by name, and what partition
    folders say is text: which type Spark sees in them hangs on the files that it is given."""
    documents = [path for path in files if _is_document(path)]
    if len(documents) in (0, len(files)):
        return _frame(_reader(spark, several_lines=bool(documents)), copy, [read_path(copy.location)])
    frames = []
    for several_lines in (False, True):
        paths = [read_path(str(path)) for path in files if (path in documents) is several_lines]
        reader = _reader(spark, several_lines=several_lines).option("basePath", str(folder))
        frame = _frame(reader, copy, paths)
        parts = {name for path in files for name in partition_values(folder, path)}
        for name in (column for column in frame.columns if column in parts):
            frame = frame.withColumn(name, frame[f"`{name}`"].cast("string"))
        frames.append(frame)
    return frames[0].unionByName(frames[1], allowMissingColumns=True)


def _reader(spark: SparkSession, *, several_lines: bool) -> DataFrameReader:
    # as texts: with types that Spark guesses, one row less could make another type of everybody's numbers
    reader = spark.read.format("json").option("recursiveFileLookup", "false").option("primitivesAsString", "true")
    return reader.option("multiLine", str(several_lines).lower())


def _frame(reader: DataFrameReader, copy: Copy, paths: list[str]) -> DataFrame:
    if texts := {name.lower() for name in copy.facts.get(TEXTS, ())}:
        reader = reader.schema(_as_texts(reader.load(paths).schema, texts))
    return reader.load(paths)


def _as_texts(schema: StructType, names: Collection[str]) -> StructType:
    """The schema with text for some columns: an object is given as it is written, whatever other lines have there."""
    from pyspark.sql.types import StringType, StructField, StructType

    fields = [StructField(f.name, StringType()) if f.name.lower() in names else f for f in schema.fields]
    return StructType(fields)


def _is_document(path: Path) -> bool:
    with decompressed(data_file(path) or DataFile(path, Format.JSON, None)) as stream:
        lines = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape")
        return begins_document(next((line for line in lines if line.strip()), ""))
