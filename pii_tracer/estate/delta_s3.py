"""Delta tables in S3 as their logs tell them; nothing but logs is read."""

from __future__ import annotations

from collections.abc import Sequence

from pii_tracer.errors import EstateError
from pii_tracer.estate.delta import state_of, unknown_version
from pii_tracer.estate.delta_log import read_log
from pii_tracer.estate.found import Found, gap
from pii_tracer.estate.registry import RemoteTable
from pii_tracer.estate.s3_path import S3Path
from pii_tracer.estate.s3_versions import ClientFactory
from pii_tracer.gap_kinds import GapKind
from pii_tracer.inventory import InventoryGap
from pii_tracer.locations import S3Location, s3_location
from pii_tracer.model import Format


def delta_tables(tables: Sequence[RemoteTable], clients: ClientFactory) -> tuple[list[Found], list[InventoryGap]]:
    """The Delta tables among some tables in S3, sorted by location, and those whose log cannot be read (`unreadable`).

    A shallow clone of another of them is told as one (`clone_of`); one that reads files of nobody's here has the gap
    `external_files`.
    """
    places = {str(t.location): t for t in tables if t.format is Format.DELTA}
    found, gaps = [], []
    for location, table in sorted(places.items()):
        try:
            found.append(_table(table, S3Path.of(table.location, clients)))
        except (EstateError, OSError) as error:
            reason = error.what if isinstance(error, EstateError) else f"S3 does not show it: {type(error).__name__}"
            gaps.append(gap(table.location.dataset, GapKind.UNREADABLE, reason, location))
    return _with_clones(found), gaps


def _table(table: RemoteTable, place: S3Path) -> Found:
    snapshot = read_log(place)
    outside = tuple(str(f.path) for f in snapshot.files if f.external)
    state = state_of(snapshot, str(place), table.location.dataset, table.name)
    return Found(state.model_copy(update={"outside": outside}), tuple(unknown_version(state, snapshot)))


def _with_clones(found: Sequence[Found]) -> list[Found]:
    places = [s3_location(f.state.location) for f in found]
    return [_with_clone(one, places) for one in found]


def _with_clone(one: Found, places: Sequence[S3Location]) -> Found:
    """The table with the one whose files it reads: of all that hold a file the innermost."""
    origins: set[str] = set()
    strange: list[str] = []
    for file in one.state.outside:
        holding = [place for place in places if place.holds(s3_location(file))]
        if holding:
            origins.add(str(max(holding, key=lambda place: len(place.key))))
        else:
            strange.append(file)
    state = one.state.model_copy(update={"clone_of": min(origins, default=None)})
    if not strange and len(origins) < 2:
        return Found(state, one.gaps)
    reason = f"{len(state.outside)} data files lie outside the table's folder, and not all in one other table of S3"
    return Found(state, (*one.gaps, gap(state.dataset, GapKind.EXTERNAL_FILES, reason, min(strange or origins))))
