"""What a table says of itself beside its rows: no delete of rows changes it, and every new version repeats it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.delta.transaction_log import log_of
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.formats.plain_files.data_files import StoredFile
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import folder_files
from pii_tracer.model.identities import Format

NAME = "name and comment"
PROPERTIES = "properties and constraints"
COLUMNS = "names, comments and defaults of columns"
FORMER_COLUMNS = "schemas that the metadata keeps of before"
FOOTERS = "files' key-value metadata"


def description(state: TableState, paths: EstatePaths) -> dict[str, Any]:
    """By kind of place: documents with the texts that owners of a table wrote. Of bare folders, Parquet has some.

    Delta: the `metaData` action (PROTOCOL.md, "Change Metadata"). Iceberg: properties and all schemas of the metadata
    file (spec, "Table Metadata Fields"). Hudi: `hoodie.properties`. Parquet: `key_value_metadata` of footers
    (https://parquet.apache.org/docs/file-format/metadata/); files that cannot be read tell nothing here.

    Raises:
        EstateError: the table's metadata cannot be read.
    """
    if state.format is DELTA:
        log = log_of(paths.place(state.location))
        return {NAME: [log.name, log.comment], PROPERTIES: log.configuration, COLUMNS: log.schema}
    if state.format is ICEBERG:
        metadata = load_iceberg(paths.place(state.location), state.metadata).metadata
        schemas = {s.schema_id: s.model_dump(mode="json") for s in metadata.schemas}
        current = schemas.pop(metadata.current_schema_id, None)
        return {PROPERTIES: metadata.properties, COLUMNS: current, FORMER_COLUMNS: list(schemas.values())}
    if state.format is Format.PARQUET:
        return {FOOTERS: [told for file in folder_files(state, paths) for told in _key_values(file)]}
    return {PROPERTIES: state.properties} if state.format is HUDI else {}


def _key_values(file: StoredFile) -> list[str]:
    try:
        told = pq.read_metadata(file.source).metadata or {}
    except (OSError, ValueError, pa.ArrowException):
        return []
    return [text.decode("utf-8", "replace") for pair in told.items() for text in pair]
