"""Folders that catalogs name and that are no tables: volumes, and places that tables and other files may lie in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from pathlib import Path

from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.base import FilePlace
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.read_result import gap
from pii_tracer.lake.stores.object_places.protocol import versioned_store
from pii_tracer.lake.stores.object_places.version_types import StoredVersion
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import (
    UNTOLD,
    ObjectLocation,
    S3Location,
    is_object_place,
    is_s3,
    location_of,
    object_location,
    s3_location,
)


def located(estate: Estate, named: FilePlace, inside: Callable[[Path], bool]) -> S3Location | InventoryGap | None:
    """A place in S3 that is to be looked into, a gap, or None where the estate's own roots have the place. Of those in
    object stores, `beyond_places` tells.

    inside: whether a path lies in the estate; nothing outside of it is opened.
    """
    if is_object_place(named.place):
        return None
    try:
        place = location_of(named.place)
    except EstateError as error:
        return _unplaced(named, error)
    if isinstance(place, S3Location):
        if named.whole or any(s3_location(root).holds(place) for root in estate.roots if is_s3(root)):
            return place if named.whole else None
        return _outside(named)
    if not inside(place):
        return _outside(named)
    if named.whole and not place.exists():
        reason = f"{named.title} does not exist: correct the entry in the catalog, or mount the place"
        return gap(None, GapKind.MISSING_TABLE, reason, str(place))
    return None


def beyond_places(
    estate: Estate, folders: Iterable[FilePlace], held: Collection[ObjectLocation]
) -> Iterator[InventoryGap]:
    """A gap for each folder in an object store of which something lies in no place that is looked into; its objects are
    listed for it. held: those places: of the estate, and tables that it or its catalogs name.
    """
    for named in folders:
        if not is_object_place(named.place):
            continue
        try:
            place = object_location(named.place)
            if not any(at.holds(place) for at in held):
                yield from _left(estate, named, place, [at for at in held if place.holds(at)])
        except EstateError as error:
            yield _unplaced(named, error)


def _left(
    estate: Estate, named: FilePlace, place: ObjectLocation, held: Sequence[ObjectLocation]
) -> Iterator[InventoryGap]:
    """held: the estate's places in the folder.

    Raises:
        EstateError: it cannot be listed.
    """
    if not held:
        reason = f"{named.title} is in an object store and was not searched: add the place under `object_stores`"
        yield gap(place.dataset, GapKind.OUTSIDE_ROOTS, reason, str(place))
        return
    inside, folders = {at.key for at in held}, {key for at in held for key in (at.key, *_folders_around(at.key))}
    versions = versioned_store(estate, place).all_versions(place.prefix)
    left = sorted(
        {
            version.key.rstrip("/")
            for version in versions
            if inside.isdisjoint(_folders_around(version.key)) and not _is_mark(version, folders)
        }
    )
    if left:
        reason = (
            f"{counted(len(left), 'object')} of {named.title} {'is' if len(left) == 1 else 'are'} in no place of "
            "`object_stores`, and not searched: add their folders under `object_stores`"
        )
        yield gap(place.dataset, GapKind.OUTSIDE_ROOTS, reason, str(place), listed=left)


def _is_mark(version: StoredVersion, folders: Container[str]) -> bool:
    """Whether it does no more than stand for one of some folders, as engines and accounts with folders write it. An
    object with bytes can have the key of a folder."""
    empty = version.key.endswith("/") or not version.size
    return empty and not version.hides and version.key.rstrip("/") in folders


def _folders_around(key: str) -> Iterator[str]:
    """Those that a key lies in, the innermost first."""
    while "/" in key:
        key = key.rpartition("/")[0]
        yield key


def _unplaced(named: FilePlace, error: EstateError) -> InventoryGap:
    shown = named.place if error.where != UNTOLD else UNTOLD
    return gap(None, GapKind.REMOTE_TABLE, f"{named.title} was not searched: {error.what}", shown)


def _outside(named: FilePlace) -> InventoryGap:
    what = "" if named.whole else ": files there outside every table and volume are unknown"
    reason = f"{named.title} is outside of the estate's roots and was not searched{what}. Add it to `roots`"
    return gap(None, GapKind.OUTSIDE_ROOTS, reason, named.place)
