"""A store in memory: versions, markers, unfinished uploads, holds, soft delete, and faults when a test says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import ObjectVersion, Upload
from pii_tracer.lake.stores.base import Absent, Changed, Content, StoreError

_WHEN = "2026-11-21T10:00:00Z"


@dataclass
class Faults:
    """What goes wrong. Nothing does where nothing is set.

    refused: names of methods, to the code that they answer. cut: a listing or a read breaks off behind so many
    entries or bytes. lost: of the next writes, whether each is done before its answer is lost, the last one first; a
    lease's probes are not counted.
    """

    refused: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    lost: list[bool] = field(default_factory=list)


@dataclass
class MemoryStore:
    """held: versions that cannot be deleted. put_away: those that were deleted and can be had back."""

    faults: Faults = field(default_factory=Faults)
    held: set[tuple[str, str]] = field(default_factory=set)
    put_away: list[tuple[ObjectVersion, bytes]] = field(default_factory=list)
    begun: list[Upload] = field(default_factory=list)
    _kept: dict[str, list[tuple[ObjectVersion, bytes]]] = field(default_factory=dict)
    _number: int = 0

    @classmethod
    def at(cls, estate: Estate, place: str, region: str | None = None) -> tuple[MemoryStore, str]:
        """An empty one, whatever the place."""
        return cls(), place.partition("://")[2].partition("/")[2]

    @property
    def name(self) -> str:
        return "memory://store"

    def read(self, key: str, at_most: int) -> Content:
        self._asked("read", key)
        there = self._now(key)
        if there is None:
            raise Absent("there is nothing", "Absent", where=self._where(key))
        version, data = there
        if self.faults.cut is not None and self.faults.cut < min(at_most, len(data)):
            raise StoreError("the bytes broke off", "Cut", where=self._where(key))
        return Content(data[:at_most], version.etag)

    def put_if_absent(self, key: str, data: bytes, media_type: str) -> str:
        return self._put("put_if_absent", key, data, None)

    def put_if_unchanged(self, key: str, data: bytes, media_type: str, etag: str) -> str:
        return self._put("put_if_unchanged", key, data, etag)

    def _put(self, method: str, key: str, data: bytes, etag: str | None) -> str:
        self._asked(method, key)
        lost = self.faults.lost.pop() if self.faults.lost and "probe" not in key else None
        if lost is False:
            raise StoreError("no answer", "Timeout", where=self._where(key))
        there = self._now(key)
        if (there[0].etag if there else None) != etag:
            raise Changed("the object differs from the listed object", "Changed", where=self._where(key))
        version = self._add(key, data)
        if lost:
            raise StoreError("no answer", "Timeout", where=self._where(key))
        return version.etag

    def delete(self, key: str) -> None:
        """Delete without a version's id: a marker."""
        self._add(key, None)

    def begin(self, key: str) -> None:
        """Begin an upload and leave it."""
        self.begun.append(Upload(key=key, upload_id=f"u{len(self.begun)}", touched=_WHEN))

    def versions(self, prefix: str) -> Iterator[ObjectVersion]:
        self._asked("versions", prefix)
        keys = sorted((key for key in self._kept if key.startswith(prefix)), key=str.encode)
        listed = [version for key in keys for version, _ in reversed(self._kept[key])]
        for number, version in enumerate(listed):
            if number == self.faults.cut:
                raise StoreError("the listing broke off", "Cut", where=self._where(prefix))
            newest = self._kept[version.key][-1][0]
            yield version.model_copy(update={"latest": version == newest})

    def uploads(self, prefix: str) -> Iterator[Upload]:
        self._asked("uploads", prefix)
        yield from [upload for upload in self.begun if upload.key.startswith(prefix)]

    def delete_version(self, key: str, version_id: str) -> None:
        self._asked("delete_version", key)
        if (key, version_id) in self.held:
            raise StoreError("the version is held", "Held", where=self._where(key))
        kept = self._kept.get(key, [])
        self.put_away += [item for item in kept if item[0].version_id == version_id]
        kept[:] = [item for item in kept if item[0].version_id != version_id]

    def _add(self, key: str, data: bytes | None) -> ObjectVersion:
        self._number += 1
        size, etag = len(data or b""), f"e{self._number}" if data is not None else ""
        version = ObjectVersion(
            key=key,
            version_id=f"v{self._number}",
            latest=False,
            delete_marker=data is None,
            size=size,
            etag=etag,
            modified=_WHEN,
        )
        self._kept.setdefault(key, []).append((version, data or b""))
        return version

    def _now(self, key: str) -> tuple[ObjectVersion, bytes] | None:
        kept = self._kept.get(key)
        return kept[-1] if kept and not kept[-1][0].delete_marker else None

    def _asked(self, method: str, key: str) -> None:
        if method in self.faults.refused:
            raise StoreError("refused", self.faults.refused[method], where=self._where(key))

    def _where(self, key: str) -> str:
        return f"{self.name}/{key}"
