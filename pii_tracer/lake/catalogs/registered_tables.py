"""The tables that an estate's catalogs register, brought down to real places on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalog_only_partitions import PartitionedTable
from pii_tracer.lake.catalogs.base import CatalogEntry, CatalogView, FilePlace, Head
from pii_tracer.lake.catalogs.named_places import located
from pii_tracer.lake.catalogs.partitions_elsewhere import PartitionsElsewhere
from pii_tracer.lake.catalogs.registry import list_catalogs
from pii_tracer.lake.catalogs.tables_in_stores import HdfsTable, StoredTable, apart, in_hdfs, in_object_stores, in_store
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import InventoryGap, RefKind
from pii_tracer.lake.read_result import gap
from pii_tracer.model.datasets import DatasetId, Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.layout import TextTable
from pii_tracer.model.hive_text.text_reading_rules import TextPlaces
from pii_tracer.model.locations import (
    UNTOLD,
    HdfsLocation,
    ObjectLocation,
    S3Location,
    is_hdfs,
    is_s3,
    local_path,
    location_of,
    s3_location,
)

_Place = TypeVar("_Place", S3Location, HdfsLocation, ObjectLocation)
_At = TypeVar("_At", S3Location, HdfsLocation, ObjectLocation, covariant=True)


@dataclass(frozen=True)
class PlacedHead:
    """A reference of a Nessie catalog that has a table. table: its name in Spark SQL, None where it has none."""

    head: Head
    table: str | None
    metadata: Path


@dataclass(frozen=True)
class Registered:
    """A registered table at its place. metadata: the file its catalog points at (Iceberg).

    heads: where a Nessie catalog keeps it, the references that have it; names and metadata are those of the first.
    committed: metadata files that the visible history names, where some of it may be hidden; None where not.
    text: of text by columns, how it is read. misread: two tables read these files in different ways, and one as text.
    """

    names: tuple[str, ...]
    format: Format
    location: Path
    metadata: Path | None = None
    heads: tuple[PlacedHead, ...] = ()
    committed: frozenset[str] | None = None
    text: TextTable | None = None
    misread: bool = False


@dataclass(frozen=True)
class RemoteTable:
    """A table in S3. title: what people know it by; None for a folder that the estate file names as a root.

    name: in Spark SQL, where it has one. location: its folder; of an Iceberg table perhaps another one than metadata,
    the file that its catalog points at, tells. branched: that catalog has branches (Nessie), and this is one's. text:
    as of `CatalogEntry`; misread: why nobody knows how its text is read, where tables there differ in that.
    partitions_of: of a folder of a partition's own, its table's folder in lineage.
    """

    title: str | None
    name: str | None
    format: Format | None
    location: S3Location
    metadata: S3Location | None = None
    branched: bool = False
    text: TextTable | None = None
    misread: str = ""
    partitions_of: tuple[DatasetId, ...] = ()


@dataclass(frozen=True)
class Registry:
    """tables: by location. remote: those in S3. hdfs: those in HDFS, at declared NameNodes. stored: those in
    stores of `object_stores`. gaps: what the catalogs did
    not answer, or what cannot be read.

    opaque: folders whose files are not the rows of a table, though they may look so, each with that table's title;
    opaque_s3: those in S3; opaque_hdfs: those in HDFS; opaque_stored: those in stores of `object_stores`. views: those
    whose queries are read as lineage. folders: those that are no tables. partitioned: as of `Inventory`; the dataset of
    those on this machine is not told. created: as of `Listing`.
    """

    tables: Mapping[Path, Registered] = field(default_factory=dict)
    remote: tuple[RemoteTable, ...] = ()
    hdfs: tuple[HdfsTable, ...] = ()
    stored: tuple[StoredTable, ...] = ()
    gaps: tuple[InventoryGap, ...] = ()
    opaque: Mapping[Path, str] = field(default_factory=dict)
    opaque_s3: Mapping[S3Location, str] = field(default_factory=dict)
    opaque_hdfs: Mapping[HdfsLocation, str] = field(default_factory=dict)
    opaque_stored: Mapping[ObjectLocation, str] = field(default_factory=dict)
    views: tuple[CatalogView, ...] = ()
    folders: tuple[FilePlace, ...] = ()
    partitioned: tuple[PartitionedTable, ...] = ()
    created: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def texts(self, others: Iterable[str] = ()) -> TextPlaces:
        """By what rules text is read, in every store. others: folders of tables that no catalog lists."""
        here = {place.as_posix(): table.text for place, table in self.tables.items()}
        stored = (table for kind in (self.remote, self.hdfs, self.stored) for table in kind if table.title)
        named = {str(table.location).rstrip("/"): table.text for table in stored}
        tables = {**{place.rstrip("/"): None for place in others}, **here, **named}
        opaque = {place.as_posix(): title for place, title in self.opaque.items()}
        in_stores = (self.opaque_s3, self.opaque_hdfs, self.opaque_stored)
        opaque |= {str(place).rstrip("/"): title for kind in in_stores for place, title in kind.items()}
        unknown = {place: _UNTOLD.format(title) for place, title in opaque.items()}
        unknown |= {str(one.location).rstrip("/"): one.misread for one in self.remote if one.misread}
        return TextPlaces(tables=tables if any(tables.values()) else {}, unknown=unknown)


_UNTOLD = "nobody knows how readers decode the files of the catalog's table {}, so its values may have a different form"


class _Table(Protocol[_At]):
    """A table in a store."""

    @property
    def title(self) -> str | None: ...
    @property
    def format(self) -> Format | None: ...
    @property
    def location(self) -> _At: ...
    @property
    def text(self) -> TextTable | None: ...


def read_registry(estate: Estate, base: Path, inside: Callable[[Path], bool]) -> Registry:
    """Ask the catalogs. inside: whether a path lies in the estate; nothing outside of it is opened.

    A table that cannot be placed is a gap: `remote_table` (on another host or store), `outside_roots`, `unreadable`,
    `unnameable_table` (a dot in its name), `registered_twice` (two names for one Iceberg table, which then has two
    histories: expiring one breaks the other).

    Raises:
        EstateError: a catalog's client library is not installed.
    """
    found: dict[Path, Registered] = {}
    remote: list[RemoteTable] = []
    hdfs: list[HdfsTable] = []
    stored: list[StoredTable] = []
    gaps: list[InventoryGap] = []
    opaque: dict[Path, str] = {}
    opaque_hdfs: dict[HdfsLocation, str] = {}
    opaque_stored: dict[ObjectLocation, str] = {}
    opaque_s3: dict[S3Location, str] = {}
    views: list[CatalogView] = []
    created: dict[str, Mapping[str, int]] = {}
    folders: list[FilePlace] = []
    elsewhere, complete = PartitionsElsewhere(), True
    for listing in list_catalogs(estate, base):
        complete = complete and not listing.unread
        gaps += [*listing.gaps, *_former(listing.former, inside)]
        views += listing.views
        created |= listing.created
        folders += listing.places
        for found_at in (located(estate, one, inside) for one in listing.places):
            if isinstance(found_at, S3Location):
                remote.append(RemoteTable(None, None, None, found_at))
                elsewhere.named[found_at] += 1
            elif found_at is not None:
                gaps.append(found_at)
        opaque |= {place: one.title for one in listing.opaque for place in _here(one.places)}
        for one in listing.opaque:
            opaque_s3 |= dict.fromkeys(_in_s3(one.places), one.title)
            elsewhere.refuse(one)
            there, unplaced = in_hdfs(estate, one.title, tuple(filter(is_hdfs, one.places)))
            opaque_hdfs |= dict.fromkeys(there, one.title)
            gaps += unplaced
            in_stores, unplaced = in_object_stores(estate, one.title, one.places)
            opaque_stored |= dict.fromkeys(in_stores, one.title)
            gaps += unplaced
        heads: dict[Path, list[tuple[CatalogEntry, PlacedHead]]] = {}
        for entry in listing.entries:
            title = entry.name or ".".join(entry.parts)
            beyond, unplaced = in_hdfs(estate, title, entry.partitions)
            gaps += unplaced
            text = entry.metadata if format_of(entry.format).registered_by_metadata else entry.location
            placed = in_store(estate, entry, text or "", beyond) or _place(entry, inside)
            if beyond and not isinstance(placed, HdfsTable):
                gaps.append(apart(title, beyond))
            elsewhere.take(entry, None if isinstance(placed, InventoryGap) else placed.location)
            if isinstance(placed, InventoryGap):
                gaps.append(placed)
            elif isinstance(placed, StoredTable):
                stored.append(placed)
            elif isinstance(placed, RemoteTable):
                remote.append(placed)
            elif isinstance(placed, HdfsTable):
                hdfs.append(placed)
            elif entry.head and placed.metadata:
                head = PlacedHead(entry.head, entry.name, placed.metadata)
                heads.setdefault(placed.location, []).append((entry, head))
            else:
                if entry.name is None:
                    reason = (
                        "a part of the table's name contains a dot, which looks like the end of a namespace: rename "
                        "the table"
                    )
                    gaps.append(gap(None, GapKind.UNNAMEABLE_TABLE, reason, str(placed.location)))
                _add(found, gaps, placed)
        for location, group in heads.items():
            gaps += _two_keys(location, group)
            kind = group[0][0].format
            _add(found, gaps, _of_heads(location, kind, [head for _, head in group], listing.committed))
    for location in [place for place, table in found.items() if table.misread]:
        opaque[location] = ", ".join(found.pop(location).names)
    misread_hdfs, misread_stored = _misread(hdfs, opaque_hdfs), _misread(stored, opaque_stored)
    misread = _misread(remote, opaque_s3)
    own, left = elsewhere.settled(estate, complete=complete)
    gaps += left
    remote += (RemoteTable(one.title, None, one.format, one.location, partitions_of=(one.of,)) for one in own)
    gaps += [_misread_gap(str(place), place.dataset, names) for place, names in misread_hdfs.items()]
    gaps += [_misread_gap(str(place), place.dataset, names) for place, names in misread_stored.items()]
    return Registry(
        tables=found,
        remote=tuple(
            replace(one, misread=_MISREAD.format(misread[one.location])) if one.location in misread else one
            for one in remote
        ),
        hdfs=tuple(one for one in hdfs if one.location not in misread_hdfs),
        stored=tuple(one for one in stored if one.location not in misread_stored),
        gaps=tuple(gaps),
        opaque=opaque,
        opaque_s3=opaque_s3,
        opaque_hdfs=opaque_hdfs | misread_hdfs,
        opaque_stored=opaque_stored | misread_stored,
        views=tuple(views),
        folders=tuple(folders),
        partitioned=elsewhere.partitioned(estate),
        created=created,
    )


_MISREAD = "{} read the same files as different text, so the rows are unknown. Drop all registrations except one"


def _misread_gap(place: str, dataset: DatasetId | None, names: str) -> InventoryGap:
    return gap(dataset, GapKind.REGISTERED_TWICE, _MISREAD.format(names), place)


def _misread(tables: Iterable[_Table[_Place]], opaque: Mapping[_Place, str]) -> dict[_Place, str]:
    """Places that catalogs read in several ways, once at least as text, and the titles of the tables there. opaque:
    those of which nobody knows how they are read."""
    told: dict[_Place, list[_Table[_Place]]] = {}
    for table in tables:
        if table.format is not None:
            told.setdefault(table.location, []).append(table)
    found = {}
    for place, there in told.items():
        texts = {table.text for table in there}
        if len(texts) > 1 or (None not in texts and place in opaque):
            titles = {table.title or str(place) for table in there} | ({opaque[place]} if place in opaque else set())
            found[place] = ", ".join(sorted(titles))
    return found


def _here(places: tuple[str, ...]) -> Iterator[Path]:
    """Those of this machine."""
    for text in places:
        with suppress(EstateError):
            yield local_path(text).resolve()


def _in_s3(places: tuple[str, ...]) -> Iterator[S3Location]:
    for text in filter(is_s3, places):
        with suppress(EstateError):
            yield s3_location(text)


def _add(found: dict[Path, Registered], gaps: list[InventoryGap], placed: Registered) -> None:
    first = found.setdefault(placed.location, placed)
    if first is placed:
        return
    if format_of(placed.format).registered_by_metadata:
        gaps.append(_twice(first, placed))
    names = tuple(sorted({*first.names, *placed.names}))
    misread = first.misread or first.text != placed.text
    if misread:
        gaps.append(_misread_gap(str(first.location), None, ", ".join(names)))
    found[placed.location] = Registered(
        names, first.format, first.location, first.metadata, text=first.text, misread=misread
    )


_ORDER = (RefKind.NESSIE_BRANCH, RefKind.NESSIE_TAG)


def _of_heads(location: Path, kind: Format, heads: list[PlacedHead], committed: frozenset[str] | None) -> Registered:
    """The default branch's head first, then branches, then tags."""
    heads.sort(key=lambda h: (not h.head.default, _ORDER.index(h.head.kind), h.head.ref))
    # without a name for the first head there is none: another reference's name would mean other rows
    names = tuple(dict.fromkeys(h.table for h in heads if h.table)) if heads[0].table else ()
    return Registered(names, kind, location, heads[0].metadata, tuple(heads), committed)


