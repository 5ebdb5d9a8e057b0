"""Delta tables in S3 that steps can erase, by their logs: all files lie in the table's folder."""

from __future__ import annotations

from collections.abc import Sequence

from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.formats.delta.s3_log import source_of
from pii_tracer.lake.formats.delta.stray_files import strange_objects
from pii_tracer.lake.formats.delta.table_state import state_of, unknown_version
from pii_tracer.lake.formats.delta.transaction_log import DeltaSnapshot, read_log
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.stray_files import STAY_IN_S3
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.read_result import Found, gap
from pii_tracer.lake.stores.s3.deletion_obstacles import Folders
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.lake.stores.s3.table_reading import Looked, judged
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import S3Location

_NAMED = 3
_STRANGE = (
    "file(s) in the table's folder are not named as the table's own, and no version in its log names them: they may be"
    " somebody's, or be left from before the log's history. "
)


def look_at_delta(declared: Sequence[RemoteTable], folders: Folders) -> list[Looked]:
    """The Delta tables among those that the estate file declares, each place once."""
    first = {str(t.location): t for t in reversed(declared) if t.format is DELTA}
    return [_looked(table, folders) for table in first.values()]


def _looked(table: RemoteTable, folders: Folders) -> Looked:
    reads: set[S3Location] = set()

    def look() -> Found | str:
        place = folders.path(table.location)
        snapshot = read_log(place)
        reads.update(_read(snapshot, table.location))
        return folders.against(place) or _astray(snapshot, table.location) or _found(table, place, snapshot)

    return Looked(table, judged(look), reads)


def _read(snapshot: DeltaSnapshot[S3Path], location: S3Location) -> set[S3Location]:
    """A clone that has rewritten every file still holds its source's history, so the log's word counts too."""
    origin = source_of(snapshot)
    outside = {file.path.location.parent for file in snapshot.files if file.external}
    return outside | ({origin} if origin and origin != location else set())


def _astray(snapshot: DeltaSnapshot[S3Path], location: S3Location) -> str | None:
    """Why its files are not all its own: a shallow clone reads another's, and its log says so after that, too."""
    if any(file.external for file in snapshot.files):
        return "it reads files outside its folder"
    origin = source_of(snapshot)
    if origin is not None and origin != location:
        return f"it was cloned from {origin}, whose files its history may read"
    return None


def _found(table: RemoteTable, place: S3Path, snapshot: DeltaSnapshot[S3Path]) -> Found:
    state = state_of(snapshot, str(place), table.location.dataset, table.name)
    there = {path: size for path, size, _ in place.walk()}
    gaps: list[InventoryGap] = unknown_version(state, snapshot)
    missing = sorted(str(f.path) for f in snapshot.files if str(f.path) not in there)
    if missing:
        reason = f"{len(missing)} data files that the log names do not exist: the table cannot be read"
        gaps.append(gap(state.dataset, GapKind.MISSING_FILES, reason, missing[0]))
    strange = strange_objects(str(place), there, snapshot)
    if strange:
        reason = f"{len(strange)} {_STRANGE}{STAY_IN_S3}"
        gaps.append(gap(state.dataset, GapKind.STRANGE_FILES, reason, ", ".join(strange[:_NAMED])))
    return Found(state, tuple(gaps))
