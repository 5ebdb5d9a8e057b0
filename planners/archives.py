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


def _named(version: ObjectVersion) -> dict[str, str]:
    return {"key": version.key, "version_id": version.version_id}


def _described(version: ObjectVersion) -> dict[str, str]:
    return _named(version) | {"storage_class": version.storage_class, "etag": version.etag}


def _writer(item: CopyDraft, objects: ObjectSet) -> tuple[StepWriter, dict[str, Any]]:
    where = {"bucket": objects.bucket, "region": objects.region, "prefix": objects.prefix}
    return StepWriter(item.copy, "s3", None, objects.location), where


def archive_steps(item: CopyDraft, plan_id: str) -> tuple[Draft, ...]:
    """The newest version of each object: restored, rewritten without the person, its old version deleted."""
    objects = item.objects
    if objects is None:
        return ()
    steps, where = _writer(item, objects)
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
        format=item.copy.format.value,
        objects=[_described(v) for v in latest],
        plan_id=plan_id,
        **where,
    )
    steps.add(
        Action.S3_DELETE_VERSIONS,
        "the versions that were replaced still hold the person",
        hazards=("S1", "S4"),
        verification="none of the listed versions exists",
        versions=[_named(v) for v in latest],
        keep_latest_of=sorted({v.key for v in latest}),
        **where,
    )
    return tuple(steps.drafts)


def version_steps(item: CopyDraft, plan_id: str) -> tuple[Draft, ...]:
    """Noncurrent versions and delete markers of the archive's objects."""
    objects = item.objects
    if objects is None:
        return ()
    steps, where = _writer(item, objects)
    old = [v for v in objects.versions if not v.latest or v.delete_marker]
    steps.add(
        Action.S3_DELETE_VERSIONS,
        "a versioned bucket keeps every overwritten object",
        hazards=("S1", "S4"),
        verification="none of the listed versions exists",
        versions=[_named(v) for v in old],
        keep_latest_of=[],
        **where,
    )
    return tuple(steps.drafts)


def replica_steps(item: CopyDraft, origin: ObjectSet, plan_id: str) -> tuple[Draft, ...]:
    """The destination of a replication rule: wait for the rewritten objects, then delete every older version."""
    objects = item.objects
    if objects is None:
        return ()
    steps, where = _writer(item, objects)
    keys = sorted({v.key for v in origin.versions if v.latest and not v.delete_marker})
    steps.add(
        Action.S3_AWAIT_REPLICA,
        "the rewritten objects must have arrived before the old ones go",
        hazards=("S2",),
        verification="the newest version of every key is the rewritten one",
        irreversible=False,
        origin_bucket=origin.bucket,
        origin_region=origin.region,
        keys=keys,
        plan_id=plan_id,
        **where,
    )
    steps.add(
        Action.S3_DELETE_VERSIONS,
        "deletes of a version are never replicated: the destination gets its own",
        hazards=("S1", "S2", "S4"),
        verification="none of the listed versions exists",
        versions=[_named(v) for v in objects.versions],
        keep_latest_of=sorted({v.key for v in objects.versions}),
        **where,
    )
    return tuple(steps.drafts)
