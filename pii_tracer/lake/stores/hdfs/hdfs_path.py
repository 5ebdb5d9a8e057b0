"""A file in HDFS with the client that reads it: of `pathlib.Path` what readers of data files ask of one."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO

from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from pii_tracer.lake.stores.s3.s3_path import PART, Ranges

_CHUNK = 16 * 1024 * 1024


@dataclass(frozen=True, order=True)
class HdfsPath:
    """path: from the root. size: in bytes, as it was listed. Reading raises `StoreError` when HDFS refuses."""

    client: WebHdfs
    path: str
    size: int = 0

    def __str__(self) -> str:
        return f"{self.client.name}{self.path}"

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def suffixes(self) -> list[str]:
        return PurePosixPath(self.name).suffixes

    def open(self, mode: str) -> BinaryIO:
        """Its bytes, whole in memory. mode: `rb`."""
        if mode != "rb":
            raise ValueError("only read as bytes")
        return io.BytesIO(whole(self.client, self.path, self.size))

    def seekable(self) -> BinaryIO:
        """Its bytes, fetched as they are read: for files of which little is needed."""

        def part(first: int, last: int) -> bytes:
            return self.client.read(self.path, first, last - first + 1)

        return io.BufferedReader(Ranges(part, self.size), PART)


def hash_of(client: WebHdfs, path: str, size: int) -> str:
    """Hex SHA-256 of so many bytes of a file, read in pieces."""
    digest = hashlib.sha256()
    for at in range(0, size, _CHUNK):
        digest.update(client.read(path, at, min(_CHUNK, size - at)))
    return digest.hexdigest()


def whole(client: WebHdfs, path: str, size: int) -> bytes:
    """So many bytes of a file from its beginning, as far as it has them."""
    return b"".join(client.read(path, at, min(_CHUNK, size - at)) for at in range(0, size, _CHUNK))
