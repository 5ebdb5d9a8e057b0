"""A folder of this machine as an `ObjectStore`: no versions, no markers, no uploads.

Writes on a condition hold a lock on the folder, which other processes of this machine heed when they write by this
class; over a network file system nothing is promised.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import ObjectVersion, Upload
from pii_tracer.lake.stores.base import Absent, Capability, Changed, Content, StoreError
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import location_of

NULL = "null"
"""The id of an object's only version, as S3 has it where no versions are kept."""


@dataclass(frozen=True)
class LocalStore:
    """A folder. Its files are the objects, by their path in it; links are not followed."""

    folder: Path

    @classmethod
    def at(cls, estate: Estate, place: str, region: str | None = None) -> tuple[LocalStore, str]:
        """As the protocol says. The folder itself is the store, so that keys begin with nothing."""
        folder = location_of(place)
        if not isinstance(folder, Path) or not folder.is_absolute():
            raise EstateError("no folder of this machine", where=place, todo="write file:///folder")
        return cls(folder), ""

    @property
    def name(self) -> str:
        """As `file:///folder`."""
        return f"file://{quote(os.fsencode(self.folder))}"

    def can(self, capability: Capability) -> bool:
        """Nothing."""
        return False

    def read(self, key: str, at_most: int) -> Content:
        """Bytes and mark of one file, though another takes its place meanwhile."""
        with self._errors("a file cannot be read", key):
            number = os.open(self._path(key), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(number, "rb") as file:
                told = os.fstat(number)
                if not stat.S_ISREG(told.st_mode):
                    raise FileNotFoundError
                return Content(file.read(at_most), _mark(told))

    def put_if_absent(self, key: str, data: bytes, media_type: str) -> str:
        """A file appears whole, or not at all. media_type: is not kept."""
        return self._put(key, data, None)

    def put_if_unchanged(self, key: str, data: bytes, media_type: str, etag: str) -> str:
        """As `put_if_absent`."""
        return self._put(key, data, etag)

    def _put(self, key: str, data: bytes, etag: str | None) -> str:
        path = self._path(key)
        with self._errors("a file cannot be written", key), self._alone():
            if _found(path) != etag:
                raise Changed("a file cannot be written", "Changed", where=self._where(key))
            path.parent.mkdir(parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(dir=path.parent)
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(number)
                    mark = _mark(os.fstat(number))
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
            return mark

    def versions(self, prefix: str) -> Iterator[ObjectVersion]:
        """Every file, once. What is no file and no folder (a link, a socket) has no bytes of its own to list."""
        with self._errors("the folder cannot be listed", prefix):
            for folder, folders, names in os.walk(self.folder, onerror=_raise):
                folders.sort()
                for name in sorted(names):
                    path = Path(folder, name)
                    key = path.relative_to(self.folder).as_posix()
                    told = path.lstat()
                    if key.startswith(prefix) and stat.S_ISREG(told.st_mode):
                        yield _version(key, told)

    def uploads(self, prefix: str) -> Iterator[Upload]:
        """None: a file that is being written is listed as it stands."""
        return iter(())

    def delete_version(self, key: str, version_id: str) -> None:
        """Delete the file; its folder stays."""
        if version_id != NULL:
            return
        with self._errors("a file cannot be deleted", key), self._alone():
            self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        if any(part in ("", ".", "..") for part in key.split("/")) or "\0" in key:
            raise StoreError("no file has this name", "InvalidName", where=self._where(key))
        path = self.folder
        for part in key.split("/"):
            path /= part
            if path.is_symlink():
                raise StoreError("links are not followed", "Link", where=self._where(key))
        return path

    def _where(self, key: str) -> str:
        return f"{self.name}/{key}"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        number = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
            yield
        finally:
            os.close(number)

    @contextmanager
    def _errors(self, what: str, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            kind = Absent if isinstance(error, FileNotFoundError) and self.folder.is_dir() else StoreError
            raise kind(what, type(error).__name__, where=self._where(key)) from None


def _raise(error: OSError) -> None:
    raise error


def _found(path: Path) -> str | None:
    try:
        return _mark(path.lstat())
    except FileNotFoundError:
        return None


def _mark(told: os.stat_result) -> str:
    return f'"{told.st_ino:x}-{told.st_mtime_ns:x}-{told.st_size:x}"'


def _version(key: str, told: os.stat_result) -> ObjectVersion:
    when = datetime.fromtimestamp(told.st_mtime, timezone.utc).isoformat().replace("+00:00", "Z")
    return ObjectVersion(
        key=key, version_id=NULL, latest=True, size=told.st_size, etag=_mark(told).strip('"'), modified=when
    )
