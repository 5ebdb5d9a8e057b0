"""State of an Iceberg table, from its metadata files: the one a catalog points at, else the newest of its folder.

Rules: Iceberg table spec, https://iceberg.apache.org/spec/ ("Table Metadata",
"Manifests", "File System Tables").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from pii_tracer.common.plurals import counted
from pii_tracer.lake.dataset_paths import EstatePaths, local_path
from pii_tracer.lake.formats.iceberg.column_types import iceberg_type
from pii_tracer.lake.formats.iceberg.history_loss import lost_columns, staged_snapshots
from pii_tracer.lake.formats.iceberg.history_rewrite_check import kept_history
from pii_tracer.lake.formats.iceberg.stray_files import OtherMetadata, other_metadata, strangers
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.formats.stray_file_marks import STAY_IN_S3
from pii_tracer.lake.inventory import (
    NOT_NULL,
    Expiry,
    InventoryGap,
    Ref,
    RefKind,
    TableState,
)
from pii_tracer.lake.read_result import Found, gap
from pii_tracer.lake.stores.any_place import AnyPlace, Place, file_of
from pii_tracer.model.datasets import Column, DatasetId
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import is_s3

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import StaticTable
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.types import NestedField

_VERSION = re.compile(r"^v?(\d+)(?:-[0-9a-fA-F-]+)?(?:\.gz)?\.metadata\.json$")
MERGE_ON_READ = "merge-on-read"
_MODES = ("write.delete.mode", "write.update.mode", "write.merge.mode")


@dataclass(frozen=True)
class TableFiles(Generic[Place]):
    """Data and delete files of the current snapshot, those that any snapshot names, and all manifests."""

    current: tuple[DataFile, ...]
    referenced: frozenset[Place]
    manifests: tuple[str, ...]


def newest_metadata(location: Path) -> Path:
    """The newest metadata file of a table folder.

    As Iceberg's Hadoop tables do it: `version-hint.text` may lag behind, so later versions that exist are followed;
    without a hint the highest version counts.

    Raises:
        EstateError: there is none, or two of one version (a failed commit beside a good one), of which only the table's
            catalog knows the one that counts.
    """
    versions: dict[int, list[Path]] = {}
    for path in sorted((location / "metadata").iterdir()):
        if match := _VERSION.match(path.name):
            versions.setdefault(int(match[1]), []).append(path)
    if not versions:
        raise EstateError("no Iceberg metadata file", where=str(location / "metadata"), todo="restore the metadata")
    if len(versions[max(versions)]) > 1:
        raise EstateError(
            "two Iceberg metadata files have the newest version, and only the table's catalog shows which one is "
            "current",
            where=str(location / "metadata"),
            todo="add the table's catalog to `catalogs` in the estate file",
        )
    found = {version: paths[0] for version, paths in versions.items()}
    hint = location / "metadata" / "version-hint.text"
    text = hint.read_text(encoding="utf-8").strip() if hint.exists() else ""
    number = int(text) if text.isascii() and text.isdigit() and int(text) in found else max(found)
    while number + 1 in found:
        number += 1
    return found[number]


def load_iceberg(location: AnyPlace, metadata: Path | str | None = None) -> StaticTable:
    """The table in a folder, read-only. metadata: the file that its catalog points at, where one does.

    A table in a store is always told by such a file.

    Raises:
        EstateError: missing, damaged, or metadata of a version that PyIceberg does not read.
    """
    from pyiceberg.table import StaticTable

    try:
        if not isinstance(location, Path):
            from pii_tracer.lake.formats.iceberg.store_file_io import table_of

            return table_of(location, location.placed(str(metadata)))
        return StaticTable.from_metadata(str(metadata or newest_metadata(location)))
    except EstateError:
        raise
    except Exception as error:  # PyIceberg lets parsers' errors of many families through
        raise EstateError(
            f"the Iceberg metadata cannot be read: {type(error).__name__}",
            where=str(location),
            todo="repair or restore the table's metadata, because the tool cannot read the table without it",
        ) from None


def iceberg_state(location: Path, paths: EstatePaths) -> Found:
    """The table in a folder.

    Raises:
        EstateError: metadata or manifests cannot be read.
    """
    pointed = paths.metadata_at(location)
    table = load_iceberg(location, pointed)
    files = files_of(table, location)
    known = At(paths.dataset_of(location), paths.table_at(location), str(location), str(pointed) if pointed else None)
    state = state_of(table, files, known)
    if paths.keeps_history(state.table):
        kept = kept_history(local_path(table.metadata_location), location)
        # nothing that is staged is lost where every snapshot stays
        state = state.model_copy(update={"kept_history": kept, "staged": ()})
    missing = [path for f in files.current if not (path := local_path(f.file_path)).exists()]
    others = other_metadata(table, location, paths.pointed_at)
    registered = paths.registered_at(location)
    if registered is not None and registered.heads:
        others = replace(others, newer=())  # old commits of Nessie name them
    gaps = (*_moved(state, table), *gaps_of(state, missing, others, strangers(location, files.referenced)))
    return Found(state, gaps, files.referenced)


@dataclass(frozen=True)
class At:
    """What a table is called and where it lies, as in `TableState`."""

    dataset: DatasetId
    table: str | None
    location: str
    metadata: str | None


def state_of(table: StaticTable, files: TableFiles[Any], known: At) -> TableState:
    """The state of a table. `write_mode` is merge-on-read too when delete files lie in the current snapshot."""
    metadata = table.metadata
    snapshot = table.current_snapshot()
    data = [f for f in files.current if int(f.content) == 0]  # no enum in a table of version 1
    deletes = [f for f in files.current if int(f.content) != 0]
    schema = table.schema()
    return TableState(
        dataset=known.dataset,
        table=known.table,
        location=known.location,
        format=ICEBERG,
        snapshot=str(snapshot.snapshot_id) if snapshot else "none",
        columns=tuple(Column(name=f.name, type=iceberg_type(f.field_type)) for f in schema.fields),
        partition_columns=tuple(dict.fromkeys(schema.find_column_name(f.source_id) or "" for f in table.spec().fields)),
        format_version=metadata.format_version,
        write_mode=_mode(table.properties, bool(deletes)),
        deletion_vectors=any(f.file_format.value == "PUFFIN" for f in deletes),
        codec=table.properties.get("write.parquet.compression-codec"),
        rows=_rows(table, data, deletes),
        files=len(data),
        bytes=sum(f.file_size_in_bytes for f in data),
        refs=_refs(table),
        versions=len(metadata.snapshots),
        properties=dict(sorted(table.properties.items())),
        metadata=known.metadata,
        expiry=_expiry(table),
        staged=staged_snapshots(table),
        row_key=tuple(sorted(schema.identifier_field_names())),
        fixed={f.name: NOT_NULL for f in schema.fields if f.required},
        defaults=tuple(dict.fromkeys(schema_defaults(schema.fields))),
    )


def schema_defaults(fields: Sequence[NestedField], column: str = "") -> Iterator[tuple[str, str]]:
    """What new rows get, and rows from before the column, also in fields of structs, lists and maps
    (https://iceberg.apache.org/spec/#default-values).
    """
    for one in fields:
        name = column or one.name
        for value in (one.write_default, one.initial_default):
            if value is not None:
                number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
                yield name, str(value) if number else "'{}'".format(str(value).replace("'", "''"))
        kind = one.field_type
        parts = (getattr(kind, part, None) for part in ("element_field", "key_field", "value_field"))
        inner = (*getattr(kind, "fields", ()), *(part for part in parts if part is not None))
        yield from schema_defaults(inner, name)


def _mode(properties: dict[str, str], has_deletes: bool) -> str:
    if has_deletes or any(properties.get(name) == MERGE_ON_READ for name in _MODES):
        return MERGE_ON_READ
    return properties.get("write.delete.mode", "copy-on-write")


def _rows(table: StaticTable, data: list[DataFile], deletes: list[DataFile]) -> int | None:
    if not deletes:
        return sum(f.record_count for f in data)
    try:
        return table.scan().count()
    except Exception:  # equality deletes and features that PyIceberg does not read: only an engine can count
        return None


def _refs(table: StaticTable) -> tuple[Ref, ...]:
    return tuple(
        Ref(
            name=name,
            kind=RefKind.TAG if ref.snapshot_ref_type.value == "tag" else RefKind.BRANCH,
            at=str(ref.snapshot_id),
            lapses=_lapses(table, ref.snapshot_id, ref.max_ref_age_ms),
            lost=lost_columns(table, ref.snapshot_id),
        )
        for name, ref in sorted(table.refs().items())
        if name != "main"
    )


_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
_KEPT = "history.expire.min-snapshots-to-keep"
_DEFAULT_AGE_MS = 5 * 86_400_000
"""https://iceberg.apache.org/docs/latest/configuration/#table-behavior-properties"""


def _lapses(table: StaticTable, snapshot_id: int, age: int | None) -> str | None:
    """When a reference is older than its own `max-ref-age-ms` lets it become; the age of its snapshot counts.

    https://iceberg.apache.org/spec/#snapshot-retention-policy
    """
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    if age is None or snapshot is None:
        return None
    try:
        return _iso(snapshot.timestamp_ms + age)
    except (OverflowError, ValueError):
        return None  # for ever, as Java writes it


def _expiry(table: StaticTable) -> Expiry:
    """What was expired, and since when something should have been."""
    snapshots = {s.snapshot_id: s for s in table.metadata.snapshots}
    # a parent that is gone; some writers forget the parent, too: then the first numbers are missing
    ran = any(s.parent_snapshot_id is not None and s.parent_snapshot_id not in snapshots for s in snapshots.values())
    ran = ran or min((s.sequence_number or 0 for s in snapshots.values()), default=0) > 1
    kept = {ref.snapshot_id for ref in table.refs().values()}
    at = table.current_snapshot()
    for _ in range(_number(table.properties.get(_KEPT)) or 1):
        if at is not None:
            kept.add(at.snapshot_id)
            at = snapshots.get(at.parent_snapshot_id or 0)
    age = _number(table.properties.get(_SNAPSHOT_AGE)) or _DEFAULT_AGE_MS
    oldest = min((s.timestamp_ms for s in snapshots.values() if s.snapshot_id not in kept), default=None)
    try:
        return Expiry(ran=ran, due=None if oldest is None else _iso(oldest + age))
    except (OverflowError, ValueError):
        return Expiry(ran=ran)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdigit() else None


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat()


def files_of(table: StaticTable, location: Place) -> TableFiles[Place]:
    """Files of the current snapshot, and every file that any snapshot still references.

    Raises:
        EstateError: a manifest cannot be read.
    """
    current = table.current_snapshot()
    referenced: set[Place] = set()
    by_manifest: dict[str, list[DataFile]] = {}
    live: list[DataFile] = []
    try:
        for snapshot in table.metadata.snapshots:
            entries = _snapshot_files(table, snapshot, by_manifest)
            if current and snapshot.snapshot_id == current.snapshot_id:
                live = entries
            referenced.update(file_of(location, f.file_path).resolve() for f in entries)
    except EstateError:
        raise
    except Exception as error:
        raise EstateError(
            f"a manifest cannot be read: {type(error).__name__}",
            where=str(location),
            todo="repair the table, because its files and history are unknown",
        ) from None
    current_files = tuple(sorted(live, key=lambda f: str(f.file_path)))
    return TableFiles(current_files, frozenset(referenced), tuple(by_manifest))


def _snapshot_files(table: StaticTable, snapshot: Snapshot, known: dict[str, list[DataFile]]) -> list[DataFile]:
    files = []
    for manifest in snapshot.manifests(table.io):
        if manifest.manifest_path not in known:
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            known[manifest.manifest_path] = [entry.data_file for entry in entries]
        files.extend(known[manifest.manifest_path])
    return files


_NAMED = 3
"""So many strange files are named; the rest is a number."""

_HERE = (
    "The sweep of the folder removes them. Move files that somebody needs out of the folder, then plan again. If "
    "nobody needs these files, waive this gap"
)


def gaps_of(
    state: TableState, missing: Sequence[object], others: OtherMetadata, strange: Sequence[object]
) -> tuple[InventoryGap, ...]:
    """What is to be told of a table's files: such as are missing, other metadata, strangers'; staged rows."""
    found = []
    if missing:
        reason = f"{counted(len(missing), 'file')} of the current snapshot cannot be found, so the table cannot be read"
        found.append(gap(state.dataset, GapKind.MISSING_FILES, reason, str(missing[0]), missing))
    if state.staged:
        reason = (
            f"the plan would lose rows staged by write-audit-publish, in {counted(len(state.staged), 'snapshot')} "
            "that no branch or"
        )
        reason += " tag references: publish or drop these snapshots, then plan again"
        found.append(gap(state.dataset, GapKind.STAGED_SNAPSHOT, reason, f"snapshot {state.staged[0]}", state.staged))
    if others.newer:
        reason = (
            f"the folder has {counted(len(others.newer), 'metadata file')} newer than the one that its catalog "
            "references. Either a commit failed, or a second catalog has the table, or the catalog was set back. The "
            "sweep of the folder removes files that only the newer metadata references. Set the catalog to the right "
            "metadata file, or declare the second catalog, then plan again. If a commit failed, waive this gap"
        )
        found.append(gap(state.dataset, GapKind.STRANGE_FILES, reason, others.newer[-1], others.newer))
    if others.foreign:
        reason = (
            f"the folder has {counted(len(others.foreign), 'metadata file')} of a different table. That table was "
            "dropped without its files, or is only in a catalog that the estate file does not declare. The sweep of "
            "the folder removes files of that table. Move that table, or declare its catalog, then plan again. If "
            "that table was dropped, waive this gap"
        )
        found.append(gap(state.dataset, GapKind.STRANGE_FILES, reason, others.foreign[0], others.foreign))
    if strange:
        reason = (
            f"the table's folder has {counted(len(strange), 'file')} in no snapshot, with names that Iceberg does not "
            f"use. Such files may belong to somebody. {STAY_IN_S3 if is_s3(state.location) else _HERE}"
        )
        found.append(gap(state.dataset, GapKind.STRANGE_FILES, reason, ", ".join(map(str, strange[:_NAMED])), strange))
    return tuple(found)


def _moved(state: TableState, table: StaticTable) -> tuple[InventoryGap, ...]:
    location = Path(state.location)
    found = []
    if local_path(table.location()).resolve() != location:
        reason = "the metadata shows a different location of the table: this folder was copied or moved"
        found.append(gap(state.dataset, GapKind.MOVED_TABLE, reason, table.location()))
    if state.metadata and not Path(state.metadata).resolve().is_relative_to(location):
        reason = "the table's metadata files are outside of its folder, where no sweep removes old metadata"
        found.append(gap(state.dataset, GapKind.EXTERNAL_METADATA, reason, state.metadata))
    return tuple(found)
