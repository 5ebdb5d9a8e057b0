"""Versions of objects in S3 as a bucket lists them, and what S3 says of one: its head, its tags, its readability."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from botocore.exceptions import ClientError

from pii_tracer.common.http_dates import http_date
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.listing import version_pages

# boto3 makes its clients at run time; without its stub packages they have no static type
S3Client = Any
ClientFactory = Callable[[str | None], S3Client]

ARCHIVED_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE"})

GONE = frozenset({"404", "NoSuchKey", "NoSuchVersion", "405", "MethodNotAllowed"})
"""HeadObject says 404 for a missing version and 405 for a delete marker."""

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
