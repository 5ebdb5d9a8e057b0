"""Files of a table in an object store, as a sweep lists and removes them: each by the id of the version that is live.

Deleted so, nothing of a file becomes an old version. What stands for a folder is an object without bytes whose key ends
with a slash; its name tells a partition's value as a folder's does.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

from executors.sweep.store_folder_sweep import Listed, ListedFolder, undeleted
from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.base import Absent, StoreError
from pii_tracer.lake.stores.object_places.object_path import ObjectPath, milliseconds
from pii_tracer.model.locations import is_object_place, object_location

_AT_ONCE = 8


@dataclass(frozen=True)
class ObjectFiles:
    """folder: the table's."""

    folder: ObjectPath
    title: ClassVar[str] = "the object store"
    todo: ClassVar[str] = "check the store and the account's permissions, then run `pii-tracer resume`"

    def listed(self) -> tuple[list[Listed], list[ListedFolder]]:
        """All files, and what stands for folders.

        Raises:
            OSError: the store refuses.
        """
        files: list[Listed] = []
        folders: list[ListedFolder] = []
        front = self.folder.location.prefix
        for version in self.folder.objects():
            path, relative = f"{self.folder.store_name}/{version.key}", version.key[len(front) :]
            if relative.endswith("/") or not relative:
                folders.append(ListedFolder(path, tuple(relative.rstrip("/").split("/"))))
            else:
                files.append(Listed(path, tuple(relative.split("/")), version.size, milliseconds(version)))
        return files, folders

    def named(self, text: str) -> str:
        """As `gs://bucket/key`, whatever spelling it has."""
        return str(object_location(text)) if is_object_place(text) else text

    def remove(self, paths: Sequence[str]) -> None:
        """Delete live versions for good; those that are gone already count as removed.

        Raises:
            RunError: the store refuses some; the others are gone.
        """
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            codes = [code for code in pool.map(self._deleted, paths) if code is not None]
        if codes:
            todo = (
                "grant the right to delete objects of the table, or ask the owner to release the hold; then run "
                "`pii-tracer resume`"
            )
            raise undeleted(codes, counted(len(paths), "object"), str(self.folder), todo)

    def remove_folders(self, paths: Sequence[str]) -> None:
        """Delete what stands for folders. Raises as `remove`."""
        self.remove(paths)

    def _deleted(self, path: str) -> str | None:
        """The code of a refusal."""
        store, key = self.folder.store, path.removeprefix(f"{self.folder.store_name}/")
        try:
            store.delete_version(key, store.live_version(key).version_id)
        except Absent:
            return None
        except StoreError as error:
            return error.code
        return None
