"""Tables in stores that are known by their folders, of whatever format: which steps can erase, and why not the others.

A table counts when all its files lie in its folder and nobody else's do. Its metadata is read; nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pii_tracer.config.catalogs import DeclaredTable
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.registry import format_of, table_formats
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.any_place import FolderPath
from pii_tracer.lake.stores.looked_table import FolderAsked, Looked, TableLocation
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError

_TITLES = {"hdfs": "HDFS", "gs": "Cloud Storage", "abfss": "Azure Storage"}


@dataclass(frozen=True)
class TableFolder:
    """A table's folder. format: None where the metadata of several lies in it. registered: the format, and name: the
    name, that a catalog gives it. titles, metadata, branched: as `FolderAsked` has them. inside: what of the estate
    lies in it and may not. folder: for readers. unreached: why engines do not reach its store, if they do not.
    """

    location: TableLocation
    format: Format | None
    folder: Callable[[], FolderPath]
    registered: Format | None = None
    name: str | None = None
    titles: tuple[str, ...] = ()
    metadata: str | None = None
    branched: bool = False
    inside: TableLocation | None = None
    unreached: str = ""


@dataclass(frozen=True)
class StoredTables:
    """By place. found: tables that can be erased. why: why nothing is erased in the others. read: places beyond the
    folder of a table in which files of it may lie, by that table.
    """

    found: Mapping[TableLocation, Found] = field(default_factory=dict)
    why: Mapping[TableLocation, str] = field(default_factory=dict)
    read: Mapping[TableLocation, frozenset[TableLocation]] = field(default_factory=dict)


def declared_tables(
    estate: Estate, mine: Callable[[str], bool], place: Callable[[str], TableLocation]
) -> dict[TableLocation, tuple[DeclaredTable, ...]]:
    """The tables that the estate file declares in a kind of store, by place. mine: whether a location is one."""
    found: dict[TableLocation, tuple[DeclaredTable, ...]] = {}
    for table in (t for c in estate.catalogs.values() for t in c.tables if mine(t.location)):
        location = place(table.location)
        found[location] = (*found.get(location, ()), table)
    return found


def tables_in(
    folders: Iterable[TableFolder], declared: Mapping[TableLocation, Sequence[DeclaredTable]]
) -> StoredTables:
    """The tables in some folders of one kind of store."""
    folders = list(folders)
    pointed = frozenset(one.metadata for one in folders if one.metadata)
    looked = {one.location: _looked(one, declared.get(one.location, ()), pointed) for one in folders}
    why: dict[TableLocation, str] = {}
    for location, one in looked.items():
        own = one.result if isinstance(one.result, str) else None
        if reasons := [reason for reason in (own, *_sharing(location, looked)) if reason]:
            why[location] = "; ".join(reasons)
    found = {at: o.result for at, o in looked.items() if isinstance(o.result, Found) and at not in why}
    return StoredTables(found, why, {at: o.reads for at, o in looked.items() if o.reads})


def _looked(place: TableFolder, declared: Sequence[DeclaredTable], pointed: frozenset[str]) -> Looked:
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
    if place.inside is not None:
        return Looked(f"{place.inside} lies inside its folder: move it out")
    try:
        name = declared[0].name if declared else place.name
        asked = FolderAsked(place.folder(), name, place.titles, place.metadata, pointed, place.branched)
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
