"""A file that lies in a store: of `pathlib.Path` what readers of data files and of tables' metadata ask of one."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import BinaryIO, ClassVar, TypeVar

from pii_tracer.lake.stores.base import Absent, StoreError
from pii_tracer.lake.stores.s3.s3_path import PART, Ranges

Answer = TypeVar("Answer")

_CHUNK = 16 * 1024 * 1024


class RemoteFile(ABC):
    """Reading raises `StoreError` or `OSError` when the store refuses."""

    path: str
    denied: ClassVar[frozenset[str]] = frozenset()
    """Codes by which the store says that somebody has no right."""

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
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        return PurePosixPath(self.name).suffixes

    def whole(self) -> bytes:
        """All its bytes, as far as it has them."""
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """All its bytes, one piece after the other."""
        size = self.length()
        return (self.part(at, min(_CHUNK, size - at)) for at in range(0, size, _CHUNK))

    def read_text(self, encoding: str) -> str:
        """Its bytes as text."""
        return self.whole().decode(encoding)

    def open(self, mode: str) -> BinaryIO:
        """Its bytes, whole in memory. mode: `rb`."""
        if mode != "rb":
            raise ValueError("only read as bytes")
        return io.BytesIO(self.whole())

    def seekable(self) -> BinaryIO:
        """Its bytes, fetched as they are read: for files of which little is needed."""
        return io.BufferedReader(Ranges(lambda first, last: self.part(first, last - first + 1), self.length()), PART)

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        """An answer of the store. Its refusals become `OSError`s with its code and never its message, so that readers
        treat all kinds of places alike.
        """
        try:
            return ask()
        except StoreError as error:
            kind = FileNotFoundError if isinstance(error, Absent) else OSError
            kind = PermissionError if error.code in self.denied else kind
            raise kind(f"{self}: {error.code}") from None
