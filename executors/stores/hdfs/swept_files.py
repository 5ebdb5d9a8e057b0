"""Files of a table in HDFS, as a sweep lists and removes them over WebHDFS: past the trash, which would keep them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

from executors.sweep.store_folder_sweep import Listed, ListedFolder, undeleted
from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.base import Absent, StoreError
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.model.locations import hdfs_location, is_hdfs

_AT_ONCE = 8
_NOT_EMPTY = "PathIsNotEmptyDirectoryException"
"""What a NameNode answers when a folder is to go and something lies in it."""


@dataclass(frozen=True)
class HdfsFiles:
    """folder: the table's."""

    folder: HdfsPath
    title: ClassVar[str] = "HDFS"
    todo: ClassVar[str] = "check the NameNode and what the user that `hdfs` names may do, then run `pii-tracer resume`"

    def listed(self) -> tuple[list[Listed], list[ListedFolder]]:
        """All files, sorted, and all folders; nothing where there is no such folder.

        Raises:
            OSError: HDFS refuses, or a folder went while it was listed.
        """
        files: list[Listed] = []
        folders: list[ListedFolder] = []
        if not self.folder.is_dir():
            return files, folders
        front = f"{self.folder.path.rstrip('/')}/"
        for place, entry in self.folder.below():
            parts = tuple(place.path.removeprefix(front).split("/"))
            if entry.kind == "DIRECTORY":
                folders.append(ListedFolder(str(place), parts))
            else:
                files.append(Listed(str(place), parts, entry.size, entry.modified))
        return sorted(files, key=lambda file: file.path), folders

    def named(self, text: str) -> str:
        """As `hdfs://host:port/path`, without the usual port."""
        return str(hdfs_location(text)) if is_hdfs(text) else text

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files for good; those that are gone already count as removed.

        Raises:
            RunError: HDFS refuses some; the others are gone.
        """
        self._delete(paths, spared=None)

    def remove_folders(self, paths: Sequence[str]) -> None:
        """Delete empty folders, one after the other. Raises as `remove`."""
        for path in paths:
            self._delete([path], spared=_NOT_EMPTY)

    def _delete(self, paths: Sequence[str], spared: str | None) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            codes = [code for code in pool.map(self._deleted, paths) if code is not None and code != spared]
        if codes:
            todo = "AccessControlException: allow the user in `hdfs` to write there, then run `pii-tracer resume`"
            raise undeleted(codes, counted(len(paths), "file"), str(self.folder), todo)

    def _deleted(self, path: str) -> str | None:
        """The code of a refusal."""
        try:
            self.folder.client.delete(self.folder.placed(path).path)
        except Absent:
            return None
        except StoreError as error:
            return error.code
        return None
