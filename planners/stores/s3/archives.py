"""Archived objects, their old versions, their replicas, and unfinished uploads.

An object in an archive class cannot be rewritten in place: restore, rewrite, archive again, delete the old versions
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/restoring-objects.html). Deletes of a version are never
replicated (https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-what-is-isnot-replicated.html), so every
destination gets its own deletes; nor are replicas replicated again, so the end of a cascade is rewritten by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pii_tracer.lake.inventory import ObjectSet, ObjectVersion, Upload
from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.plan import Override
from pii_tracer.model.timestamps import instant
from planners.formats.plain_files.steps import hazards_of_text
from planners.step_drafts import CopyDraft, Draft, StepWriter

COLD = frozenset({"GLACIER", "DEEP_ARCHIVE", "INTELLIGENT_TIERING"})
"""Classes that may need a restore; of Intelligent-Tiering only a look at each object tells: the executor's."""

_WHOLE = "whole objects are deleted, with the data of all persons, as the estate file declares"

LATEST = timedelta(days=7)
"""How long after its day an expired object may still be there before the run calls it an error; S3 names no bound."""
_IDLE = timedelta(days=1)
"""An upload that got nothing for so long is taken for abandoned."""


def _described(version: ObjectVersion) -> dict[str, Any]:
    return {
        "key": version.key,
        "version_id": version.version_id,
        "storage_class": version.storage_class,
        "etag": version.etag,
        "size": version.size,
        "modified": version.modified,
    }


def _bucket(objects: ObjectSet, plan_id: str) -> dict[str, Any]:
    return {"bucket": objects.bucket, "region": objects.region, "plan_id": plan_id}


def current_of(objects: ObjectSet) -> list[ObjectVersion]:
    """The objects that are there now: the newest version of each key."""
    return [v for v in objects.versions if v.latest and not v.delete_marker]


def _until(version: ObjectVersion, bypass: bool) -> datetime | None:
    """Until when a version's retention refuses to delete it."""
    lock = version.lock
    if lock is None or lock.until is None or (bypass and lock.mode == "GOVERNANCE"):
        return None
    return instant(lock.until)


def archive_steps(item: CopyDraft, plan_id: str) -> tuple[Draft, ...]:
    """The newest version of each object: restored, rewritten without the person, its old version deleted."""
    objects = item.objects
    if objects is None:
        return ()
    steps = _Steps(item, objects, plan_id)
    steps.abort_uploads()
    live = _staying(item, objects)
    if live and objects.delete_whole is not None:
        steps.delete(live, keep=(), reason=_WHOLE, hazards=("S1", "S4"))
    elif live:
        steps.rewrite(live)
        steps.delete(
            live,
            keep=live,
            reason="the replaced versions still contain the person",
            hazards=("S1", "S4"),
        )
    if item.lapsing is not None:
        steps.await_expiry(item.lapsing.until, item.lapsing.versions)
    return steps.drafts


def _staying(item: CopyDraft, objects: ObjectSet) -> list[ObjectVersion]:
    """The current objects but those that are left to the lifecycle."""
    lapsing = item.lapsing.keys if item.lapsing is not None else frozenset()
    return [v for v in current_of(objects) if v.key not in lapsing]


def lapse_steps(item: CopyDraft, objects: ObjectSet, lapse: datetime, plan_id: str) -> tuple[Draft, ...]:
    """What the bucket's lifecycle removes in time: a dated wait. Unfinished uploads do not wait for it."""
    steps = _Steps(item, objects, plan_id)
    steps.abort_uploads()
    steps.await_expiry(lapse, [v for v in objects.versions if not v.delete_marker])
    return steps.drafts


def version_steps(item: CopyDraft, plan_id: str) -> tuple[Draft, ...]:
    """Noncurrent versions and delete markers of the archive's objects."""
    objects = item.objects
    if objects is None:
        return ()
    steps = _Steps(item, objects, plan_id)
    steps.delete(
        [v for v in objects.versions if not v.latest or v.delete_marker],
        keep=_staying(item, objects) if objects.delete_whole is None else (),
        reason="a versioned bucket keeps every overwritten object",
        hazards=("S1", "S4"),
    )
    return steps.drafts


