"""Archives in S3: every version of every object, and the replicas that the buckets' own rules lead to.

Only boto3, no Spark. What cannot be read is a gap, never silence. Datasets are named as OpenLineage names S3 objects
(namespace `s3://bucket`, https://openlineage.io/docs/spec/naming).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.config import Archive, Estate
from pii_tracer.errors import EstateError
from pii_tracer.estate.s3_versions import (
    ARCHIVED_CLASSES,
    ClientFactory,
    Evidence,
    Readability,
    S3Client,
    VersionBytes,
    error_code,
    iter_object_versions,
    iter_version_bytes,
    readability,
    sha256_of_head,
)
from pii_tracer.inventory import InventoryGap, ObjectSet
from pii_tracer.model import DatasetId

__all__ = [
    "ARCHIVED_CLASSES",
    "ClientFactory",
    "Evidence",
    "Readability",
    "S3Client",
    "VersionBytes",
    "dataset_of",
    "discover_archives",
    "error_code",
    "iter_object_versions",
    "iter_version_bytes",
    "readability",
    "s3_clients",
    "sha256_of_head",
]


def s3_clients(estate: Estate) -> ClientFactory:
    """A factory of S3 clients by region (None: the estate's own); credentials are found as boto3 finds them.

    Raises:
        EstateError: the estate file has no `s3` part.
    """
    settings = estate.s3
    if settings is None:
        raise EstateError("the estate file does not say how S3 is reached", todo="add `s3:` with `region`")
    config = Config(
        retries={"max_attempts": 3, "mode": "standard"},
        connect_timeout=10,
        read_timeout=60,
        # a server of one's own has no host name per bucket
        s3={"addressing_style": "path"} if settings.endpoint_url else {},
    )
    made: dict[str, S3Client] = {}

    def client(region: str | None) -> S3Client:
        name = region or settings.region
        if name not in made:
            made[name] = boto3.client("s3", region_name=name, endpoint_url=settings.endpoint_url, config=config)
        return made[name]

    return client


def dataset_of(bucket: str, prefix: str) -> DatasetId:
    """The OpenLineage name of a prefix."""
    return DatasetId(namespace=f"s3://{bucket}", name=prefix.rstrip("/"))


# --- discovery ---


@dataclass
class _Found:
    """sets by (bucket, prefix); edges: which prefix is replicated to which, in the order found."""

    sets: dict[tuple[str, str], ObjectSet] = field(default_factory=dict)
    gaps: list[InventoryGap] = field(default_factory=list)
    edges: list[tuple[tuple[str, str], tuple[str, str]]] = field(default_factory=list)


@dataclass(frozen=True)
class _Place:
    """A prefix to look at, and the archive that leads to it."""

    archive: Archive
    bucket: str

    @property
    def id(self) -> tuple[str, str]:
        return (self.bucket, self.archive.prefix)

    def gap(self, kind: str, reason: str, evidence: str) -> InventoryGap:
        dataset = dataset_of(self.bucket, self.archive.prefix)
        return InventoryGap(dataset=dataset, kind=kind, reason=reason, evidence=evidence)


def discover_archives(
    estate: Estate, client_factory: ClientFactory
) -> tuple[tuple[ObjectSet, ...], tuple[InventoryGap, ...]]:
    """All object versions under the declared archives, and under the same prefix of every bucket they replicate to.

    Rules are followed from bucket to bucket, disabled ones too, since what they once copied stays. Gap kinds:
    `s3_bucket` (missing or unreadable), `s3_setting` (a setting could not be read), `multipart_upload`, `mfa_delete`.
    """
    found = _Found()
    waiting = [_Place(archive, archive.bucket) for archive in estate.archives]
    seen: set[tuple[str, str]] = set()
    while waiting:
        place = waiting.pop(0)
        if place.id in seen:
            continue
        seen.add(place.id)
        for bucket in _discover(place, client_factory, found):
            target = _Place(place.archive, bucket)
            found.edges.append((place.id, target.id))
            waiting.append(target)
    _name_origins(found)
    return (
        tuple(sorted(found.sets.values(), key=lambda s: s.location)),
        tuple(sorted(found.gaps, key=lambda g: (str(g.dataset), g.kind, g.evidence))),
    )


def _name_origins(found: _Found) -> None:
    """Say of every replica where it comes from; in a ring of rules the first archive stays the origin."""
    origin: dict[tuple[str, str], tuple[str, str]] = {}
    for source, target in found.edges:
        above: tuple[str, str] | None = source
        while above is not None and above != target:
            above = origin.get(above)
        if above is None and target not in origin:
            origin[target] = source
    for target, source in origin.items():
        if target in found.sets:
            found.sets[target] = found.sets[target].model_copy(update={"replica_of": f"s3://{source[0]}/{source[1]}"})


def _discover(place: _Place, client_factory: ClientFactory, found: _Found) -> tuple[str, ...]:
    """Look at one prefix; returns the buckets it is replicated to."""
    bucket, prefix = place.bucket, place.archive.prefix
    try:
        region = _region(client_factory(None), bucket)
        client = client_factory(region)
        versions = tuple(iter_object_versions(client, bucket, prefix))
    except (ClientError, BotoCoreError) as error:
        whose = "the bucket" if bucket == place.archive.bucket else "a bucket that rules replicate to"
        reason = f"{whose} of the archive `{place.archive.name}` is missing or cannot be listed"
        found.gaps.append(place.gap("s3_bucket", reason, f"bucket {bucket}: {error_code(error)}"))
        return ()
    settings = _Settings(place, client, found)
    versioning = settings.read("GetBucketVersioning", lambda: client.get_bucket_versioning(Bucket=bucket)) or {}
    if versioning.get("MFADelete") == "Enabled":
        found.gaps.append(
            place.gap("mfa_delete", "versions can only be deleted with the owner's MFA device", f"bucket {bucket}")
        )
    versioned = versioning.get("Status") in ("Enabled", "Suspended")
    lock = settings.read(
        "GetObjectLockConfiguration",
        lambda: client.get_object_lock_configuration(Bucket=bucket),
        none=("ObjectLockConfigurationNotFoundError", "ObjectLockConfigurationNotFound"),
    )
    lifecycle = settings.read(
        "GetBucketLifecycleConfiguration",
        lambda: client.get_bucket_lifecycle_configuration(Bucket=bucket),
        none=("NoSuchLifecycleConfiguration",),
    )
    replication = settings.read(
        "GetBucketReplication",
        lambda: client.get_bucket_replication(Bucket=bucket),
        none=("ReplicationConfigurationNotFoundError",),
    )
    settings.note_uploads()
    found.sets[place.id] = ObjectSet(
        dataset=dataset_of(bucket, prefix),
        bucket=bucket,
        prefix=prefix,
        region=region,
        of=place.archive.of,
        versioned=versioned,
        object_lock=(lock or {}).get("ObjectLockConfiguration", {}).get("ObjectLockEnabled") == "Enabled",
        expires_after_days=_expiry_days((lifecycle or {}).get("Rules", ()), prefix, versioned),
        versions=versions,
    )
    rules = (replication or {}).get("ReplicationConfiguration", {}).get("Rules", ())
    return tuple(sorted({_destination(rule) for rule in rules if _touches(_rule_prefix(rule), prefix)}))


@dataclass(frozen=True)
class _Settings:
    """Reads a bucket's settings; what cannot be read becomes a gap."""

    place: _Place
    client: S3Client
    found: _Found

    def read(
        self, operation: str, call: Callable[[], Mapping[str, Any]], none: tuple[str, ...] = ()
    ) -> Mapping[str, Any] | None:
        try:
            return call()
        except (ClientError, BotoCoreError) as error:
            code = error_code(error)
            if code not in none:
                self.found.gaps.append(
                    self.place.gap(
                        "s3_setting",
                        f"{operation} was refused: what it would show is unknown",
                        f"bucket {self.place.bucket}: {operation} {code}",
                    )
                )
            return None

    def note_uploads(self) -> None:
        """Unfinished multipart uploads hold bytes that no listing of objects shows."""
        bucket, prefix = self.place.bucket, self.place.archive.prefix

        def count() -> Mapping[str, Any]:
            pages = self.client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix)
            return {"uploads": sum(len(page.get("Uploads", ())) for page in pages)}

        uploads = (self.read("ListMultipartUploads", count) or {}).get("uploads", 0)
        if uploads:
            self.found.gaps.append(
                self.place.gap(
                    "multipart_upload",
                    "unfinished multipart uploads may hold the person and cannot be read: finish or abort them",
                    f"s3://{bucket}/{prefix}: {uploads} upload(s)",
                )
            )


