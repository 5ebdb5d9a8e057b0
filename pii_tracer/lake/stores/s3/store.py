"""A bucket as an `ObjectStore`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import ObjectVersion, Upload
from pii_tracer.lake.stores.base import Absent, Changed, Content, StoreError
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.locks_and_uploads import iter_uploads
from pii_tracer.lake.stores.s3.object_versions import S3Client, iter_object_versions
from pii_tracer.model.locations import s3_location

_ABSENT = frozenset({"NoSuchKey", "404"})
_CHANGED = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "409", "412"})
"""Answers to a write on a condition (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html)."""
_REACH = "check the bucket, the credentials and the network; grant {}"


@dataclass(frozen=True)
class S3Store:
    """A bucket, and the client that reaches it."""

    client: S3Client
    bucket: str

    @classmethod
    def at(cls, estate: Estate, place: str, region: str | None = None) -> tuple[S3Store, str]:
        """As the protocol says."""
        bucket = s3_location(place).bucket
        return cls(s3_clients(estate)(region), bucket), place.partition("://")[2].partition("/")[2]

    @property
    def name(self) -> str:
        """As `s3://bucket`."""
        return f"s3://{self.bucket}"

    def read(self, key: str, at_most: int) -> Content:
        """GetObject; S3 reads are strongly consistent."""
        with store_errors("an object cannot be read", self._where(key), "s3:GetObject", {Absent: _ABSENT}):
            answer = self.client.get_object(Bucket=self.bucket, Key=key)
            with closing(answer["Body"]) as body:
                return Content(bytes(body.read(at_most)), str(answer["ETag"]))

    def put_if_absent(self, key: str, data: bytes, media_type: str) -> str:
        """PutObject with `If-None-Match: *`."""
        return self._put(key, data, media_type, {"IfNoneMatch": "*"}, _CHANGED)

    def put_if_unchanged(self, key: str, data: bytes, media_type: str, etag: str) -> str:
        """PutObject with `If-Match`."""
        return self._put(key, data, media_type, {"IfMatch": etag}, _CHANGED | _ABSENT)

    def _put(self, key: str, data: bytes, media_type: str, condition: dict[str, str], failed: frozenset[str]) -> str:
        with store_errors("an object cannot be written", self._where(key), "s3:PutObject", {Changed: failed}):
            answer = self.client.put_object(Bucket=self.bucket, Key=key, Body=data, ContentType=media_type, **condition)
            return str(answer["ETag"])

    def versions(self, prefix: str) -> Iterator[ObjectVersion]:
        """ListObjectVersions, to its true end."""
        with store_errors("the bucket cannot be listed", self._where(prefix), "s3:ListBucketVersions"):
            yield from iter_object_versions(self.client, self.bucket, prefix)

    def uploads(self, prefix: str) -> Iterator[Upload]:
        """ListMultipartUploads of the whole bucket, to its true end, and ListParts of each."""
        grant = "s3:ListBucketMultipartUploads and s3:ListMultipartUploadParts"
        with store_errors("unfinished uploads cannot be listed", self._where(prefix), grant):
            yield from iter_uploads(self.client, self.bucket, prefix)

    def delete_version(self, key: str, version_id: str) -> None:
        """DeleteObject by version id; for one that is not there S3 answers the same, and versitygw says so."""
        gone: dict[type[StoreError], frozenset[str]] = {Absent: _ABSENT | {"NoSuchVersion"}}
        with (
            suppress(Absent),
            store_errors("a version cannot be deleted", self._where(key), "s3:DeleteObjectVersion", gone),
        ):
            self.client.delete_object(Bucket=self.bucket, Key=key, VersionId=version_id)

    def _where(self, key: str) -> str:
        return f"{self.name}/{key}"


@contextmanager
def store_errors(
    what: str, where: str, grant: str, kinds: dict[type[StoreError], frozenset[str]] | None = None
) -> Iterator[None]:
    """Turns what S3 refuses, or cannot be asked, into errors of ours. grant: the permissions that are needed.

    kinds: codes that are told by a kind of their own.

    Raises:
        StoreError: with S3's code.
    """
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        code = error_code(error)
        kind = next((k for k, codes in (kinds or {}).items() if code in codes), StoreError)
        raise kind(what, code, where=where, todo=_REACH.format(grant)) from None
