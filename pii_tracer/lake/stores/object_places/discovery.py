"""Lists the places of `object_stores`, with every version in them.

Every place is a gap of its own, until planning has read it and has steps for it. What cannot be listed is a gap, too.
"""

from __future__ import annotations

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.stores.object_stores import StoredFiles
from pii_tracer.lake.formats.registry import metadata_folders
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.read_result import gap
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.protocol import versioned_store
from pii_tracer.lake.stores.object_places.versions import StoredVersion
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import ObjectLocation


def declared_places(estate: Estate) -> tuple[tuple[ObjectLocation, StoredFiles], ...]:
    """The places that the estate file names, sorted."""
    return tuple(
        sorted((one for store in estate.object_stores for one in store.located()), key=lambda one: str(one[0]))
    )


def discover_object_places(estate: Estate) -> tuple[tuple[ObjectPlace, ...], tuple[InventoryGap, ...]]:
    """Every declared place with its versions, and a gap for each; and a gap for what could not be listed."""
    places, gaps = list[ObjectPlace](), list[InventoryGap]()
    for location, declared in declared_places(estate):
        try:
            place = place_now(estate, location, declared)
        except EstateError as error:
            gaps.append(unread_gap(location, error))
            continue
        if place.versions:
            places.append(place)
            gaps.append(gap_of(place))
    return tuple(places), tuple(gaps)


def place_now(estate: Estate, location: ObjectLocation, declared: StoredFiles | None = None) -> ObjectPlace:
    """A place as it is now.

    Raises:
        EstateError: the store refuses, does not answer, or its listing cannot be relied on.
    """
    store = versioned_store(estate, location)
    versions = sorted(store.all_versions(location.prefix), key=lambda v: (v.key, v.version_id, v.state))
    agreed = declared.deletable if declared else None
    return ObjectPlace(
        location=location,
        versions=tuple(versions),
        settings=store.settings(),
        table=_table(location, versions),
        agreed=f"{agreed.owner}: {agreed.reason}" if agreed else None,
    )


def gap_of(place: ObjectPlace) -> InventoryGap:
    """The gap that a place is."""
    reason = "files lie in an object store"
    if place.table:
        reason = (
            f"a table lies in an object store (folder `{place.table}`) and is not erased by this version: erase the"
            " person there with its own engine, then plan again"
        )
    return gap(place.location.dataset, GapKind.OBJECT_PLACE, reason, str(place.location))


def unread_gap(location: ObjectLocation, error: EstateError) -> InventoryGap:
    """The gap of a place that could not be listed."""
    reason = "; ".join(filter(None, (error.what, error.todo)))
    return gap(location.dataset, GapKind.OBJECT_PLACE_UNREAD, reason, str(location))


def _table(location: ObjectLocation, versions: list[StoredVersion]) -> str | None:
    """The folder of a table's metadata that lies in a place."""
    folders = {part for v in versions for part in v.key.removeprefix(location.prefix).split("/")[:-1]}
    return min(folders & metadata_folders(), default=None)
