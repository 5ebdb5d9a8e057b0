"""Archives fetched from a Glacier vault, and written again without the person.

A fetched archive can be read for a day after its job ended; then it is fetched anew
(https://docs.aws.amazon.com/amazonglacier/latest/dev/downloading-an-archive-two-steps.html).
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.utils import calculate_tree_hash

from executors.formats.plain_files.row_removal import MAX_OBJECT_BYTES, RowRemoval
from executors.stores.glacier.vault_step_context import (
    ArchiveRef,
    RetrieveParameters,
    RewriteParameters,
    VaultWork,
    as_run_error,
    refused,
)
from executors.value_search_protocol import Finder
from pii_tracer.common.plurals import counted
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.glacier.vault_discovery import GONE, VaultJob
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.run.executor_protocol import (
    Check,
    Outcome,
    PartlyDone,
    Progress,
)


@dataclass(frozen=True)
class Retrieving:
    """One VAULT_RETRIEVE step, or the part of a rewrite that fetches again what has expired."""

    work: VaultWork
    parameters: RetrieveParameters

    def check(self) -> None:
        """Raise `RunError` when the vault's jobs cannot be read."""
        self.jobs()

    def jobs(self) -> dict[str, VaultJob]:
        """Archive id -> its newest retrieval that has not failed."""
        try:
            found = [j for j in self.work.client(self.parameters).jobs() if j.archive_id and j.status != "Failed"]
        except EstateError as error:
            raise as_run_error(error) from None
        except (ClientError, BotoCoreError) as error:
            raise refused("glacier:ListJobs", error, self.parameters.where) from None
        return {str(j.archive_id): j for j in sorted(found, key=lambda j: j.created)}

    def run(self) -> Outcome:
        """Begin a job for every archive that has none; wait while one runs.

        Raises:
            PartlyDone: Glacier refused some; what it took is in the facts.
        """
        client, known = self.work.client(self.parameters), self.jobs()
        asked: list[str] = []
        failed: list[dict[str, str]] = []
        missing: list[str] = []
        size = 0
        for archive in self.parameters.archives:
            if archive.id in known:
                continue
            try:
                answer = client.start(Type="archive-retrieval", ArchiveId=archive.id, Tier=self.parameters.tier)
                asked.append(str(answer.get("ResponseMetadata", {}).get("RequestId", "")))
                size += archive.size
            except (ClientError, BotoCoreError) as error:
                code = error_code(error)
                if code == GONE:
                    missing.append(archive.id)
                else:
                    failed.append({"archive": archive.id, "reason": code})
        running = [j for j in self.jobs().values() if j.completed is None]
        facts: dict[str, Any] = {
            "requested": len(asked),
            "restored_bytes": size,
            "ongoing": len(running),
            "missing": missing,
            "request_ids": asked,
        }
        if failed:
            raise PartlyDone(
                f"{counted(len(failed), 'retrieval was', 'retrievals were')} refused:"
                f" {', '.join(sorted({item['reason'] for item in failed}))}",
                facts | {"failed": failed},
                where=self.parameters.where,
                todo="grant glacier:InitiateJob, or raise the data retrieval policy, then run `pii-tracer resume`",
            )
        mine = {a.id for a in self.parameters.archives}
        if any(j.archive_id in mine for j in running):
            return Outcome(facts, waiting_until=self.work.ctx.now() + self._look_again())
        return Outcome(facts)

    def verify(self) -> Check:
        """Whether no archive's retrieval is still to come."""
        known = self.jobs()
        mine = [known[a.id] for a in self.parameters.archives if a.id in known]
        running = sum(j.completed is None for j in mine)
        return Check(
            not running and bool(mine), (f"{counted(running, 'archive')} cannot be read yet",) if running else ()
        )

    def probe(self) -> Progress:
        """How many have been asked for."""
        known = self.jobs()
        there = [a.id in known for a in self.parameters.archives]
        return Progress.NOT_STARTED if not any(there) else Progress.PARTIAL

    def _look_again(self) -> timedelta:
        return timedelta(minutes=self.work.ctx.estate.windows.restore_check_minutes)


