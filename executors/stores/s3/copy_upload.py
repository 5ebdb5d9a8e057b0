"""Write an object anew by a multipart upload of which S3 copies what stays from the old version.

Every part's SHA-256 is known before it is asked for: of parts that are sent S3 checks it, of copied ones it tells it.
An upload is completed only where each is the same.
The whole object then has no SHA-256 of its own in S3, but one made of its parts'.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from executors.stores.s3.objects import changed_meanwhile, kept_beside, refused, request_id
from executors.stores.s3.upload_parts import UploadPart
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.s3.object_versions import NULL, S3Client
from pii_tracer.model.errors import RunError

_UNABLE = frozenset({"AccessDenied", "NotImplemented", "MethodNotAllowed"})
"""Of a store, or a role, that copies no parts: the object is then sent as a whole."""


class _NotCopiedError(Exception):
    """The store copies no parts into such an upload (MinIO), or does not tell what it copied."""


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
    not tell their checksums.

    data: all bytes of the new object. begun: is told the upload's id before it has a part. An upload that fails is
    aborted.

    Raises:
        RunError: somebody wrote the object meanwhile, it was refused, or S3 copied other bytes.
    """
    same = kept_beside(old, plan_id, tags)
    try:
        upload = client.create_multipart_upload(Bucket=bucket, Key=key, ChecksumAlgorithm="SHA256", **same)["UploadId"]
    except (ClientError, BotoCoreError) as error:
        if error_code(error) in _UNABLE:
            return None
        raise refused("CreateMultipartUpload", error, bucket, key) from None
    which = {"Bucket": bucket, "Key": key, "UploadId": upload}
    try:
        begun(upload)
        told = [_part(client, which, number, part, memoryview(data), old) for number, part in enumerate(parts, start=1)]
        answer = client.complete_multipart_upload(**which, IfMatch=old["ETag"], MultipartUpload={"Parts": told})
    except BaseException as error:
        # what stopped it is what is reported; the journal has the upload's id for the next run
        with suppress(RunError):
            abort(client, bucket, key, upload)
        if isinstance(error, _NotCopiedError):
            return None
        if not isinstance(error, (ClientError, BotoCoreError)):
            raise
        if error_code(error) in _UNABLE:
            return None
        raise changed_meanwhile(error, bucket, key) or refused("multipart upload", error, bucket, key) from None
    digest = hashlib.sha256(data)
    return {
        "version_id": answer.get("VersionId", NULL),
        "sha256": digest.hexdigest(),
        "etag": answer["ETag"].strip('"'),
        "bytes": len(data),
        "bytes_sent": sum(len(part.new) for part in parts if part.old is None),
        "request_id": request_id(answer),
    }


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
    client: S3Client, which: Mapping[str, Any], number: int, part: UploadPart, data: memoryview, old: Mapping[str, Any]
) -> dict[str, Any]:
    body = data[part.new.start : part.new.stop]
    checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
    if part.old is None:
        answer = client.upload_part(
            **which, PartNumber=number, Body=bytes(body), ChecksumAlgorithm="SHA256", ChecksumSHA256=checksum
        )
        return {"PartNumber": number, "ETag": answer["ETag"], "ChecksumSHA256": checksum}
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
    if "ChecksumSHA256" not in found:
        raise _NotCopiedError
    if found["ChecksumSHA256"] != checksum:
        raise RunError(
            "S3 copied other bytes than those of the version that was read; the object was left as it is",
            where=f"s3://{which['Bucket']}/{which['Key']}",
            todo="`pii-tracer resume`; if it fails again, look at the object by hand",
        )
    return {"PartNumber": number, "ETag": found["ETag"], "ChecksumSHA256": checksum}
