"""What an Iceberg table's metadata goes on saying when old snapshots are expired: its own texts, and notes about files.

https://iceberg.apache.org/spec/#table-metadata-fields, https://iceberg.apache.org/spec/#manifests
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.table_descriptions import COLUMNS, FORMER_COLUMNS, PROPERTIES, REST, SUMMARIES, FileNotes
from pii_tracer.scan.decode.avro_container import open_container

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import StaticTable
    from pyiceberg.table.metadata import TableMetadata

MAIN_BRANCH = "main"
_OF_SNAPSHOTS = frozenset({"snapshots", "snapshot-log", "refs", "statistics", "partition-statistics", "location"})
"""Members that go with old snapshots, or are other gaps: names of references and of the place."""


def lasting_texts(metadata: TableMetadata, *, keeps_history: bool) -> Mapping[str, Any]:
    """By kind of place: documents. A member that is not known to go is taken to stay."""
    document = metadata.model_dump(mode="json", by_alias=True)
    schemas = {s.schema_id: s.model_dump(mode="json") for s in metadata.schemas}
    current = schemas.pop(metadata.current_schema_id, None)
    named = {"properties", "schemas", *_OF_SNAPSHOTS}
    texts = {
        PROPERTIES: metadata.properties,
        COLUMNS: current,
        FORMER_COLUMNS: list(schemas.values()),
        REST: {name: value for name, value in document.items() if name not in named},
    }
    return texts | ({SUMMARIES: [s.get("summary") for s in document["snapshots"]]} if keeps_history else {})


def notes_of_files(table: StaticTable, *, keeps_history: bool) -> Iterator[FileNotes]:
    """Of data files of the current snapshot and of branches and tags; of all snapshots where the history stays.

    The headers of manifests too, but for those of main alone, which are written again: no statement does so for a
    branch.
    """
    metadata = table.metadata
    beside = {ref.snapshot_id for name, ref in metadata.refs.items() if name != MAIN_BRANCH}
    beside |= {snapshot.snapshot_id for snapshot in metadata.snapshots} if keeps_history else set()
    known: dict[str, bool] = {}
    for snapshot in metadata.snapshots:
        if snapshot.snapshot_id not in {metadata.current_snapshot_id, *beside}:
            continue
        for manifest in snapshot.manifests(table.io):
            stays, path = snapshot.snapshot_id in beside, manifest.manifest_path
            if path in known and (known[path] or not stays):
                continue
            files = [e.data_file for e in manifest.fetch_manifest_entry(table.io, discard_deleted=True)]
            if path not in known:
                yield from (_notes(file, table.schema()) for file in files)
            if stays and files:
                yield FileNotes(tuple(file.file_path for file in files), (), _header(table.io, path))
            known[path] = stays


def _header(io: FileIO, manifest: str) -> dict[str, str]:
    with io.new_input(manifest).open() as stream:
        entries = open_container(memoryview(stream.read())).metadata
    return {name: value.decode("utf-8", "replace") for name, value in entries.items()}


def _notes(file: DataFile, schema: Schema) -> FileNotes:
    values = [file.partition[number] for number in range(len(file.partition))]
    partition = [str(value) for value in values if value is not None]
    bounds = {
        "minValues": _bounds(file.lower_bounds, schema),
        "maxValues": _bounds(file.upper_bounds, schema),
        "key_metadata": file.key_metadata,
    }
    return FileNotes((file.file_path,), tuple(partition), bounds)


def _bounds(bounds: Mapping[int, bytes] | None, schema: Schema) -> dict[str, Any]:
    """By column; bytes as they stand where the column is no more, or has another type."""
    from pyiceberg.conversions import from_bytes

    found: dict[str, Any] = {}
    for field_id, bound in (bounds or {}).items():
        name = schema.find_column_name(field_id)
        kind = schema.find_type(field_id) if name is not None else None
        try:
            found[name or f"field {field_id}"] = bound if kind is None else from_bytes(kind, bound)  # type: ignore[arg-type]
        except (ValueError, TypeError, ArithmeticError):
            found[name or f"field {field_id}"] = bound
    return found
