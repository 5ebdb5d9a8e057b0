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
from typing import TYPE_CHECKING, Any

from pii_tracer.errors import EstateError
from pii_tracer.estate.iceberg import load_iceberg
from pii_tracer.estate.s3_path import S3Path
from pii_tracer.locations import local_path
from pii_tracer.retention.native import ICEBERG_MIN, ICEBERG_REF_AGE, MAIN, RefRetention

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable

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
    default_age = int(properties.get(ICEBERG_REF_AGE, _FOREVER))
    least = int(properties.get(ICEBERG_MIN, "1"))
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


def expiry(
    location: Path | S3Path, metadata: str | None, refs: Iterable[RefRetention], cutoff: datetime, now: datetime
) -> Expiry:
    """What `expire_snapshots(older_than => cutoff)` would do to the table in a folder.

    metadata: the file that its catalog points at, where one does; in S3 always.

    Raises:
        EstateError: metadata or manifests cannot be read.
    """
    table = load_iceberg(location, metadata)
    refs = tuple(refs)
    snapshots = {
        s.snapshot_id: SnapshotNode(s.snapshot_id, s.parent_snapshot_id, s.timestamp_ms)
        for s in table.metadata.snapshots
    }
    now_ms = int(now.timestamp() * 1000)
    with _history_of(location):
        keep, kept_refs = retained(snapshots, refs, table.properties, int(cutoff.timestamp() * 1000), now_ms)
        gone = frozenset(snapshots) - keep
        freed = _freed(table, location, gone) if gone else {}
    default_age = int(table.properties.get(ICEBERG_REF_AGE, _FOREVER))
    holders = tuple(_holder(ref, snapshots[ref.snapshot], default_age) for ref in kept_refs if ref.name != MAIN)
    return Expiry(gone, freed, holders)


def referenced(location: Path | S3Path, metadata: str | None) -> frozenset[str]:
    """Every file that any snapshot of the table names, its statistics and metadata files: nothing of it may be swept.

    metadata: as for `expiry`.

    Raises:
        EstateError: metadata or manifests cannot be read.
    """
    table = load_iceberg(location, metadata)
    with _history_of(location):
        found = _files_of(table, location)
        logs = {str(_file(location, entry.metadata_file)) for entry in table.metadata.metadata_log}
        return frozenset(found | logs | {str(_file(location, table.metadata_location))})


def reached(location: Path, metadata: Path) -> frozenset[str]:
    """Every file that one metadata file of a table needs, itself included, links followed; not its metadata log.

    Raises:
        EstateError: metadata or manifests cannot be read.
    """
    table = load_iceberg(location, metadata)
    with _history_of(location):
        found = _files_of(table, location)
    return frozenset(str(Path(p).resolve()) for p in {*found, str(metadata)})


def _files_of(table: StaticTable, location: Path | S3Path) -> set[str]:
    """Every file that a snapshot needs, and statistics: no manifest lists these."""
    found = _Reached(table, location)
    for snapshot in table.metadata.snapshots:
        found.add(snapshot)
    told = [*table.metadata.statistics, *table.metadata.partition_statistics]
    return found.lists | found.files.keys() | {str(_file(location, entry.statistics_path)) for entry in told}


@contextmanager
def _history_of(location: Path | S3Path) -> Iterator[None]:
    """PyIceberg lets parsers' errors of many families through: they are one error here."""
    try:
        yield
    except EstateError:
        raise
    except Exception as error:
        raise EstateError(
            f"the table's history cannot be read: {type(error).__name__}", where=str(location), todo="look at the table"
        ) from None


def _holder(ref: RefRetention, snapshot: SnapshotNode, default_age: int) -> Holder:
    age = ref.max_ref_age_ms if ref.max_ref_age_ms is not None else default_age
    until = None
    if age < 100 * 365 * 86_400_000:
        until = datetime.fromtimestamp(snapshot.at_ms / 1000, timezone.utc) + timedelta(milliseconds=age)
    return Holder(ref.name, ref.kind.value, ref.snapshot, until)


def _freed(table: StaticTable, location: Path | S3Path, gone: frozenset[int]) -> dict[str, int]:
    stay, go = _Reached(table, location), _Reached(table, location)
    for snapshot in table.metadata.snapshots:
        (go if snapshot.snapshot_id in gone else stay).add(snapshot)
    lists = {path: _size(_file(location, path)) for path in go.lists - stay.lists}
    freed = lists | {path: size for path, size in go.files.items() if path not in stay.files}
    return dict(sorted(freed.items()))


def _file(location: Path | S3Path, text: str) -> Path | S3Path:
    """A file as the table's metadata names it, in full."""
    return location.placed(text) if isinstance(location, S3Path) else local_path(text)


def _size(file: Path | S3Path) -> int:
    """Bytes; 0 of a file that is gone."""
    try:
        return file.seekable().seek(0, io.SEEK_END) if isinstance(file, S3Path) else file.stat().st_size
    except FileNotFoundError:
        return 0


class _Reached:
    """Files that some snapshots need. lists: their manifest lists; files: manifests, live data and delete files, with
    their sizes in bytes.
    """

    def __init__(self, table: StaticTable, location: Path | S3Path) -> None:
        self._io, self._location = table.io, location
        self._read: set[str] = set()
        self.lists: set[str] = set()
        self.files: dict[str, int] = {}

    def add(self, snapshot: Any) -> None:
        self.lists.add(self._place(snapshot.manifest_list))
        for manifest in snapshot.manifests(self._io):
            if manifest.manifest_path in self._read:
                continue
            self._read.add(manifest.manifest_path)
            self.files[self._place(manifest.manifest_path)] = manifest.manifest_length
            for entry in manifest.fetch_manifest_entry(self._io, discard_deleted=True):
                self.files[self._place(entry.data_file.file_path)] = entry.data_file.file_size_in_bytes

    def _place(self, text: str) -> str:
        return str(_file(self._location, text))
