"""Paths of the stand-in for Azure Storage as its DFS endpoint treats them, on the blobs that its blob endpoint shows.

Rules: https://learn.microsoft.com/rest/api/storageservices/datalakestoragegen2/path, …/operation-groups, and
https://learn.microsoft.com/azure/storage/blobs/soft-delete-blob-overview (accounts with a hierarchical namespace): there
directories are paths of their own, a rename moves one with all in it, and what lies in a deleted one is listed by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from tests.azure.blob_state import FOLDER, Account, Blob, Container, Refused, State
from tests.azure.path_access import inherited

_LONGEST = 1024
"""Characters (https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata)."""


@dataclass
class Paths:
    """A file system, which is a container. The root is the path without letters."""

    account: Account
    container: Container

    def state(self, name: str) -> State:
        """What stands there. A flat account has directories that nobody created: those that blobs lie in."""
        blob = self.container.blobs.get(name)
        if blob and blob.current:
            return blob.current
        if not name or (not self.account.hierarchical and next(self.below(name), None)):
            return State(b"", '"0x0"', self.account.now(), metadata=dict(FOLDER))
        raise Refused(404, "PathNotFound")

    def exists(self, name: str) -> bool:
        try:
            return self.state(name) is not None
        except Refused:
            return False

    def below(self, name: str) -> Iterator[str]:
        """Everything in a directory, at any depth."""
        front = f"{name}/" if name else ""
        return (one for one, blob in sorted(self.container.blobs.items()) if one.startswith(front) and blob.current)

    def entries(self, name: str, *, recursive: bool) -> list[tuple[str, State]]:
        """What a listing of a directory has. That of a file has the file: the driver asks for no more, and Hadoop's
        tests of file systems expect it (`testListStatusFile` of AbstractContractGetFileStatusTest).
        """
        if not self.state(name).folder:
            return [(name, self.state(name))]
        front = f"{name}/" if name else ""
        found = list(self.below(name))
        if not self.account.hierarchical:  # folders that nobody created
            found += ["/".join(one.split("/")[:depth]) for one in found for depth in range(1, one.count("/") + 1)]
        names = {one for one in found if one.startswith(front) and one != name}
        return [(one, self.state(one)) for one in sorted(names) if recursive or "/" not in one[len(front) :]]

    def create(self, name: str, *, folder: bool) -> State:
        """Path Create, whose conditions were checked."""
        if len(name) > _LONGEST:
            raise Refused(400, "InvalidUri")
        old = self.container.blobs.get(name)
        if old and old.current:
            if old.current.folder != folder:
                raise Refused(409, "PathAlreadyExists")
            if folder:
                return old.current
            self._guard(name)
        made = State(b"", self.account.etag(), self.account.now(), metadata=dict(FOLDER) if folder else {})
        if self.account.hierarchical:
            made.scope = self.container.scope
            with suppress(Refused):
                inherited(made, self.state(name.rpartition("/")[0]))
        return self.account.write(self.container, name, made)

    def append(self, name: str, position: int, data: bytes) -> None:
        """Path Update, `append`: nobody reads the bytes before they are flushed."""
        if not data:
            raise Refused(400, "InvalidInput")
        self._file(name).stage(f"{position:020}", data, self.account.now())

    def flush(self, name: str, position: int) -> State:
        """Path Update, `flush`: all bytes up to there, without a hole."""
        blob = self._file(name)
        assert blob.current is not None
        whole = blob.current.data
        for start, data in sorted(blob.blocks.items()):
            if int(start) != len(whole):
                raise Refused(400, "InvalidFlushPosition")
            whole += data
        if len(whole) != position:
            raise Refused(400, "InvalidFlushPosition")
        self._guard(name)
        made = replace(blob.current, data=whole, etag=self.account.etag(), modified=self.account.now())
        if not self.account.hierarchical:
            return self.account.write(self.container, name, made)
        blob.current, blob.blocks = made, {}
        return made

    def delete(self, name: str, *, recursive: bool) -> None:
        """Path Delete. A directory goes with all in it, and is soft-deleted as one thing."""
        state, inside = self.state(name), list(self.below(name))
        if state.folder and inside and not recursive:
            raise Refused(409, "DirectoryNotEmpty")
        gone = [one for one in (*inside, name) if one in self.container.blobs]
        for one in gone:
            self._guard(one)
        if not self.account.hierarchical or not inside:
            for one in gone:
                self.account.delete_blob(self.container, self.container.blobs[one], snapshots=None)
            return
        hidden = {one: self._taken(one) for one in inside}
        self._taken(name)
        if self.account.soft_delete_days:
            kept = replace(state, deleted=self.account.now(), inside=hidden)
            self.container.blobs.setdefault(name, Blob()).past.append(kept)

    def rename(self, source: str, name: str) -> None:
        """Path Create with `x-ms-rename-source`, whose conditions were checked. A file that stands under the new name
        is soft-deleted, and a lease on it is broken; it is not documented what becomes of its snapshots.
        """
        if not self.exists(source):
            raise Refused(404, "SourcePathNotFound")
        if self.account.hierarchical and not self.exists(name.rpartition("/")[0]):
            raise Refused(404, "RenameDestinationParentPathNotFound")
        if f"{name}/".startswith(f"{source}/"):
            raise Refused(409, "InvalidRenameSourcePath")
        moved = [one for one in (source, *self.below(source)) if one in self.container.blobs]
        for one in moved:
            self._guard(one)
        if self.exists(name):
            self._make_way(source, name)
        for one in moved:
            blob, to = self.container.blobs[one], f"{name}{one[len(source) :]}"
            assert blob.current is not None
            if self.account.hierarchical:
                target = self.container.blobs.setdefault(to, Blob())
                target.current, target.blocks = self._taken(one), {}
            else:
                fresh = replace(blob.current, etag=self.account.etag(), modified=self.account.now())
                self.account.write(self.container, to, fresh)
                self.account.delete_blob(self.container, blob, snapshots=None)

    def _make_way(self, source: str, name: str) -> None:
        old = self.state(name)
        if not self.account.hierarchical or old.folder or self.state(source).folder:
            raise Refused(409, "PathAlreadyExists")
        blob = self.container.blobs[name]
        if blob.snapshots:
            raise Refused(409, "SnapshotsPresent")
        self._guard(name)
        blob.lease = None
        if self.account.soft_delete_days:
            blob.past.append(replace(old, deleted=self.account.now()))

    def leased(self, name: str, lease: str | None) -> None:
        """Refuse whoever does not have the lease of a path."""
        blob = self.container.blobs.get(name)
        if blob and blob.lease and lease != blob.lease:
            raise Refused(412, "LeaseIdMissing")

    def _file(self, name: str) -> Blob:
        blob = self.container.blobs.get(name)
        if blob is None or blob.current is None:
            raise Refused(404, "PathNotFound")
        if blob.current.folder:
            raise Refused(409, "PathConflict")
        return blob

    def _guard(self, name: str) -> None:
        current = self.container.blobs[name].current
        if current and not self.account.versioning and self.account.protected(self.container, current):
            raise Refused(409, "PathImmutableDueToPolicy")

    def _taken(self, name: str) -> State:
        """The state under a name, which is then free. What was deleted there before stays."""
        blob = self.container.blobs[name]
        state, blob.current, blob.blocks = blob.current, None, {}
        assert state is not None
        if not blob.past:
            del self.container.blobs[name]
        return state
