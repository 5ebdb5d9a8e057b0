"""Archives in S3: every version of every object, and the replicas that the buckets' own rules lead to.

Only boto3, no Spark. What cannot be read is a gap, never silence. Datasets are named as OpenLineage names S3 objects
(namespace `s3://bucket`, https://openlineage.io/docs/spec/naming).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import S3, Archive, Estate
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import InventoryGap, ObjectSet, ObjectVersion
from pii_tracer.lake.packed_versions import Packed
from pii_tracer.lake.stores.s3.archive_manifest import of_others
from pii_tracer.lake.stores.s3.bucket_settings import (
    covering,
    days_of_old_versions,
    prefix_of,
    touches,
    with_settings,
)
from pii_tracer.lake.stores.s3.clients import S3Clients, clients_of, kind_against
from pii_tracer.lake.stores.s3.inventory_reports import ReportUnusable, iter_report, newest_report
from pii_tracer.lake.stores.s3.locks_and_uploads import iter_uploads, with_locks
from pii_tracer.lake.stores.s3.object_versions import (
    ARCHIVED_CLASSES,
    ClientFactory,
    Readability,
    S3Client,
    iso,
    iter_object_versions,
    readability,
    region_of,
    sha256_of_head,
)
from pii_tracer.lake.stores.s3.version_readability import Evidence, VersionBytes, iter_version_bytes
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import is_s3

T = TypeVar("T")

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
    "object_store",
    "readability",
    "s3_clients",
    "sha256_of_head",
]


def s3_settings(estate: Estate) -> S3:
    """How S3 is reached.

    Raises:
        EstateError: the estate file has no `s3` part.
    """
    if estate.s3 is None:
        raise EstateError("the estate file has no settings for S3", todo="add `s3:` with `region`")
    return estate.s3


def s3_clients(estate: Estate) -> S3Clients:
    """A factory of S3 clients by region (None: the estate's own); credentials are found as boto3 finds them.

    Raises:
        EstateError: the estate file has no `s3` part.
    """
    return clients_of(s3_settings(estate))


def object_store(estate: Estate) -> dict[str, str]:
    """How libraries on Rust's `object_store` reach S3 as `s3_clients` do (its `AmazonS3ConfigKey`), to read.

    Its own search for credentials knows no profiles; so these are boto3's, as they are now.

    Raises:
        EstateError: the estate file has no `s3` part.
    """
    settings = s3_settings(estate)
    options = {"aws_region": settings.region}
    if settings.endpoint_url is not None:
        options |= {"aws_endpoint": settings.endpoint_url, "aws_virtual_hosted_style_request": "false"}
        options["allow_http"] = str(settings.endpoint_url.startswith("http:")).lower()
    found = boto3.Session().get_credentials()
    if found is None:
        return options
    now = found.get_frozen_credentials()
    told = {
        "aws_access_key_id": now.access_key,
        "aws_secret_access_key": now.secret_key,
        "aws_session_token": now.token,
    }
    return options | {name: value for name, value in told.items() if value}


def dataset_of(bucket: str, prefix: str) -> DatasetId:
    """The OpenLineage name of a prefix."""
    return DatasetId(namespace=f"s3://{bucket}", name=prefix.rstrip("/"))


# --- discovery ---

_TELL_EVERY = 10_000
_UNKNOWN = ("NotImplemented",)
"""A store that has no such function at all (versitygw: no lifecycle, no replication) cannot have rules for it."""


@dataclass
class _Found:
    """sets by (bucket, prefix); edges: which prefix is replicated to which, in the order found.

    feeding: edges whose rules replicate everything new. say: is told how far the listing is. base: the estate file's
    folder.
    """

    say: Callable[[str], None]
    base: Path

    sets: dict[tuple[str, str], ObjectSet] = field(default_factory=dict)
    gaps: list[InventoryGap] = field(default_factory=list)
    edges: list[tuple[tuple[str, str], tuple[str, str]]] = field(default_factory=list)
    feeding: set[tuple[tuple[str, str], tuple[str, str]]] = field(default_factory=set)


@dataclass(frozen=True)
class _Place:
    """A prefix to look at, and the archive that leads to it."""

    archive: Archive
    bucket: str

    @property
    def id(self) -> tuple[str, str]:
        return (self.bucket, self.archive.prefix)

    @property
    def title(self) -> str:
        """What progress calls it: a prefix can be a person's key, and nobody knows the persons yet."""
        return "a folder in S3" if is_s3(self.archive.name) else f"the archive {self.archive.name}"

    def gap(self, kind: GapKind, reason: str, evidence: str) -> InventoryGap:
        dataset = dataset_of(self.bucket, self.archive.prefix)
        return InventoryGap(dataset=dataset, kind=kind, reason=reason, evidence=evidence)


def discover_archives(
    estate: Estate, client_factory: ClientFactory, base: Path, say: Callable[[str], None] = lambda _: None
) -> tuple[tuple[ObjectSet, ...], tuple[InventoryGap, ...]]:
    """All object versions under the declared archives, and under the same prefix of every bucket they replicate to.

    base: the estate file's folder. say: is told how far the listing is. Rules are followed from bucket to bucket,
    disabled ones too, since what they once copied stays. Gap kinds: `s3_bucket` (missing or unreadable), `s3_setting`
    (a setting could not be read), `s3_manifest` (no manifest as declared), `mfa_delete`.
    """
    found = _Found(say, base)
    waiting = [_Place(archive, archive.bucket) for archive in estate.archives]
    seen: set[tuple[str, str]] = set()
    while waiting:
        place = waiting.pop(0)
        if place.id in seen:
            continue
        seen.add(place.id)
        for bucket, feeds in sorted(_discover(place, client_factory, found).items()):
            target = _Place(place.archive, bucket)
            found.edges.append((place.id, target.id))
            if feeds:
                found.feeding.add((place.id, target.id))
            waiting.append(target)
    _name_origins(found)
    for place_id, objects in sorted(found.sets.items()):
        found.sets[place_id], gaps = with_settings(objects, client_factory)
        found.gaps += gaps
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
            # S3 does not replicate a replica again: what is new in a replica stays there
            fed = (source, target) in found.feeding and source not in origin
            update = {"replica_of": f"s3://{source[0]}/{source[1]}", "fed": fed}
            found.sets[target] = found.sets[target].model_copy(update=update)


def _discover(place: _Place, client_factory: ClientFactory, found: _Found) -> dict[str, bool]:
    """Look at one prefix; returns the buckets it is replicated to, and whether all that is new gets there."""
    bucket, prefix = place.bucket, place.archive.prefix
    if kind := kind_against(bucket):
        found.gaps.append(
            place.gap(
                GapKind.S3_BUCKET, f"the archive `{place.archive.name}` is not erased: {kind}", f"bucket {bucket}"
            )
        )
        return {}
    try:
        region = region_of(client_factory(None), bucket)
        client = client_factory(region)
        versions = _listed(place, client_factory, client, found)
    except (ClientError, BotoCoreError) as error:
        whose = "the bucket" if bucket == place.archive.bucket else "a bucket that is the target of replication rules"
        reason = f"{whose} of the archive `{place.archive.name}` is missing or cannot be listed"
        found.gaps.append(place.gap(GapKind.S3_BUCKET, reason, f"bucket {bucket}: {error_code(error)}"))
        return {}
    settings = _Settings(place, client, found)
    versioning = settings.read("GetBucketVersioning", lambda: client.get_bucket_versioning(Bucket=bucket)) or {}
    if versioning.get("MFADelete") == "Enabled":
        found.gaps.append(
            place.gap(GapKind.MFA_DELETE, "only the owner's MFA device can delete versions", f"bucket {bucket}")
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
        none=("NoSuchLifecycleConfiguration", *_UNKNOWN),
    )
    replication = settings.read(
        "GetBucketReplication",
        lambda: client.get_bucket_replication(Bucket=bucket),
        none=("ReplicationConfigurationNotFoundError", *_UNKNOWN),
    )
    object_lock = (lock or {}).get("ObjectLockConfiguration", {}).get("ObjectLockEnabled") == "Enabled"
    if object_lock:
        versions = (
            settings.read("HeadObject", lambda: Packed(ObjectVersion, with_locks(client, bucket, versions))) or versions
        )
    rules = (replication or {}).get("ReplicationConfiguration", {}).get("Rules", ())
    others, tables, versions = _apart(place, versions, found)
    uploads = settings.read("ListMultipartUploads", lambda: tuple(iter_uploads(client, bucket, prefix)))
    expiry = expiry_of((lifecycle or {}).get("Rules", ()), prefix, versioned)
    found.sets[place.id] = ObjectSet(
        dataset=dataset_of(bucket, prefix),
        bucket=bucket,
        prefix=prefix,
        region=region,
        of=place.archive.of,
        format=place.archive.format,
        copied_to=tuple(sorted({(_destination(r), prefix_of(r)) for r in rules if r.get("Status") == "Enabled"})),
        versioned=versioned,
        object_lock=object_lock,
        bypass_governance=place.archive.bypass_governance,
        delete_whole=place.archive.delete_whole,
        expires_after_days=expiry.total if expiry else None,
        noncurrent_days=expiry.noncurrent if expiry else 0,
        versions=versions,
        of_others=others,
        other_tables=tables,
        uploads=uploads or (),
    )
    targets: dict[str, bool] = {}
    for rule in rules:
        if touches(rule, prefix):
            targets[_destination(rule)] = targets.get(_destination(rule), False) or _feeds(rule, prefix)
    return targets


def _listed(place: _Place, factory: ClientFactory, client: S3Client, found: _Found) -> Packed[ObjectVersion]:
    """All versions: from an inventory report where one can be relied on, from ListObjectVersions otherwise."""
    bucket, prefix, reports = place.bucket, place.archive.prefix, place.archive.inventory
    if reports is not None and bucket == place.archive.bucket:
        try:
            there = factory(region_of(factory(None), reports.location.split("/")[2]))
            report = newest_report(there, bucket, reports)
            found.say(f"{place.title}: from the inventory report of {iso(report.taken)}")
            return Packed(ObjectVersion, _counted(place, iter_report(there, report, prefix), found))
        except (ReportUnusable, ClientError, BotoCoreError) as error:
            why = error.what if isinstance(error, ReportUnusable) else error_code(error)
            found.say(f"{place.title}: {why}; the bucket is listed")
    return Packed(ObjectVersion, _counted(place, iter_object_versions(client, bucket, prefix), found))


def _apart(
    place: _Place, versions: Packed[ObjectVersion], found: _Found
) -> tuple[tuple[tuple[str, str, str], ...], tuple[str, ...], Packed[ObjectVersion]]:
    """What the archive's manifest gives to other tables, these tables, and all that can hold anybody."""
    try:
        others = of_others(found.base, place.archive.manifest, place.archive.of)
    except EstateError as error:
        found.gaps.append(place.gap(GapKind.S3_MANIFEST, error.what, str(error.where)))
        others = {}
    if not others:
        return (), (), versions
    left = sorted((v.key, v.version_id, v.etag) for v in versions if v.key in others)
    tables = sorted({table for key in {key for key, _, _ in left} for table in others[key]})
    return tuple(left), tuple(tables), Packed(ObjectVersion, (v for v in versions if v.key not in others))


def _counted(place: _Place, versions: Iterable[ObjectVersion], found: _Found) -> Iterator[ObjectVersion]:
    for number, version in enumerate(versions, 1):
        yield version
        if number % _TELL_EVERY == 0:
            found.say(f"{place.title}: {counted(number, 'version')}")


@dataclass(frozen=True)
class _Settings:
    """Reads a bucket's settings; what cannot be read becomes a gap."""

    place: _Place
    client: S3Client
    found: _Found

    def read(self, operation: str, call: Callable[[], T], none: tuple[str, ...] = ()) -> T | None:
        try:
            return call()
        except (ClientError, BotoCoreError) as error:
            code = error_code(error)
            if code not in none:
                self.found.gaps.append(
                    self.place.gap(
                        GapKind.S3_SETTING,
                        f"{operation} was rejected, so its answer is unknown",
                        f"bucket {self.place.bucket}: {operation} {code}",
                    )
                )
            return None


def _feeds(rule: Mapping[str, Any], prefix: str) -> bool:
    """Whether a rule replicates every object that is written under the prefix from now on."""
    chosen = rule.get("Filter") or rule
    narrow = set(chosen.get("And") or chosen) & {"Tag", "Tags"}
    return rule.get("Status") == "Enabled" and not narrow and prefix.startswith(prefix_of(rule))


def _destination(rule: Mapping[str, Any]) -> str:
    """`arn:aws:s3:::name` -> name."""
    return str(rule["Destination"]["Bucket"]).rpartition(":")[2]


@dataclass(frozen=True)
class Expiry:
    """Days until an object is removed, or hidden in a versioned bucket, and days from then on that its bytes stay."""

    current: int
    noncurrent: int

    @property
    def total(self) -> int:
        return self.current + self.noncurrent


def expiry_of(rules: Any, prefix: str, versioned: bool) -> Expiry | None:
    """When lifecycle rules alone remove the bytes of every object under the prefix, or None when they never do.

    In a versioned bucket `Expiration` only adds a delete marker; the bytes leave with `NoncurrentVersionExpiration`
    (https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html). Rules limited by tags or size,
    or that keep some noncurrent versions, promise nothing for all objects.
    """
    expirations = (rule.get("Expiration", {}) for rule in covering(rules, prefix))
    current = [int(one["Days"]) for one in expirations if "Days" in one]
    noncurrent = days_of_old_versions(rules, prefix)
    if not current or (versioned and not noncurrent):
        return None
    return Expiry(min(current), min(noncurrent) if versioned else 0)
