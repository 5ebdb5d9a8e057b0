"""Lists the places of `object_stores`, with every version in them.

A table in a place is a place of its own. Every place is a gap, until planning has read it and has steps for it. What
cannot be listed is a gap, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.stores.object_stores import StoredFiles
from pii_tracer.lake.catalogs.registered_tables import Registry
from pii_tracer.lake.catalogs.tables_in_stores import StoredTable
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.object_tables import signs_of_tables
from pii_tracer.lake.read_result import gap
from pii_tracer.lake.stores.catalog_facts_of_table import named
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.protocol import versioned_store
from pii_tracer.lake.stores.object_places.version_types import StoredVersion, VersionState
from pii_tracer.model.datasets import PLAIN, Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.text_reading_rules import TextPlaces
from pii_tracer.model.locations import ObjectLocation, is_object_place, object_location


def declared_places(
    estate: Estate, registered: Sequence[StoredTable] = (), opaque: Collection[ObjectLocation] = ()
) -> tuple[tuple[ObjectLocation, StoredFiles], ...]:
    """The places that the estate file names, and the tables in none of them that it declares or its catalogs name;
    sorted. opaque: folders of tables whose files are not plain rows.
    """
    places = [one for store in estate.object_stores for one in store.located()]
    declared = (table.location for catalog in estate.catalogs.values() for table in catalog.tables)
    tables = {*(object_location(text) for text in declared if is_object_place(text)), *(t.location for t in registered)}
    tables.update(opaque)
    for location in sorted(tables, key=str):
        if not any(place.holds(location) for place, _ in places):
            places.append((location, StoredFiles(prefix=location.key)))
    return tuple(sorted(places, key=lambda one: str(one[0])))


def discover_object_places(
    estate: Estate, registry: Registry, texts: TextPlaces
) -> tuple[tuple[ObjectPlace, ...], tuple[InventoryGap, ...]]:
    """Every declared place with its versions, each table in it as a place of its own, and a gap for each; and a gap for
    what could not be listed. registry: what the estate's catalogs name there. texts: by what rules text is read.
    """
    places, gaps, registered = list[ObjectPlace](), list[InventoryGap](), registry.stored
    for location, declared in declared_places(estate, registered, registry.opaque_stored):
        try:
            places += places_now(estate, location, declared)
        except EstateError as error:
            gaps.append(unread_gap(location, error))
    places = [_with_names(place, [one for one in registered if one.location == place.location]) for place in places]
    places = [with_texts(place, texts) for place in places]
    opaque = _merged_text(places, registered) | _opaque([place.location for place in places], registry)
    places = [place.model_copy(update={"opaque": opaque.get(place.location)}) for place in places]
    missing = (
        one for one in registered if one.format not in PLAIN and not any(p.location == one.location for p in places)
    )
    gaps += map(_missing, missing)
    return tuple(places), (*gaps, *map(gap_of, places))


def _with_names(place: ObjectPlace, tables: Sequence[StoredTable]) -> ObjectPlace:
    if not tables:
        return place
    told = {
        "table_name": tables[0].name,
        "registered": tables[0].format,
        "text": tables[0].text,
        "named": named(tables),
    }
    return place.model_copy(update=told)


def with_texts(place: ObjectPlace, texts: TextPlaces) -> ObjectPlace:
    """A place with the rules by which text is read in it."""
    return place.model_copy(update={"texts": texts.near(str(place.location))})


def _opaque(places: Sequence[ObjectLocation], registry: Registry) -> dict[ObjectLocation, str]:
    """By place, the table whose files lie in it and are not its rows: the innermost table counts."""
    tables = {table.location for table in registry.stored}
    opaque = {at: title for at, title in registry.opaque_stored.items() if at not in tables}
    found = {}
    for place in places:
        around = _innermost({*opaque, *tables}, place)
        inside = (at for at in sorted(opaque, key=str) if place.holds(at) and _innermost(places, at) == place)
        one = around if around in opaque else next(inside, None)
        if one is not None:
            found[place] = opaque[one]
    return found


def _merged_text(places: Iterable[ObjectPlace], tables: Iterable[StoredTable]) -> dict[ObjectLocation, str]:
    """By place, a table of text that is no place of its own, and whose objects look like the place's."""
    texts = [table for table in tables if table.text is not None]
    return {
        place.location: table.title
        for place in places
        for table in texts
        if place.location != table.location
        and place.location.holds(table.location)
        and any(version.key.startswith(table.location.prefix) for version in place.versions)
    }


