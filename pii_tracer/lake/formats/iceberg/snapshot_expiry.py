"""Which snapshots of an Iceberg table an expiry keeps and why, and which files it frees. Read without Spark.

The rules are those of Iceberg's `expireSnapshots` (https://iceberg.apache.org/docs/latest/maintenance/#expire-snapshots,
https://iceberg.apache.org/spec/#snapshot-retention-policy): main never expires; other references live for their
`max-ref-age-ms` counted from their snapshot; a branch keeps its younger ancestors and a least number of them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pii_tracer.lake.formats.iceberg.retention import LEAST, REF_AGE
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.formats.retention_terms import MAIN, RefRetention
from pii_tracer.lake.stores.any_place import AnyPlace, file_of
from pii_tracer.model.errors import EstateError

_FOREVER = 2**63 - 1


@dataclass(frozen=True)
class Holder:
    """A branch or tag that keeps old data: `until` is None for never."""

    ref: str
    kind: str
    snapshot: int
    until: datetime | None


@dataclass(frozen=True)
class Expiry:
    """What an expiry would do: snapshots that go, files with sizes that it frees, references that hold others."""

    expired: frozenset[int]
    freed: Mapping[str, int]
    holders: tuple[Holder, ...]


@dataclass(frozen=True)
class SnapshotNode:
    """A snapshot in the history: id, parent, time in milliseconds."""

    id: int
    parent: int | None
    at_ms: int


def retained(
    snapshots: Mapping[int, SnapshotNode],
    refs: Iterable[RefRetention],
    properties: Mapping[str, str],
    cutoff_ms: int,
    now_ms: int,
) -> tuple[frozenset[int], tuple[RefRetention, ...]]:
    """Snapshots that stay, and the references that stay."""
    default_age = int(properties.get(REF_AGE, _FOREVER))
    least = int(properties.get(LEAST, "1"))
    kept_refs = []
    keep: set[int] = set()
    for ref in refs:
        if ref.snapshot not in snapshots:
            continue
        age = ref.max_ref_age_ms if ref.max_ref_age_ms is not None else default_age
        if ref.name != MAIN and now_ms - snapshots[ref.snapshot].at_ms > age:
            continue
        kept_refs.append(ref)
        keep.add(ref.snapshot)
        if ref.kind.value == "branch":
            keep |= _of_branch(snapshots, ref, cutoff_ms, now_ms, least)
    # snapshots that no reference reaches any more go by their age alone
    reached: set[int] = set()
    for ref in kept_refs:
        reached |= _ancestors(snapshots, ref.snapshot)
    keep |= {s.id for s in snapshots.values() if s.id not in reached and s.at_ms >= cutoff_ms}
    return frozenset(keep), tuple(kept_refs)


def _of_branch(
    snapshots: Mapping[int, SnapshotNode], ref: RefRetention, cutoff_ms: int, now_ms: int, least: int
) -> set[int]:
    limit = cutoff_ms if ref.max_snapshot_age_ms is None else now_ms - ref.max_snapshot_age_ms
    number = least if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
    keep: set[int] = set()
    current: int | None = ref.snapshot
    while current is not None and current in snapshots:
        if len(keep) >= number and snapshots[current].at_ms < limit:
            break
        keep.add(current)
        current = snapshots[current].parent
    return keep


def _ancestors(snapshots: Mapping[int, SnapshotNode], start: int) -> set[int]:
    found: set[int] = set()
    current: int | None = start
    while current is not None and current in snapshots and current not in found:
        found.add(current)
        current = snapshots[current].parent
    return found


class History:
    """The snapshots of a table in a folder, by one metadata file. Each manifest is read once."""

    def __init__(self, location: AnyPlace, metadata: Path | str | None) -> None:
        """metadata: the file that the table's catalog points at, where one does; in S3 always.

        Raises:
            EstateError: it cannot be read.
        """
        self._location = location
        self._table = load_iceberg(location, metadata)
        self._manifests: dict[str, dict[str, int]] = {}

    def expiry(self, refs: Iterable[RefRetention], cutoff: datetime, now: datetime) -> Expiry:
        """What `expire_snapshots(older_than => cutoff)` would do.

        Raises:
            EstateError: manifests cannot be read.
        """
        table, refs = self._table, tuple(refs)
        snapshots = {
            s.snapshot_id: SnapshotNode(s.snapshot_id, s.parent_snapshot_id, s.timestamp_ms)
            for s in table.metadata.snapshots
        }
        now_ms = int(now.timestamp() * 1000)
        with _history_of(self._location):
            keep, kept_refs = retained(snapshots, refs, table.properties, int(cutoff.timestamp() * 1000), now_ms)
            gone = frozenset(snapshots) - keep
            freed = self._freed(gone) if gone else {}
        default_age = int(table.properties.get(REF_AGE, _FOREVER))
        holders = tuple(_holder(ref, snapshots[ref.snapshot], default_age) for ref in kept_refs if ref.name != MAIN)
        return Expiry(gone, freed, holders)

    def referenced(self) -> frozenset[str]:
        """Every file that any snapshot names, statistics and metadata files: nothing of it may be swept.

        Raises:
            EstateError: manifests cannot be read.
        """
        with _history_of(self._location):
            logs = {self._place(entry.metadata_file) for entry in self._table.metadata.metadata_log}
            return frozenset(self.needed() | logs | {self._place(self._table.metadata_location)})

    def needed(self) -> set[str]:
        """Every file that a snapshot needs, and statistics: no manifest lists these.

        Raises:
            EstateError: manifests cannot be read.
        """
        metadata = self._table.metadata
        with _history_of(self._location):
            lists, files = self._reached(metadata.snapshots)
            told = [*metadata.statistics, *metadata.partition_statistics]
            return lists | files.keys() | {self._place(entry.statistics_path) for entry in told}

    def _freed(self, gone: frozenset[int]) -> dict[str, int]:
        snapshots = self._table.metadata.snapshots
        kept_lists, kept = self._reached(s for s in snapshots if s.snapshot_id not in gone)
        lists, files = self._reached(s for s in snapshots if s.snapshot_id in gone)
        sizes = {path: _size(file_of(self._location, path)) for path in lists - kept_lists}
        freed = sizes | {path: size for path, size in files.items() if path not in kept}
        return dict(sorted(freed.items()))

    def _reached(self, snapshots: Iterable[Any]) -> tuple[set[str], dict[str, int]]:
        """The manifest lists of some snapshots; and manifests, live data and delete files with their sizes in bytes."""
        lists: set[str] = set()
        files: dict[str, int] = {}
        for snapshot in snapshots:
            lists.add(self._place(snapshot.manifest_list))
            for manifest in snapshot.manifests(self._table.io):
                if self._place(manifest.manifest_path) not in files:
                    files |= self._of_manifest(manifest)
        return lists, files

    def _of_manifest(self, manifest: Any) -> dict[str, int]:
        path = self._place(manifest.manifest_path)
        if path not in self._manifests:
            entries = manifest.fetch_manifest_entry(self._table.io, discard_deleted=True)
            files = {self._place(entry.data_file.file_path): entry.data_file.file_size_in_bytes for entry in entries}
            self._manifests[path] = {path: manifest.manifest_length, **files}
        return self._manifests[path]

    def _place(self, text: str) -> str:
        return str(file_of(self._location, text))


def referenced(location: AnyPlace, metadata: str | None) -> frozenset[str]:
    """As `History.referenced`. metadata: as for `History`.

    Raises:
        EstateError: metadata or manifests cannot be read.
    """
    return History(location, metadata).referenced()


def reached(location: Path, metadata: Path) -> frozenset[str]:
    """Every file that one metadata file of a table needs, itself included, links followed; not its metadata log.

    Raises:
        EstateError: metadata or manifests cannot be read.
    """
    needed = History(location, metadata).needed()
    return frozenset(str(Path(p).resolve()) for p in {*needed, str(metadata)})


@contextmanager
def _history_of(location: AnyPlace) -> Iterator[None]:
    """PyIceberg lets parsers' errors of many families through: they are one error here."""
    try:
        yield
    except EstateError:
        raise
    except Exception as error:
        raise EstateError(
            f"the table's history cannot be read: {type(error).__name__}",
            where=str(location),
            todo="repair the table's metadata files",
        ) from None


def _holder(ref: RefRetention, snapshot: SnapshotNode, default_age: int) -> Holder:
    age = ref.max_ref_age_ms if ref.max_ref_age_ms is not None else default_age
    until = None
    if age < 100 * 365 * 86_400_000:
        until = datetime.fromtimestamp(snapshot.at_ms / 1000, timezone.utc) + timedelta(milliseconds=age)
    return Holder(ref.name, ref.kind.value, ref.snapshot, until)


def _size(file: AnyPlace) -> int:
    """Bytes; 0 of a file that is gone."""
    try:
        return file.stat().st_size if isinstance(file, Path) else file.seekable().seek(0, io.SEEK_END)
    except FileNotFoundError:
        return 0
