"""The bytes of one object version at hand for as long as they are searched: small ones in memory, others in a file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.common.unnamed_file import in_unnamed_file
from pii_tracer.lake.aws_errors import error_code, remedy
from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.object_versions import GONE, S3Client, head_version, tags_of
from pii_tracer.model.errors import EstateError

IN_MEMORY = 16 * 1024 * 1024
"""Larger objects go through a file."""
_CHUNK = 1024 * 1024
_ARCHIVED = "InvalidObjectState"
"""GetObject's answer for an archived object that is not restored:
https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html"""


def fetch(client: S3Client, bucket: str, version: ObjectVersion) -> tuple[memoryview, Mapping[str, Any]]:
    """The bytes of a version, and S3's answer without them. A file behind the bytes goes with the last view of them.

    Raises:
        EstateError: archived, refused, gone, or another one than was listed. Never with the object's name.
    """
    try:
        answer = client.get_object(Bucket=bucket, Key=version.key, VersionId=version.version_id)
        with closing(answer["Body"]) as body:  # as a context manager it would give the stream that checks no length
            if answer["ETag"].strip('"') != version.etag:  # only `null` versions can be written over
                raise EstateError("the object differs from the listed object", where=version.version_id)
            data = (
                in_unnamed_file(body.iter_chunks(_CHUNK))
                if answer["ContentLength"] > IN_MEMORY
                else memoryview(body.read())
            )
    except (ClientError, BotoCoreError) as error:
        raise EstateError(_told(error_code(error), version), where=version.version_id) from None
    except OSError as error:  # the disk is full
        raise EstateError(
            f"a temporary copy of it cannot be created: {error.strerror or type(error).__name__}",
            where=version.version_id,
        ) from None
    return data, answer


def tags_beside(
    client: S3Client, bucket: str, version: ObjectVersion, answer: Mapping[str, Any]
) -> tuple[Mapping[str, str], str | None]:
    """A version's tags where GetObject's answer counts any, and why they cannot be read.

    The count is only told to those who may read tags, and by stores that have it.
    """
    if not answer.get("TagCount"):
        return {}, None
    try:
        return tags_of(client, bucket, version.key, version.version_id), None
    except (ClientError, BotoCoreError) as error:
        return {}, f"its tags cannot be read: {error_code(error)}"


def beside(
    client: S3Client, bucket: str, version: ObjectVersion
) -> tuple[Mapping[str, Any], Mapping[str, str], str | None]:
    """What stands beside a version's bytes: HeadObject's answer, its tags, and which question was refused and why.

    Nothing stands beside one that is gone since it was listed.
    """
    answer: Mapping[str, Any] = {}
    asked = "HeadObject"
    try:
        answer = head_version(client, bucket, version.key, version.version_id)
        asked = "GetObjectTagging"
        return answer, tags_of(client, bucket, version.key, version.version_id), None
    except (ClientError, BotoCoreError) as error:
        code = error_code(error)
        return answer, {}, None if code in GONE else f"{asked}: {code}"


def _told(code: str, version: ObjectVersion) -> str:
    if code == _ARCHIVED:
        return f"archived ({version.storage_class}) and not restored"
    if code in GONE:
        return "gone since it was listed"
    return f"it cannot be had ({code}){remedy(code, 's3:GetObject and s3:GetObjectVersion')}"