def _innermost(places: Iterable[ObjectLocation], one: ObjectLocation) -> ObjectLocation | None:
    """The place that another one is, or lies in."""
    return max((p for p in places if p.holds(one)), key=lambda p: len(p.key), default=None)


def _missing(table: StoredTable) -> InventoryGap:
    reason = f"the registered table {table.title} does not exist"
    return gap(table.location.dataset, GapKind.MISSING_TABLE, reason, str(table.location))


def places_now(estate: Estate, location: ObjectLocation, declared: StoredFiles | None = None) -> list[ObjectPlace]:
    """What lies in a place as it is now: each table in it, and the rest; sorted by their locations.

    Raises:
        EstateError: the store refuses, does not answer, or its listing cannot be relied on.
    """
    store = versioned_store(estate, location)
    versions = sorted(store.all_versions(location.prefix), key=lambda v: (v.key, v.version_id, v.state))
    agreed = declared.deletable if declared else None
    tables = _tables(versions, signs_of_tables(), location.key)
    parts: dict[str, list[StoredVersion]] = {}
    for version in versions:
        parts.setdefault(_folder_of(version.key, tables, location.key), []).append(version)
    settings = store.settings()
    return [
        ObjectPlace(
            location=ObjectLocation(store=location.store, key=folder),
            versions=tuple(mine),
            settings=settings,
            table=folder in tables,
            format=next(iter(tables[folder])) if len(tables.get(folder, ())) == 1 else None,
            agreed=f"{agreed.owner}: {agreed.reason}" if agreed else None,
        )
        for folder, mine in sorted(parts.items())
    ]


def place_now(estate: Estate, location: ObjectLocation) -> ObjectPlace:
    """A place as it is now, without the tables in it; one without a version holds nothing.

    Raises:
        EstateError: as `places_now`.
    """
    found = (place for place in places_now(estate, location) if place.location == location)
    settings = versioned_store(estate, location).settings
    return next(found, None) or ObjectPlace(location=location, versions=(), settings=settings())


def gap_of(place: ObjectPlace) -> InventoryGap:
    """The gap that a place is."""
    reason = "files are in an object store"
    if place.table:
        reason = "a table is in an object store"
    if place.untreated:
        reason += f", and no step erases it: {place.untreated}"
    return gap(place.location.dataset, GapKind.OBJECT_PLACE, reason, str(place.location))


def unread_gap(location: ObjectLocation, error: EstateError) -> InventoryGap:
    """The gap of a place that could not be listed."""
    reason = "; ".join(filter(None, (error.what, error.todo)))
    return gap(location.dataset, GapKind.OBJECT_PLACE_UNREAD, reason, str(location))


def _tables(
    versions: Iterable[StoredVersion], signs: Mapping[Format, re.Pattern[str]], above: str
) -> dict[str, set[Format]]:
    """By folder, the formats of the tables that keep their metadata there; old versions count, too. above: the key of
    the place that they lie in.
    """
    found: dict[str, set[Format]] = {}
    for version in versions:
        if version.state is VersionState.SOFT_DELETED:
            continue
        for name, sign in signs.items():
            if seen := sign.search(version.key, len(above)):
                found.setdefault(version.key[: seen.start()], set()).add(name)
    return found


def _folder_of(key: str, tables: Mapping[str, set[Format]], otherwise: str) -> str:
    """The innermost table's folder that a key lies in; the place itself without one. What lies in the metadata of a
    table is that table's.
    """
    parts, found = key.split("/"), None
    for depth in range(len(parts)):
        folder = "/".join(parts[:depth])
        if folder in tables:
            within = parts[len(found.split("/")) if found else 0 : depth]
            if found is None or not any(format_of(kind).owns_place(tuple(within)) for kind in tables[found]):
                found = folder
    return otherwise if found is None else found
