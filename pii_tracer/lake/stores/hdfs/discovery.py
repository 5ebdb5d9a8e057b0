"""Walks an estate's places in HDFS: tables, bare folders, and where HDFS keeps what was deleted.

Every place is a gap of its own, until planning has read it and has a step for it. What cannot be listed is a gap, too.
Snapshots are looked for at every folder on the way to a place and in it, trash in every user's home.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import cast

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.registered_tables import Registry
from pii_tracer.lake.formats.plain_files.data_file import PARTITION
from pii_tracer.lake.formats.registry import format_of, table_formats
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.read_result import gap
from pii_tracer.lake.stores.base import Absent, StoreError
from pii_tracer.lake.stores.hdfs.former_paths import TRASH
from pii_tracer.lake.stores.hdfs.listed_folder import ListedFolder
from pii_tracer.lake.stores.hdfs.nameservice_settings import unknown_to_engines
from pii_tracer.lake.stores.hdfs.places import HdfsFile, HdfsKind, HdfsPlace
from pii_tracer.lake.stores.hdfs.registered_places import with_registered
from pii_tracer.lake.stores.hdfs.webhdfs import SNAPSHOTS, Status, WebHdfs, client_at, joined
from pii_tracer.model.datasets import Format
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import HdfsLocation, hdfs_location, is_hdfs

_TEMPORARY = ("_temporary", ".hive-staging*", ".spark-staging*")
_OWN = frozenset({HdfsKind.TRASH, HdfsKind.TEMPORARY, HdfsKind.SNAPSHOT})
"""Kinds of places of which all that lies below is a part."""

_UNTREATED = {
    HdfsKind.TABLE: (GapKind.HDFS_PLACE, "a table is in HDFS"),
    HdfsKind.FOLDER: (GapKind.HDFS_PLACE, "files are in HDFS"),
    HdfsKind.SNAPSHOT: (GapKind.HDFS_SNAPSHOT, "a snapshot retains the bytes of deleted files"),
    HdfsKind.TRASH: (GapKind.HDFS_TRASH, "the trash of a user retains deleted files"),
    HdfsKind.TEMPORARY: (GapKind.HDFS_TEMPORARY, "a job left temporary files, or is running"),
}  # fmt: skip


def places_in_hdfs(estate: Estate, registered: Iterable[HdfsLocation] = ()) -> tuple[HdfsLocation, ...]:
    """The roots and tables of an estate in HDFS, sorted, none within another. registered: those of catalogs."""
    texts = (*estate.roots, *(t.location for c in estate.catalogs.values() for t in c.tables))
    named = {*registered, *(hdfs_location(text) for text in texts if is_hdfs(text))}
    return tuple(sorted((p for p in named if not any(o != p and o.holds(p) for o in named)), key=str))


def discover_hdfs(estate: Estate, registry: Registry) -> tuple[tuple[HdfsPlace, ...], tuple[InventoryGap, ...]]:
    """Every place in HDFS with its files, and a gap for each; and a gap for what could not be looked at.

    registry: what the estate's catalogs name there.
    """
    named = (*(place for table in registry.hdfs for place in table.places), *registry.opaque_hdfs)
    wanted = places_in_hdfs(estate, named)
    places: list[HdfsPlace] = []
    gaps: list[InventoryGap] = []
    for name_node in sorted({place.name_node for place in wanted}):
        mine = [place for place in wanted if place.name_node == name_node]
        known = {t.location.path: t.format for t in registry.hdfs if t.location.name_node == name_node}
        walk = _Walk(client_at(estate, mine[0]), name_node, known)
        for place in mine:
            walk.root(place.path)
        walk.trash()
        agreed = _agreed(estate, mine[0])
        unreached = unknown_to_engines(estate, mine[0])
        places += (
            place.model_copy(update={"agreed": agreed.get(place.location.path), "unreached": unreached})
            for place in walk.places()
        )
        gaps += walk.gaps
    registered = with_registered(places, registry)
    return registered, (*gaps, *map(gap_of, registered))


def places_now(
    estate: Estate, location: HdfsLocation, table: Format | None = None
) -> tuple[tuple[HdfsPlace, ...], tuple[InventoryGap, ...]]:
    """A place as it is now, with the places in it, and what could not be listed. table: the format that a catalog gave
    it, where it is a table.

    Raises:
        Absent: it is gone.
        StoreError: it is no folder, or the NameNode does not answer, or refuses to show the place itself.
    """
    walk = _Walk(client_at(estate, location), location.name_node, {location.path: table} if table else {})
    found = walk.client.status(location.path)
    if found.kind != "DIRECTORY":
        raise StoreError(
            "the place is not a folder", "NoFolder", where=str(location), todo="use the folder that contains it"
        )
    if is_snapshot(location):
        walk.found[location.path] = _Found(HdfsKind.SNAPSHOT, mark=found.mark)
        walk.within(location.path, location.path)
    else:
        walk.within(location.path)
    return tuple(walk.places()), tuple(walk.gaps)


def trash_now(estate: Estate, location: HdfsLocation) -> tuple[tuple[HdfsFile, ...], tuple[InventoryGap, ...]]:
    """All files of the trash that what is deleted in a place can go to, and what could not be listed.

    Raises:
        EstateError: the NameNode does not answer.
    """
    walk = _Walk(client_at(estate, location), location.name_node)
    for folder in _above(location.path):
        walk.trash_at(folder)
    walk.trash()
    return tuple(file for place in walk.places() for file in place.files), tuple(walk.gaps)


def is_snapshot(location: HdfsLocation) -> bool:
    """Whether a place is a snapshot of a folder."""
    return location.path.rpartition("/")[0].endswith(f"/{SNAPSHOTS}")


def _agreed(estate: Estate, place: HdfsLocation) -> dict[str, str]:
    """By path, who agreed that what lies there may be deleted, and why."""
    mine = (name_node for name_node in estate.hdfs if name_node.root.holds(place))
    return {one.path.rstrip("/"): f"{one.owner}: {one.reason}" for name_node in mine for one in name_node.deletable}


def gap_of(place: HdfsPlace) -> InventoryGap:
    """The gap that a place is."""
    kind, reason = _UNTREATED[place.kind]
    if place.untreated:
        reason += f", and no step erases it: {place.untreated}"
    if place.encrypted:
        reason += "; it is in an encryption zone"
    if place.striped:
        reason += "; it is erasure-coded"
    return gap(place.location.dataset, kind, reason, str(place.location))


@dataclass
class _Found:
    kind: HdfsKind
    format: Format | None = None
    files: list[HdfsFile] = field(default_factory=list)
    encrypted: bool = False
    striped: bool = False
    mark: str = ""

    def take(self, path: str, entry: Status) -> None:
        self.files.append(HdfsFile(path, entry.size, entry.modified, entry.file_id))
        self.mark_as(entry)

    def mark_as(self, entry: Status) -> None:
        """Of a file, or of a folder, whose new files are as the folder is."""
        self.encrypted |= entry.encrypted
        self.striped |= entry.striped


@dataclass
class _Walk:
    """One NameNode. known: formats that catalogs give tables, by path. found: places by path. seen: folders that were
    listed, those of snapshots among them. marked: folders that wait to be listed, as the folder around them has them.
    """

    client: WebHdfs
    name_node: str
    known: Mapping[str, Format] = field(default_factory=dict)
    found: dict[str, _Found] = field(default_factory=dict)
    gaps: list[InventoryGap] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    marked: dict[str, Status] = field(default_factory=dict)

    def places(self) -> Iterator[HdfsPlace]:
        """Places with anything in them, sorted."""
        for path, one in sorted(self.found.items()):
            if one.files:
                yield HdfsPlace(
                    location=hdfs_location(f"{self.name_node}{path}"),
                    kind=one.kind,
                    format=one.format,
                    files=tuple(sorted(one.files)),
                    encrypted=one.encrypted,
                    striped=one.striped,
                    mark=one.mark,
                )

    def root(self, path: str) -> None:
        """A place of the estate, and what is kept of it above."""
        try:
            self.client.status(path)
        except Absent:
            self._gap(GapKind.MISSING_ROOT, "a root, table or partition of the estate does not exist", path)
        except StoreError as error:
            self._refused(error, path)
        for folder in _above(path):
            self._snapshots(folder)
            self.trash_at(folder)  # an encryption zone has a trash of its own
        self.within(path)

    def trash(self) -> None:
        """The trash of every user, and what snapshots keep of it."""
        try:
            homes = self.client.home().rpartition("/")[0] or "/"
            users = list(self.client.entries(homes))
        except Absent:
            return
        except StoreError as error:
            self._refused(error, "/")
            return
        for folder in (*_above(homes), homes):
            self._snapshots(folder)
        for user in users:
            if user.kind == "DIRECTORY":
                self._snapshots(joined(homes, user.name))
                self.trash_at(joined(homes, user.name))

    def trash_at(self, folder: str) -> None:
        """The trash in a folder, where it has one."""
        path = joined(folder, TRASH)
        try:
            self.client.status(path)
        except Absent:
            return
        except StoreError as error:
            self._refused(error, path)
            return
        self.within(path)

    def _snapshots(self, folder: str) -> None:
        path = joined(folder, SNAPSHOTS)
        if path in self.seen:
            return
        self.seen.add(path)
        try:
            found = self.client.snapshots(folder)
        except StoreError as error:
            self._refused(error, path)
            return
        for entry in found or ():
            place = joined(path, entry.name)
            self.found[place] = _Found(HdfsKind.SNAPSHOT, mark=entry.mark)
            self.within(place, place)

    def within(self, folder: str, owner: str | None = None) -> None:
        """Everything from a folder on. owner: the place that it is a part of, unless it is one of its own."""
        waiting = [(folder, owner)]
        while waiting:
            path, above = waiting.pop()
            if path in self.seen:
                continue
            self.seen.add(path)
            try:
                entries = list(self.client.entries(path))
                mine = self._place(path, entries, above)
                self.found[mine].mark_as(self.marked.pop(path) if path in self.marked else self.client.status(path))
            except StoreError as error:
                self._refused(error, path)
                continue
            if self.found[mine].kind is not HdfsKind.SNAPSHOT:
                self._snapshots(path)
            if not entries:  # its name may tell of somebody
                self.found[mine].files.append(HdfsFile(joined(path, ""), 0, 0, 0))
            for entry in entries:
                below = joined(path, entry.name)
                if entry.kind == "DIRECTORY":
                    waiting.append((below, mine))
                    self.marked[below] = entry
                elif entry.kind == "FILE":
                    self.found[mine].take(below, entry)
                else:
                    self._gap(GapKind.HDFS_UNREAD, "a link, which the tool does not follow", below)

    def _place(self, path: str, entries: list[Status], above: str | None) -> str:
        """The place that a folder is, or is a part of."""
        name, known = path.rpartition("/")[2], self.found[above] if above else None
        if above and known and (known.kind in _OWN or _owns(known.format, path.removeprefix(joined(above, "")))):
            return above
        if name == TRASH:
            self.found[path] = _Found(HdfsKind.TRASH)
        elif any(fnmatchcase(name, pattern) for pattern in _TEMPORARY):
            self.found[path] = _Found(HdfsKind.TEMPORARY)
        elif formats := self._formats(path, entries):
            self.found[path] = _Found(HdfsKind.TABLE, formats[0] if len(formats) == 1 else None)
        elif above and known and (known.kind is HdfsKind.TABLE or PARTITION.match(name)):
            return above
        else:
            self.found[path] = _Found(HdfsKind.FOLDER)
        return path

    def _formats(self, path: str, entries: list[Status]) -> list[Format]:
        # an adapter asks a folder what stands in it, wherever it lies
        folder = cast(Path, ListedFolder(self.client, path, {e.name: e.kind == "DIRECTORY" for e in entries}))
        told = self.known.get(path)
        return [
            one.name for one in table_formats() if one.is_table(folder) or (one.named_by_catalog and one.name == told)
        ]

    def _refused(self, error: StoreError, path: str) -> None:
        self._gap(GapKind.HDFS_UNREAD, f"{error.what}: {error.todo}", path)

    def _gap(self, kind: GapKind, reason: str, path: str) -> None:
        location = f"{self.name_node}{path}"
        self.gaps.append(gap(hdfs_location(location).dataset, kind, reason, location))


def _owns(table: Format | None, below: str) -> bool:
    """Whether a folder is a table's own, whatever it looks like. below: its path in the table's folder."""
    return table is not None and format_of(table).owns_place(tuple(below.split("/")))


def _above(path: str) -> Iterator[str]:
    """The folders that a path lies in, the root first."""
    parts = [part for part in path.split("/") if part]
    yield from ("/" + "/".join(parts[:depth]) for depth in range(len(parts)))
