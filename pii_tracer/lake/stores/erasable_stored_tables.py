"""Tables in stores that are known by their folders, of whatever format: which steps can erase, and why not the others.

A table counts when all its files lie in its folder and nobody else's do. Its metadata is read; nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pii_tracer.config.catalogs import DeclaredTable
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.registry import format_of, table_formats
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.any_place import folder_at
from pii_tracer.lake.stores.hdfs.places import HdfsPlace
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.table_look_types import FolderAsked, Looked, TableLocation
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import in_place, location_in_place

_TITLES = {"hdfs": "HDFS", "gs": "Cloud Storage", "abfss": "Azure Storage"}
Place = HdfsPlace | ObjectPlace


@dataclass(frozen=True)
class StoredTables:
    """By place. found: tables that can be erased. why: why nothing is erased in the others. read: places beyond the
    folder of a table in which files of it may lie, by that table.
    """

    found: Mapping[TableLocation, Found] = field(default_factory=dict)
    why: Mapping[TableLocation, str] = field(default_factory=dict)
    read: Mapping[TableLocation, frozenset[TableLocation]] = field(default_factory=dict)


def tables_among(estate: Estate, places: Sequence[Place]) -> StoredTables:
    """The tables among an estate's places in one kind of store."""
    tables = [place for place in places if place.is_table]
    pointed = frozenset(place.named.metadata for place in tables if place.named.metadata)
    declared: dict[TableLocation, list[DeclaredTable]] = {}
    for table in (t for catalog in estate.catalogs.values() for t in catalog.tables if in_place(t.location)):
        declared.setdefault(location_in_place(table.location), []).append(table)
    looked = {
        one.location: _looked(estate, one, _inside(one, places), declared.get(one.location, ()), pointed)
        for one in tables
    }
    why: dict[TableLocation, str] = {}
    for location, one in looked.items():
        own = one.result if isinstance(one.result, str) else None
        if reasons := [reason for reason in (own, *_sharing(location, looked)) if reason]:
            why[location] = "; ".join(reasons)
    found = {at: o.result for at, o in looked.items() if isinstance(o.result, Found) and at not in why}
    return StoredTables(found, why, {at: o.reads for at, o in looked.items() if o.reads})


def read_by(place: TableLocation, tables: StoredTables) -> tuple[str, ...]:
    """Tables elsewhere whose files may lie in a place, sorted."""
    others = ((at, reads) for at, reads in tables.read.items() if at != place)
    return tuple(sorted(str(at) for at, reads in others if any(holds(place, read) for read in reads)))


def _inside(place: Place, places: Iterable[Place]) -> TableLocation | None:
    """What of the estate lies in a table's folder and may not."""
    others = (p.location for p in places if p.blocks_table and p.location != place.location)
    return min((other for other in others if holds(place.location, other)), key=str, default=None)


def _looked(
    estate: Estate,
    place: Place,
    inside: TableLocation | None,
    declared: Sequence[DeclaredTable],
    pointed: frozenset[str],
) -> Looked:
    """One table, or why it is none that steps erase."""
    if place.format is None:
        return Looked("the metadata of several formats lies in its folder: move one of the tables")
    adapter, scheme = format_of(place.format), str(place.location).partition("://")[0]
    if scheme not in adapter.erased_in:
        able = ", ".join(one.title for one in table_formats() if scheme in one.erased_in)
        which = f"steps of this version erase those of {able} alone" if able else "no step of this version erases any"
        return Looked(
            f"for tables in {_TITLES.get(scheme, scheme)}, {which}: erase the person there with the"
            " table's own engine, then plan again"
        )
    if other := next((t for t in declared if t.format is not place.format), None):
        return Looked(f"the estate file declares it as {other.format}, and its folder is a {adapter.title} table's")
    if place.registered not in (None, place.format):
        return Looked(f"its catalog names it as {place.registered}, and its folder is a {adapter.title} table's")
    if place.unreached:
        return Looked(place.unreached)
    if inside is not None:
        return Looked(f"{inside} lies inside its folder: move it out")
    try:
        name, catalogs = declared[0].name if declared else place.sql_name, place.named
        folder = folder_at(estate, str(place.location))
        metadata, branched = catalogs.metadata, catalogs.branched
        asked = FolderAsked(estate, folder, name, catalogs.titles, metadata, pointed, branched, catalogs.notes)
        return adapter.look_in_store(asked)
    except EstateError as error:
        return Looked("; ".join(filter(None, (error.what, error.todo))))
    except OSError as error:
        title = _TITLES.get(scheme, scheme)
        return Looked(f"{title} refuses to show it ({str(error).rpartition(': ')[2]})")


def _sharing(location: TableLocation, looked: Mapping[TableLocation, Looked]) -> list[str]:
    """With which other tables it has files in common (hazard I7)."""
    others = [(at, one) for at, one in looked.items() if at != location]
    mine = sorted(str(at) for at, _ in others if any(holds(at, read) for read in looked[location].reads))
    theirs = sorted(str(at) for at, one in others if any(holds(location, read) for read in one.reads))
    return [
        *(f"it reads files of the table {at}" for at in mine),
        *(f"the table {at} reads its files, as a shallow clone does" for at in theirs),
    ]


def holds(place: TableLocation, other: TableLocation) -> bool:
    """Whether another place is this one or lies in it; places of two kinds of stores never do."""
    return type(place) is type(other) and place.holds(other)  # type: ignore[arg-type]
