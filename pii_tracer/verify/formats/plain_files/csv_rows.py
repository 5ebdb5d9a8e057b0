"""CSV folders for the verifier: Spark reads them, each file by its own header.

Left to itself, Spark names the columns of all files by the first file's header: where another file has them in another
order, its cells would stand under other names, and its keys among other people's values.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.lake.formats.plain_files.data_file import (
    DataFile,
    data_file,
    decompressed,
    partition_values,
)
from pii_tracer.model.datasets import Format
from pii_tracer.model.locations import read_path
from pii_tracer.model.plan import Copy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession


def csv_frame(spark: SparkSession, copy: Copy, folder: Path, files: list[Path]) -> DataFrame:
    """The rows of CSV files; where they differ in their headers, columns are united by name and all are text."""
    groups = _by_header(copy, files)
    if len(groups) < 2:
        return _reader(spark, copy, files).load(read_path(copy.location))
    parts = list(dict.fromkeys(name for path in files for name in partition_values(folder, path)))
    frames = [_as_named(_reader(spark, copy, files), folder, group, parts) for group in groups.items()]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame, allowMissingColumns=True)
    return whole


def _reader(spark: SparkSession, copy: Copy, files: list[Path]) -> DataFrameReader:
    # a cell may hold line ends; without multiLine, the rest of such a cell is a row that the person's files alone tell
    reader = spark.read.format("csv").option("recursiveFileLookup", "false").option("multiLine", "true")
    reader = reader.option("header", str(copy.facts.get("header", True)).lower())
    reader = reader.option("sep", _delimiter(copy)).option("encoding", _encoding(copy))
    return reader.option("escape", _escape(files, copy))


def _as_named(
    reader: DataFrameReader, folder: Path, group: tuple[tuple[str, ...], list[Path]], parts: list[str]
) -> DataFrame:
    """Files of one header. Partition folders are text: which type Spark sees in them hangs on the files it is given."""
    from pyspark.sql.types import StringType, StructField, StructType

    names, files = group
    folders = {name.lower() for path in files for name in partition_values(folder, path)}
    # Spark takes the folder's value where a file has such a column, too, and would count the file's columns without it
    hidden = {n: f"__pii_tracer_hidden_{n}" for n, name in enumerate(names) if name.lower() in folders}
    columns = [hidden.get(n, name) for n, name in enumerate(names)] + [
        part for part in parts if part.lower() in folders
    ]
    schema = StructType([StructField(name, StringType()) for name in columns])
    paths = [read_path(str(path)) for path in files]
    return reader.schema(schema).option("basePath", str(folder)).load(paths).drop(*hidden.values())


def _by_header(copy: Copy, files: list[Path]) -> dict[tuple[str, ...], list[Path]]:
    """Files by the columns that their first record names; files without a record are in no group."""
    groups: dict[tuple[str, ...], list[Path]] = {}
    for path in files if copy.facts.get("header", True) else ():
        with decompressed(_known(path)) as stream:
            text = io.TextIOWrapper(stream, _encoding(copy), errors="surrogateescape", newline="")
            first = next(filter(None, csv.reader(text, delimiter=_delimiter(copy))), None)
        if first:
            groups.setdefault(_named([first[0].removeprefix("\ufeff"), *first[1:]]), []).append(path)
    return groups


def _named(header: list[str]) -> tuple[str, ...]:
    """A header as Spark takes it: columns without a name, or with one that others have too, get their number."""
    plain = [name.lower() for name in header]
    return tuple(
        f"_c{n}" if not name else f"{name}{n}" if plain.count(name.lower()) > 1 else name
        for n, name in enumerate(header)
    )


def _escape(files: list[Path], copy: Copy) -> str:
    """How quotes stand in quoted cells: doubled (RFC 4180), or as Spark writes them where a file cannot be parsed so.

    By the wrong one, a cell that ends in a backslash would go on into the next rows.
    """
    for path in files:
        with decompressed(_known(path)) as stream:
            text = io.TextIOWrapper(stream, _encoding(copy), errors="surrogateescape", newline="")
            try:
                for _ in csv.reader(text, strict=True, delimiter=_delimiter(copy)):
                    pass
            except csv.Error:
                return "\\"
    return '"'


def _known(path: Path) -> DataFile:
    return data_file(path) or DataFile(path, Format.CSV, None)


def _delimiter(copy: Copy) -> str:
    return str(copy.facts.get("delimiter", ","))


def _encoding(copy: Copy) -> str:
    return str(copy.facts.get("encoding", "utf-8"))
