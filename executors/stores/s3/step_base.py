"""What the S3 steps share: their parameters as typed models, heads and bytes, writing an object like its old self."""

from __future__ import annotations

import base64
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Generic, Literal, Protocol, TypeVar
from urllib.parse import urlencode

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import AwareDatetime, Field

from executors.formats.plain_files.arrow_match import KeySource, Nobodys
from executors.formats.plain_files.row_removal import MAX_OBJECT_BYTES
from executors.value_search_protocol import Finds
from pii_tracer.common.http_dates import http_date
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.s3.object_versions import (
    GONE,
    ClientFactory,
    S3Client,
    head_version,
)
from pii_tracer.model.datasets import (
    Format,
    Frozen,
    KeySet,
    Match,
)
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy
from pii_tracer.model.waivers import MarkKey
from pii_tracer.run.executor_protocol import Check, Progress

PLAN_TAG = "pii-tracer-plan"
"""User metadata of an object that a plan wrote: the plan's id. It tells a run after a crash what is done already."""


class S3Context(Protocol):
    """What the S3 executor needs of the execution context. everything: all key sets of the plan. told: the facts that a
    step has given so far. note: puts some into the journal at once. finds: searches for the values of key sets.
    nobodys: by column of a copy, values that are another system's numbers there. holds: whether a text has any value.
    marks: make what the plan says of contents.
    """

    @property
    def marks(self) -> MarkKey: ...

    @property
    def estate(self) -> Estate: ...

    @property
    def keyring(self) -> KeySource: ...

    @property
    def everything(self) -> tuple[KeySet, ...]: ...

    @property
    def now(self) -> Callable[[], datetime]: ...

    @property
    def told(self) -> Callable[[str], Sequence[Mapping[str, Any]]]: ...

    @property
    def note(self) -> Callable[[str, Mapping[str, Any]], None]: ...

    @property
    def finds(self) -> Finds: ...

    def nobodys(self, copy: Copy | None) -> Nobodys: ...

    def holds(self, text: str) -> bool: ...


P = TypeVar("P", bound="BucketParameters")


@dataclass(frozen=True)
class S3Part(ABC, Generic[P]):
    """One step of S3 at work. What a part does not say otherwise: nothing stands against it, and it is over or not."""

    ctx: S3Context
    clients: ClientFactory
    parameters: P
    copy: Copy | None

    @property
    def client(self) -> S3Client:
        """Of the region that the step names."""
        return self.clients(self.parameters.region)

    def check(self) -> None:
        """Nothing beyond what every step is checked for."""

    @abstractmethod
    def verify(self) -> Check:
        """Look at the objects themselves."""

    def probe(self) -> Progress:
        """Whether it is over."""
        return Progress.DONE if self.verify().ok else Progress.PARTIAL


class VersionRef(Frozen):
    """A version as the plan names it. etag, size and modified as known at planning; etag keyed
    (`MarkKey.of_content`)."""

    key: str
    version_id: str
    storage_class: str = "STANDARD"
    etag: str | None = None
    size: int | None = None
    modified: str | None = None


class BucketParameters(Frozen):
    """What every step says: where, and for which plan."""

    bucket: str
    region: str | None = None
    plan_id: str | None = None


class RestoreParameters(BucketParameters):
    """S3_RESTORE: ask for readable copies of archived versions, for `days`."""

    versions: tuple[VersionRef, ...]
    days: int = 7
    tier: Literal["Standard", "Bulk", "Expedited"] = "Bulk"


class RewriteParameters(BucketParameters):
    """S3_REWRITE_ARCHIVE: write the latest objects anew without the person.

    restore_days, restore_tier: for objects whose restored copy has lapsed before they were rewritten.
    """

    restore_days: int = 2
    restore_tier: Literal["Standard", "Bulk", "Expedited"] = "Standard"
    plan_id: str
    prefix: str
    format: Format
    objects: tuple[VersionRef, ...]
    match: Match | None = None


class AwaitParameters(BucketParameters):
    """S3_AWAIT_REPLICA: until rewritten objects have reached this bucket. poll_seconds: how long one run looks."""

    prefix: str
    origin_bucket: str
    origin_region: str | None = None
    keys: tuple[str, ...]
    poll_seconds: float = 20.0