def _two_keys(location: Path, group: list[tuple[CatalogEntry, PlacedHead]]) -> list[InventoryGap]:
    """One place under two keys of one reference: each key has a history of its own."""
    keys: dict[str, set[str]] = {}
    for entry, placed in group:
        keys.setdefault(placed.head.ref, set()).add(".".join(entry.parts))
    return [
        gap(
            None,
            GapKind.REGISTERED_TWICE,
            f"on {ref} the table has more than one key ({', '.join(sorted(names))}): an erasure under one key breaks "
            "the table under the others; drop all keys except one",
            str(location),
        )
        for ref, names in sorted(keys.items())
        if len(names) > 1
    ]


def _former(places: tuple[str, ...], inside: Callable[[Path], bool]) -> list[InventoryGap]:
    """Tables that only old commits name: inside the roots their folders are met as such, elsewhere nobody looks."""
    found = []
    for text in places:
        try:
            beyond = not inside(local_path(text)) and local_path(text).exists()
        except EstateError:
            beyond = True
        if beyond:
            reason = (
                "a table that only old commits of its catalog reference is outside of the estate's roots, and was "
                "not read"
            )
            found.append(gap(None, GapKind.OUTSIDE_ROOTS, reason, text))
    return found


def _twice(first: Registered, second: Registered) -> InventoryGap:
    names = ", ".join(sorted({*first.names, *second.names}))
    reason = (
        f"the table is registered more than once ({names}): an erasure under one name breaks the table under the others"
    )
    return gap(None, GapKind.REGISTERED_TWICE, reason + "; drop all registrations except one", str(first.location))


