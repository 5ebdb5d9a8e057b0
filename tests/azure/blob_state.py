"""What the strict stand-in for Azure Blob Storage keeps, and by which rules it keeps what is written over or deleted.

Rules: https://learn.microsoft.com/azure/storage/blobs/versioning-overview, …/soft-delete-blob-overview (with and without
versions, and with a hierarchical namespace), …/immutable-version-level-worm-policies, …/snapshots-overview,
https://learn.microsoft.com/rest/api/storageservices/delete-blob and put-blob.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from itertools import count

FOLDER = {"hdi_isfolder": "true"}
"""Metadata of a directory."""
_BLOCKS_STAY = timedelta(days=7)
"""https://learn.microsoft.com/rest/api/storageservices/put-block-list (uncommitted blocks are garbage collected)."""


class Refused(Exception):
    """The service's answer: its code and the status of HTTP."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


@dataclass
class State:
    """One state of a blob: the current one, a version, or a snapshot. deleted: since when it is soft-deleted. inside: of
    a deleted directory, what lay in it. owner, group, acl: of a path in a hierarchical namespace; default_acl: what new
    paths in a directory inherit. scope, context, expires: how it is encrypted, and when it goes by itself.
    """

    data: bytes
    etag: str
    modified: datetime
    version: str | None = None
    snapshot: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    tier: str = ""
    rehydrating: bool = False
    immutable_until: datetime | None = None
    legal_hold: bool = False
    deleted: datetime | None = None
    blob_type: str = "BlockBlob"
    replicated: bool = False
    inside: dict[str, State] = field(default_factory=dict)
    owner: str = "$superuser"
    group: str = "$superuser"
    acl: str = "user::rw-,group::r--,other::---"
    default_acl: str = ""
    scope: str = ""
    context: str = ""
    expires: datetime | None = None

    @property
    def folder(self) -> bool:
        return self.metadata.get("hdi_isfolder") == "true"


@dataclass
class Blob:
    """All states under a name. sent: when the last of the blocks came that nobody committed."""

    current: State | None = None
    past: list[State] = field(default_factory=list)
    blocks: dict[str, bytes] = field(default_factory=dict)
    sent: datetime | None = None
    lease: str | None = None

    def stage(self, block: str, data: bytes, now: datetime) -> None:
        """Put Block."""
        self.blocks[block], self.sent = data, now

    @property
    def snapshots(self) -> list[State]:
        return [one for one in self.past if one.snapshot and not one.deleted]


@dataclass
class Container:
    blobs: dict[str, Blob] = field(default_factory=dict)
    policy: bool = False
    legal_hold: bool = False
    deleted: datetime | None = None
    scope: str = ""


@dataclass
class Account:
    """versioning, soft_delete_days, container_days, hierarchical: as the account is set. page: entries of one answer.

    faults: statuses that the next requests get, the last one first. days: by how many the clock is ahead.
    """

    versioning: bool = False
    soft_delete_days: int = 0
    container_days: int = 0
    hierarchical: bool = False
    page: int = 5000
    faults: list[int] = field(default_factory=list)
    containers: dict[str, Container] = field(default_factory=dict)
    gone: list[tuple[str, Container]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    days: float = 0
    _number: count[int] = field(default_factory=lambda: count(1))

    def now(self) -> datetime:
        return datetime.now(timezone.utc) + timedelta(days=self.days)

    def tick(self) -> str:
        """A moment like no other, as ids of versions and snapshots are."""
        return f"{self.now():%Y-%m-%dT%H:%M:%S}.{next(self._number):07}Z"

    def etag(self) -> str:
        return f'"0x8DD{next(self._number):012X}"'

    def container(self, name: str) -> Container:
        found = self.containers.get(name)
        if found is None:
            raise Refused(404, "ContainerNotFound")
        self._lapse(found)
        return found

    def _lapse(self, container: Container) -> None:
        """Soft-deleted bytes go when their days are over, and blocks a week after the last of them."""
        limit = self.now() - timedelta(days=self.soft_delete_days)
        for blob in container.blobs.values():
            blob.past = [one for one in blob.past if one.deleted is None or one.deleted > limit]
            if blob.sent is not None and blob.sent < self.now() - _BLOCKS_STAY:
                blob.blocks, blob.sent = {}, None

    def write(self, container: Container, name: str, new: State) -> State:
        """Put Blob: over what stands there, or where nothing does."""
        if self.hierarchical:
            self._into(container, name)
        blob = container.blobs.setdefault(name, Blob())
        old = blob.current
        if old is not None:
            if not self.versioning and self.protected(container, old):
                raise Refused(409, _immutable(old))
            self._keep_overwritten(blob, old)
        for one in blob.past:  # a blob that was soft-deleted goes on as a soft-deleted snapshot of the new one
            if one.deleted and not one.snapshot and not one.version and not self.hierarchical:
                one.snapshot = self.tick()
        new.version = self.tick() if self.versioning else None
        blob.current, blob.blocks = new, {}
        return new

    def _into(self, container: Container, name: str) -> None:
        """The directories that a path lies in: they come with it."""
        parts = name.split("/")
        for depth in range(1, len(parts)):
            blob = container.blobs.setdefault("/".join(parts[:depth]), Blob())
            if blob.current is None:
                blob.current = State(b"", self.etag(), self.now(), metadata=dict(FOLDER))
            elif not blob.current.folder:
                raise Refused(409, "PathConflict")

    def _keep_overwritten(self, blob: Blob, old: State) -> None:
        if self.versioning:
            blob.past.append(old)
        elif self.soft_delete_days and not self.hierarchical and old.tier != "Archive":
            blob.past.append(replace(old, snapshot=self.tick(), deleted=self.now()))

    def delete_blob(self, container: Container, blob: Blob, *, snapshots: str | None) -> None:
        """Delete Blob without a version or snapshot."""
        if blob.current is None:
            raise Refused(404, "BlobNotFound")
        if blob.snapshots and snapshots is None:
            raise Refused(409, "SnapshotsPresent")
        name = next(name for name, one in container.blobs.items() if one is blob)
        inside = (one for one, other in container.blobs.items() if other.current and one.startswith(f"{name}/"))
        if self.hierarchical and blob.current.folder and next(inside, None):
            raise Refused(409, "DirectoryIsNotEmpty")
        if not self.versioning and self.protected(container, blob.current):
            raise Refused(409, _immutable(blob.current))
        for one in blob.snapshots if snapshots else ():
            self._drop(blob, one)
        if snapshots == "only":
            return
        old, blob.current = blob.current, None
        if self.versioning:
            blob.past.append(old)
        elif self.soft_delete_days:
            blob.past.append(replace(old, deleted=self.now()))

    def delete_past(self, container: Container, blob: Blob, version: str | None, snapshot: str | None) -> None:
        """Delete one version or snapshot."""
        if version and blob.current and blob.current.version == version:
            raise Refused(403, "OperationNotAllowedOnRootBlob")
        one = find(blob, version, snapshot)
        if self.protected(container, one):
            raise Refused(409, _immutable(one))
        self._drop(blob, one)

    def _drop(self, blob: Blob, one: State) -> None:
        if self.soft_delete_days:
            one.deleted = self.now()
        else:
            blob.past.remove(one)

    def protected(self, container: Container, one: State) -> bool:
        policy = one.immutable_until is not None and one.immutable_until > self.now()
        return one.legal_hold or policy or container.policy or container.legal_hold

    def remaining(self, one: State) -> int:
        """Whole days that soft-deleted bytes remain."""
        assert one.deleted is not None
        return (one.deleted + timedelta(days=self.soft_delete_days) - self.now()).days


def find(blob: Blob | None, version: str | None, snapshot: str | None) -> State:
    """The state that a request names, if it can be read."""
    for one in [*([blob.current] if blob and blob.current else []), *(blob.past if blob else [])]:
        if version and one.version == version and not one.snapshot and not one.deleted:
            return one
        if snapshot and one.snapshot == snapshot and not one.deleted:
            return one
        if not (version or snapshot) and blob and one is blob.current:
            return one
    raise Refused(404, "BlobNotFound")


def _immutable(one: State) -> str:
    return "BlobImmutableDueToLegalHold" if one.legal_hold else "BlobImmutableDueToPolicy"
