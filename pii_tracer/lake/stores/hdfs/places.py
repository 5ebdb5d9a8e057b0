"""What lies in HDFS: tables, bare folders, and the places in which HDFS keeps what was deleted. Pure data."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import Format, Frozen
from pii_tracer.model.locations import HdfsLocation


class HdfsKind(StrEnum):
    """What a place is for."""

    TABLE = "table"
    FOLDER = "folder"
    SNAPSHOT = "snapshot"
    TRASH = "trash"
    TEMPORARY = "temporary"


class HdfsFile(NamedTuple):
    """A file, or an empty folder (its path ends with `/`). modified: milliseconds since 1970."""

    path: str
    size: int
    modified: int
    file_id: int


class HdfsPlace(Frozen):
    """A place in HDFS with all its files, without those that lie in another place.

    format: of a table, where one format alone claims it. encrypted: something in it lies in an encryption zone;
    striped: or is erasure-coded. mark: of a snapshot: another one of the same name has another. agreed: who agreed that
    it may be deleted, and why, as the estate file says.
    """

    location: HdfsLocation
    kind: HdfsKind
    format: Format | None = None
    files: tuple[HdfsFile, ...] = ()
    encrypted: bool = False
    striped: bool = False
    mark: str = ""
    agreed: str | None = None

    def fingerprint(self) -> str:
        """`sha256:…` over what lies in it: changes when a file comes, goes or is written."""
        digest = hashlib.sha256(f"{self.kind} {self.mark}\n".encode())
        for file in self.files:
            digest.update(
                f"{file.path}\0{file.size}\0{file.modified}\0{file.file_id}\n".encode("utf-8", "surrogateescape")
            )
        return "sha256:" + digest.hexdigest()
