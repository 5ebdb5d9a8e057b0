"""A version of an object as readers of data files take one."""

from __future__ import annotations

from dataclasses import dataclass

from pii_tracer.lake.stores.object_places.protocol import VersionedStore
from pii_tracer.lake.stores.object_places.version_types import StoredVersion
from pii_tracer.lake.stores.remote_path import RemoteFile


@dataclass(frozen=True)
class VersionFile(RemoteFile):
    """path: the key. version: None of a folder."""

    store: VersionedStore
    path: str
    size: int = 0
    version: StoredVersion | None = None

    def __str__(self) -> str:
        return f"{self.store.name}/{self.path}".rstrip("/")

    def part(self, first: int, at_most: int) -> bytes:
        """As the base class says."""
        return self.store.read_version(self.version, first, at_most) if self.version else b""

    def length(self) -> int:
        """As the base class says."""
        return self.size
