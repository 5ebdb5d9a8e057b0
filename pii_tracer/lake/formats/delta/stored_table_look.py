"""Delta tables in a store, as their logs and the listings of their folders tell them: the same in every store."""

from __future__ import annotations

from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.delta.stray_files import strange_objects
from pii_tracer.lake.formats.delta.table_state import state_of, unknown_version
from pii_tracer.lake.formats.delta.transaction_log import DeltaSnapshot
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.read_result import Found, gap
from pii_tracer.lake.stores.any_place import RemotePath
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import HdfsLocation, ObjectLocation, S3Location

AnyLocation = S3Location | HdfsLocation | ObjectLocation

_NAMED = 3
_STRANGE = (
    " in no version of its log, with names that Delta does not use. Such files may belong to somebody, or remain "
    "from before the log's history. "
)


def astray(snapshot: DeltaSnapshot[Any], origin: AnyLocation | None, own: AnyLocation) -> str | None:
    """Why a table's files are not all its own: a shallow clone reads another's, and its log says so after that, too.

    origin: what the log says it was cloned from.
    """
    if any(file.external for file in snapshot.files):
        return "it reads files outside of its folder"
    if origin is not None and origin != own:
        return f"it was cloned from {origin}, whose files its history may read"
    return None


def found_in_store(
    snapshot: DeltaSnapshot[Any], place: RemotePath, dataset: DatasetId, name: str | None, stay: str
) -> Found:
    """The table in a folder. name: in Spark SQL. stay: what is said of files that may be somebody's.

    Raises:
        OSError: the store does not list the folder.
    """
    state = state_of(snapshot, str(place), dataset, name)
    there = {path: size for path, size, _ in place.walk()}
    gaps: list[InventoryGap] = unknown_version(state, snapshot)
    missing = sorted(str(f.path) for f in snapshot.files if str(f.path) not in there)
    if missing:
        reason = (
            f"{counted(len(missing), 'data file')} referenced by the log cannot be found, so the table cannot be read"
        )
        gaps.append(gap(state.dataset, GapKind.MISSING_FILES, reason, missing[0], missing))
    strange = strange_objects(str(place), there, snapshot)
    if strange:
        reason = f"the table's folder has {counted(len(strange), 'file')}{_STRANGE}{stay}"
        gaps.append(gap(state.dataset, GapKind.STRANGE_FILES, reason, ", ".join(strange[:_NAMED]), strange))
    return Found(state, tuple(gaps))
