"""Versions of objects in S3 and what can be said about their bytes: readable, known, or unverified."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.enums import StrEnum
from pii_tracer.errors import EstateError
from pii_tracer.inventory import ObjectVersion

# boto3 makes its clients at run time; without its stub packages they have no static type
S3Client = Any
ClientFactory = Callable[[str | None], S3Client]

ARCHIVED_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE"})


def error_code(error: Exception) -> str:
    """The error's code alone: S3's messages can repeat keys, which come from outside."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code") or "unknown")
    return type(error).__name__


def iter_object_versions(client: S3Client, bucket: str, prefix: str) -> Iterator[ObjectVersion]:
    """Every version and delete marker under a prefix (ListObjectVersions, all pages), as S3 orders them.

    Raises:
        botocore.exceptions.ClientError: the bucket is missing or may not be listed.
    """
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
        for item in page.get("Versions", ()):
            yield ObjectVersion(
                key=item["Key"],
                version_id=item["VersionId"],
                latest=item["IsLatest"],
                size=item["Size"],
                etag=item["ETag"].strip('"'),
                storage_class=item.get("StorageClass", "STANDARD"),
                modified=_iso(item["LastModified"]),
            )
        for item in page.get("DeleteMarkers", ()):
            yield ObjectVersion(
                key=item["Key"],
                version_id=item["VersionId"],
                latest=item["IsLatest"],
                delete_marker=True,
                size=0,
                modified=_iso(item["LastModified"]),
            )


def _iso(moment: datetime) -> str:
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
    lapsed = bool(expiry) and parsedate_to_datetime(expiry.rstrip('"')) <= now
    return Readability.ARCHIVED if lapsed else Readability.READABLE


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
    had checked them. MARKER: a delete marker, no bytes. UNREADABLE: unverified, `reason` says why.
    """

    key: str
    version_id: str
    latest: bool
    storage_class: str
    size: int
    evidence: Evidence
    reason: str | None = None
    sha256: str | None = None
    _open: Callable[[], BinaryIO] | None = field(default=None, repr=False, compare=False)

    def open(self) -> BinaryIO:
        """The bytes as a stream in memory.

        Raises:
            EstateError: the version has no bytes to read, or they were refused.
        """
        if self._open is None:
            raise EstateError(f"the version cannot be read: {self.reason or self.evidence}", where=self.version_id)
        return self._open()


def iter_version_bytes(
    client: S3Client,
    bucket: str,
    prefix: str,
    now: datetime,
    written: Mapping[tuple[str, str], str] | None = None,
) -> Iterator[VersionBytes]:
    """Every version under a prefix with what can be said about its bytes.

    written: SHA-256 (hex) of bytes uploaded in this run, by (key, version id).

    Raises:
        botocore.exceptions.ClientError: the bucket is missing or may not be listed.
    """
    for version in iter_object_versions(client, bucket, prefix):
        yield _evidence(client, bucket, version, now, (written or {}).get((version.key, version.version_id)))


def _evidence(
    client: S3Client, bucket: str, version: ObjectVersion, now: datetime, written: str | None
) -> VersionBytes:
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
            _open=opener,
        )

    if version.delete_marker:
        return said(Evidence.MARKER)
    try:
        head = client.head_object(Bucket=bucket, Key=version.key, VersionId=version.version_id, ChecksumMode="ENABLED")
    except (ClientError, BotoCoreError) as error:
        return said(Evidence.UNREADABLE, f"HeadObject: {error_code(error)}")
    sha256 = sha256_of_head(head)
    state = readability(head, now)
    if state is Readability.READABLE:
        return said(
            Evidence.BYTES, sha256=sha256, opener=lambda: _download(client, bucket, version.key, version.version_id)
        )
    if written is not None and written == sha256:
        return said(Evidence.KNOWN, "archived; S3 holds the bytes that were uploaded", sha256)
    return said(Evidence.UNREADABLE, f"{version.storage_class}, {state}: not restored", sha256)


def _download(client: S3Client, bucket: str, key: str, version_id: str) -> BinaryIO:
    try:
        body = client.get_object(Bucket=bucket, Key=key, VersionId=version_id)["Body"]
        with body:
            return io.BytesIO(body.read())
    except (ClientError, BotoCoreError) as error:
        raise EstateError(f"an object version cannot be read: {error_code(error)}", where=version_id) from None