def _place(entry: CatalogEntry, inside: Callable[[Path], bool]) -> Registered | RemoteTable | InventoryGap:
    title = ".".join(entry.parts)
    adapter = format_of(entry.format)
    text = entry.metadata if adapter.registered_by_metadata else entry.location
    if not text:
        return gap(None, GapKind.UNREADABLE, "the catalog names no metadata file of the table", title)
    try:
        place = location_of(text)
        if isinstance(place, S3Location):
            return _remote(entry, place)
        metadata = place if adapter.registered_by_metadata else None
        if metadata is not None:
            if not inside(metadata):
                reason = f"the metadata of {title} is outside of the estate's roots, and was not read"
                return gap(None, GapKind.OUTSIDE_ROOTS, reason, str(metadata))
            place = location_of(adapter.location_told_by(metadata))
            if isinstance(place, S3Location):
                return RemoteTable(entry.name or title, entry.name, entry.format, place)
    except EstateError as error:
        kind = GapKind.UNREADABLE if error.where and "://" not in error.where else GapKind.REMOTE_TABLE
        shown = text if error.where != UNTOLD else UNTOLD
        return gap(None, kind, f"the registered table {title} was not read: {error.what}", shown)
    if not inside(place):
        reason = f"the registered table {title} is outside of the estate's roots, and was not read"
        return gap(None, GapKind.OUTSIDE_ROOTS, reason, str(place))
    return Registered((entry.name,) if entry.name else (), entry.format, place.resolve(), metadata, text=entry.text)


def _remote(entry: CatalogEntry, place: S3Location) -> RemoteTable:
    """A table in S3. Where its catalog does not tell its folder, it is the one that `metadata` lies in, as a rule."""
    title = entry.name or ".".join(entry.parts)
    if not format_of(entry.format).registered_by_metadata:
        return RemoteTable(title, entry.name, entry.format, place, text=entry.text)
    return RemoteTable(title, entry.name, entry.format, place.parent.parent, place, entry.head is not None)
