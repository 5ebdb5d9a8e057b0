"""What holds a file's bytes: a path, or memory for what came out of a bucket or a vault and may lie on no disk."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Protocol


class Stored(Protocol):
    """A file as the rewriting modules need it; every `Path` is one."""

    @property
    def suffix(self) -> str:
        """The last ending of its name, with the dot."""

    def open(self, mode: str) -> IO[bytes]:
        """Its bytes: `rb`, `wb` or `r+b`."""


@dataclass
class InMemory:
    """A file in memory; what is written is there once the stream is closed. name: tells the codec, may be empty."""

    name: str
    data: bytes = b""

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    def open(self, mode: str) -> IO[bytes]:
        return io.BytesIO(self.data) if mode == "rb" else _Writing(self, b"" if mode == "wb" else self.data)


class _Writing(io.BytesIO):
    def __init__(self, file: InMemory, data: bytes) -> None:
        super().__init__(data)
        self._file = file

    def close(self) -> None:
        if not self.closed:
            self._file.data = self.getvalue()
        super().close()
