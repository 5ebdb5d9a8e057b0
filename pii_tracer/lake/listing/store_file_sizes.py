"""Places in stores that are reached over the network, with the sizes of their objects, from the stores' listings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.listing.listed_place import ListedFile, ListedPlace, NotListed, PlaceKind
from pii_tracer.lake.stores.object_places.discovery import declared_places
from pii_tracer.lake.stores.object_places.protocol import versioned_store
from pii_tracer.lake.stores.registry import store_at
from pii_tracer.model.datasets import PLAIN, Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import hdfs_location, is_hdfs, is_object_place, object_location, object_uri

_ONE_PLACE = "its contents are not known before its metadata is read, so all its tables are listed as one place"


@dataclass(frozen=True)
class _Stored:
    """A place to list. uri: what everything in it begins with. of_root: it is a root, in which tables may lie."""

    name: str
    uri: str
    kind: PlaceKind
    format: Format | None = None
    of_root: bool = False
    soft_delete_seconds: int = 0


@dataclass
class StoredPlaces:
    """Lists what an estate has in stores. not_listed: what could not be listed so far."""

    estate: Estate
    paths: EstatePaths
    not_listed: list[NotListed]

    def __iter__(self) -> Iterator[ListedPlace]:
        self._unlistable()
        found = {place.uri: place for place in (*self._in_hdfs(), *self._objects(), *self._in_s3())}
        known = sorted(found)
        for uri in known:
            place = found[uri]
            within = tuple(other for other in known if other != uri and other.startswith(uri))
            if place.of_root:
                self.not_listed.append(NotListed(uri, _ONE_PLACE))
            yield ListedPlace(
                place.name,
                uri.rstrip("/"),
                place.kind,
                self._files(uri, within),
                place.format,
                soft_delete_seconds=place.soft_delete_seconds,
            )

    def _in_s3(self) -> Iterator[_Stored]:
        for table in self.paths.remote:
            uri = _folder(table.location)
            if table.format is None:
                yield _Stored(str(table.location), uri, PlaceKind.SEARCHED, of_root=True)
                continue
            erased = format_of(table.format).erased_in_s3 is not None and table.title is not None
            kind = PlaceKind.ARCHIVE if table.format in PLAIN else PlaceKind.BUCKET_TABLE
            name = table.title or str(table.location)
            yield _Stored(name, uri, kind if erased else PlaceKind.SEARCHED, table.format)
        for archive in self.estate.archives:
            uri = object_uri(archive.bucket, archive.prefix)
            yield _Stored(archive.name, uri, PlaceKind.ARCHIVE, archive.format)

    def _in_hdfs(self) -> Iterator[_Stored]:
        for root in filter(is_hdfs, self.estate.roots):
            yield _Stored(root, _folder(hdfs_location(root)), PlaceKind.HDFS_FOLDER, of_root=True)
        declared = [
            (t.name, t.format, hdfs_location(t.location))
            for catalog in self.estate.catalogs.values()
            for t in catalog.tables
            if is_hdfs(t.location) and not t.options  # these are in the registry
        ]
        declared += [(t.title, t.format, place) for t in self.paths.registry.hdfs for place in t.places]
        for name, kind, location in declared:
            if kind in PLAIN:
                yield _Stored(name, _folder(location), PlaceKind.HDFS_FOLDER, kind)
            else:
                erased = "hdfs" in format_of(kind).erased_in
                yield _Stored(name, _folder(location), PlaceKind.TABLE if erased else PlaceKind.SEARCHED, kind)

    def _objects(self) -> Iterator[_Stored]:
        """Places of `object_stores`, and tables that are declared or that catalogs name there."""
        registry = self.paths.registry
        named = {table.location: (table.title, table.format) for table in registry.stored}
        for table in (t for catalog in self.estate.catalogs.values() for t in catalog.tables):
            if is_object_place(table.location):
                named[object_location(table.location)] = (table.name, table.format)
        places = {location for location, _ in declared_places(self.estate, registry.stored, registry.opaque_stored)}
        for location in sorted({*places, *named}, key=str):
            try:
                seconds = versioned_store(self.estate, location).settings().soft_delete_seconds
            except EstateError as error:
                self.not_listed.append(NotListed(str(location), f"its settings cannot be read: {error.what}"))
                seconds = 0
            name, kind = named.get(location, (str(location), None))
            of = PlaceKind.OBJECTS
            if kind is not None and kind not in PLAIN:
                scheme = location.store.partition("://")[0]
                of = PlaceKind.TABLE if scheme in format_of(kind).erased_in else PlaceKind.SEARCHED
            yield _Stored(name, _folder(location), of, kind, soft_delete_seconds=seconds)

    def _files(self, uri: str, within: tuple[str, ...]) -> Iterator[ListedFile]:
        """Objects of a place without those of places in it."""
        try:
            store, prefix = store_at(self.estate, uri)
            inner = tuple(other.removeprefix(uri) for other in within)
            for version in store.versions(prefix):
                if not version.key.removeprefix(prefix).startswith(inner) and not version.delete_marker:
                    yield _listed(version)
        except EstateError as error:
            self.not_listed.append(NotListed(uri, f"it cannot be listed: {error.what}"))

    def _unlistable(self) -> None:
        """Places whose sizes no listing here tells."""
        for cluster in self.estate.kafka:
            for topic in cluster.topics:
                self._untold(topic.name, "a Kafka topic: its size is not known before it is read")
        for server in self.estate.lakefs:
            for repository in server.repositories:
                self._untold(repository.name, "a lakeFS repository: its objects are not listed here")
        for vault in self.estate.vaults:
            self._untold(vault.name, "a Glacier vault: its inventory is not read here")

    def _untold(self, where: str, reason: str) -> None:
        self.not_listed.append(NotListed(where, reason))


def _folder(location: object) -> str:
    """With a slash at its end: without it, `t` would have the objects of `t2`."""
    return f"{str(location).rstrip('/')}/"


def _listed(version: ObjectVersion) -> ListedFile:
    name = version.key.rpartition("/")[2]
    lock = version.lock
    return ListedFile(
        version.size,
        not name.startswith((".", "_")),
        version.latest,
        version.storage_class,
        version.modified,
        lock.until if lock else None,
    )
