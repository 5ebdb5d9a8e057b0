"""Write an object anew by a multipart upload of which S3 copies what stays from the old version.

Every part's checksum is known before it is asked for: of parts that are sent S3 checks it, of copied ones it answers
with it. An upload is completed only where each is the same. The whole object then has no checksum of its own in S3, but
one made of its parts'.

Amazon S3 answers with the SHA-256 of a copied part. MinIO copies no part into an upload with checksums; without them it
answers with an ETag, which is the part's MD5 unless it is encrypted by a key of KMS or of the customer
(https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from executors.stores.s3.multipart_parts import UploadPart
from executors.stores.s3.step_base import changed_meanwhile, kept_beside, refused, request_id
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.s3.object_versions import NULL, S3Client
from pii_tracer.model.errors import RunError

_UNABLE = frozenset({"AccessDenied", "NotImplemented", "MethodNotAllowed"})
"""Of a store, or a role, that copies no parts: the object is then sent as a whole."""
_AT_ONCE = 4
"""Parts of an object that are copied side by side."""


class _NotCopiedError(Exception):
    """The store copies no parts into such an upload, or does not say what it copied."""


class _Checksum(Protocol):
    """How a store says what a part holds. upload: what its upload is begun with."""

    upload: Mapping[str, Any]

    def of(self, body: memoryview) -> bytes:
        """The checksum of a part's bytes."""
        ...

    def sent(self, own: bytes) -> dict[str, Any]:
        """What the store is to check a part by that is sent. own: the checksum of its bytes."""
        ...

    def same(self, own: bytes, copied: Mapping[str, Any]) -> bool:
        """Whether the store copied the bytes with this checksum, by its answer.

        Raises:
            _NotCopiedError: the answer does not say what was copied.
        """
        ...

    def entry(self, own: bytes) -> dict[str, Any]:
        """What the upload is completed with, beside a part's ETag."""
        ...


class _SHA256:
    upload: Mapping[str, Any] = {"ChecksumAlgorithm": "SHA256"}

    def of(self, body: memoryview) -> bytes:
        return hashlib.sha256(body).digest()

    def sent(self, own: bytes) -> dict[str, Any]:
        return {"ChecksumAlgorithm": "SHA256", **self.entry(own)}

    def same(self, own: bytes, copied: Mapping[str, Any]) -> bool:
        if "ChecksumSHA256" not in copied:
            raise _NotCopiedError
        return bool(copied["ChecksumSHA256"] == _base64(own))

    def entry(self, own: bytes) -> dict[str, Any]:
        return {"ChecksumSHA256": _base64(own)}


class _MD5:
    upload: Mapping[str, Any] = {}

    def of(self, body: memoryview) -> bytes:
        return hashlib.md5(body, usedforsecurity=False).digest()

    def sent(self, own: bytes) -> dict[str, Any]:
        return {"ContentMD5": _base64(own)}

    def same(self, own: bytes, copied: Mapping[str, Any]) -> bool:
        # another ETag may be that of an encrypted part: then nobody knows what it says
        if copied["ETag"].strip('"') != own.hex():
            raise _NotCopiedError
        return True

    def entry(self, own: bytes) -> dict[str, Any]:
        return {}


def copy_like(
    client: S3Client,
    bucket: str,
    key: str,
    data: bytes,
    parts: Sequence[UploadPart],
    old: Mapping[str, Any],
    plan_id: str,
    tags: Mapping[str, str],
    begun: Callable[[str], None],
) -> dict[str, Any] | None:
    """Do what `write_like` does, and send only the parts that are new; None where the store cannot copy parts, or does
    not say what it copied.

    data: all bytes of the new object. begun: is given the upload's id before it has a part. An upload that fails is
    aborted.

    Raises:
        RunError: somebody wrote the object meanwhile, it was refused, or S3 copied other bytes.
    """
    where, beside = {"Bucket": bucket, "Key": key}, kept_beside(old, plan_id, tags)
    ways: tuple[_Checksum, ...] = (_SHA256(), _MD5())
    with ThreadPoolExecutor(1) as meanwhile:
        digest = meanwhile.submit(hashlib.sha256, data)
        for way in ways:
            with suppress(_NotCopiedError):
                answer = _uploaded(client, where, beside, data, parts, old, begun, way)
                return {
                    "version_id": answer.get("VersionId", NULL),
                    "sha256": digest.result().hexdigest(),
                    "etag": answer["ETag"].strip('"'),
                    "bytes": len(data),
                    "bytes_sent": sum(len(part.new) for part in parts if part.old is None),
                    "request_id": request_id(answer),
                }
    return None


