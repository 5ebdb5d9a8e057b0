"""What a bucket holds beyond its versions: locks on them, and unfinished multipart uploads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from botocore.exceptions import ClientError

from pii_tracer.common.parallel_map import several
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import ObjectLock, ObjectVersion, Upload
from pii_tracer.lake.stores.s3.listing import upload_items
from pii_tracer.lake.stores.s3.object_versions import (
    GONE,
    S3Client,
    head_version,
    iso,
)

_WORKERS = 8


def iter_uploads(client: S3Client, bucket: str, prefix: str) -> Iterator[Upload]:
    """Unfinished multipart uploads under a prefix (ListMultipartUploads of the bucket, and ListParts of each).

    Raises:
        botocore.exceptions.ClientError, PaginationError: refused, or the listing has no end.
    """
    for item in upload_items(client, bucket, prefix):
        which = {"Bucket": bucket, "Key": item["Key"], "UploadId": item["UploadId"]}
        try:
            parts = client.get_paginator("list_parts").paginate(**which)
            times = [part["LastModified"] for found in parts for part in found.get("Parts", ())]
        except ClientError as error:
            if error_code(error) == "NoSuchUpload":
                continue  # finished or aborted since it was listed
            raise
        yield Upload(key=item["Key"], upload_id=item["UploadId"], touched=iso(max([item["Initiated"], *times])))


def with_locks(client: S3Client, bucket: str, versions: Iterable[ObjectVersion]) -> Iterator[ObjectVersion]:
    """The versions with their locks, one HeadObject each: only for buckets that can lock.

    HeadObject shows a lock to callers with `s3:GetObjectRetention` and `s3:GetObjectLegalHold`.

    Raises:
        botocore.exceptions.ClientError: refused.
    """

    def asked(version: ObjectVersion) -> ObjectVersion:
        if version.delete_marker:
            return version
        try:
            lock = _lock(head_version(client, bucket, version.key, version.version_id))
        except ClientError as error:
            if error_code(error) in GONE:
                return version  # deleted since it was listed
            raise
        return version.model_copy(update={"lock": lock}) if lock else version

    return several(asked, versions, _WORKERS)


def _lock(head: Any) -> ObjectLock | None:
    until = head.get("ObjectLockRetainUntilDate")
    hold = head.get("ObjectLockLegalHoldStatus") == "ON"
    if until is None and not hold:
        return None
    return ObjectLock(mode=head.get("ObjectLockMode"), until=iso(until) if until else None, legal_hold=hold)
