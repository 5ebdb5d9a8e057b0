"""What a table says of itself beside its rows: no delete of rows changes it, and every new version repeats it."""

from __future__ import annotations

from typing import Any

from pii_tracer.estate.delta_log import log_of
from pii_tracer.estate.iceberg import load_iceberg
from pii_tracer.estate.paths import EstatePaths
from pii_tracer.inventory import TableState
from pii_tracer.model import Format

NAME = "name and comment"
PROPERTIES = "properties and constraints"
COLUMNS = "names, comments and defaults of columns"
FORMER_COLUMNS = "schemas that the metadata keeps of before"


def description(state: TableState, paths: EstatePaths) -> dict[str, Any]:
    """By kind of place: documents with the texts that owners of a table wrote. Empty for bare folders.

    Delta: the `metaData` action (PROTOCOL.md, "Change Metadata"). Iceberg: properties and all schemas of the metadata
    file (spec, "Table Metadata Fields"). Hudi: `hoodie.properties`.

    Raises:
        EstateError: the table's metadata cannot be read.
    """
    if state.format is Format.DELTA:
        log = log_of(paths.place(state.location))
        return {NAME: [log.name, log.comment], PROPERTIES: log.configuration, COLUMNS: log.schema}
    if state.format is Format.ICEBERG:
        metadata = load_iceberg(paths.place(state.location), state.metadata).metadata
        schemas = {s.schema_id: s.model_dump(mode="json") for s in metadata.schemas}
        current = schemas.pop(metadata.current_schema_id, None)
        return {PROPERTIES: metadata.properties, COLUMNS: current, FORMER_COLUMNS: list(schemas.values())}
    return {PROPERTIES: state.properties} if state.format is Format.HUDI else {}
