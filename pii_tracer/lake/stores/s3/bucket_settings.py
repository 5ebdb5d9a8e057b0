"""What a bucket's settings say of bytes and names beside its objects: default locks, cold tiers, reports of its keys.

Object Lock's default retention binds every object that is written from now on; Intelligent-Tiering moves objects into
tiers that must be restored; S3 Inventory and access logs write the objects' names into another place (hazard S8).
https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html, …/intelligent-tiering-overview.html,
…/storage-inventory.html, …/ServerLogs.html
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, PaginationError

from pii_tracer.common.plurals import counted
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import InventoryGap, ObjectSet
from pii_tracer.lake.stores.s3.object_versions import ClientFactory, S3Client, region_of
from pii_tracer.model.gap_kinds import GapKind

# servers other than AWS lack some of these settings: a bucket there has none of them
NOT_THERE = frozenset(
    {
        "NotImplemented",
        "MethodNotAllowed",
        "ObjectLockConfigurationNotFoundError",
        "NoSuchConfiguration",
        "NoSuchLifecycleConfiguration",
    }
)

OBJECT_LOCK, LIFECYCLE = "GetObjectLockConfiguration", "GetBucketLifecycleConfiguration"
_SOME_STAY = "NewerNoncurrentVersions"


def with_settings(objects: ObjectSet, clients: ClientFactory) -> tuple[ObjectSet, tuple[InventoryGap, ...]]:
    """The objects with `default_retention`, `cold_tiers` and `named_in`; a setting that is refused is a gap."""
    client, gaps = clients(objects.region), list[InventoryGap]()
    readers: dict[str, tuple[str, Callable[[S3Client, ObjectSet], Any]]] = {
        "default_retention": (OBJECT_LOCK, _lock_of),
        "cold_tiers": ("ListBucketIntelligentTieringConfigurations", _cold_tiers),
        "named_in": ("ListBucketInventoryConfigurations", _inventories),
    }
    update: dict[str, Any] = {}
    for name, (operation, read) in readers.items():
        if name == "default_retention" and not objects.object_lock:
            continue
        answer = _asked(objects, gaps, operation, lambda read=read: read(client, objects))  # type: ignore[misc]
        if answer is not None:
            update[name] = answer
    logs = _asked(objects, gaps, "GetBucketLogging", lambda: _logs(client, objects))
    update["named_in"] = tuple(sorted({*update.get("named_in", ()), *(logs or ())}))
    return objects.model_copy(update=update), tuple(gaps)


def _asked(objects: ObjectSet, gaps: list[InventoryGap], operation: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (ClientError, BotoCoreError) as error:
        code = error_code(error)
        if code not in NOT_THERE:
            reason = f"{operation} was rejected, so its answer is unknown"
            evidence = f"bucket {objects.bucket}: {operation} {code}"
            gaps.append(
                InventoryGap(dataset=objects.dataset, kind=GapKind.S3_SETTING, reason=reason, evidence=evidence)
            )
        return None


@dataclass(frozen=True)
class KeptByBucket:
    """What a bucket keeps of what is replaced or deleted in it. old_versions: days that old versions stay under the
    prefix where they stay longest; None where no rule removes them. refused: operations that were, of which nothing is
    known then."""

    versioned: bool | None
    default_retention: str | None
    old_versions: int | None
    refused: frozenset[str]


def kept_by_bucket(clients: ClientFactory, bucket: str, prefixes: Collection[str]) -> KeptByBucket:
    """Ask a bucket. A setting that a server lacks is as if it were not there."""
    refused: set[str] = set()

    def asked(operation: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (ClientError, BotoCoreError) as error:
            if error_code(error) not in NOT_THERE:
                refused.add(operation)
            return None

    region = asked("GetBucketLocation", lambda: region_of(clients(None), bucket))
    client = clients(region)
    versioning = asked("GetBucketVersioning", lambda: client.get_bucket_versioning(Bucket=bucket))
    lifecycle = asked(LIFECYCLE, lambda: client.get_bucket_lifecycle_configuration(Bucket=bucket))
    lock = asked(OBJECT_LOCK, lambda: _default_retention(client, bucket))
    rules = (lifecycle or {}).get("Rules", ())
    days = [min(days_of_old_versions(rules, prefix), default=None) for prefix in prefixes]
    return KeptByBucket(
        versioned=None if versioning is None else versioning.get("Status") in ("Enabled", "Suspended"),
        default_retention=lock,
        old_versions=None if None in days else max((day for day in days if day is not None), default=None),
        refused=frozenset(refused),
    )


def covering(rules: Iterable[Mapping[str, Any]], prefix: str) -> Iterator[Mapping[str, Any]]:
    """Lifecycle rules that are about every object under a prefix: none that tags or sizes limit."""
    for rule in rules:
        chosen = rule.get("Filter") or rule
        narrow = set(chosen.get("And") or chosen) & {"Tag", "Tags", "ObjectSizeGreaterThan", "ObjectSizeLessThan"}
        if rule.get("Status") == "Enabled" and not narrow and prefix.startswith(prefix_of(rule)):
            yield rule


def days_of_old_versions(rules: Iterable[Mapping[str, Any]], prefix: str) -> list[int]:
    """After how many days rules remove every old version under a prefix; none that keep some versions."""
    later = (rule.get("NoncurrentVersionExpiration", {}) for rule in covering(rules, prefix))
    return [int(one["NoncurrentDays"]) for one in later if one.get("NoncurrentDays") and not one.get(_SOME_STAY)]


def _lock_of(client: S3Client, objects: ObjectSet) -> str | None:
    return _default_retention(client, objects.bucket)


def _default_retention(client: S3Client, bucket: str) -> str | None:
    answer = client.get_object_lock_configuration(Bucket=bucket).get("ObjectLockConfiguration") or {}
    rule = (answer.get("Rule") or {}).get("DefaultRetention") or {}
    if not rule:
        return None
    time = f"{rule['Years']} years" if rule.get("Years") else f"{rule.get('Days')} days"
    return f"{rule.get('Mode')}, {time}"


def _cold_tiers(client: S3Client, objects: ObjectSet) -> tuple[str, ...]:
    """Archive tiers that enabled configurations move objects of the prefix into, with the days without access."""
    found = set()
    for item in _configurations(
        client.list_bucket_intelligent_tiering_configurations, objects.bucket, "IntelligentTiering"
    ):
        if item.get("Status") == "Enabled" and touches(item, objects.prefix):
            found |= {f"{tier['AccessTier']} after {counted(tier['Days'], 'day')}" for tier in item.get("Tierings", ())}
    return tuple(sorted(found))


def _inventories(client: S3Client, objects: ObjectSet) -> tuple[str, ...]:
    """Places that S3 Inventory writes lists of the prefix's objects to, also such as are switched off by now."""
    found = set()
    for item in _configurations(client.list_bucket_inventory_configurations, objects.bucket, "Inventory"):
        if touches(item, objects.prefix):
            place = (item.get("Destination") or {}).get("S3BucketDestination") or {}
            bucket = str(place.get("Bucket", "")).rpartition(":")[2]
            account = f" of account {place['AccountId']}" if place.get("AccountId") else ""
            found.add(f"inventory {item.get('Id')} in s3://{bucket}/{place.get('Prefix') or ''}{account}")
    return tuple(sorted(found))