class DeleteParameters(BucketParameters):
    """S3_DELETE_VERSIONS: delete exactly these versions and delete markers.

    object_lock: the bucket can lock versions, so each is asked for its lock before it is deleted. bypass_governance:
    the plan says that versions under GOVERNANCE retention are deleted all the same; its approval covers that.

    keep_latest_of: keys whose current version must outlive the step. A current version that is listed is only spared
    where it was read and does not hold the person (format and match needed for that), or equals the origin's that was.

    current: the current versions of such keys at planning, where older ones are listed. One that never held the person
    is rewritten by nobody: it counts as if it were listed, so that what is behind it can go.

    never_latest_of: keys of which no listed version was the current one at planning, as under a delete marker. One that
    is the current one now was brought back by its owner, and stays with all of its key.
    """

    versions: tuple[VersionRef, ...]
    keep_latest_of: tuple[str, ...] = ()
    current: tuple[VersionRef, ...] = ()
    never_latest_of: tuple[str, ...] = ()
    format: Format | None = None
    match: Match | None = None
    origin_bucket: str | None = None
    origin_region: str | None = None
    object_lock: bool = False
    bypass_governance: bool = False


class UploadRef(Frozen):
    """An unfinished multipart upload as the plan names it. touched: when it was begun or got its newest part."""

    key: str
    upload_id: str
    touched: AwareDatetime


class AbortParameters(BucketParameters):
    """S3_ABORT_UPLOADS: abort exactly these.

    One that got a part after planning has a writer and is left to them; idle_hours: how long nothing may have come.
    """

    prefix: str
    uploads: tuple[UploadRef, ...]
    idle_hours: int = Field(default=24, ge=0)


class ClearParameters(BucketParameters):
    """S3_CLEAR_VERSIONS: delete every old version and every delete marker below a table's folder.

    prefix: of the folder's keys, with its last slash.
    """

    prefix: str = Field(pattern=r"[^/].*/$|[^/]/$")


class ExpiryParameters(BucketParameters):
    """S3_AWAIT_EXPIRY: the bucket's lifecycle removes these versions.

    expires_after_days: as the rules said at planning; noncurrent_days: those of them that count only from when a
    version stopped being current. until: when the youngest should be gone. give_up: when it is an error that they are
    not (S3 may be days late; it names no bound).
    """

    prefix: str
    versions: tuple[VersionRef, ...]
    expires_after_days: int
    noncurrent_days: int
    until: AwareDatetime
    give_up: AwareDatetime


