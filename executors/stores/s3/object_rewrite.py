"""Write objects anew without the person, in the same class; what somebody else wrote meanwhile is left as it is."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from executors.formats.plain_files.parquet_surgery.recipe import Recipe
from executors.formats.plain_files.parquet_surgery.rewriting import facts_of
from executors.formats.plain_files.row_removal import Kept, RowRemoval
from executors.stores.s3.multipart_copy import abort, copy_like
from executors.stores.s3.multipart_parts import upload_parts
from executors.stores.s3.object_metadata import Beside
from executors.stores.s3.restore import Restoring
from executors.stores.s3.step_base import (
    PLAN_TAG,
    RestoreParameters,
    RewriteParameters,
    S3Part,
    VersionRef,
    head,
    overwritten,
    read,
    server_time,
    write_like,
)
from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.s3.object_versions import ARCHIVED_CLASSES, Readability, readability, sha256_of_head
from pii_tracer.model.errors import RunError
from pii_tracer.model.waivers import MarkKey
from pii_tracer.run.executor_protocol import (
    Check,
    Outcome,
    PartlyDone,
    Progress,
)

_BEGUN = "uploads_begun"


@dataclass(frozen=True)
class _Compared:
    """What rows are compared with. beside: looks at what stands beside the bytes."""

    removal: RowRemoval
    beside: Beside


@dataclass(frozen=True)
class Rewriting(S3Part[RewriteParameters]):
    """One S3_REWRITE_ARCHIVE step. step_id: under which the journal has the uploads that it began."""

    step_id: str

    def check(self) -> None:
        """Raise `RunError` for a missing match, an unsupported format, or a name that holds the person."""
        self._compared()

    def run(self) -> Outcome:
        """Rewrite each object; one that fails does not stop the others. What is archived again is restored anew.

        Raises:
            PartlyDone: some were not rewritten, each with its reason.
        """
        compared = self._compared()
        self._abort_left()
        done: list[dict[str, Any]] = []
        failed: list[dict[str, str]] = []
        cold: list[VersionRef] = []
        for item in self.parameters.objects:
            try:
                fact = self._rewrite_one(compared, item)
                if fact is None:
                    cold.append(item)
                else:
                    done.append(fact)
            except RunError as error:
                failed.append({"key": item.key, "version_id": item.version_id, "reason": error.what})
        facts: dict[str, Any] = {
            "objects": done,
            "rewritten": sum(fact["state"] == "rewritten" for fact in done),
            "left_alone": sum(fact["state"] == "left_alone" for fact in done),
            "gone": sum(fact["state"] == "gone" for fact in done),
            "rows_dropped": sum((fact["rows_before"] or 0) - (fact["rows_after"] or 0) for fact in done),
        }
        again = self._again(cold, facts, failed) if cold else None
        if failed:
            facts["failed"] = failed
            reasons = ", ".join(sorted({item["reason"] for item in failed}))
            raise PartlyDone(
                f"{len(failed)} of {counted(len(self.parameters.objects), 'object')} could not be rewritten: {reasons}",
                facts,
                where=f"s3://{self.parameters.bucket}/{self.parameters.prefix}",
                todo="fix the errors listed in the journal, then run `pii-tracer resume`",
            )
        return Outcome(facts, waiting_until=again)

    def verify(self) -> Check:
        """The current version of every object is the rewritten one, or was read and is free of the person, or gone."""
        compared = self._compared()
        bucket = self.parameters.bucket
        findings: set[str] = set()
        for item in self.parameters.objects:
            current = head(self.client, bucket, item.key)
            if current is None or self._written(current):
                continue
            if not _is_planned(current, item, self.ctx.marks):
                findings.add("a different process changed an object")
                continue
            try:
                kept, answer = self._dropped(compared, item)
                compared.beside.tags(item.key, answer)
            except RunError as error:
                findings.add(f"an object could not be read: {error.what}")
                continue
            if kept.data is not None:
                findings.add("an object still contains the person")
        return Check(not findings, tuple(sorted(findings)))

    def probe(self) -> Progress:
        """Whether this plan wrote any of the objects."""
        if self.verify().ok:
            return Progress.DONE
        bucket = self.parameters.bucket
        tagged = any(self._written(head(self.client, bucket, item.key)) for item in self.parameters.objects)
        return Progress.PARTIAL if tagged else Progress.NOT_STARTED

    def _compared(self) -> _Compared:
        parameters = self.parameters
        match = parameters.match or (self.copy.match if self.copy else None)
        removal = RowRemoval.of(self.ctx, self.copy, match, parameters.format)
        if any(value in item.key for value in removal.strong for item in parameters.objects):
            raise RunError(
                "the name of an object contains the person, and a rewrite keeps names",
                where=f"s3://{parameters.bucket}/{parameters.prefix}",
                todo="copy the object to a name without the value, delete the old object, then make a new plan",
            )
        others = frozenset(self.copy.other_keys) if self.copy else frozenset[str]()
        sets = {term.key_set: self.ctx.keyring.key_set(term.key_set) for term in removal.match.terms}
        finder = self.ctx.finds((sets | {found.name: found for found in self.ctx.everything}).values())
        return _Compared(removal, Beside(self.client, parameters.bucket, finder, others))

    def _again(self, cold: list[VersionRef], facts: dict[str, Any], failed: list[dict[str, str]]) -> datetime:
        """Ask for what is archived again; when to look. What was refused is added to what failed."""
        try:
            outcome = self._restoring(cold).run()
        except PartlyDone as error:
            facts["restored_again"] = error.facts
            failed += [
                item | {"reason": f"its restore was rejected: {item['reason']}"} for item in error.facts["failed"]
            ]
            return self.ctx.now()
        facts["restored_again"] = outcome.facts
        return outcome.waiting_until or self.ctx.now()

    def _restoring(self, cold: list[VersionRef]) -> Restoring:
        own = self.parameters
        asked = RestoreParameters(
            bucket=own.bucket,
            region=own.region,
            plan_id=own.plan_id,
            versions=tuple(cold),
            days=own.restore_days,
            tier=own.restore_tier,
        )
        return Restoring(self.ctx, self.clients, asked, self.copy)

    def _rewrite_one(self, compared: _Compared, item: VersionRef) -> dict[str, Any] | None:
        """What became of an object; None where it is archived again and cannot be read."""
        client, bucket = self.client, self.parameters.bucket
        current = head(client, bucket, item.key)
        if self._written(current) and current is not None:
            return self._resumed(compared, item, current)
        if current is None:  # its owner, or the bucket's lifecycle, removed it: nothing is left to be written anew
            return _fact(item, "gone", None)
        if not _is_planned(current, item, self.ctx.marks):
            raise overwritten(bucket, item.key)
        if readability(current, server_time(current, self.ctx.now())) is not Readability.READABLE:
            return None
        kept, old = self._dropped(compared, item)
        if old["ETag"] != current["ETag"]:
            raise overwritten(bucket, item.key)
        tags = compared.beside.tags(item.key, old)
        fact = _fact(item, "left_alone" if kept.data is None else "rewritten", kept)
        if kept.data is None:
            return fact
        compared.beside.keep(item.key, old)
        return fact | self._write(item.key, kept, kept.data, old, tags)

    def _write(
        self, key: str, kept: Kept, data: bytes, old: Mapping[str, Any], tags: Mapping[str, str]
    ) -> dict[str, Any]:
        """Write the new object: S3 copies what stays of a large Parquet file, where it can."""
        where = (self.client, self.parameters.bucket, key, data)
        beside = (old, self.parameters.plan_id, tags)
        facts = facts_of(kept.made) if kept.made is not None else {}
        # what is archived is read by nobody afterwards: S3 tells the SHA-256 of an object that was sent in one piece
        if isinstance(kept.made, Recipe) and old.get("StorageClass", "STANDARD") not in ARCHIVED_CLASSES:
            parts = upload_parts(kept.made)
            if parts and (told := copy_like(*where, parts, *beside, lambda upload: self._note(key, upload))):
                return facts | told
        return facts | write_like(*where, *beside)

    def _note(self, key: str, upload_id: str) -> None:
        self.ctx.note(self.step_id, {_BEGUN: [{"key": key, "upload_id": upload_id}]})

    def _abort_left(self) -> None:
        """Abort uploads that this step began and did not end, because it was killed."""
        begun = [upload for facts in self.ctx.told(self.step_id) for upload in facts.get(_BEGUN, ())]
        for upload in begun:
            abort(self.client, self.parameters.bucket, upload["key"], upload["upload_id"])

    def _resumed(self, compared: _Compared, item: VersionRef, current: Any) -> dict[str, Any]:
        """This plan wrote the object before a crash: S3 tells what, the old version tells how many rows."""
        fact: dict[str, Any] = {
            "version_id": current.get("VersionId", "null"),
            "sha256": sha256_of_head(current) or self._sha256(item.key, current),
            "etag": current["ETag"].strip('"'),
            "bytes": current["ContentLength"],
            "resumed": True,
        }
        kept = None
        # an unversioned object was overwritten in place, and an old version can be gone or no longer restored:
        # then the rewritten object stands without the count of its rows
        if current.get("VersionId", "null") != item.version_id:
            with contextlib.suppress(RunError):
                kept, _ = self._dropped(compared, item)
        return _fact(item, "rewritten", kept) | fact

    def _sha256(self, key: str, current: Any) -> str | None:
        """Of the bytes themselves, where S3 has the checksums of parts alone."""
        if "-" not in current["ETag"]:
            return None
        data, _ = read(self.client, self.parameters.bucket, key, current.get("VersionId", "null"))
        return hashlib.sha256(data).hexdigest()

    def _dropped(self, compared: _Compared, item: VersionRef) -> tuple[Kept, Any]:
        data, answer = read(self.client, self.parameters.bucket, item.key, item.version_id)
        return compared.removal.kept(data, item.key), answer

    def _written(self, current: Any) -> bool:
        return current is not None and current.get("Metadata", {}).get(PLAN_TAG) == self.parameters.plan_id


def _is_planned(current: Any, item: VersionRef, marks: MarkKey) -> bool:
    """The current version is the one the plan saw; an unversioned `null` is told by its ETag."""
    same = current.get("VersionId", "null") == item.version_id
    return same and (item.etag is None or marks.of_content(item.key, current["ETag"].strip('"')) == item.etag)


def _fact(item: VersionRef, state: str, kept: Kept | None) -> dict[str, Any]:
    return {
        "key": item.key,
        "old_version_id": item.version_id,
        "state": state,
        "rows_before": kept.rows_before if kept else None,
        "rows_after": kept.rows_after if kept else None,
        "missing_columns": list(kept.missing) if kept else [],
    }
