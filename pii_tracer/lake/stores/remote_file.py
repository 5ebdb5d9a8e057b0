"""A file that lies in a store: of `pathlib.Path` what readers of data files ask of one."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from pathlib import PurePosixPath
from typing import BinaryIO

from pii_tracer.lake.stores.s3.s3_path import PART, Ranges

_CHUNK = 16 * 1024 * 1024


class RemoteFile(ABC):
    """Reading raises `StoreError` or `OSError` when the store refuses."""

    path: str

    @abstractmethod
    def part(self, first: int, at_most: int) -> bytes:
        """So many of its bytes from an offset on."""

    @abstractmethod
    def length(self) -> int:
        """Its size in bytes, as it was listed."""

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def suffixes(self) -> list[str]:
        return PurePosixPath(self.name).suffixes

    def whole(self) -> bytes:
        """All its bytes, as far as it has them."""
        size = self.length()
        return b"".join(self.part(at, min(_CHUNK, size - at)) for at in range(0, size, _CHUNK))

    def open(self, mode: str) -> BinaryIO:
        """Its bytes, whole in memory. mode: `rb`."""
        if mode != "rb":
            raise ValueError("only read as bytes")
        return io.BytesIO(self.whole())

    def seekable(self) -> BinaryIO:
        """Its bytes, fetched as they are read: for files of which little is needed."""
        return io.BufferedReader(Ranges(lambda first, last: self.part(first, last - first + 1), self.length()), PART)
