"""A live object or folder of an object store with what reads it: of `pathlib.Path` what readers of tables ask of one.

What stands for a folder is an object without bytes whose key ends with a slash.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.object_places.protocol import VersionedStore, versioned_store
from pii_tracer.lake.stores.object_places.version_types import StoredVersion
from pii_tracer.lake.stores.remote_path import RemoteFile
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import ObjectLocation, is_object_place, object_location
from pii_tracer.model.timestamps import instant


@dataclass(frozen=True)
class ObjectPath(RemoteFile):
    """path: the key. version: as it was listed; None: asked for when the object is read.

    Two are equal when they name the same place. Everything that asks the store raises `OSError` when that refuses.
    """

    store: VersionedStore = field(compare=False)
    store_name: str
    path: str
    version: StoredVersion | None = field(default=None, compare=False)
    denied: ClassVar[frozenset[str]] = frozenset(
        {"forbidden", "AuthorizationFailure", "AuthorizationPermissionMismatch"}
    )

    @classmethod
    def at(cls, estate: Estate, location: ObjectLocation) -> ObjectPath:
        """A place of an estate.

        Raises:
            EstateError: the estate file does not declare the store, or its client library is not installed.
        """
        return cls(versioned_store(estate, location), location.store, location.key)

    def __str__(self) -> str:
        return f"{self.store_name}/{self.path}".rstrip("/") if self.path else self.store_name

    def __lt__(self, other: ObjectPath) -> bool:
        return str(self) < str(other)

    def __truediv__(self, name: str) -> ObjectPath:
        """The key that follows: nothing is resolved, since `..` and `//` are names like others."""
        return self._at(f"{self._front}{name}")

    @property
    def location(self) -> ObjectLocation:
        """Where it is."""
        return ObjectLocation(store=self.store_name, key=self.path.rstrip("/"))

    def resolve(self) -> ObjectPath:
        """Itself: there are no links."""
        return self

    def is_relative_to(self, other: ObjectPath) -> bool:
        """Whether it is the other place, or lies in it."""
        return other.location.holds(self.location)

    def placed(self, text: str) -> ObjectPath:
        """Another place as a table's metadata writes it, read by the same client.

        Raises:
            EstateError: it lies in another store.
        """
        place = object_location(text) if is_object_place(text) else None
        if place is None or place.store != self.store_name:
            raise EstateError(
                "a table in an object store references a file outside it",
                where=str(self),
                todo="correct the table's metadata, then run the command again",
            )
        return ObjectPath(self.store, place.store, place.key)

    @staticmethod
    def names_a_place(text: str) -> bool:
        """Whether metadata of a table here means a place by a text; otherwise it is a name."""
        return is_object_place(text)

    def iterdir(self) -> Iterator[ObjectPath]:
        """Objects directly in it, not folders, by name.

        Raises:
            FileNotFoundError: nothing lies in it.
        """
        found = self.objects()
        if not found:
            raise FileNotFoundError(str(self))
        front = self._front
        for version in found:
            rest = version.key[len(front) :]
            if rest and "/" not in rest:
                yield self._at(version.key, version)

    def objects(self) -> list[StoredVersion]:
        """Every live object in it at any depth, by key; what stands for folders is among them."""
        front = self._front
        return self._asked(lambda: sorted(self.store.live_objects(front), key=lambda version: version.key))

    def walk(self) -> Iterator[tuple[str, int, int]]:
        """Every file in it at any depth: its name in full, bytes, milliseconds since 1970."""
        for version in self.objects():
            if not version.key.endswith("/"):
                yield str(self._at(version.key)), version.size, milliseconds(version)

    def part(self, first: int, at_most: int) -> bytes:
        """As the base class says. Raises `OSError`."""
        version = self._version()
        return self._asked(lambda: self.store.read_version(version, first, at_most))

    def length(self) -> int:
        """As the base class says. Raises `OSError`."""
        return self._version().size

    def whole(self) -> bytes:
        """As the base class says, of one version."""
        seen = ObjectPath(self.store, self.store_name, self.path, self._version())
        return super(ObjectPath, seen).whole()

    def is_file(self) -> bool:
        """Whether there is an object of this name."""
        return self.modified() is not None

    def is_dir(self) -> bool:
        """Whether anything lies in it."""
        front = self._front
        return self._asked(lambda: next(iter(self.store.live_objects(front)), None)) is not None

    def exists(self) -> bool:
        """Whether there is an object, or anything in it."""
        return self.is_file() or self.is_dir()

    def modified(self) -> int | None:
        """When it was written, in milliseconds since 1970; None where there is no object."""
        try:
            return milliseconds(self._asked(lambda: self.store.live_version(self.path)))
        except FileNotFoundError:
            return None

    @property
    def _front(self) -> str:
        return f"{self.path.rstrip('/')}/" if self.path else ""

    def _at(self, key: str, version: StoredVersion | None = None) -> ObjectPath:
        return ObjectPath(self.store, self.store_name, key, version)

    def _version(self) -> StoredVersion:
        return self.version or self._asked(lambda: self.store.live_version(self.path))


def milliseconds(version: StoredVersion) -> int:
    """When a version was written, since 1970."""
    return int(instant(version.modified).timestamp() * 1000)
