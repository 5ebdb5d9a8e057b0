"""What a table says of itself beside its rows: no delete of rows changes it, and every new version repeats it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import Format

NAME = "name and comment"
PROPERTIES = "properties and constraints"
COLUMNS = "names, comments and defaults of columns"
FORMER_COLUMNS = "schemas that the metadata keeps of before"
WRITERS = "ids of writers' transactions"
TAGS = "tags of live files"
DOMAINS = "metadata domains"
REST = "further metadata of the table"
SUMMARIES = "summaries of snapshots that stay"
NOTES = "notes about data files that stay (statistics, partition values, names)"
FOOTERS = "files' key-value metadata"


@dataclass(frozen=True)
class FileNotes:
    """What a table's metadata says of data files of now, and goes on saying until each of them is written again.

    files: absolute paths, or whole URIs. partition: their values as texts. document: the rest, with bounds of columns
    under `minValues` and `maxValues`.
    """

    files: tuple[str, ...]
    partition: tuple[str, ...]
    document: Any


def description(state: TableState, paths: EstatePaths) -> dict[str, Any]:
    """By kind of place: documents with the texts that owners of a table wrote. Of bare folders, Parquet has some.

    Delta: what every checkpoint repeats (PROTOCOL.md, "Change Metadata", "Transaction Identifiers", "Domain Metadata",
    tags of "Add File"). Iceberg: all of the metadata file but what expiring snapshots takes away (spec, "Table Metadata
    Fields"). Hudi:
    `hoodie.properties`. Parquet: `key_value_metadata` of footers
    (https://parquet.apache.org/docs/file-format/metadata/); files that cannot be read tell nothing here.

    Raises:
        EstateError: the table's metadata cannot be read.
    """
    if state.format is Format.STREAM_CHECKPOINT:
        return {}  # no owner writes in it
    return dict(format_of(state.format).own_texts(state, paths))


def notes_of_files(state: TableState, paths: EstatePaths) -> Iterator[FileNotes]:
    """What the table's metadata says of each of its data files of now, those of kept snapshots as well.

    Raises:
        EstateError: the table's metadata cannot be read.
    """
    if state.format is not Format.STREAM_CHECKPOINT:
        yield from format_of(state.format).notes_of_files(state, paths)
