"""A folder of HDFS as adapters of formats look for their markers: of `Path`, what they ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs, joined

_LARGEST = 1 << 28


@dataclass(frozen=True)
class ListedFolder:
    """listed: what lies in it by name, and whether that is a folder; None where it was not listed, or is a file.

    Every method raises `StoreError` when HDFS refuses.
    """

    client: WebHdfs
    path: str
    listed: dict[str, bool] | None = None
    there: bool | None = True
    """Whether it is a folder (True), a file (False) or nothing (None)."""

    def __truediv__(self, name: str) -> ListedFolder:
        return ListedFolder(self.client, joined(self.path, name), None, self._names.get(name))

    @cached_property
    def _names(self) -> dict[str, bool]:
        if self.listed is not None:
            return self.listed
        if not self.there:
            return {}
        return {entry.name: entry.kind == "DIRECTORY" for entry in self.client.entries(self.path)}

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def is_dir(self) -> bool:
        return self.there is True

    def is_file(self) -> bool:
        return self.there is False

    def exists(self) -> bool:
        return self.there is not None

    def iterdir(self) -> Iterator[ListedFolder]:
        return (self / name for name in self._names)

    def glob(self, pattern: str) -> Iterator[ListedFolder]:
        return (self / name for name in self._names if fnmatchcase(name, pattern))

    def read_bytes(self) -> bytes:
        return self.client.read(self.path, 0, _LARGEST)

    def __lt__(self, other: ListedFolder) -> bool:
        return self.path < other.path