@dataclass(frozen=True)
class Rewriting:
    """One VAULT_REWRITE step."""

    work: VaultWork
    parameters: RewriteParameters

    def check(self) -> None:
        """Raise `RunError` for an empty match, or a description that holds the person."""
        if not self.parameters.match.terms:
            raise RunError("no key finds the person's rows", where=self.parameters.where, todo="make the plan again")
        for archive in self.parameters.archives:
            if self._finder.in_text(archive.description):
                raise RunError(
                    "the description of an archive contains the person",
                    where=archive.id,
                    todo="rewrite the archive by hand",
                )

    def run(self) -> Outcome:
        """Rewrite each archive that has not been; one that fails does not stop the others.

        Raises:
            PartlyDone: some were not rewritten, each with its reason.
        """
        known = self.work.rewritten()
        fetched = self._retrieving(self.parameters.archives).jobs()
        done: list[dict[str, Any]] = []
        failed: list[dict[str, str]] = []
        cold: list[ArchiveRef] = []
        for archive in self.parameters.archives:
            job = fetched.get(archive.id)
            if archive.id in known:
                continue
            if job is None or job.completed is None:
                cold.append(archive)
                continue
            try:
                done.append(self._one(archive, job))
            except RunError as error:
                failed.append({"archive": archive.id, "reason": error.what})
        facts: dict[str, Any] = {
            "rewritten_archives": done,
            "rewritten": sum(item["new_archive"] is not None for item in done),
            "left_alone": sum(item["new_archive"] is None for item in done),
            "rows_dropped": sum(item["rows_before"] - item["rows_after"] for item in done),
        }
        again = self._again(cold, facts, failed) if cold else None
        if failed:
            raise PartlyDone(
                f"{len(failed)} of {counted(len(self.parameters.archives), 'archive')} could not"
                " be rewritten:"
                f" {', '.join(sorted({item['reason'] for item in failed}))}",
                facts | {"failed": failed},
                where=self.parameters.where,
                todo="fix the errors listed in the journal, then run `pii-tracer resume`",
            )
        return Outcome(facts, waiting_until=again)

    def verify(self) -> Check:
        """Every archive was read and has a known fate; Glacier itself tells of uploads a day later."""
        known = self.work.rewritten()
        left = sum(archive.id not in known for archive in self.parameters.archives)
        return Check.none_left(left, "archive was", "archives were", "not rewritten")

    def probe(self) -> Progress:
        """What the journal knows. An upload that it does not know is done again: the twin holds nobody, and is
        recognised by its tree hash.
        """
        known = self.work.rewritten()
        there = [archive.id in known for archive in self.parameters.archives]
        return Progress.DONE if all(there) else Progress.PARTIAL if any(there) else Progress.NOT_STARTED

    @cached_property
    def _removal(self) -> RowRemoval:
        return RowRemoval.of(self.work.ctx, self.work.copy, self.parameters.match, self.parameters.format)

    @cached_property
    def _finder(self) -> Finder:
        """Of everything that the plan knows of the persons, not only of what their rows are found by."""
        names = {term.key_set for term in self.parameters.match.terms}
        sets = {name: self.work.ctx.keyring.key_set(name) for name in names}
        sets |= {found.name: found for found in self.work.ctx.everything}
        return self.work.ctx.finds(sets.values())

    def _again(self, cold: list[ArchiveRef], facts: dict[str, Any], failed: list[dict[str, str]]) -> datetime:
        """Fetch what cannot be read any more; when to look. What cannot be fetched is added to what failed."""
        waiting_until = None
        try:
            outcome = self._retrieving(cold).run()
            waiting_until, facts["restored_again"] = outcome.waiting_until, outcome.facts
        except PartlyDone as error:
            facts["restored_again"] = error.facts
            refusals = error.facts["failed"]
            failed += [item | {"reason": f"its retrieval was rejected: {item['reason']}"} for item in refusals]
        gone = "it is not in the vault any more: find out who deleted it, and plan again with a newer inventory"
        failed += [{"archive": archive, "reason": gone} for archive in facts["restored_again"]["missing"]]
        return waiting_until or self.work.ctx.now()

    def _retrieving(self, archives: Sequence[ArchiveRef]) -> Retrieving:
        own = self.parameters.model_dump(include={"vault", "account_id", "region", "endpoint_url", "tier"})
        return Retrieving(self.work, RetrieveParameters(**own, archives=tuple(archives)))

    def _one(self, archive: ArchiveRef, job: VaultJob) -> dict[str, Any]:
        """Read, drop the rows, search what comes out, upload it. The description stays: tools keep names in it."""
        if archive.size > MAX_OBJECT_BYTES:
            raise RunError(
                f"the archive has {archive.size} bytes, more than the limit of a rewrite in memory",
                where=archive.id,
                todo="split the archive by hand, or declare `delete_whole`",
            )
        client = self.work.client(self.parameters)
        try:
            data = client.output(job.job_id)
        except (ClientError, BotoCoreError) as error:
            raise refused("glacier:GetJobOutput", error, archive.id) from None
        before = tree_hash(data)
        if self.work.ctx.marks.of_content(archive.id, before) != archive.tree_hash:
            raise RunError(
                "the received bytes differ from the archive", where=archive.id, todo="run `pii-tracer resume`"
            )
        kept = self._removal.kept(data)
        after = data if kept.data is None else kept.data
        name, own = f"archive.{self.parameters.format.value}", self.parameters
        no_keys = self.work.ctx.no_keys(self.work.copy)
        seen = self._finder.in_file(name, after, own.format, own.match, own.other_keys, no_keys)
        if seen.held or seen.unread:
            told = "after the removal of the person's rows, the archive still contains a value of the person"
            what = told if seen.held else seen.unread[0]
            raise RunError(
                what, where=archive.id, todo="erase the person in the archive by hand, or declare `delete_whole`"
            )
        fact = {
            "archive": archive.id,
            "rows_before": kept.rows_before,
            "rows_after": kept.rows_after,
            "sha256_before": hashlib.sha256(data).hexdigest(),
            "sha256": hashlib.sha256(after).hexdigest(),
        }
        if kept.data is None:
            return fact | {"new_archive": None, "tree_hash": before}
        try:
            answer = client.upload(after, archive.description)
        except (ClientError, BotoCoreError) as error:
            raise refused("glacier:UploadArchive", error, self.parameters.where) from None
        if answer["checksum"] != tree_hash(after):
            raise RunError(
                "the bytes that Glacier stored differ from the bytes sent",
                where=archive.id,
                todo="run `pii-tracer resume`",
            )
        return fact | {"new_archive": answer["archiveId"], "tree_hash": answer["checksum"], "bytes": len(after)}


def tree_hash(data: bytes) -> str:
    """Glacier's SHA-256 tree hash, in hex."""
    return str(calculate_tree_hash(io.BytesIO(data)))  # type: ignore[arg-type]  # it reads any binary file
