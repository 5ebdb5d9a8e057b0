"""Rows of every snapshot that an Iceberg table's metadata names, those of branches and tags as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.former_versions import (
    Parts,
    Pasts,
    Sought,
    Values,
    Version,
    columns_in,
    parts_of,
    values_in,
    with_key,
)
from pii_tracer.lake.rows.historical_columns import Field, past_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, StaticTable
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.types import NestedField


@dataclass(frozen=True)
class _Reading:
    """A schema of an Iceberg table, and where it has what is sought."""

    schema: Schema
    pasts: Pasts


def versions(state: TableState, sought: Sought, paths: EstatePaths) -> Iterator[Version]:
    """The current snapshot, then from the newest to the oldest."""
    table = load_iceberg(paths.place(state.location), state.metadata)
    newest_first = sorted(table.metadata.snapshots, key=lambda s: (-s.timestamp_ms, s.snapshot_id))
    readings = _readings(table, sought)
    for snapshot in sorted(newest_first, key=lambda s: str(s.snapshot_id) != state.snapshot):
        current = str(snapshot.snapshot_id) == state.snapshot
        yield _version(table, snapshot, current, readings, sought, paths)


def _readings(table: StaticTable, sought: Sought) -> list[_Reading]:
    """The schema of now, by whose ids a renamed column is found, and former ones with columns that are no more."""
    readings: list[_Reading] = []
    known: set[tuple[str, ...]] = set()
    for schema in (table.schema(), *table.metadata.schemas):
        pasts = _pasts(table, schema, sought)
        ids = {past.ids for at in pasts.values() for past in at}
        if not readings or (all(pasts[name] for name in sought.key) and not ids <= known):
            readings.append(_Reading(schema, pasts))
            known |= ids
    return readings


def _pasts(table: StaticTable, schema: Schema, sought: Sought) -> Pasts:
    return past_columns(sought.spots, _fields(table.schema().fields), _fields(schema.fields), sought.key)


def _fields(fields: Iterable[NestedField]) -> tuple[Field, ...]:
    from pyiceberg.types import StructType

    found = []
    for field in fields:
        kind = field.field_type
        inner = _fields(kind.fields) if isinstance(kind, StructType) else ()
        found.append(Field(field.name, str(field.field_id), inner))
    return tuple(found)


def _version(
    table: StaticTable,
    snapshot: Snapshot,
    current: bool,
    readings: list[_Reading],
    sought: Sought,
    paths: EstatePaths,
) -> Version:
    tasks: list[FileScanTask] = []

    def parts() -> Parts:
        own = next((s for s in table.metadata.schemas if s.schema_id == snapshot.schema_id), table.schema())
        with_key(_pasts(table, own, sought), sought.key)
        tasks[:] = table.scan(snapshot_id=snapshot.snapshot_id).plan_files()
        files = [_part(task, paths) for task in tasks]
        return frozenset[tuple[str, ...]]().union(*(parts_of(files, reading.pasts) for reading in readings))

    def rows() -> list[Values]:
        wanted = readings[1:] if current else readings
        return [v for reading in wanted for v in values_in(_rows(table, reading, tasks), reading.pasts)]

    return Version(parts, rows, lambda: map(paths.place, _files(table, snapshot)))


def _files(table: StaticTable, snapshot: Snapshot) -> Iterator[str]:
    """One by one, so that a missing list of files is told before it is read."""
    yield snapshot.manifest_list
    for manifest in snapshot.manifests(table.io):
        yield manifest.manifest_path
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield entry.data_file.file_path


def _part(task: FileScanTask, paths: EstatePaths) -> tuple[str, ...]:
    files = (task.file, *sorted(task.delete_files, key=lambda f: (f.file_path, f.record_count)))
    for file in files:
        paths.checked_file(paths.place(file.file_path))
    return tuple(f"{file.file_path} {file.record_count}" for file in files)


def _rows(table: StaticTable, reading: _Reading, tasks: list[FileScanTask]) -> pa.Table:
    """By field ids, so that a column is found whatever a file calls it."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.schema import Schema

    columns = reading.schema.select(*columns_in(reading.pasts)).fields
    schema = Schema(*map(_optional, columns), schema_id=reading.schema.schema_id)
    return ArrowScan(table.metadata, table.io, schema, AlwaysTrue()).to_table(tasks)


def _optional(field: NestedField) -> NestedField:
    """A column that was required once may be in no file that came later."""
    from pyiceberg.types import NestedField, StructType

    kind = field.field_type
    kind = StructType(*map(_optional, kind.fields)) if isinstance(kind, StructType) else kind
    return NestedField(field.field_id, field.name, kind, required=False)
