"""Versions of objects in S3 and what can be said about their bytes: readable, known, or unverified."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, BinaryIO

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.common.http_dates import http_date
from pii_tracer.common.parallel_map import several
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.listing import version_pages
from pii_tracer.model.errors import EstateError

# boto3 makes its clients at run time; without its stub packages they have no static type
S3Client = Any
ClientFactory = Callable[[str | None], S3Client]

ARCHIVED_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE"})

GONE = frozenset({"404", "NoSuchKey", "NoSuchVersion", "405", "MethodNotAllowed"})
"""HeadObject says 404 for a missing version and 405 for a delete marker."""

_HEADS = 8
"""So many HeadObjects at once."""

NULL = "null"
"""The id of the version that was written while the bucket kept none."""


def region_of(client: S3Client, bucket: str) -> str:
    """GetBucketLocation; an empty answer means us-east-1 (its API page)."""
    return client.get_bucket_location(Bucket=bucket).get("LocationConstraint") or "us-east-1"


def iter_object_versions(client: S3Client, bucket: str, prefix: str) -> Iterator[ObjectVersion]:
    """Every version and delete marker under a prefix (ListObjectVersions, to its end), as S3 orders them.

    Raises:
        botocore.exceptions.ClientError: the bucket is missing or may not be listed.
        botocore.exceptions.PaginationError: the listing has no end that can be relied on.
    """
    for page in version_pages(client, bucket, prefix):
        yield from _versions_in(page)


def versions_by_key(client: S3Client, bucket: str, prefix: str) -> Iterator[list[ObjectVersion]]:
    """As `iter_object_versions`, all of one key together, in no order; key by key.

    Raises:
        botocore.exceptions.ClientError, PaginationError: as `iter_object_versions`.
    """
    waiting: dict[str, list[ObjectVersion]] = {}
    for page in version_pages(client, bucket, prefix):
        for version in _versions_in(page):
            waiting.setdefault(version.key, []).append(version)
        # S3 lists in the order of UTF-8; the next page may go on here
        last = max(waiting, default=None, key=str.encode)
        for key in [key for key in waiting if key != last]:
            yield waiting.pop(key)
    yield from waiting.values()


def _versions_in(page: Mapping[str, Any]) -> Iterator[ObjectVersion]:
    for item in page.get("Versions", ()):
        yield ObjectVersion(
            key=item["Key"],
            version_id=item["VersionId"],
            latest=item["IsLatest"],
            size=item["Size"],
            etag=item["ETag"].strip('"'),
            storage_class=item.get("StorageClass", "STANDARD"),
            modified=iso(item["LastModified"]),
        )
    for item in page.get("DeleteMarkers", ()):
        yield ObjectVersion(
            key=item["Key"],
            version_id=item["VersionId"],
            latest=item["IsLatest"],
            delete_marker=True,
            size=0,
            modified=iso(item["LastModified"]),
        )


def iso(moment: datetime) -> str:
    """A time of S3 as the inventory writes it: ISO 8601 in UTC."""
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


class Readability(StrEnum):
    """Whether the bytes of a version can be had now."""

    READABLE = "readable"
    ARCHIVED = "archived"
    RESTORING = "restoring"


def readability(head: Mapping[str, Any], now: datetime) -> Readability:
    """From a HeadObject answer (StorageClass, ArchiveStatus and Restore).

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
    """
    if head.get("StorageClass", "STANDARD") not in ARCHIVED_CLASSES and not head.get("ArchiveStatus"):
        return Readability.READABLE
    restore = str(head.get("Restore") or "")
    if 'ongoing-request="true"' in restore:
        return Readability.RESTORING
    if 'ongoing-request="false"' not in restore:
        return Readability.ARCHIVED
    _, _, expiry = restore.partition('expiry-date="')
    ends = http_date(expiry.partition('"')[0])
    return Readability.ARCHIVED if ends is not None and ends <= now else Readability.READABLE


def sha256_of_head(head: Mapping[str, Any]) -> str | None:
    """Hex SHA-256 of the whole object, where S3 itself computed or checked it; readable for archived objects too."""
    checksum = head.get("ChecksumSHA256")
    if not checksum or "-" in checksum or head.get("ChecksumType", "FULL_OBJECT") != "FULL_OBJECT":
        return None
    return base64.b64decode(checksum).hex()


class Evidence(StrEnum):
    """What a verifier can say about one version."""

    BYTES = "bytes"
    KNOWN = "known"
    MARKER = "marker"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class VersionBytes:
    """One version of one object, for reading back.

    BYTES: `open` gives them. KNOWN: archived, but S3's own SHA-256 equals that of bytes this run uploaded after it
    had checked them. MARKER: a delete marker, no bytes. UNREADABLE: unverified, `reason` says why. answer: of
    HeadObject, empty where it was refused.
    """

    key: str
    version_id: str
    latest: bool
    storage_class: str
    size: int
    evidence: Evidence
    reason: str | None = None
    sha256: str | None = None
    answer: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _open: Callable[[], BinaryIO] | None = field(default=None, repr=False, compare=False)
    _tags: Callable[[], Mapping[str, str]] = field(default=dict, repr=False, compare=False)

    def open(self) -> BinaryIO:
        """The bytes as a stream in memory.

        Raises:
            EstateError: the version has no bytes to read, or they were refused.
        """
        if self._open is None:
            raise EstateError(f"the version cannot be read: {self.reason or self.evidence}", where=self.version_id)
        return self._open()

    def tags(self) -> Mapping[str, str]:
        """The version's tags; asked for, since an answer tells their number only to those who may read them.

        Raises:
            EstateError: they may not be read.
        """
        return self._tags()


def iter_version_bytes(
    client: S3Client,
    bucket: str,
    prefix: str,
    now: datetime,
    written: Mapping[tuple[str, str], str] | None = None,
    wanted: Container[tuple[str, str]] | None = None,
    unwanted: Container[tuple[str, str, str]] = (),
) -> Iterator[VersionBytes]:
    """Every version under a prefix with what can be said about its bytes.

    written: SHA-256 (hex) of bytes uploaded in this run, by (key, version id). wanted: only these are looked at.
    unwanted: these are not, by (key, version id, ETag).

    Raises:
        botocore.exceptions.ClientError: the bucket is missing or may not be listed.
    """
    for version in iter_object_versions(client, bucket, prefix):
        place = (version.key, version.version_id)
        if (*place, version.etag) in unwanted or (wanted is not None and place not in wanted):
            continue
        yield _evidence(client, bucket, version, now, (written or {}).get(place))


def hidden_versions(
    client: S3Client, bucket: str, now: datetime, places: Iterable[tuple[str, str]]
) -> Iterator[VersionBytes]:
    """Those of some versions (key, id) that a listing did not show, and that are there all the same, one HeadObject
    each. A delete marker that is not listed has no bytes, and no HeadObject tells it from a version that is gone.
    """

    def asked(place: tuple[str, str]) -> VersionBytes | None:
        try:
            size = head_version(client, bucket, *place)["ContentLength"]
        except (ClientError, BotoCoreError) as error:
            if error_code(error) in GONE:
                return None
            size = 0
        version = ObjectVersion(key=place[0], version_id=place[1], latest=False, size=size, modified="")
        return _evidence(client, bucket, version, now, None)

    yield from (found for found in several(asked, places, _HEADS) if found is not None)


def _evidence(
    client: S3Client, bucket: str, version: ObjectVersion, now: datetime, written: str | None
) -> VersionBytes:
    answer: Mapping[str, Any] = {}

    def said(
        evidence: Evidence,
        reason: str | None = None,
        sha256: str | None = None,
        opener: Callable[[], BinaryIO] | None = None,
    ) -> VersionBytes:
        return VersionBytes(
            key=version.key,
            version_id=version.version_id,
            latest=version.latest,
            storage_class=version.storage_class,
            size=version.size,
            evidence=evidence,
            reason=reason,
            sha256=sha256,
            answer=answer,
            _open=opener,
            _tags=dict if version.delete_marker else lambda: _tags_of(client, bucket, version.key, version.version_id),
        )

    if version.delete_marker:
        return said(Evidence.MARKER)
    try:
        answer = head_version(client, bucket, version.key, version.version_id)
    except (ClientError, BotoCoreError) as error:
        return said(Evidence.UNREADABLE, f"HeadObject: {error_code(error)}")
    sha256 = sha256_of_head(answer)
    state = readability(answer, now)
    if state is Readability.READABLE:
        return said(
            Evidence.BYTES, sha256=sha256, opener=lambda: _download(client, bucket, version.key, version.version_id)
        )
    if written is not None and written == sha256:
        return said(Evidence.KNOWN, "archived; S3 holds the bytes that were uploaded", sha256)
    return said(Evidence.UNREADABLE, f"{version.storage_class}, {state}: not restored", sha256)


def head_version(client: S3Client, bucket: str, key: str, version_id: str) -> Mapping[str, Any]:
    """HeadObject of a version, with its checksum.

    versitygw does not find the version `null` of an object that has no other, though it lists it: it is asked for
    again as the current one, and the answer tells whether it is that version.

    Raises:
        botocore.exceptions.ClientError, BotoCoreError: gone, refused or unreachable.
    """
    which = {"Bucket": bucket, "Key": key, "ChecksumMode": "ENABLED"}
    try:
        answer: Mapping[str, Any] = client.head_object(**which, VersionId=version_id)
    except ClientError as error:
        if version_id != NULL or error_code(error) not in GONE:
            raise
        answer = client.head_object(**which)
        if answer.get("VersionId", NULL) != NULL:
            raise
    return answer


def ask_version(ask: Callable[..., Any], client: S3Client, bucket: str, key: str, version_id: str) -> Any:
    """A request about a version, for stores that do not find the version `null` (see `head_version`): asked without
    it, and the same version `null` was the current one before and after, since not every answer names its version.

    Raises:
        botocore.exceptions.ClientError, BotoCoreError: gone, refused or unreachable.
    """
    try:
        return ask(Bucket=bucket, Key=key, VersionId=version_id)
    except ClientError as error:
        if version_id != NULL or error_code(error) not in GONE:
            raise
        before = head_version(client, bucket, key, NULL)
        answer = ask(Bucket=bucket, Key=key)
        after = head_version(client, bucket, key, NULL)
        if (before["ETag"], before["LastModified"]) != (after["ETag"], after["LastModified"]):
            raise
        return answer


def tags_of(client: S3Client, bucket: str, key: str, version_id: str) -> dict[str, str]:
    """GetObjectTagging of a version, archived ones included. A store without tags has none.

    Raises:
        botocore.exceptions.ClientError, BotoCoreError: refused or unreachable.
    """
    try:
        answer = ask_version(client.get_object_tagging, client, bucket, key, version_id)
    except ClientError as error:
        if error_code(error) in _WITHOUT_TAGS:
            return {}
        raise
    return {tag["Key"]: tag["Value"] for tag in answer["TagSet"]}


_WITHOUT_TAGS = frozenset({"NotImplemented", "NoSuchTagSet", "NoSuchTagSetError"})


def _tags_of(client: S3Client, bucket: str, key: str, version_id: str) -> dict[str, str]:
    try:
        return tags_of(client, bucket, key, version_id)
    except (ClientError, BotoCoreError) as error:
        raise EstateError(f"its tags cannot be read: {error_code(error)}", where=version_id) from None


def _download(client: S3Client, bucket: str, key: str, version_id: str) -> BinaryIO:
    try:
        body = client.get_object(Bucket=bucket, Key=key, VersionId=version_id)["Body"]
        with body:
            return io.BytesIO(body.read())
    except (ClientError, BotoCoreError) as error:
        raise EstateError(f"an object version cannot be read: {error_code(error)}", where=version_id) from None
