"""Tables in HDFS that steps can erase, and of every other one why nothing is erased in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.lake.stores.hdfs.webhdfs import client_at
from pii_tracer.lake.stores.tables_by_folder import StoredTables, TableFolder, declared_tables, tables_in
from pii_tracer.model.locations import HdfsLocation, hdfs_location, is_hdfs

_OF_TABLES = frozenset({HdfsKind.TABLE, HdfsKind.FOLDER, HdfsKind.TEMPORARY})
"""Kinds of places that may not lie in a table's folder; snapshots and trash in it are places apart."""


def tables_among(estate: Estate, places: Sequence[HdfsPlace]) -> StoredTables:
    """The tables among an estate's places in HDFS."""
    return tables_in(_folders(estate, places), declared_tables(estate, is_hdfs, hdfs_location))


def _folders(estate: Estate, places: Sequence[HdfsPlace]) -> Iterator[TableFolder]:
    for place in places:
        if place.kind is HdfsKind.TABLE:
            yield TableFolder(
                location=place.location,
                format=place.format,
                folder=lambda at=place.location: _path(estate, at),  # type: ignore[misc]
                registered=place.registered,
                name=place.table,
                titles=place.named.titles,
                metadata=place.named.metadata,
                branched=place.named.branched,
                inside=_inside(place, places),
            )


def _inside(place: HdfsPlace, places: Sequence[HdfsPlace]) -> HdfsLocation | None:
    others = (p.location for p in places if p.kind in _OF_TABLES and p.location != place.location)
    return min((other for other in others if place.location.holds(other)), key=str, default=None)


def _path(estate: Estate, location: HdfsLocation) -> HdfsPath:
    return HdfsPath(client_at(estate, location), location.path)
