"""Files of a bare folder in HDFS, written again without the person.

The new file is written beside the old one under a name that readers pass over, with the old one's rights, read back and
compared, and then put in its place in one rename, which takes the old file away for good: nothing goes to the trash.
HDFS renames on no condition. So the old file is looked at (number, length, time, checksum) right before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from executors.executor_parts import placed
from executors.formats.plain_files.row_removal import MAX_OBJECT_BYTES, RowRemoval
from executors.stores.hdfs.step_base import FileRef, HdfsPart, RewriteParameters, named, refuse_another, status_of
from pii_tracer.lake.stores.hdfs.hdfs_path import whole
from pii_tracer.lake.stores.hdfs.webhdfs import Rights, Status, WebHdfs, joined
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

_WRITTEN = "written"


@dataclass(frozen=True)
class Rewriting(HdfsPart):
    """One HDFS_REWRITE step."""

    parameters: RewriteParameters

    def check(self) -> None:
        """Raise `RunError` for a missing match, a file that changed, is written, or cannot be replaced as it is."""
        self._removal()
        client, written = self._client, self._written()
        for file in self.parameters.files:
            found = status_of(client, file.path)
            if found is None or self._ours(written, file, found):
                continue
            refuse_another(client, file, found, self.ctx.marks)
            self._rights(client, file)

    def rehearse(self, names: Container[str]) -> None:
        """Read files as `run` will, and write nothing. names: paths of those that are read; of the others only what the
        NameNode tells is looked at, with their size: `run` reads each of them.

        Raises:
            RunError: as `run` would, for the first file that it refuses.
        """
        removal, client = self._removal(), self._client
        for file in self.parameters.files:
            self._rights(client, file)
            self._refuse_large(client, file)
            if file.path in names:
                with placed(f"{client.name}{file.path}"):
                    removal.kept(self._read(client, file), file.path)

    def run(self) -> Outcome:
        """File by file; what this plan wrote before a crash is known by the mark that the journal has."""
        removal, client, written = self._removal(), self._client, self._written()
        done: dict[str, Mapping[str, Any]] = {}
        left_alone = gone = 0
        for file in self.parameters.files:
            found = status_of(client, file.path)
            known = written.get(file.path)
            if found is None:
                gone += 1
            elif known is not None and known["mark"] == found.mark:
                done[file.path] = known
            elif told := self._one(client, removal, file, found):
                done[file.path] = told
            else:
                left_alone += 1
        return Outcome(
            {
                "files": named(self.parameters.location, done),
                "files_rewritten": len(done),
                "left_alone": left_alone,
                "gone": gone,
                "rows_dropped": sum(told["rows_dropped"] for told in done.values()),
            }
        )

    def verify(self) -> Check:
        """Every file is the one that was written, or was read and is free of the person, or is gone."""
        removal, client, written = self._removal(), self._client, self._written()
        findings: set[str] = set()
        for file in self.parameters.files:
            found = status_of(client, file.path)
            if status_of(client, self._temporary(file)) is not None:
                findings.add("a temporary file of the rewrite still exists")
            if found is None or self._ours(written, file, found):
                continue
            if not file.is_at(found):
                findings.add("a different process changed a file")
            elif removal.kept(self._read(client, file), file.path).data is not None:
                findings.add("a file still contains the person")
        return Check(not findings, tuple(sorted(findings)))

    def probe(self) -> Progress:
        """Whether this plan wrote any of the files."""
        if self.verify().ok:
            return Progress.DONE
        client, written = self._client, self._written()
        there = [(file, status_of(client, file.path)) for file in self.parameters.files]
        ours = any(found and self._ours(written, file, found) for file, found in there)
        begun = any(status_of(client, self._temporary(file)) for file in self.parameters.files)
        return Progress.PARTIAL if ours or begun else Progress.NOT_STARTED

    @property
    def _client(self) -> WebHdfs:
        return self.client(self.parameters.place)

    def _removal(self) -> RowRemoval:
        match = self.copy.match if self.copy else None
        return RowRemoval.of(self.ctx, self.copy, match, self.parameters.format, "files")

    def _written(self) -> Mapping[str, Mapping[str, Any]]:
        """By path, what this plan put there, or was about to."""
        return self.noted(_WRITTEN)

    @staticmethod
    def _ours(written: Mapping[str, Mapping[str, Any]], file: FileRef, found: Status) -> bool:
        known = written.get(file.path)
        return known is not None and known["mark"] == found.mark

    def _temporary(self, file: FileRef) -> str:
        folder = file.path.rpartition("/")[0] or "/"
        return joined(folder, f"._pii_tracer_{self.parameters.plan_id}_{file.file_id:x}")

    def _one(self, client: WebHdfs, removal: RowRemoval, file: FileRef, found: Status) -> dict[str, Any] | None:
        """What was done with a file; None where it holds nobody and stays."""
        refuse_another(client, file, found, self.ctx.marks)
        old = self._read(client, file)
        kept = removal.kept(old, file.path)
        if kept.data is None:
            return None
        told = {"sha256_before": hashlib.sha256(old).hexdigest(), "rows_dropped": kept.rows_before - kept.rows_after}
        return self._replaced(client, file, kept.data, self._rights(client, file), told)

    def _refuse_large(self, client: WebHdfs, file: FileRef) -> None:
        if file.size > MAX_OBJECT_BYTES:
            raise RunError(
                f"the file has {file.size} bytes, more than the limit of a rewrite in memory",
                where=f"{client.name}{file.path}",
                todo="let the job write smaller files, then make a new plan",
            )

    def _read(self, client: WebHdfs, file: FileRef) -> bytes:
        self._refuse_large(client, file)
        data = whole(client, file.path, file.size)
        if len(data) != file.size:
            raise RunError(
                "the bytes of a file ended too early", where=f"{client.name}{file.path}", todo="run `pii-tracer resume`"
            )
        return data

    def _rights(self, client: WebHdfs, file: FileRef) -> Rights:
        """What the new file must have, too. Raises `RunError` for what cannot be given to it."""
        rights = client.rights(file.path)
        if rights.listed or rights.policy:
            raise RunError(
                "a file has its own access list, attributes or storage policy, which a new file would lose",
                where=f"{client.name}{file.path}",
                todo="remove them from the file, then make a new plan",
            )
        return rights

    def _replaced(
        self, client: WebHdfs, file: FileRef, data: bytes, rights: Rights, told: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Put new bytes in a file's place. told: is noted with the new file's mark before that is there."""
        beside = self._temporary(file)
        if status_of(client, beside) is not None:
            client.delete(beside)  # of a run of this plan that was killed
        try:
            client.create(beside, data, rights)
            made = client.status(beside)
            same = whole(client, beside, made.size) == data and client.rights(beside) == rights
            if made.size != len(data) or not same:
                raise RunError(
                    "the written file differs from the sent bytes, or has different rights",
                    where=f"{client.name}{file.path}",
                    todo="make the user in `hdfs` a superuser, or check the folder's default access list",
                )
            refuse_another(client, file, client.status(file.path), self.ctx.marks)
            note = {**told, "mark": made.mark}
            self.ctx.note(self.step_id, {_WRITTEN: {file.path: note}})
        except Exception:
            if status_of(client, beside) is not None:
                client.delete(beside)
            raise
        client.rename(beside, file.path, overwrite=True)
        return note
