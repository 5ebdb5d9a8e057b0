"""A NameNode's files in this process' memory, for rules about them that ask for no real HDFS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pii_tracer.lake.stores.base import Absent, Changed, StoreError
from pii_tracer.lake.stores.hdfs.name_nodes import NameNodes
from pii_tracer.lake.stores.hdfs.webhdfs import Rights, Status, WebHdfs, joined


@dataclass(frozen=True)
class MemoryHdfs(WebHdfs):
    """files: bytes by path. steps: what was written and renamed, in order. snapshottable: folders that can have any.

    access_list: whether folders have one. half: a write breaks off in the middle.
    """

    name: str = "hdfs://nn"
    name_nodes: NameNodes = field(default_factory=lambda: NameNodes(("http://nn:9870",)))
    user: str = "lake"
    files: dict[str, bytes] = field(default_factory=dict)
    permission: str = "770"
    access_list: bool = False
    snapshottable: frozenset[str] = frozenset()
    half: bool = False
    steps: list[str] = field(default_factory=list)

    def status(self, path: str) -> Status:
        name = path.rpartition("/")[2]
        if path in self.files:
            return Status("", "FILE", len(self.files[path]), 0, 1, encrypted=False, striped=False)
        if any(one.startswith(f"{path}/") for one in self.files):
            return Status("", "DIRECTORY", 0, 0, 1, encrypted=False, striped=False)
        raise Absent("it cannot be read", "FileNotFoundException", where=name)

    def entries(self, folder: str) -> Iterator[Status]:
        above, _, name = folder.rpartition("/")
        if name == ".snapshot":
            if (above or "/") not in self.snapshottable:
                raise StoreError("it cannot be listed", "SnapshotException", where=folder)
            return
        self.status(folder)
        front = f"{folder.rstrip('/')}/"
        for one in sorted(
            {path.removeprefix(front).partition("/")[0] for path in self.files if path.startswith(front)}
        ):
            yield self.status(joined(folder, one))._replace(name=one)

    def rights(self, path: str) -> Rights:
        self.status(path)
        return Rights("lake", "hive", self.permission, 1, 1, 0, listed=self.access_list)

    def create(self, path: str, data: bytes, like: Rights | None = None) -> None:
        if path in self.files:
            raise Changed("a file cannot be written", "FileAlreadyExistsException", where=path)
        self.files[path] = data[: len(data) // 2] if self.half else data
        self.steps.append(f"create {path}")

    def rename(self, path: str, to: str, *, overwrite: bool) -> None:
        if to in self.files and not overwrite:
            raise Changed("a file cannot be written", "FileAlreadyExistsException", where=to)
        self.files[to] = self.files.pop(path)
        self.steps.append(f"rename {path} {to}")

    def delete(self, path: str) -> None:
        self.files.pop(path, None)