def replica_steps(item: CopyDraft, origin: ObjectSet | None, plan_id: str) -> tuple[Draft, ...]:
    """The destination of a replication rule: wait for the rewritten objects, then delete every older version.

    What does not come from the origin by itself is rewritten in place: where no rule feeds the replica any more, and
    objects that the origin no longer has.
    """
    objects = item.objects
    if objects is None:
        return ()
    steps = _Steps(item, objects, plan_id)
    steps.abort_uploads()
    if objects.delete_whole is not None:
        if objects.versions:
            steps.delete(objects.versions, keep=(), reason=_WHOLE, hazards=("S1", "S2", "S4"))
        return steps.drafts
    arriving = sorted({v.key for v in current_of(origin)}) if origin is not None and objects.fed else []
    own = [v for v in current_of(objects) if v.key not in set(arriving)]
    if own:
        steps.rewrite(own)
    if origin is not None and arriving:
        steps.await_origin(origin, arriving)
    if objects.versions:
        steps.delete(
            objects.versions,
            keep=[*own, *(v for v in objects.versions if v.key in set(arriving))],
            reason="S3 never replicates deletes of a version: the destination needs its own deletes",
            hazards=("S1", "S2", "S4"),
            origin=origin if arriving else None,
        )
    return steps.drafts


def add_abort(writer: StepWriter, prefix: str, uploads: Sequence[Upload], where: Mapping[str, Any]) -> None:
    """Append the step that aborts unfinished uploads, if there are any. where: bucket, region, plan_id."""
    if uploads:
        writer.add(
            Action.S3_ABORT_UPLOADS,
            "unfinished uploads contain bytes that nobody can read and that no listing of objects shows",
            hazards=("S7",),
            verification="none of the listed uploads exists",
            not_before=max(instant(upload.touched) for upload in uploads) + _IDLE,
            prefix=prefix,
            uploads=[upload.model_dump() for upload in uploads],
            idle_hours=_IDLE // timedelta(hours=1),
            **where,
        )


