"""Text of Hive's tables for the verifier: read in Spark's workers, by the columns that the catalog named in the plan.

Spark's own CSV reader has other rules for quotes, escapes and NULL than Hive.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.formats.plain_files.data_file import decompressed, text_file
from pii_tracer.lake.rows.spark_frames import Place, frame_of_files
from pii_tracer.model.errors import ScanError
from pii_tracer.model.hive_text.layout import FileText, TextTable
from pii_tracer.scan.rows.text_records import UnclearLineError, cells_of, row_lines, value_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def text_frame(
    spark: SparkSession, table: TextTable, folder: Path, files: list[Path], keys: Collection[str]
) -> DataFrame:
    """The rows of the table's files, all cells as text; files in folders that the catalog did not name are no rows.

    keys: columns by which rows are found. Only these are read as their type has them: a whole number in one spelling.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    layouts = {str(path): text for path in files if (text := table.of(path.parent.relative_to(folder)))}
    fields = [StructField(column.name, StringType()) for column in table.columns]
    if not layouts:
        return spark.createDataFrame([], StructType(fields))
    told = json.dumps({path: text.model_dump(mode="json") for path, text in layouts.items()})
    mine = [path for path in files if str(path) in layouts]
    return frame_of_files(
        spark, folder, mine, lambda _path, _parts: fields, partial(rows, told, frozenset(map(str.lower, keys)))
    )


def rows(told: str, keys: Collection[str], place: Place) -> Iterator[tuple[Any, ...]]:
    """The rows of one file as tuples for Spark. Runs in a worker. told: by file, how it is read.
    keys: as of `text_frame`, in lower case.

    Raises:
        ScanError: a line that readers understand differently.
    """
    path, parts, names = place
    text = FileText.model_validate(json.loads(told)[path])
    by_name = {column.name: (at, column) for at, column in enumerate(text.columns)}
    places = [(*by_name[name], name.lower() in keys) for name in names]
    with decompressed(text_file(Path(path), text)) as stream:
        for line in row_lines(stream, text.layout):
            try:
                cells = cells_of(line, text)
                row = [value_of(cells[at], column) if key else cells[at] for at, column, key in places]
            except UnclearLineError as error:
                raise ScanError(
                    f"a line of a text file that readers understand differently: {error}",
                    where=Path(path).name,
                    todo="check the file's rows by hand",
                ) from None
            yield (*row, *parts)
