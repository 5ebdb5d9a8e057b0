"""What S3 says of a version, as far as it tells that the bytes are those of an earlier search.

A version with an id of its own never changes (https://docs.aws.amazon.com/AmazonS3/latest/userguide/Versioning.html).
The version `null` can be written over: its ETag "reflects changes only to the contents of an object"
(https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html), and stands here with its size and its time. Metadata
of a version `null` and tags of any version can change and leave all this as it is, so that they are never part of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.object_versions import NULL, S3Client, iso

_ETAG_OF_BYTES = re.compile(r"[0-9a-f]{32}(-[0-9]+)?")
"""A digest of the bytes or of their parts; with keys of KMS, as many hexadecimal digits that tell as much."""
_SECONDS = len("2026-01-01T00:00:00")
"""Answers about one object tell its time in whole seconds."""


def identity_of(client: S3Client, version: ObjectVersion) -> str | None:
    """What is another as soon as the bytes are others; None where nothing of a version tells."""
    if version.delete_marker or not version.etag:
        return None
    if version.version_id == NULL and not _ETAG_OF_BYTES.fullmatch(version.etag):
        return None
    told = (version.version_id, version.etag, version.size, version.modified[:_SECONDS])
    return json.dumps([client.meta.endpoint_url, *told])


def is_that(version: ObjectVersion, answer: Mapping[str, Any], size: int | None) -> bool:
    """Whether GetObject's answer is about the version as it was listed, in everything that its identity names.

    size: of the whole object, by the answer.
    """
    told = (answer.get("VersionId", NULL), answer["ETag"].strip('"'), size, iso(answer["LastModified"])[:_SECONDS])
    return told == (version.version_id, version.etag, version.size, version.modified[:_SECONDS])


def first_byte(client: S3Client, bucket: str, version: ObjectVersion) -> Mapping[str, Any] | None:
    """GetObject's answer for the first byte of a version: what stands beside its bytes, by somebody who may read them.

    None where the whole object has to be asked for: it is refused, empty, archived, gone, or another than was listed.
    """
    try:
        answer: Mapping[str, Any] = client.get_object(
            Bucket=bucket, Key=version.key, VersionId=version.version_id, Range="bytes=0-0"
        )
        with closing(answer["Body"]) as body:
            body.read()
    except (ClientError, BotoCoreError):
        return None
    whole = str(answer.get("ContentRange", "")).rpartition("/")[2]
    return answer if whole.isdecimal() and is_that(version, answer, int(whole)) else None
