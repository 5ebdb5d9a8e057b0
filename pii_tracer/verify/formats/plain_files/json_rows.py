"""JSON folders for the verifier: Spark reads them, files of lines as lines and others as one document each."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pii_tracer.lake.formats.plain_files.data_file import DataFile, data_file, decompressed, partition_values
from pii_tracer.lake.formats.plain_files.json_types import Shape
from pii_tracer.model.datasets import Format
from pii_tracer.model.locations import read_path
from pii_tracer.model.plan import TEXTS, Copy
from pii_tracer.scan.rows.json_documents import begins_document, shown

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import DataType, StructType


def json_frame(spark: SparkSession, copy: Copy, folder: Path, files: list[Path]) -> DataFrame:
    """The rows of JSON files. Where only some files are documents, all files tell a column's type together, columns are
    united by name, and what partition folders say is text: which type Spark sees in them hangs on the files that it is
    given.

    Raises:
        ValueError: some files are documents, and a file is not JSON throughout.
    """
    documents = [path for path in files if _is_document(path)]
    if len(documents) in (0, len(files)):
        return _frame(_reader(spark, several_lines=bool(documents)), copy, [read_path(copy.location)])
    frames = []
    groups = [[path for path in files if (path in documents) is several_lines] for several_lines in (False, True)]
    for several_lines, paths, schema in zip((False, True), groups, _schemas(groups), strict=True):
        reader = _reader(spark, several_lines=several_lines).option("basePath", str(folder)).schema(schema)
        frame = _frame(reader, copy, [read_path(str(path)) for path in paths])
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


def _schemas(groups: Iterable[Iterable[Path]]) -> list[StructType]:
    """For each group of files its columns, with types that all groups have together: NULL or an empty list in one says
    nothing of its type."""
    from pyspark.sql.types import StructField, StructType

    both, found = Shape(), []
    for files in groups:
        mine = Shape()
        for path in files:
            with _opened(path) as stream:
                mine.read(stream)
        found.append(mine.types)
        both.add((name.lower(), kind) for name, kind in mine.types.items())
    return [StructType([StructField(name, _as_spark(both.types[name.lower()])) for name in types]) for types in found]


def _as_spark(kind: pa.DataType) -> DataType:
    """The type that Spark gives it where all but objects and lists is text. An object without members is text, too."""
    import pyarrow as pa
    from pyspark.sql.types import ArrayType, StringType, StructField, StructType

    if pa.types.is_list(kind):
        return ArrayType(_as_spark(kind.value_type))
    if pa.types.is_struct(kind) and kind.num_fields:
        return StructType([StructField(field.name, _as_spark(field.type)) for field in kind])
    return StringType()


def _opened(path: Path) -> AbstractContextManager[IO[bytes]]:
    return decompressed(data_file(path) or DataFile(path, Format.JSON, None))


def _is_document(path: Path) -> bool:
    with _opened(path) as stream:
        lines = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape")
        return begins_document(next(filter(shown, lines), ""))