def server_time(answer: Mapping[str, Any], otherwise: datetime) -> datetime:
    """When the server answered, by its own clock: expiry dates are the server's, and our clock may be wrong."""
    return http_date(answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")) or otherwise


def head(client: S3Client, bucket: str, key: str, version_id: str | None = None) -> Mapping[str, Any] | None:
    """HeadObject of a version (None: the current one) with its checksum; None where it is gone or a delete marker.

    Raises:
        RunError: refused or unreachable.
    """
    try:
        if version_id is not None:
            return head_version(client, bucket, key, version_id)
        answer: Mapping[str, Any] = client.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")
        return answer
    except (ClientError, BotoCoreError) as error:
        if error_code(error) in GONE:
            return None
        raise refused("HeadObject", error, bucket, key) from None


def read(client: S3Client, bucket: str, key: str, version_id: str) -> tuple[bytes, Mapping[str, Any]]:
    """The bytes of a version and the GetObject answer they came with.

    Raises:
        RunError: refused, not restored, too large.
    """
    try:
        answer = client.get_object(Bucket=bucket, Key=key, VersionId=version_id)
        with closing(answer["Body"]) as body:
            if answer["ContentLength"] > MAX_OBJECT_BYTES:
                raise RunError(
                    f"the object has {answer['ContentLength']} bytes, more than the limit of a rewrite in memory",
                    where=f"s3://{bucket}/{key}",
                    todo="split the object, or waive this archive",
                )
            data: bytes = body.read()
    except (ClientError, BotoCoreError) as error:
        raise refused("GetObject", error, bucket, key) from None
    return data, answer


def write_like(
    client: S3Client,
    bucket: str,
    key: str,
    data: bytes,
    old: Mapping[str, Any],
    plan_id: str,
    tags: Mapping[str, str],
) -> dict[str, Any]:
    """Put new bytes under the same key, class, encryption, headers, metadata, tags and lock, if the old one is current.

    The upload carries its SHA-256, which S3 checks and keeps. tags: the old one's. Access lists are not copied: see
    `s3_beside`.

    Raises:
        RunError: somebody wrote the object meanwhile, or it was refused.
    """
    digest = hashlib.sha256(data)
    try:
        answer = client.put_object(
            Bucket=bucket,
            Key=key,
            Body=data,
            IfMatch=old["ETag"],
            # S3 wants to see one of two headers beside a lock; this names the algorithm in the one that is no MD5
            ChecksumAlgorithm="SHA256",
            ChecksumSHA256=base64.b64encode(digest.digest()).decode(),
            **kept_beside(old, plan_id, tags),
        )
    except (ClientError, BotoCoreError) as error:
        raise changed_meanwhile(error, bucket, key) or refused("PutObject", error, bucket, key) from None
    return {
        "version_id": answer.get("VersionId", "null"),
        "sha256": digest.hexdigest(),
        "etag": answer["ETag"].strip('"'),
        "bytes": len(data),
        "request_id": request_id(answer),
    }


def kept_beside(old: Mapping[str, Any], plan_id: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """Parameters of an upload that keeps what stands beside an object's bytes, and names the plan."""
    metadata = {name: value for name, value in old.get("Metadata", {}).items() if name != PLAN_TAG}
    same = _headers(old) | {"Metadata": metadata | {PLAN_TAG: plan_id}}
    return same | {"Tagging": urlencode(tags)} if tags else same


def changed_meanwhile(error: Exception, bucket: str, key: str) -> RunError | None:
    """What a conditional write failed for, where it is that somebody wrote or deleted the object."""
    if error_code(error) in ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey"):
        return overwritten(bucket, key)
    return None


_KEPT_HEADERS = (
    "StorageClass",
    "ContentType",
    "ContentEncoding",
    "ContentDisposition",
    "ContentLanguage",
    "CacheControl",
    "Expires",
    "WebsiteRedirectLocation",
    "ServerSideEncryption",
    "SSEKMSKeyId",
    "BucketKeyEnabled",
    "ObjectLockMode",
    "ObjectLockRetainUntilDate",
    "ObjectLockLegalHoldStatus",
)


def _headers(old: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of an object beside its bytes. A retention whose date has passed is over and no PutObject may ask
    for it again (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html); a default lock of the bucket then
    binds the new object, as S3 has it for every upload. A legal hold has no date.
    """
    kept = {name: old[name] for name in _KEPT_HEADERS if old.get(name) is not None}
    until = kept.get("ObjectLockRetainUntilDate")
    if until is not None and until <= server_time(old, datetime.now(timezone.utc)):
        for name in ("ObjectLockMode", "ObjectLockRetainUntilDate"):
            kept.pop(name, None)
    return kept


def request_id(answer: Mapping[str, Any]) -> str:
    """The id that CloudTrail records the same call under."""
    return str(answer.get("ResponseMetadata", {}).get("RequestId", ""))


def refused(operation: str, error: Exception, bucket: str, key: str) -> RunError:
    """A call that failed, told by its code alone: S3's messages come from outside."""
    code = error_code(error)
    todo = {
        "AccessDenied": f"grant the run's role {operation} on this object, or wait until its Object Lock ends",
        "InvalidObjectState": "run the restore step again, because the restored copy does not exist or has expired",
    }.get(code, "run `pii-tracer resume` when S3 answers again")
    return RunError(f"{operation} failed: {code}", where=f"s3://{bucket}/{key}", todo=todo)


def overwritten(bucket: str, key: str) -> RunError:
    """Somebody else wrote or deleted the object after the plan was made."""
    return RunError(
        "somebody changed the object after the plan was made; the step did not change it",
        where=f"s3://{bucket}/{key}",
        todo="stop the writer and make a new plan",
    )
