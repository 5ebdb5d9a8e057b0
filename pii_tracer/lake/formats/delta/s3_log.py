"""Delta tables in S3 as their logs tell them; nothing but logs is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pii_tracer.common.plurals import counted
from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.formats.delta.table_state import state_of, unknown_version
from pii_tracer.lake.formats.delta.transaction_log import DeltaSnapshot, read_log
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.read_result import Found, gap
from pii_tracer.lake.stores.s3.object_versions import ClientFactory
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import S3Location, is_s3, s3_location


def delta_tables(tables: Sequence[RemoteTable], clients: ClientFactory) -> tuple[list[Found], list[InventoryGap]]:
    """The Delta tables among some tables in S3, sorted by location, and those whose log cannot be read (`unreadable`).

    A shallow clone of another of them is told as one (`clone_of`); one that reads files of nobody's here has the gap
    `external_files`.
    """
    declared = {str(t.location): t for t in tables if t.format is DELTA}
    places = [table.location for table in declared.values()]
    found, gaps = [], []
    for location, table in sorted(declared.items()):
        try:
            found.append(_table(table, read_log(S3Path.of(table.location, clients)), places))
        except (EstateError, OSError) as error:
            reason = error.what if isinstance(error, EstateError) else f"S3 does not return it: {type(error).__name__}"
            gaps.append(gap(table.location.dataset, GapKind.UNREADABLE, reason, location))
    return found, gaps


def source_of(snapshot: DeltaSnapshot[S3Path]) -> S3Location | None:
    """The place in S3 that a table was cloned from, as its log says."""
    source = (snapshot.cloned_from or "").removeprefix("delta.").strip("`")
    return s3_location(source) if is_s3(source) else None


def origins(snapshot: DeltaSnapshot[S3Path], places: Collection[S3Location]) -> tuple[set[S3Location], list[str]]:
    """Of some tables those whose files another one reads, of all that hold a file the innermost; and its files outside
    that lie in none of them.

    A clone that has rewritten every file still holds its source's history, so the log's word counts too.
    """
    found = {place for place in places if place == source_of(snapshot)}
    strange = []
    for file in (file.path.location for file in snapshot.files if file.external):
        holding = [place for place in places if place.holds(file)]
        if holding:
            found.add(max(holding, key=lambda place: len(place.key)))
        else:
            strange.append(str(file))
    return found, strange


def _table(table: RemoteTable, snapshot: DeltaSnapshot[S3Path], places: Collection[S3Location]) -> Found:
    own = table.location
    read, strange = origins(snapshot, [place for place in places if place != own])
    outside = tuple(str(f.path) for f in snapshot.files if f.external)
    known = state_of(snapshot, str(own), own.dataset, table.name)
    state = known.model_copy(update={"outside": outside, "clone_of": min(map(str, read), default=None)})
    gaps = unknown_version(state, snapshot)
    if strange or len(read) > 1:
        reason = (
            f"{counted(len(outside), 'data file')} outside of the table's folder, and not all in the same table of S3"
        )
        gaps.append(gap(own.dataset, GapKind.EXTERNAL_FILES, reason, min(strange or map(str, read)), outside))
    return Found(state, tuple(gaps))