def _logs(client: S3Client, objects: ObjectSet) -> tuple[str, ...]:
    target = client.get_bucket_logging(Bucket=objects.bucket).get("LoggingEnabled")
    return (f"access log in s3://{target['TargetBucket']}/{target.get('TargetPrefix') or ''}",) if target else ()


def _configurations(call: Callable[..., Mapping[str, Any]], bucket: str, kind: str) -> Iterator[Mapping[str, Any]]:
    """All pages of a listing of configurations."""
    token: dict[str, str] = {}
    while True:
        page = call(Bucket=bucket, **token)
        yield from page.get(f"{kind}ConfigurationList", ())
        if not page.get("IsTruncated"):
            return
        if page.get("NextContinuationToken") in (None, token.get("ContinuationToken")):
            raise PaginationError(message="the server reports that the list continues, but does not report where")
        token = {"ContinuationToken": page["NextContinuationToken"]}


def prefix_of(configuration: Mapping[str, Any]) -> str:
    """What the keys begin with that a rule, or another configuration of a bucket, is about; empty for all.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ReplicationRuleFilter.html
    """
    chosen = configuration.get("Filter") or configuration
    return str((chosen.get("And") or chosen).get("Prefix") or "")


def touches(configuration: Mapping[str, Any], prefix: str) -> bool:
    """Whether it is about any key under a prefix."""
    limited = prefix_of(configuration)
    return limited.startswith(prefix) or prefix.startswith(limited)
