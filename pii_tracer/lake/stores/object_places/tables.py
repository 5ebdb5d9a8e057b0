"""Tables in object stores that steps can erase, and of every other one why nothing is erased in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.object_places.object_path import ObjectPath
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.tables_by_folder import StoredTables, TableFolder, declared_tables, tables_in
from pii_tracer.model.locations import ObjectLocation, is_object_place, object_location


def tables_among(estate: Estate, places: Sequence[ObjectPlace]) -> StoredTables:
    """The tables among an estate's places in object stores."""
    return tables_in(_folders(estate, places), declared_tables(estate, is_object_place, object_location))


def _folders(estate: Estate, places: Sequence[ObjectPlace]) -> Iterator[TableFolder]:
    for place in places:
        if place.table:
            inside = (p.location for p in places if p.location != place.location and place.location.holds(p.location))
            yield TableFolder(
                location=place.location,
                format=place.format,
                folder=lambda at=place.location: ObjectPath.at(estate, at),  # type: ignore[misc]
                registered=place.registered,
                name=place.table_name,
                titles=place.named.titles,
                metadata=place.named.metadata,
                branched=place.named.branched,
                inside=min(inside, key=str, default=None),
                unreached=place.settings.no_tables,
            )


def read_by(place: ObjectLocation, tables: StoredTables) -> tuple[str, ...]:
    """Tables elsewhere whose files may lie in a place, sorted."""
    return tuple(
        sorted(
            str(at)
            for at, reads in tables.read.items()
            if at != place and any(isinstance(read, ObjectLocation) and place.holds(read) for read in reads)
        )
    )
