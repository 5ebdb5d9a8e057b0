"""Delta tables in HDFS and object stores that steps can erase, by their logs: all files lie in the table's folder."""

from __future__ import annotations

from typing import Any

from pii_tracer.lake.formats.delta.stored_table_look import astray, found_in_store
from pii_tracer.lake.formats.delta.transaction_log import DeltaSnapshot, log_of
from pii_tracer.lake.formats.stray_file_marks import STAY
from pii_tracer.lake.stores.any_place import FolderPath
from pii_tracer.lake.stores.table_look_types import Looked, TableLocation
from pii_tracer.model.errors import EstateError


def look_at_delta(place: FolderPath, name: str | None) -> Looked:
    """A Delta table, or why nothing is erased in it. name: as the estate file declares it.

    Raises:
        EstateError: its log cannot be read.
        OSError: the store refuses.
    """
    snapshot = log_of(place)
    origin, own = _source_of(place, snapshot), place.location
    outside = {file.path.location for file in snapshot.files if file.external}
    result = (
        _unplaced(place, snapshot)
        or astray(snapshot, origin, own)
        or found_in_store(snapshot, place, own.dataset, name, STAY)
    )
    return Looked(result, frozenset(outside | ({origin} if origin and origin != own else set())))


def _source_of(place: FolderPath, snapshot: DeltaSnapshot[Any]) -> TableLocation | None:
    """The place that a table was cloned from, as its log says; None of one in another store."""
    try:
        return place.placed(_source(snapshot)).location if _source(snapshot) else None
    except EstateError:
        return None


def _unplaced(place: FolderPath, snapshot: DeltaSnapshot[Any]) -> str | None:
    """Why nobody can tell whose files its history may read: its log names the table that it was cloned from by no
    place."""
    source = _source(snapshot)
    if not source or place.names_a_place(source):
        return None
    return "its log does not show from which table it was cloned, and its history may read files of that table"


def _source(snapshot: DeltaSnapshot[Any]) -> str:
    return (snapshot.cloned_from or "").removeprefix("delta.").strip("`")
