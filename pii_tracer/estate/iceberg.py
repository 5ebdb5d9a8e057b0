"""State of an Iceberg table, from its metadata files and without a catalog (Hadoop tables).

Rules: Iceberg table spec, https://iceberg.apache.org/spec/ ("Table Metadata",
"Manifests", "File System Tables").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.errors import EstateError
from pii_tracer.estate.found import Found, gap
from pii_tracer.estate.paths import EstatePaths, local_path
from pii_tracer.estate.types import iceberg_type
from pii_tracer.inventory import InventoryGap, Ref, RefKind, TableState
from pii_tracer.model import Column, Format

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import StaticTable
    from pyiceberg.table.snapshots import Snapshot

_VERSION = re.compile(r"^v?(\d+)(?:-[0-9a-fA-F-]+)?(?:\.gz)?\.metadata\.json$")
MERGE_ON_READ = "merge-on-read"
_MODES = ("write.delete.mode", "write.update.mode", "write.merge.mode")


@dataclass(frozen=True)
class _Files:
    current: tuple[DataFile, ...]
    referenced: frozenset[Path]


def newest_metadata(location: Path) -> Path:
    """The newest metadata file of a table folder.

    As Iceberg's Hadoop tables do it: `version-hint.text` may lag behind, so later versions that exist are followed;
    without a hint the highest version counts.

    Raises:
        EstateError: there is none.
    """
    found = {int(m[1]): p for p in sorted((location / "metadata").iterdir()) if (m := _VERSION.match(p.name))}
    if not found:
        raise EstateError("no Iceberg metadata file", where=str(location / "metadata"), todo="restore the metadata")
    hint = location / "metadata" / "version-hint.text"
    text = hint.read_text(encoding="utf-8").strip() if hint.exists() else ""
    number = int(text) if text.isascii() and text.isdigit() and int(text) in found else max(found)
    while number + 1 in found:
        number += 1
    return found[number]


def load_iceberg(location: Path) -> StaticTable:
    """The table in a folder, read-only.

    Raises:
        EstateError: missing, damaged, or metadata of a version that PyIceberg does not read.
    """
    from pyiceberg.table import StaticTable

    try:
        return StaticTable.from_metadata(str(newest_metadata(location)))
    except EstateError:
        raise
    except Exception as error:  # PyIceberg lets parsers' errors of many families through
        raise EstateError(
            f"the Iceberg metadata cannot be read: {type(error).__name__}",
            where=str(location),
            todo="repair or restore the table's metadata; nothing is known of the table until then",
        ) from None


def iceberg_state(location: Path, paths: EstatePaths) -> Found:
    """The table in a folder. `write_mode` is merge-on-read too when delete files lie in the current snapshot.

    Raises:
        EstateError: metadata or manifests cannot be read.
    """
    table = load_iceberg(location)
    files = _files(table, location)
    metadata = table.metadata
    snapshot = table.current_snapshot()
    data = [f for f in files.current if f.content.value == 0]
    deletes = [f for f in files.current if f.content.value != 0]
    schema = table.schema()
    dataset = paths.dataset_of(location)
    state = TableState(
        dataset=dataset,
        table=paths.table_at(location),
        location=str(location),
        format=Format.ICEBERG,
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
    )
    return Found(state, _gaps(state, table, files), files.referenced)


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
        )
        for name, ref in sorted(table.refs().items())
        if name != "main"
    )


def _files(table: StaticTable, location: Path) -> _Files:
    """Files of the current snapshot, and every file that any snapshot still references."""
    current = table.current_snapshot()
    referenced: set[Path] = set()
    by_manifest: dict[str, list[DataFile]] = {}
    live: list[DataFile] = []
    try:
        for snapshot in table.metadata.snapshots:
            entries = _snapshot_files(table, snapshot, by_manifest)
            if current and snapshot.snapshot_id == current.snapshot_id:
                live = entries
            referenced.update(local_path(f.file_path) for f in entries)
    except EstateError:
        raise
    except Exception as error:
        raise EstateError(
            f"a manifest cannot be read: {type(error).__name__}",
            where=str(location),
            todo="repair the table; files and history are unknown until then",
        ) from None
    return _Files(tuple(sorted(live, key=lambda f: str(f.file_path))), frozenset(referenced))


def _snapshot_files(table: StaticTable, snapshot: Snapshot, known: dict[str, list[DataFile]]) -> list[DataFile]:
    files = []
    for manifest in snapshot.manifests(table.io):
        if manifest.manifest_path not in known:
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            known[manifest.manifest_path] = [entry.data_file for entry in entries]
        files.extend(known[manifest.manifest_path])
    return files


def _gaps(state: TableState, table: StaticTable, files: _Files) -> tuple[InventoryGap, ...]:
    location = Path(state.location)
    found = []
    if local_path(table.location()).resolve() != location:
        reason = "the metadata says the table lies elsewhere: this folder was copied or moved"
        found.append(gap(state.dataset, "moved_table", reason, table.location()))
    outside = sorted(p for p in files.referenced if not p.resolve().is_relative_to(location))
    if outside:
        reason = f"{len(outside)} files of the table lie outside its folder; erasing there can harm another table"
        found.append(gap(state.dataset, "external_files", reason, str(outside[0])))
    missing = [local_path(f.file_path) for f in files.current if not local_path(f.file_path).exists()]
    if missing:
        reason = f"{len(missing)} files of the current snapshot do not exist: the table cannot be read"
        found.append(gap(state.dataset, "missing_files", reason, str(missing[0])))
    return tuple(found)
