"""A file or folder in HDFS with the client that reads it: of `pathlib.Path` what readers of tables ask of one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.hdfs.webhdfs import Status, WebHdfs, joined
from pii_tracer.lake.stores.remote_path import RemoteFile
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import HdfsLocation, hdfs_location, is_hdfs

_CHUNK = 16 * 1024 * 1024
_NO_CHECKSUM = "NullPointerException"


@dataclass(frozen=True, order=True)
class HdfsPath(RemoteFile):
    """path: from the root. size: in bytes, as it was listed; None: it is asked for when the file is read.

    Two are equal when they name the same place. Everything that asks the NameNode raises `OSError` when that refuses.
    """

    client: WebHdfs
    path: str
    size: int | None = field(default=None, compare=False)
    denied: ClassVar[frozenset[str]] = frozenset({"AccessControlException"})

    def __str__(self) -> str:
        return f"{self.client.name}{self.path}"

    def __truediv__(self, name: str) -> HdfsPath:
        """What lies in it; slashes that follow each other are one, as in Hadoop's paths.

        Raises:
            EstateError: a part of the name is `.` or `..`.
        """
        return HdfsPath(self.client, hdfs_location(f"{self}/{name}").path)

    @property
    def location(self) -> HdfsLocation:
        """Where it is."""
        return hdfs_location(str(self))

    def resolve(self) -> HdfsPath:
        """Itself: links are not followed."""
        return self

    def is_relative_to(self, other: HdfsPath) -> bool:
        """Whether it is the other place, or lies in it."""
        return other.location.holds(self.location)

    def placed(self, text: str) -> HdfsPath:
        """Another place as a table's metadata writes it, read by the same client. A path alone is one of its NameNode.

        Raises:
            EstateError: it lies in another store, or at another NameNode.
        """
        written = f"{self.client.name}{text}" if text.startswith("/") else text
        place = hdfs_location(written) if is_hdfs(written) else None
        if place is None or place.name_node != self.client.name:
            raise EstateError(
                "a table in HDFS references a file outside HDFS",
                where=str(self),
                todo="correct the table's metadata, then run the command again",
            )
        return HdfsPath(self.client, place.path)

    @staticmethod
    def names_a_place(text: str) -> bool:
        """Whether metadata of a table here means a place by a text; otherwise it is a name."""
        return text.startswith("/") or is_hdfs(text)

    def iterdir(self) -> Iterator[HdfsPath]:
        """Files directly in it, not folders, by name.

        Raises:
            FileNotFoundError: there is no such folder.
            NotADirectoryError: it is a file.
        """
        for entry in self._entries(self.path):
            if entry.kind == "FILE":
                yield HdfsPath(self.client, joined(self.path, entry.name), entry.size)

    def below(self) -> Iterator[tuple[HdfsPath, Status]]:
        """Every file and folder in it at any depth, each folder before what lies in it.

        Raises:
            OSError: refused; or a link lies there, of which nobody knows where it leads.
        """
        waiting = [self.path]
        while waiting:
            folder = waiting.pop()
            for entry in self._entries(folder):
                place = HdfsPath(self.client, joined(folder, entry.name), entry.size)
                if entry.kind == "DIRECTORY":
                    waiting.append(place.path)
                elif entry.kind != "FILE":
                    raise OSError(f"{self}: Symlink")
                yield place, entry

    def walk(self) -> Iterator[tuple[str, int, int]]:
        """Every file in it at any depth: its name in full, bytes, milliseconds since 1970. Raises as `below`."""
        return ((str(place), entry.size, entry.modified) for place, entry in self.below() if entry.kind == "FILE")

    def part(self, first: int, at_most: int) -> bytes:
        """As the base class says. Raises `OSError`."""
        return self._asked(lambda: self.client.read(self.path, first, at_most))

    def length(self) -> int:
        """As the base class says. Raises `OSError`."""
        return self._asked(lambda: self.client.status(self.path).size) if self.size is None else self.size

    def is_file(self) -> bool:
        """Whether there is a file of this name."""
        return self._kind() == "FILE"

    def is_dir(self) -> bool:
        """Whether there is a folder of this name."""
        return self._kind() == "DIRECTORY"

    def exists(self) -> bool:
        """Whether anything of this name is there."""
        return self._kind() is not None

    def modified(self) -> int | None:
        """When it was written, in milliseconds since 1970; None where nothing stands there."""
        try:
            return self._asked(lambda: self.client.status(self.path)).modified
        except FileNotFoundError:
            return None

    def _kind(self) -> str | None:
        try:
            return self._asked(lambda: self.client.status(self.path)).kind
        except FileNotFoundError:
            return None

    def _entries(self, folder: str) -> list[Status]:
        found = self._asked(lambda: list(self.client.entries(folder)))
        if any(not entry.name for entry in found):  # a file is listed as itself, without a name
            raise NotADirectoryError(f"{self.client.name}{folder}: NotADirectory")
        return found


def pieces(client: WebHdfs, path: str, size: int) -> Iterator[bytes]:
    """So many bytes of a file from its beginning, as far as it has them, one piece after the other."""
    return (client.read(path, at, min(_CHUNK, size - at)) for at in range(0, size, _CHUNK))


def hash_of(client: WebHdfs, path: str, size: int) -> str:
    """Hex SHA-256 of so many bytes of a file."""
    digest = hashlib.sha256()
    for piece in pieces(client, path, size):
        digest.update(piece)
    return digest.hexdigest()


def whole(client: WebHdfs, path: str, size: int) -> bytes:
    """So many bytes of a file from its beginning, as far as it has them."""
    return b"".join(pieces(client, path, size))


def file_checksum(client: WebHdfs, path: str) -> str:
    """What identifies a file's bytes: HDFS's own checksum, or the SHA-256 of a file that was written without checksums.

    Delta's `HDFSLogStore` writes commits with checksums disabled; HDFS then answers with a NullPointerException.

    Raises:
        EstateError: the file is gone, or cannot be read.
    """
    try:
        return client.checksum(path)
    except StoreError as error:
        if error.code != _NO_CHECKSUM:
            raise
    return f"SHA-256:{hash_of(client, path, client.status(path).size)}"