def _region(client: S3Client, bucket: str) -> str:
    """GetBucketLocation; an empty answer means us-east-1 (its API page)."""
    return client.get_bucket_location(Bucket=bucket).get("LocationConstraint") or "us-east-1"


def _rule_prefix(rule: Mapping[str, Any]) -> str:
    chosen = rule.get("Filter") or rule
    return str((chosen.get("And") or chosen).get("Prefix") or "")


def _touches(rule_prefix: str, prefix: str) -> bool:
    return rule_prefix.startswith(prefix) or prefix.startswith(rule_prefix)


def _destination(rule: Mapping[str, Any]) -> str:
    """`arn:aws:s3:::name` -> name."""
    return str(rule["Destination"]["Bucket"]).rpartition(":")[2]


def _expiry_days(rules: Any, prefix: str, versioned: bool) -> int | None:
    """Days until lifecycle rules alone remove the bytes of every object under the prefix, or None when they never do.

    In a versioned bucket `Expiration` only adds a delete marker; the bytes leave with `NoncurrentVersionExpiration`
    (https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html). Rules limited by tags or size,
    or that keep some noncurrent versions, promise nothing for all objects.
    """
    current: list[int] = []
    noncurrent: list[int] = []
    for rule in rules:
        chosen = rule.get("Filter") or rule
        narrow = set(chosen.get("And") or chosen) & {"Tag", "Tags", "ObjectSizeGreaterThan", "ObjectSizeLessThan"}
        if rule.get("Status") != "Enabled" or narrow or not prefix.startswith(_rule_prefix(rule)):
            continue
        if "Days" in rule.get("Expiration", {}):
            current.append(int(rule["Expiration"]["Days"]))
        later = rule.get("NoncurrentVersionExpiration", {})
        if "NoncurrentDays" in later and not later.get("NewerNoncurrentVersions"):
            noncurrent.append(int(later["NoncurrentDays"]))
    if not current or (versioned and not noncurrent):
        return None
    return min(current) + (min(noncurrent) if versioned else 0)
