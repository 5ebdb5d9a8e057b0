"""A folder of HDFS as an `ObjectStore`: no versions, no markers, no uploads.

HDFS writes on no condition but that nothing stands there. So a write on a mark holds a lock file beside what it writes
over, which others heed when they write by this class.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import ObjectVersion, Upload
from pii_tracer.lake.stores.base import Absent, Changed, Content, StoreError
from pii_tracer.lake.stores.hdfs.webhdfs import Status, WebHdfs, client_at, joined
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import hdfs_location, is_hdfs

NULL = "null"
"""The id of an object's only version, as S3 has it where no versions are kept."""
_PATIENCE = 20.0
"""Seconds that a writer is waited for."""
_PAUSE = 0.05


@dataclass(frozen=True)
class HdfsStore:
    """A folder. Its files are the objects, by their path in it; links are not followed."""

    client: WebHdfs
    folder: str

    @classmethod
    def at(cls, estate: Estate, place: str, region: str | None = None) -> tuple[HdfsStore, str]:
        """As the protocol says. The folder itself is the store, so that keys begin with nothing."""
        if not is_hdfs(place):
            raise EstateError("not a place in HDFS", where=place, todo="write hdfs://host:port/path")
        location = hdfs_location(place)
        return cls(client_at(estate, location), location.path), ""

    @property
    def name(self) -> str:
        """As `hdfs://host:port/folder`."""
        return f"{self.client.name}{self.folder.rstrip('/')}"

    def read(self, key: str, at_most: int) -> Content:
        """Bytes and mark of one file.

        Raises:
            Changed: it was written meanwhile.
        """
        path = self._path(key)
        mark = self._file(path).mark
        data = self.client.read(path, 0, at_most)
        if self._file(path).mark != mark:
            raise Changed("a file was written while it was read", "Changed", where=self._where(key))
        return Content(data, mark)

    def put_if_absent(self, key: str, data: bytes, media_type: str) -> str:
        """A file appears whole, or not at all. media_type: is not kept."""
        return self._put(self._path(key), data, overwrite=False)

    def put_if_unchanged(self, key: str, data: bytes, media_type: str, etag: str) -> str:
        """As `put_if_absent`. A writer that died leaves its lock file, which the error names."""
        path = self._path(key)
        self._unchanged(key, path, etag)
        with self._alone(path):
            self._unchanged(key, path, etag)
            return self._put(path, data, overwrite=True)

    def _put(self, path: str, data: bytes, *, overwrite: bool) -> str:
        temporary = joined(path.rpartition("/")[0], f".pii-tracer-{uuid.uuid4().hex}")
        try:
            self.client.create(temporary, data)
            mark = self.client.status(temporary).mark
            self.client.rename(temporary, path, overwrite=overwrite)
        except BaseException:
            with suppress(StoreError):
                self.client.delete(temporary)
            raise
        return mark

    def versions(self, prefix: str) -> Iterator[ObjectVersion]:
        """Every file, once."""
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            for entry in self.client.entries(joined(self.folder, folder)):
                key = f"{folder}{entry.name}"
                if entry.kind == "DIRECTORY" and (f"{key}/".startswith(prefix) or prefix.startswith(f"{key}/")):
                    waiting.append(f"{key}/")
                elif entry.kind == "FILE" and key.startswith(prefix):
                    yield _version(key, entry)

    def uploads(self, prefix: str) -> Iterator[Upload]:
        """None: a file that is being written is listed as far as it is."""
        return iter(())

    def delete_version(self, key: str, version_id: str) -> None:
        """Delete the file, past the trash; its folder stays."""
        if version_id != NULL:
            return
        path = self._path(key)
        with suppress(Absent):
            self._file(path)
            with self._alone(path):
                self.client.delete(path)

    def _unchanged(self, key: str, path: str, etag: str) -> None:
        try:
            found = self._file(path).mark
        except Absent:
            found = None
        if found != etag:
            raise Changed("a file cannot be written", "Changed", where=self._where(key))

    def _file(self, path: str) -> Status:
        found = self.client.status(path)
        if found.kind != "FILE":
            raise Absent("the file does not exist", "NoFile", where=f"{self.client.name}{path}")
        return found

    @contextmanager
    def _alone(self, path: str) -> Iterator[None]:
        folder, _, name = path.rpartition("/")
        lock, until = joined(folder, f".{name}.pii-tracer-lock"), time.monotonic() + _PATIENCE
        while True:
            try:
                self.client.create(lock, b"")
                break
            except Changed as error:
                if time.monotonic() > until:
                    raise StoreError(
                        "a different writer has the file's lock",
                        "Locked",
                        where=f"{self.client.name}{lock}",
                        todo="delete the lock file when nobody writes there any more",
                    ) from error
                time.sleep(_PAUSE)
        try:
            yield
        finally:
            self.client.delete(lock)

    def _path(self, key: str) -> str:
        if any(part in ("", ".", "..") for part in key.split("/")) or "\0" in key:
            raise StoreError("no file has this name", "InvalidName", where=self._where(key))
        return joined(self.folder, key)

    def _where(self, key: str) -> str:
        return f"{self.name}/{key}"


def _version(key: str, entry: Status) -> ObjectVersion:
    when = datetime.fromtimestamp(entry.modified / 1000, timezone.utc).isoformat().replace("+00:00", "Z")
    return ObjectVersion(
        key=key, version_id=NULL, latest=True, size=entry.size, etag=entry.mark.strip('"'), modified=when
    )
