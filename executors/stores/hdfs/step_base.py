"""What every step on HDFS needs: its parameters, the NameNode, and whether a file is still the planned one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from executors.executor_parts import NotingPart
from pii_tracer.lake.stores.base import Absent
from pii_tracer.lake.stores.hdfs.hdfs_path import file_checksum
from pii_tracer.lake.stores.hdfs.webhdfs import Status, WebHdfs, client_at
from pii_tracer.model.datasets import Format, Frozen
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import HdfsLocation, hdfs_location
from pii_tracer.model.waivers import MarkKey


class PlaceParameters(Frozen):
    """What every step says: where, and for which plan."""

    location: str
    plan_id: str

    @property
    def place(self) -> HdfsLocation:
        return hdfs_location(self.location)


class FileRef(Frozen):
    """A file as the plan saw it. modified: milliseconds since 1970. checksum: HDFS's own, keyed
    (`MarkKey.of_content`)."""

    path: str
    size: int
    modified: int
    file_id: int
    checksum: str

    def is_at(self, found: Status) -> bool:
        """Whether it is what stands there, as far as the NameNode tells."""
        return (found.file_id, found.size, found.modified) == (self.file_id, self.size, self.modified)


class FilesParameters(PlaceParameters):
    """HDFS_DELETE_FILES."""

    files: tuple[FileRef, ...]


class RewriteParameters(FilesParameters):
    """HDFS_REWRITE."""

    format: Format


class SnapshotParameters(PlaceParameters):
    """HDFS_DELETE_SNAPSHOT. mark: of the snapshot that was read; another one of the same name has another."""

    mark: str


@dataclass(frozen=True)
class HdfsPart(NotingPart):
    """One step on one place."""

    def client(self, place: HdfsLocation) -> WebHdfs:
        """Raises `EstateError`: the estate file does not declare the NameNode."""
        return client_at(self.ctx.estate, place)


def status_of(client: WebHdfs, path: str) -> Status | None:
    """What stands at a path; None where nothing does."""
    try:
        return client.status(path)
    except Absent:
        return None


def refuse_another(client: WebHdfs, file: FileRef, found: Status, marks: MarkKey) -> None:
    """Raises `RunError` where another file stands there than the plan saw, or somebody writes it."""
    written = client.is_open(file.path)  # DataNodes tell no checksum of what is written
    same = file.is_at(found) and (written or _has_checksum(client, file, marks))
    if not same:
        raise RunError(
            "somebody changed a file after the plan was made; the step did not write it",
            where=f"{client.name}{file.path}",
            todo="stop the writer and make a new plan",
        )
    if written:
        raise RunError(
            "a process is writing a file; the step did not change the file",
            where=f"{client.name}{file.path}",
            todo="stop the writer (`hdfs debug recoverLease -path …` if its process ended), then make a new plan",
        )


def _has_checksum(client: WebHdfs, file: FileRef, marks: MarkKey) -> bool:
    return marks.of_content(file.path, file_checksum(client, file.path)) == file.checksum


def named(location: str, treated: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Files that are gone, as the facts of steps name them: below the place, with the hash that they had."""
    root = f"{hdfs_location(location).path.rstrip('/')}/"
    return [
        {"file": path.removeprefix(root), "sha256_before": told["sha256_before"]}
        for path, told in sorted(treated.items())
    ]
