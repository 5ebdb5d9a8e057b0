"""Delta tables in HDFS that steps can erase, by their logs: all files lie in the table's folder."""

from __future__ import annotations

from pii_tracer.lake.formats.delta.table_in_store import astray, found_in_store
from pii_tracer.lake.formats.delta.transaction_log import DeltaSnapshot, read_log
from pii_tracer.lake.formats.stray_files import STAY
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.hdfs.table_reading import Looked
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import HdfsLocation, is_hdfs


def look_at_delta(place: HdfsPath, name: str | None) -> Looked:
    """A Delta table, or why nothing is erased in it. name: as the estate file declares it.

    Raises:
        EstateError: its log cannot be read.
        OSError: HDFS refuses.
    """
    snapshot = read_log(place)
    origin, own = _source_of(place, snapshot), place.location
    outside = {file.path.location for file in snapshot.files if file.external}
    result = (
        _unplaced(snapshot) or astray(snapshot, origin, own) or found_in_store(snapshot, place, own.dataset, name, STAY)
    )
    return Looked(result, frozenset(outside | ({origin} if origin and origin != own else set())))


def _source_of(place: HdfsPath, snapshot: DeltaSnapshot[HdfsPath]) -> HdfsLocation | None:
    """The place in HDFS that a table was cloned from, as its log says; None of another NameNode's."""
    try:
        return place.placed(_source(snapshot)).location if _source(snapshot) else None
    except EstateError:
        return None


def _unplaced(snapshot: DeltaSnapshot[HdfsPath]) -> str | None:
    """Why nobody can tell whose files its history may read: its log names the table that it was cloned from by no
    place."""
    source = _source(snapshot)
    if not source or source.startswith("/") or is_hdfs(source):
        return None
    return (
        "it was cloned from a table of which its log does not say where it lies, and whose files its history may read"
    )


def _source(snapshot: DeltaSnapshot[HdfsPath]) -> str:
    return (snapshot.cloned_from or "").removeprefix("delta.").strip("`")
