"""What HDFS kept of deleted files: listed files in the trash or of a job deleted for good, and whole snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from executors.stores.hdfs.step_base import (
    FilesParameters,
    HdfsPart,
    SnapshotParameters,
    named,
    refuse_another,
    status_of,
)
from pii_tracer.lake.stores.hdfs.hdfs_path import hash_of
from pii_tracer.lake.stores.hdfs.webhdfs import SNAPSHOTS, WebHdfs
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

_REMOVED = "removed"


@dataclass(frozen=True)
class DeletingFiles(HdfsPart):
    """One HDFS_DELETE_FILES step: WebHDFS's DELETE does not move to the trash."""

    parameters: FilesParameters

    def check(self) -> None:
        """Raise `RunError` for a file that changed or is written."""
        for file in self.parameters.files:
            if found := status_of(self._client, file.path):
                refuse_another(self._client, file, found, self.ctx.marks)

    def run(self) -> Outcome:
        """Exactly the listed files, each looked at right before; one that is gone is gone."""
        client, done = self._client, self.noted(_REMOVED)
        for file in self.parameters.files:
            if found := status_of(client, file.path):
                refuse_another(client, file, found, self.ctx.marks)
                note = {"sha256_before": hash_of(client, file.path, file.size)}
                self.ctx.note(self.step_id, {_REMOVED: {file.path: note}})
                client.delete(file.path)
                done[file.path] = note
        gone = len(self.parameters.files) - len(done)
        return Outcome({"files": named(self.parameters.location, done), "files_removed": len(done), "gone": gone})

    def verify(self) -> Check:
        """None of the listed files exists."""
        left = self._left()
        return Check.none_left(left, "file is", "files are", "still there")

    def probe(self) -> Progress:
        """How many of the files are gone."""
        left = self._left()
        if not left:
            return Progress.DONE
        return Progress.PARTIAL if left < len(self.parameters.files) else Progress.NOT_STARTED

    @property
    def _client(self) -> WebHdfs:
        return self.client(self.parameters.place)

    def _left(self) -> int:
        found = ((file, status_of(self._client, file.path)) for file in self.parameters.files)
        return sum(one is not None and one.file_id == file.file_id for file, one in found)


@dataclass(frozen=True)
class DeletingSnapshot(HdfsPart):
    """One HDFS_DELETE_SNAPSHOT step."""

    parameters: SnapshotParameters

    def check(self) -> None:
        """Raise `RunError` where another snapshot of the same name stands there than the plan saw."""
        self._there()

    def run(self) -> Outcome:
        """Delete the snapshot that the plan saw; one that is gone is gone."""
        there = self._there()
        if there:
            folder, _, name = self.parameters.place.path.rpartition(f"/{SNAPSHOTS}/")
            self._client.delete_snapshot(folder or "/", name)
        return Outcome({"snapshot": self.parameters.place.path, "deleted": there})

    def verify(self) -> Check:
        """The snapshot does not exist."""
        left = status_of(self._client, self.parameters.place.path) is not None
        return Check(not left, ("the snapshot still exists",) if left else ())

    def probe(self) -> Progress:
        """Whether it is gone."""
        return Progress.DONE if self.verify().ok else Progress.NOT_STARTED

    @property
    def _client(self) -> WebHdfs:
        return self.client(self.parameters.place)

    def _there(self) -> bool:
        found = status_of(self._client, self.parameters.place.path)
        if found is not None and found.mark != self.parameters.mark:
            raise RunError(
                "after the plan, somebody created a different snapshot with the same name; the step did not delete it",
                where=self.parameters.location,
                todo="make a new plan",
            )
        return found is not None
