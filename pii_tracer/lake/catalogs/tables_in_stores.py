"""Tables that catalogs register in HDFS and in object stores, at their places there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.hdfs import as_declared
from pii_tracer.lake.catalogs.base import CatalogEntry
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.read_result import gap
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.layout import TextTable
from pii_tracer.model.locations import (
    HdfsLocation,
    ObjectLocation,
    hdfs_location,
    is_hdfs,
    is_object_place,
    object_location,
)


@dataclass(frozen=True)
class HdfsTable:
    """A table in HDFS. name: in Spark SQL, where it has one. partitions: those outside its folder.

    Of an Iceberg table, metadata: the folder of the file that its catalog points at, where that lies elsewhere; file:
    that file. branched: its catalog has branches. text, notes: as of `CatalogEntry`.
    """

    title: str
    name: str | None
    format: Format
    location: HdfsLocation
    partitions: tuple[HdfsLocation, ...] = ()
    metadata: HdfsLocation | None = None
    file: str | None = None
    branched: bool = False
    text: TextTable | None = None
    notes: str | None = None

    @property
    def places(self) -> tuple[HdfsLocation, ...]:
        """Every folder that the catalog tells of it."""
        return (self.location, *self.partitions, *((self.metadata,) if self.metadata else ()))


@dataclass(frozen=True)
class StoredTable:
    """A table in a store of `object_stores`. name: in Spark SQL, where it has one.

    file, branched, text, notes: as of `HdfsTable`.
    """

    title: str
    name: str | None
    format: Format
    location: ObjectLocation
    file: str | None = None
    branched: bool = False
    text: TextTable | None = None
    notes: str | None = None


def in_store(
    estate: Estate, entry: CatalogEntry, text: str, beyond: tuple[HdfsLocation, ...]
) -> HdfsTable | StoredTable | InventoryGap | None:
    """A table in HDFS or in an object store; None of one elsewhere. text: where its catalog says that it lies."""
    if is_hdfs(text):
        return _hdfs_table(estate, entry, beyond)
    if is_object_place(text):
        return _object_table(estate, entry, text)
    return None


def apart(title: str, partitions: Sequence[HdfsLocation]) -> InventoryGap:
    """The gap of a table that lies elsewhere than its partitions."""
    reason = f"partitions of the registered table {title} are in HDFS, but the table is in a different store"
    first = partitions[0]
    return gap(first.dataset, GapKind.EXTERNAL_FILES, _TOGETHER.format(reason), str(first), partitions)


def _object_table(estate: Estate, entry: CatalogEntry, text: str) -> StoredTable | InventoryGap:
    title = entry.name or ".".join(entry.parts)
    try:
        place = object_location(text)
    except EstateError as error:
        return gap(None, GapKind.REMOTE_TABLE, f"{_UNREAD.format(title)}: {error.what}", text)
    if any(store.store == place.store for store in estate.object_stores):
        if not format_of(entry.format).registered_by_metadata:
            return StoredTable(title, entry.name, entry.format, place, text=entry.text)
        told = entry.location or ""
        own = object_location(told) if is_object_place(told) else place.parent.parent
        return StoredTable(title, entry.name, entry.format, own, str(place), entry.head is not None)
    return _undeclared(title, place)


_TOGETHER = (
    "{}, so the plan does not erase them with the table. Move them into the table's folder, or declare each as a table"
)


def in_hdfs(estate: Estate, title: str, texts: tuple[str, ...]) -> tuple[tuple[HdfsLocation, ...], list[InventoryGap]]:
    """Places of one table in HDFS, and a gap for each at a NameNode that nobody declared."""
    found: list[HdfsLocation] = []
    gaps: list[InventoryGap] = []
    for text in texts:
        try:
            place = as_declared(estate.hdfs, hdfs_location(text))
        except EstateError as error:
            gaps.append(
                gap(None, GapKind.REMOTE_TABLE, f"the registered table {title} was not read: {error.what}", title)
            )
            continue
        if any(one.root.holds(place) for one in estate.hdfs):
            found.append(place)
        else:
            reason = (
                f"the registered table {title} was not read: the estate file does not declare its NameNode. Add the "
                "NameNode to `hdfs`"
            )
            gaps.append(gap(place.dataset, GapKind.REMOTE_TABLE, reason, str(place)))
    return tuple(found), gaps


def in_object_stores(
    estate: Estate, title: str, texts: tuple[str, ...]
) -> tuple[tuple[ObjectLocation, ...], list[InventoryGap]]:
    """Places of one table in object stores, and a gap for each in a store that nobody declared."""
    found: list[ObjectLocation] = []
    gaps: list[InventoryGap] = []
    for text in filter(is_object_place, texts):
        try:
            place = object_location(text)
        except EstateError as error:
            gaps.append(gap(None, GapKind.REMOTE_TABLE, f"{_UNREAD.format(title)}: {error.what}", text))
            continue
        if any(store.store == place.store for store in estate.object_stores):
            found.append(place)
        else:
            gaps.append(_undeclared(title, place))
    return tuple(found), gaps


def _undeclared(title: str, place: ObjectLocation) -> InventoryGap:
    reason = (
        f"{_UNREAD.format(title)}: the estate file does not declare its bucket or container. Add it to `object_stores`"
    )
    return gap(place.dataset, GapKind.REMOTE_TABLE, reason, str(place))


_UNREAD = "the registered table {} was not read"


def _hdfs_table(estate: Estate, entry: CatalogEntry, beyond: tuple[HdfsLocation, ...]) -> HdfsTable | InventoryGap:
    """A table in HDFS. An Iceberg table's folder is the one around its metadata where its catalog does not tell it."""
    title = entry.name or ".".join(entry.parts)
    texts = tuple(text for text in (entry.location, entry.metadata) if text and is_hdfs(text))
    places, gaps = in_hdfs(estate, title, texts)
    if gaps:
        return gaps[0]
    if not format_of(entry.format).registered_by_metadata:
        return HdfsTable(title, entry.name, entry.format, places[0], beyond, text=entry.text, notes=entry.notes)
    folder = _parent(places[-1])
    location = places[0] if len(places) > 1 else _parent(folder)
    return HdfsTable(
        title,
        entry.name,
        entry.format,
        location,
        metadata=None if location.holds(folder) else folder,
        file=str(places[-1]),
        branched=entry.head is not None,
    )


def _parent(place: HdfsLocation) -> HdfsLocation:
    return hdfs_location(f"{place.name_node}{place.path.rpartition('/')[0] or '/'}")
