"""Folders that catalogs name and that are no tables: volumes, and places that tables and other files may lie in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.base import FilePlace
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.read_result import gap
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import (
    UNTOLD,
    S3Location,
    is_object_place,
    is_s3,
    location_of,
    object_location,
    s3_location,
)


def located(estate: Estate, named: FilePlace, inside: Callable[[Path], bool]) -> S3Location | InventoryGap | None:
    """A place in S3 that is to be looked into, a gap, or None where the estate's own roots and stores have the place.

    inside: whether a path lies in the estate; nothing outside of it is opened.
    """
    try:
        if is_object_place(named.place):
            return _in_store(estate, named)
        place = location_of(named.place)
    except EstateError as error:
        shown = named.place if error.where != UNTOLD else UNTOLD
        return gap(None, GapKind.REMOTE_TABLE, f"{named.title} was not looked into: {error.what}", shown)
    if isinstance(place, S3Location):
        if named.whole or any(s3_location(root).holds(place) for root in estate.roots if is_s3(root)):
            return place if named.whole else None
        return _outside(named)
    if not inside(place):
        return _outside(named)
    if named.whole and not place.exists():
        reason = f"{named.title} does not exist: correct its entry in the catalog, or mount the place"
        return gap(None, GapKind.MISSING_TABLE, reason, str(place))
    return None


def _in_store(estate: Estate, named: FilePlace) -> InventoryGap | None:
    place = object_location(named.place)
    if any(location.holds(place) for store in estate.object_stores for location, _ in store.located()):
        return None
    reason = f"{named.title} lies in an object store and was not looked into: name the place under `object_stores`"
    return gap(place.dataset, GapKind.REMOTE_TABLE, reason, str(place))


def _outside(named: FilePlace) -> InventoryGap:
    what = "" if named.whole else ": files there outside every table and volume are unknown"
    reason = f"{named.title} lies outside the estate's roots and was not looked into{what}. Add it to `roots`"
    return gap(None, GapKind.OUTSIDE_ROOTS, reason, named.place)