class _Steps:
    """Writes the steps of one set of objects."""

    def __init__(self, item: CopyDraft, objects: ObjectSet, plan_id: str) -> None:
        self._item = item
        self._objects = objects
        self._writer = StepWriter(item.copy, "s3", {})
        self._where = _bucket(objects, plan_id)

    @property
    def drafts(self) -> tuple[Draft, ...]:
        return tuple(self._writer.drafts)

    def abort_uploads(self) -> None:
        add_abort(self._writer, self._objects.prefix, self._objects.uploads, self._where)

    def rewrite(self, live: Sequence[ObjectVersion]) -> None:
        cold = [v for v in live if v.storage_class in COLD]
        if cold:
            self._writer.add(
                Action.S3_RESTORE,
                "an archived object can be read only after a restore",
                hazards=("S5",),
                verification="every object can be read",
                irreversible=False,
                versions=[_described(v) for v in cold],
                days=2,
                tier="Standard",
                **self._where,
            )
        self._writer.add(
            Action.S3_REWRITE_ARCHIVE,
            "each object contains many people: the step rewrites it without the person, in the same storage class",
            hazards=("S5", "F3", *hazards_of_text(self._item.copy)),
            verification="no newest version of an object contains the person, and other rows are unchanged",
            irreversible=False,
            prefix=self._objects.prefix,
            format=self._item.copy.format.value,
            objects=[_described(v) for v in live],
            **self._where,
        )

    def await_origin(self, origin: ObjectSet, keys: list[str]) -> None:
        self._writer.add(
            Action.S3_AWAIT_REPLICA,
            "replication of the rewritten objects must be complete before the old versions are deleted",
            hazards=("S2",),
            verification="the newest version of every key is the rewritten one",
            irreversible=False,
            prefix=self._objects.prefix,
            keys=keys,
            origin_bucket=origin.bucket,
            origin_region=origin.region,
            **self._where,
        )

    def await_expiry(self, lapse: datetime, versions: Iterable[ObjectVersion]) -> None:
        self._writer.add(
            Action.S3_AWAIT_EXPIRY,
            "the bucket's own lifecycle removes the person before the deadline",
            hazards=("S1", "S5"),
            verification="none of the listed versions exists",
            irreversible=False,
            not_before=lapse,
            prefix=self._objects.prefix,
            versions=[_described(v) for v in versions],
            expires_after_days=self._objects.expires_after_days,
            noncurrent_days=self._objects.noncurrent_days,
            until=iso(lapse),
            give_up=iso(lapse + LATEST),
            **self._where,
        )

    def delete(
        self,
        versions: Sequence[ObjectVersion],
        *,
        keep: Sequence[ObjectVersion],
        reason: str,
        hazards: tuple[str, ...],
        origin: ObjectSet | None = None,
    ) -> None:
        """A step for what can go, and one for what a lock keeps until a date: nothing else waits for that.

        But the delete markers of such a key: without them what its owner deleted would be live again until then.
        """
        bypass = self._objects.bypass_governance is not None
        locked = {(v.key, v.version_id): until for v in versions if (until := _until(v, bypass)) is not None}
        waiting = {key for key, _ in locked}
        late = [(v.key, v.version_id) in locked or (v.delete_marker and v.key in waiting) for v in versions]
        free = [v for v, later in zip(versions, late, strict=True) if not later]
        kept = [v for v, later in zip(versions, late, strict=True) if later]
        last = max(locked.values(), default=None)
        for part, end in ((free, None), (kept, last)):
            if part:
                self._writer.add(
                    Action.S3_DELETE_VERSIONS,
                    f"{reason}; an object lock keeps them until then" if end else reason,
                    hazards=(*hazards, "S3") if end else hazards,
                    verification="none of the listed versions exists",
                    not_before=end,
                    versions=[_described(v) for v in part],
                    **self._guards(versions, keep, origin),
                    **self._in_front(part, versions, keep),
                    **self._where,
                )

    @staticmethod
    def _in_front(
        part: Sequence[ObjectVersion], versions: Sequence[ObjectVersion], keep: Sequence[ObjectVersion]
    ) -> dict[str, Any]:
        """Current versions that stay, of which no step may have to write another, before old ones that go."""
        keys, listed = {v.key for v in part}, {(v.key, v.version_id) for v in versions}
        front = [v for v in keep if v.latest and v.key in keys and (v.key, v.version_id) not in listed]
        return {"current": [_described(v) for v in front]} if front else {}

    def _guards(
        self, versions: Sequence[ObjectVersion], keep: Sequence[ObjectVersion], origin: ObjectSet | None
    ) -> dict[str, Any]:
        """Parameters of a delete that say what must outlive it, and what must not have changed."""
        objects, match = self._objects, self._item.copy.match
        keys = {v.key for v in keep}
        guards: dict[str, Any] = {
            "keep_latest_of": sorted(keys),
            "format": self._item.copy.format.value,
            "match": match.model_dump(mode="json") if match else None,
        }
        going = {v.key for v in current_of(objects)} if objects.delete_whole is not None else set()
        if deleted := {v.key for v in versions} - keys - going:
            guards["never_latest_of"] = sorted(deleted)
        if origin is not None:
            guards |= {"origin_bucket": origin.bucket, "origin_region": origin.region}
        if objects.object_lock:
            guards |= {"object_lock": True, "bypass_governance": objects.bypass_governance is not None}
        return guards


def bypasses(items: Iterable[CopyDraft]) -> tuple[Override, ...]:
    """Locks in GOVERNANCE mode that the plan sets aside, for reviewers."""
    found = set()
    for item in items:
        objects = item.objects
        if objects is None or objects.bypass_governance is None or not item.drafts:
            continue
        if any(v.lock and v.lock.until and v.lock.mode == "GOVERNANCE" for v in objects.versions):
            found.add((objects.location, objects.bypass_governance))
    return tuple(Override(kind="s3_bypass_governance", reason=f"{place}: {reason}") for place, reason in sorted(found))


def whole_objects(items: Iterable[CopyDraft]) -> tuple[Override, ...]:
    """Archives whose objects are deleted with everybody in them, for reviewers."""
    found = {
        f"{item.objects.location}: {item.objects.delete_whole}"
        for item in items
        if item.objects is not None and item.objects.delete_whole and item.drafts and item.lapse is None
    }
    return tuple(Override(kind="s3_delete_whole", reason=reason) for reason in sorted(found))
