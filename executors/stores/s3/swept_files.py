"""Files of a table in S3, as a sweep lists and removes them.

S3 has no folders. What stands for one is an object without bytes whose name ends with a slash, or with `_$folder$`: S3A
leaves it where the last file of a folder went, consoles where somebody made a folder. Such a name tells a partition's
value as a folder's does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from executors.stores.s3.batch_delete import CURRENT, Batches
from executors.sweep.store_folder_sweep import Listed, ListedFolder, undeleted
from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.locations import is_s3, s3_location

_MARKER = "_$folder$"


@dataclass(frozen=True)
class S3Files:
    """folder: the table's."""

    folder: S3Path
    title: ClassVar[str] = "S3"
    todo: ClassVar[str] = "check the bucket and the account's permissions, then run `pii-tracer resume`"

    def listed(self) -> tuple[list[Listed], list[ListedFolder]]:
        """All files, and what stands for folders."""
        files, markers = [], []
        front = len(str(self.folder).rstrip("/")) + 1
        for path, size, modified in self.folder.walk():
            relative = path[front:]
            marked = relative.removesuffix(_MARKER) if relative.endswith(_MARKER) else relative
            if size == 0 and (marked != relative or relative.endswith("/") or not relative):
                markers.append(ListedFolder(path, tuple(marked.rstrip("/").split("/"))))
            else:
                files.append(Listed(path, tuple(relative.split("/")), size, modified))
        return files, markers

    def named(self, text: str) -> str:
        """As `s3://bucket/key`, whatever S3 scheme it is written in."""
        return str(s3_location(text)) if is_s3(text) else text

    def remove(self, paths: Sequence[str]) -> None:
        """Delete current versions; those that are gone already count as removed.

        Raises:
            RunError: S3 refuses some; the others are gone.
        """
        front = f"s3://{self.folder.location.bucket}/"
        keys = [(path.removeprefix(front), CURRENT) for path in paths]
        refused, _ = Batches(self.folder.client, self.folder.location.bucket).delete(keys)
        if refused:
            todo = "AccessDenied: grant s3:DeleteObject for the table's folder, then run `pii-tracer resume`"
            raise undeleted(refused.values(), counted(len(keys), "object"), str(self.folder), todo)

    def remove_folders(self, paths: Sequence[str]) -> None:
        """Delete what stands for folders. Raises as `remove`."""
        self.remove(paths)
