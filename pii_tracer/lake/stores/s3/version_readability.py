"""What can be said about the bytes of versions in S3: readable, known, or unverified."""

from __future__ import annotations

import io
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.common.parallel_map import several
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.known_versions import first_byte, identity_of, is_that
from pii_tracer.lake.stores.s3.object_versions import (
    GONE,
    Readability,
    S3Client,
    head_version,
    iso,
    iter_object_versions,
    readability,
    sha256_of_head,
    tags_of,
)
from pii_tracer.model.errors import EstateError

_HEADS = 8
"""So many HeadObjects at once."""


Download = tuple[bytes, Mapping[str, Any], bool]
"""Bytes, GetObject's answer, and whether it is about the version as it was asked about before."""


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
    had checked them. MARKER: a delete marker, no bytes. UNREADABLE: unverified, `reason` says why. identity: as
    `known_versions.identity_of`, by HeadObject, of readable ones. answer: of HeadObject, empty where it was refused.
    """

    key: str
    version_id: str
    latest: bool
    storage_class: str
    size: int
    evidence: Evidence
    reason: str | None = None
    sha256: str | None = None
    identity: str | None = None
    answer: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _read: Callable[[], Download] | None = field(default=None, repr=False, compare=False)
    _answer_now: Callable[[], Mapping[str, Any] | None] = field(default=lambda: None, repr=False, compare=False)
    _tags: Callable[[], Mapping[str, str]] = field(default=dict, repr=False, compare=False)

    def open(self) -> BinaryIO:
        """The bytes as a stream in memory. Raises as `read`."""
        return io.BytesIO(self.read()[0])

    def read(self) -> Download:
        """The bytes, S3's answer with them, and whether it says that they are those of `identity`.

        Raises:
            EstateError: the version has no bytes to read, or they were refused.
        """
        if self._read is None:
            raise EstateError(f"the version cannot be read: {self.reason or self.evidence}", where=self.version_id)
        return self._read()

    def answer_now(self) -> Mapping[str, Any] | None:
        """GetObject's answer now; None where the version may not be read, or is not that of `identity`."""
        return self._answer_now()

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


def _evidence(client: S3Client, bucket: str, version: ObjectVersion, at: datetime, written: str | None) -> VersionBytes:
    answer: Mapping[str, Any] = {}

    def said(
        evidence: Evidence,
        reason: str | None = None,
        sha256: str | None = None,
        now: ObjectVersion | None = None,
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
            identity=None if now is None else identity_of(client, now),
            answer=answer,
            _read=None if now is None else lambda: _download(client, bucket, now),
            _answer_now=lambda: None if now is None else first_byte(client, bucket, now),
            _tags=dict if version.delete_marker else lambda: _tags_of(client, bucket, version.key, version.version_id),
        )

    if version.delete_marker:
        return said(Evidence.MARKER)
    try:
        answer = head_version(client, bucket, version.key, version.version_id)
    except (ClientError, BotoCoreError) as error:
        return said(Evidence.UNREADABLE, f"HeadObject: {error_code(error)}")
    sha256 = sha256_of_head(answer)
    state = readability(answer, at)
    if state is Readability.READABLE:
        return said(Evidence.BYTES, sha256=sha256, now=_as_told(version, answer))
    if written is not None and written == sha256:
        return said(Evidence.KNOWN, "archived; S3 holds the bytes that were uploaded", sha256)
    return said(Evidence.UNREADABLE, f"{version.storage_class}, {state}: not restored", sha256)


def _as_told(version: ObjectVersion, answer: Mapping[str, Any]) -> ObjectVersion:
    """A version as HeadObject tells it now; as it was listed, where the answer lacks something."""
    told: dict[str, Any] = {"size": answer["ContentLength"]}
    if "ETag" in answer:
        told["etag"] = answer["ETag"].strip('"')
    if "LastModified" in answer:
        told["modified"] = iso(answer["LastModified"])
    return version.model_copy(update=told)


def _tags_of(client: S3Client, bucket: str, key: str, version_id: str) -> dict[str, str]:
    try:
        return tags_of(client, bucket, key, version_id)
    except (ClientError, BotoCoreError) as error:
        raise EstateError(f"its tags cannot be read: {error_code(error)}", where=version_id) from None


def _download(client: S3Client, bucket: str, version: ObjectVersion) -> Download:
    try:
        answer = client.get_object(Bucket=bucket, Key=version.key, VersionId=version.version_id)
        with closing(answer["Body"]) as body:  # as a context manager it would give the stream that checks no length
            data = body.read()
    except (ClientError, BotoCoreError) as error:
        raise EstateError(f"an object version cannot be read: {error_code(error)}", where=version.version_id) from None
    return data, answer, is_that(version, answer, len(data))