def _uploaded(
    client: S3Client,
    where: Mapping[str, str],
    beside: Mapping[str, Any],
    data: bytes,
    parts: Sequence[UploadPart],
    old: Mapping[str, Any],
    begun: Callable[[str], None],
    way: _Checksum,
) -> Mapping[str, Any]:
    """The answer to an upload that was completed."""
    bucket, key = where["Bucket"], where["Key"]
    # the shortest copy alone first: a store that does not say what it copied copies no others in vain
    first, *others = sorted(enumerate(parts, 1), key=lambda n: (n[1].old is None, len(n[1].new)))
    try:
        upload = client.create_multipart_upload(**where, **way.upload, **beside)["UploadId"]
    except (ClientError, BotoCoreError) as error:
        if error_code(error) in _UNABLE:
            raise _NotCopiedError from None
        raise refused("CreateMultipartUpload", error, bucket, key) from None
    which = {**where, "UploadId": upload}

    def part(numbered: tuple[int, UploadPart]) -> dict[str, Any]:
        return _part(client, which, *numbered, memoryview(data), old, way)

    try:
        begun(upload)
        done = [part(first)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            done += pool.map(part, others)
        done.sort(key=lambda made: int(made["PartNumber"]))
        answer: Mapping[str, Any] = client.complete_multipart_upload(
            **which, IfMatch=old["ETag"], MultipartUpload={"Parts": done}
        )
    except BaseException as error:
        # what stopped it is what is reported; the journal has the upload's id for the next run
        with suppress(RunError):
            abort(client, bucket, key, upload)
        if not isinstance(error, (ClientError, BotoCoreError)):
            raise
        if error_code(error) in _UNABLE:
            raise _NotCopiedError from None
        raise changed_meanwhile(error, bucket, key) or refused("multipart upload", error, bucket, key) from None
    return answer


def abort(client: S3Client, bucket: str, key: str, upload_id: str) -> None:
    """Abort an upload; one that is gone is none.

    Raises:
        RunError: it was refused.
    """
    try:
        client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)
    except (ClientError, BotoCoreError) as error:
        if error_code(error) != "NoSuchUpload":
            raise refused("AbortMultipartUpload", error, bucket, key) from None


def _part(
    client: S3Client,
    which: Mapping[str, Any],
    number: int,
    part: UploadPart,
    data: memoryview,
    old: Mapping[str, Any],
    way: _Checksum,
) -> dict[str, Any]:
    body = data[part.new.start : part.new.stop]
    if part.old is None:
        own = way.of(body)
        answer = client.upload_part(**which, PartNumber=number, Body=bytes(body), **way.sent(own))
        return {"PartNumber": number, "ETag": answer["ETag"]} | way.entry(own)
    source = {"Bucket": which["Bucket"], "Key": which["Key"]}
    if old.get("VersionId", NULL) != NULL:
        source["VersionId"] = old["VersionId"]
    try:
        found = client.upload_part_copy(
            **which,
            PartNumber=number,
            CopySource=source,
            CopySourceIfMatch=old["ETag"],
            CopySourceRange=f"bytes={part.old.start}-{part.old.stop - 1}",
        )["CopyPartResult"]
    except ClientError as error:
        if changed_meanwhile(error, which["Bucket"], which["Key"]) is not None:
            raise
        raise _NotCopiedError from None
    own = way.of(body)
    if not way.same(own, found):
        raise RunError(
            "S3 copied bytes that differ from the version that was read; the object was left as it is",
            where=f"s3://{which['Bucket']}/{which['Key']}",
            todo="run `pii-tracer resume`; if the step fails again, check the object by hand",
        )
    return {"PartNumber": number, "ETag": found["ETag"]} | way.entry(own)


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()
