"""Archived objects, their old versions and their replicas.

An object in an archive class cannot be rewritten in place: restore, rewrite, archive again, delete the old versions
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/restoring-objects.html). Deletes of a version are never
replicated (https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-what-is-isnot-replicated.html), so every
destination gets its own deletes.
"""

from __future__ import annotations

from typing import Any

from pii_tracer.inventory import ObjectSet, ObjectVersion
from pii_tracer.plan import Action
from planners.drafts import CopyDraft, Draft, StepWriter

ARCHIVE_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE"})


def _described(version: ObjectVersion) -> dict[str, Any]:
    return {
        "key": version.key,
        "version_id": version.version_id,
        "storage_class": version.storage_class,
        "etag": version.etag,
        "size": version.size,
    }


def _writer(item: CopyDraft) -> StepWriter:
    return StepWriter(item.copy, "s3", {})


def _bucket(objects: ObjectSet, plan_id: str) -> dict[str, Any]:
    return {"bucket": objects.bucket, "region": objects.region, "plan_id": plan_id}


def _reading(item: CopyDraft) -> dict[str, Any]:
    """How an object is read and searched: a listed version that is still current is spared only if it is clean."""
    match = item.copy.match
    return {"format": item.copy.format.value, "match": match.model_dump(mode="json") if match else None}


def archive_steps(item: CopyDraft, plan_id: str) -> tuple[Draft, ...]:
    """The newest version of each object: restored, rewritten without the person, its old version deleted."""
    objects = item.objects
    if objects is None:
        return ()
    steps, where = _writer(item), _bucket(objects, plan_id)
    latest = [v for v in objects.versions if v.latest and not v.delete_marker]
    cold = [v for v in latest if v.storage_class in ARCHIVE_CLASSES]
    if cold:
        steps.add(
            Action.S3_RESTORE,
            "an archived object can be read only after a restore",
            hazards=("S5",),
            verification="every object can be read",
            irreversible=False,
            versions=[_described(v) for v in cold],
            days=2,
            tier="Standard",
            **where,
        )
    steps.add(
        Action.S3_REWRITE_ARCHIVE,
        "each object holds many people: written again without this one, in the same storage class",
        hazards=("S5", "F3"),
        verification="the newest version of every object is free of the person, other rows unchanged",
        irreversible=False,
        prefix=objects.prefix,
        format=item.copy.format.value,
        objects=[_described(v) for v in latest],
        **where,
    )
    steps.add(
        Action.S3_DELETE_VERSIONS,
        "the versions that were replaced still hold the person",
        hazards=("S1", "S4"),
        verification="none of the listed versions exists",
        versions=[_described(v) for v in latest],
        keep_latest_of=sorted({v.key for v in latest}),
        **_reading(item),
        **where,
    )
    return tuple(steps.drafts)


def version_steps(item: CopyDraft, plan_id: str) -> tuple[Draft, ...]:
    """Noncurrent versions and delete markers of the archive's objects."""
    objects = item.objects
    if objects is None:
        return ()
    steps = _writer(item)
    old = [v for v in objects.versions if not v.latest or v.delete_marker]
    steps.add(
        Action.S3_DELETE_VERSIONS,
        "a versioned bucket keeps every overwritten object",
        hazards=("S1", "S4"),
        verification="none of the listed versions exists",
        versions=[_described(v) for v in old],
        keep_latest_of=sorted({v.key for v in objects.versions if v.latest and not v.delete_marker}),
        **_reading(item),
        **_bucket(objects, plan_id),
    )
    return tuple(steps.drafts)


def replica_steps(item: CopyDraft, origin: ObjectSet, plan_id: str) -> tuple[Draft, ...]:
    """The destination of a replication rule: wait for the rewritten objects, then delete every older version."""
    objects = item.objects
    if objects is None:
        return ()
    steps, where = _writer(item), _bucket(objects, plan_id)
    where |= {"origin_bucket": origin.bucket, "origin_region": origin.region}
    keys = sorted({v.key for v in origin.versions if v.latest and not v.delete_marker})
    steps.add(
        Action.S3_AWAIT_REPLICA,
        "the rewritten objects must have arrived before the old ones go",
        hazards=("S2",),
        verification="the newest version of every key is the rewritten one",
        irreversible=False,
        prefix=objects.prefix,
        keys=keys,
        **where,
    )
    steps.add(
        Action.S3_DELETE_VERSIONS,
        "deletes of a version are never replicated: the destination gets its own",
        hazards=("S1", "S2", "S4"),
        verification="none of the listed versions exists",
        versions=[_described(v) for v in objects.versions],
        keep_latest_of=sorted({v.key for v in objects.versions}),
        **_reading(item),
        **where,
    )
    return tuple(steps.drafts)
