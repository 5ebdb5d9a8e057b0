"""Exported files of the two system tables: Parquet, JSON lines or CSV with a header, the last two also as gzip."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.lineage.graph.edges import LineageGap
from pii_tracer.lineage.sources.log_lines import Gaps, files_of, lines_of, objects_of
from pii_tracer.lineage.sources.unity.flows import (
    COLUMNS,
    ENDS,
    ENTITY,
    OF_COLUMNS,
    TABLES,
    TIME,
    Flows,
)
from pii_tracer.model.errors import LineageError

_PACKED = ("", ".gz")
_CSV = tuple(f".csv{end}" for end in _PACKED)
_JSON = tuple(f"{kind}{end}" for kind in (".json", ".jsonl", ".ndjson") for end in _PACKED)
_SUFFIXES = (*_CSV, *_JSON, ".parquet")
_ROWS = 10_000
_NULL = "null"
"""How Databricks writes NULL into CSV files. A column may be called so."""


def export_files(place: Path) -> list[Path]:
    """The files of an export.

    Raises:
        LineageError: the folder is a table of a format that keeps more files than its rows are in.
    """
    if place.is_dir() and any(one.is_table(place) for one in table_formats()):
        raise LineageError(
            "an export of lineage must not be a table with a history, because its files contain more than its "
            "current rows",
            where=str(place),
            todo="write the export as plain Parquet, JSON or CSV files, and list these files under `lineage.unity`",
        )
    return [f for f in files_of(place) if not place.is_dir() or f.name.lower().endswith(_SUFFIXES)]


def read_export(files: list[tuple[Path, str]], flows: Flows, *, of_columns: bool) -> list[LineageGap]:
    """Take the rows of files, each with the name that it has in evidence; what cannot be used."""
    found: list[LineageGap] = []
    for file, shown in files:
        gaps = Gaps(shown)
        for number, row in _rows(file, gaps, of_columns):
            flows.take(row, number, gaps, of_columns=of_columns)
        found += gaps.all()
    return found


def _rows(file: Path, gaps: Gaps, of_columns: bool) -> Iterator[tuple[int, Mapping[str, Any]]]:
    name = file.name.lower()
    if name.endswith(".parquet"):
        yield from _parquet(file, gaps, of_columns)
    elif name.endswith(_CSV):
        yield from _csv(file, gaps, of_columns)
    else:  # Spark leaves out what is NULL
        yield from objects_of(file, gaps)


def _parquet(file: Path, gaps: Gaps, of_columns: bool) -> Iterator[tuple[int, Mapping[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(file) as parquet:
            there = parquet.schema_arrow.names
            if not _whole(there, gaps, of_columns):
                return
            for batch in parquet.iter_batches(_ROWS, columns=_needed(of_columns)):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (OSError, pa.ArrowException) as error:
        gaps.add(number + 1, f"the file ends too early ({type(error).__name__})")


def _csv(file: Path, gaps: Gaps, of_columns: bool) -> Iterator[tuple[int, Mapping[str, Any]]]:
    header: list[str] | None = None
    for number, line in lines_of(file, gaps):
        try:
            values = next(csv.reader(io.StringIO(line.decode()), strict=True))
        except (csv.Error, StopIteration, UnicodeDecodeError):
            gaps.add(number, "the line is not CSV")
            continue
        if header is None:
            header = values
            if not _whole(header, gaps, of_columns):
                return
        elif len(values) != len(header):
            gaps.add(number, "the number of values of a line differs from the header")
        else:
            named = dict(zip(header, values, strict=True))
            yield number, {key: "" if text == _NULL and key not in OF_COLUMNS else text for key, text in named.items()}


def _needed(of_columns: bool) -> list[str]:
    return [*ENTITY, *ENDS, TIME, *(OF_COLUMNS if of_columns else ())]


def _whole(there: list[str], gaps: Gaps, of_columns: bool) -> bool:
    """Whether a file has every column that is read; it is not read otherwise."""
    missing = [column for column in _needed(of_columns) if column not in there]
    if missing:
        table = COLUMNS if of_columns else TABLES
        gaps.add(1, f"the file has no column {', '.join(missing)}", f"export {table} with all its columns")
    return not missing
