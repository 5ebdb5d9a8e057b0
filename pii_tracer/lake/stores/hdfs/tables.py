"""Tables in HDFS that steps can erase, and of every other one why nothing is erased in it.

A table is known by its folder, below a root or declared. It counts when all its files lie in its folder and nobody
else's do. Its metadata is read; nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pii_tracer.config.catalogs import DeclaredTable
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.registry import format_of, table_formats
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.lake.stores.hdfs.table_reading import Looked
from pii_tracer.lake.stores.hdfs.webhdfs import client_at
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import HdfsLocation, hdfs_location, is_hdfs

_OF_TABLES = frozenset({HdfsKind.TABLE, HdfsKind.FOLDER, HdfsKind.TEMPORARY})
"""Kinds of places that may not lie in a table's folder; snapshots and trash in it are places apart."""


@dataclass(frozen=True)
class HdfsTables:
    """By place. found: tables that can be erased. why: why nothing is erased in the others."""

    found: Mapping[HdfsLocation, Found] = field(default_factory=dict)
    why: Mapping[HdfsLocation, str] = field(default_factory=dict)


def tables_among(estate: Estate, places: Sequence[HdfsPlace]) -> HdfsTables:
    """The tables among an estate's places in HDFS."""
    declared = _declared(estate)
    tables = [place for place in places if place.kind is HdfsKind.TABLE]
    looked = {p.location: _looked(estate, p, places, declared.get(p.location, ())) for p in tables}
    why: dict[HdfsLocation, str] = {}
    for location, one in looked.items():
        own = one.result if isinstance(one.result, str) else None
        if reasons := [reason for reason in (own, *_sharing(location, looked)) if reason]:
            why[location] = "; ".join(reasons)
    found = {at: o.result for at, o in looked.items() if isinstance(o.result, Found) and at not in why}
    return HdfsTables(found, why)


def _declared(estate: Estate) -> dict[HdfsLocation, tuple[DeclaredTable, ...]]:
    found: dict[HdfsLocation, tuple[DeclaredTable, ...]] = {}
    for table in (t for c in estate.catalogs.values() for t in c.tables if is_hdfs(t.location)):
        location = hdfs_location(table.location)
        found[location] = (*found.get(location, ()), table)
    return found


def _looked(estate: Estate, place: HdfsPlace, places: Sequence[HdfsPlace], declared: Sequence[DeclaredTable]) -> Looked:
    """One table, or why it is none that steps erase."""
    if place.format is None:
        return Looked("the metadata of several formats lies in its folder: move one of the tables")
    adapter = format_of(place.format)
    if not adapter.erased_in_hdfs:
        able = ", ".join(one.title for one in table_formats() if one.erased_in_hdfs)
        return Looked(
            f"of tables in HDFS, steps of this version erase those of {able} alone: erase the person there with the"
            " table's own engine, then plan again"
        )
    if other := next((t for t in declared if t.format is not place.format), None):
        return Looked(f"the estate file declares it as {other.format}, and its folder is a {adapter.title} table's")
    if place.registered not in (None, place.format):
        return Looked(f"its catalog names it as {place.registered}, and its folder is a {adapter.title} table's")
    inside = (p for p in places if p.kind in _OF_TABLES and p.location != place.location)
    if crowd := sorted(str(p.location) for p in inside if place.location.holds(p.location)):
        return Looked(f"{crowd[0]} lies inside its folder: move it out")
    try:
        folder = HdfsPath(client_at(estate, place.location), place.location.path)
        return adapter.look_in_hdfs(folder, declared[0].name if declared else place.table)
    except EstateError as error:
        return Looked("; ".join(filter(None, (error.what, error.todo))))
    except OSError as error:
        return Looked(f"HDFS refuses to show it ({str(error).rpartition(': ')[2]})")


def _sharing(location: HdfsLocation, looked: Mapping[HdfsLocation, Looked]) -> list[str]:
    """With which other tables it has files in common (hazard I7)."""
    others = [(at, one) for at, one in looked.items() if at != location]
    mine = sorted(str(at) for at, _ in others if any(at.holds(read) for read in looked[location].reads))
    theirs = sorted(str(at) for at, one in others if any(location.holds(read) for read in one.reads))
    return [
        *(f"it reads files of the table {at}" for at in mine),
        *(f"the table {at} reads its files, as a shallow clone does" for at in theirs),
    ]
