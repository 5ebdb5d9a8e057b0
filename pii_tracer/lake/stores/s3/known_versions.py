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
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.object_versions import NULL, S3Client, iso
from pii_tracer.model.errors import EstateError

_ETAG_OF_BYTES = re.compile(r"(?!0{32})[0-9a-f]{32}(-[0-9]+)?")
"""A digest of the bytes; of an upload in parts, a digest of the digests of these, which other bytes change as well;
with keys of KMS, as many digits that tell as much. MinIO's mode for files gives all that it did not write itself the
same one, of zeros."""
_SECONDS = len("2026-01-01T00:00:00")
"""Answers about one object tell its time in whole seconds."""
_FIRST = re.compile(r"bytes 0-0/([0-9]+)")
_WITHOUT_RANGES: WeakSet[S3Client] = WeakSet()
"""Clients of stores that answer with the whole object when asked for its first byte: such an answer is not waited for,
and no other is asked for."""


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
    modified = answer.get("LastModified")
    told = (
        answer.get("VersionId", NULL),
        str(answer.get("ETag")).strip('"'),
        size,
        iso(modified)[:_SECONDS] if modified is not None else None,
    )
    return told == (version.version_id, version.etag, version.size, version.modified[:_SECONDS])


def first_byte(client: S3Client, bucket: str, version: ObjectVersion) -> Mapping[str, Any] | None:
    """GetObject's answer for the first byte of a version: what stands beside its bytes, by somebody who may read them.

    An object without any byte is asked for as a whole. None where the whole object has to be searched: it is refused,
    archived, gone, or another than was listed, or the store does not know ranges.
    """
    which = {"Bucket": bucket, "Key": version.key, "VersionId": version.version_id}
    if version.size and client in _WITHOUT_RANGES:
        return None
    try:
        answer: Mapping[str, Any] = client.get_object(**which, **({"Range": "bytes=0-0"} if version.size else {}))
        with closing(answer["Body"]) as body:
            size = _size(answer) if version.size else answer.get("ContentLength")
            if version.size and "ContentRange" not in answer:
                _WITHOUT_RANGES.add(client)
            if size is None or len(body.read(2)) != min(1, size):
                return None
    except (ClientError, BotoCoreError):
        return None
    return answer if is_that(version, answer, size) else None


@dataclass
class VersionParts:
    """Parts of one version, each with an answer that is about the version as it was listed
    (`pii_tracer.scan.shapes.objects_read_before.Stored`). answer: the last one.
    """

    client: S3Client
    bucket: str
    version: ObjectVersion
    told: str
    answer: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """In bytes, as it was listed."""
        return self.version.size

    def part(self, first: int, at_most: int) -> bytes:
        """GetObject with a range.

        Raises:
            EstateError: refused, gone, another version, or the store does not know ranges.
        """
        if self.client in _WITHOUT_RANGES:
            raise EstateError("the store does not support ranges")
        which = {"Bucket": self.bucket, "Key": self.version.key, "VersionId": self.version.version_id}
        last = first + at_most - 1
        try:
            answer: Mapping[str, Any] = self.client.get_object(**which, Range=f"bytes={first}-{last}")
            with closing(answer["Body"]) as body:
                if "ContentRange" not in answer:
                    _WITHOUT_RANGES.add(self.client)
                ranged = answer.get("ContentRange") == f"bytes {first}-{last}/{self.size}"
                if not ranged or not is_that(self.version, answer, self.size):
                    raise EstateError("the object differs from the listed object")
                data = bytes(body.read())
        except (ClientError, BotoCoreError) as error:
            raise EstateError(error_code(error)) from None
        if len(data) != at_most:
            raise EstateError("the object's content ends early")
        self.answer = answer
        return data


def _size(answer: Mapping[str, Any]) -> int | None:
    """The size of the object of which an answer holds the first byte; None where it holds anything else."""
    told = _FIRST.fullmatch(str(answer.get("ContentRange", "")))
    return int(told[1]) if told else None
