"""What a table says of itself beside its rows: no delete of rows changes it, and every new version repeats it."""

from __future__ import annotations

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
FOOTERS = "files' key-value metadata"


def description(state: TableState, paths: EstatePaths) -> dict[str, Any]:
    """By kind of place: documents with the texts that owners of a table wrote. Of bare folders, Parquet has some.

    Delta: what every checkpoint repeats (PROTOCOL.md, "Change Metadata", "Transaction Identifiers", "Domain Metadata",
    tags of "Add File"). Iceberg: properties and all schemas of the metadata file (spec, "Table Metadata Fields"). Hudi:
    `hoodie.properties`. Parquet: `key_value_metadata` of footers
    (https://parquet.apache.org/docs/file-format/metadata/); files that cannot be read tell nothing here.

    Raises:
        EstateError: the table's metadata cannot be read.
    """
    if state.format is Format.STREAM_CHECKPOINT:
        return {}  # no owner writes in it
    return dict(format_of(state.format).own_texts(state, paths))
