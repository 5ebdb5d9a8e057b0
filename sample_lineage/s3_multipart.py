"""WSGI middleware that makes moto's multipart uploads as strict as S3's, for uploads that copy parts of objects.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPartCopy.html
https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from sample_lineage.s3_messages import StartResponse, answer, body_of, checksum_holds, error

_LEAST_SOURCE = 5 * 1024**2
_PARTS = 10_000


@dataclass(frozen=True)
class StrictUploads:
    """Around moto's application, in the same process."""

    app: Callable[[dict[str, Any], StartResponse], Iterable[bytes]]

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        method = environ["REQUEST_METHOD"]
        if "uploadId" not in query or method not in ("PUT", "POST"):
            return self.app(environ, start_response)
        path = environ.get("PATH_INFO", "").encode("latin-1").decode("utf-8", "replace").lstrip("/")
        bucket, _, key = path.partition("/")
        upload = _upload(bucket, query["uploadId"][0])
        if upload is None:
            return error(start_response, "404 Not Found", "NoSuchUpload", "no such upload")
        if method == "POST":
            refusal = _refused_end(bucket, key, upload, environ)
            if refusal:
                return error(start_response, *refusal)
            checksum = _checksum(upload) if _summed(upload) else None
            body = self.app(environ, start_response)
            if checksum is not None and _upload(bucket, query["uploadId"][0]) is None:
                made = _object(bucket, key, None)
                made.checksum_value, made.checksum_type = checksum, "COMPOSITE"
            return body
        refusal = _refused_part(environ, int(query["partNumber"][0]))
        if refusal:
            return error(start_response, *refusal)
        if "HTTP_X_AMZ_COPY_SOURCE" in environ:
            copied = _copied(environ, upload, int(query["partNumber"][0]))
            return answer(start_response, "200 OK", copied, "application/xml")
        return self.app(environ, start_response)


def _copied(environ: dict[str, Any], upload: Any, number: int) -> bytes:
    """Copy a part and answer with its checksum: moto reads the whole source for each part, and tells no checksum."""
    source = _source(environ)
    extent = re.fullmatch(r"bytes=(\d+)-(\d+)", environ.get("HTTP_X_AMZ_COPY_SOURCE_RANGE", ""))
    first, last = (int(extent[1]), int(extent[2])) if extent else (0, source.size - 1)
    with source.lock:
        source._value_buffer.seek(first)
        value = source._value_buffer.read(last + 1 - first)
    part = upload.set_part(number, value)
    checksum = f"<ChecksumSHA256>{_sum(part)}</ChecksumSHA256>" if _summed(upload) else ""
    told = f"<LastModified>{part.last_modified_ISO8601}</LastModified><ETag>{part.etag}</ETag>{checksum}"
    return f'<?xml version="1.0"?><CopyPartResult>{told}</CopyPartResult>'.encode()


def _refused_part(environ: dict[str, Any], number: int) -> tuple[str, str, str] | None:
    """What S3 has against a part: status, code, message."""
    if not 1 <= number <= _PARTS:
        return "400 Bad Request", "InvalidArgument", "Part number must be an integer between 1 and 10000"
    if "HTTP_X_AMZ_COPY_SOURCE" not in environ:
        if not checksum_holds(environ):
            return "400 Bad Request", "BadDigest", "the SHA-256 does not fit the body"
        return None
    source = _source(environ)
    if source is None:
        return "404 Not Found", "NoSuchKey", "the source does not exist"
    etag = environ.get("HTTP_X_AMZ_COPY_SOURCE_IF_MATCH")
    if etag is not None and etag.strip('"') != source.etag.strip('"'):
        return "412 Precondition Failed", "PreconditionFailed", "the source is another object"
    extent = environ.get("HTTP_X_AMZ_COPY_SOURCE_RANGE")
    if extent is None:
        return None
    found = re.fullmatch(r"bytes=(\d+)-(\d+)", extent)
    if found is None or not int(found[1]) <= int(found[2]) < source.size:
        return (
            "400 Bad Request",
            "InvalidArgument",
            f"Range specified is not valid for source object of size: {source.size}",
        )
    if source.size <= _LEAST_SOURCE:
        return "400 Bad Request", "InvalidRequest", "the source is too small for a copy of a range"
    return None


def _refused_end(bucket: str, key: str, upload: Any, environ: dict[str, Any]) -> tuple[str, str, str] | None:
    """What S3 has against completing an upload; moto itself refuses parts that are too small."""
    wanted = environ.get("HTTP_IF_MATCH")
    current = _object(bucket, key, None)
    if wanted is not None and current is None:
        return "404 Not Found", "NoSuchKey", "there is no object"
    if wanted is not None and wanted.strip('"') != current.etag.strip('"'):
        return "412 Precondition Failed", "PreconditionFailed", "somebody wrote the object"
    if not _summed(upload):
        return None
    for item in re.findall(rb"<Part>(.*?)</Part>", body_of(environ), re.DOTALL):
        number = re.search(rb"<PartNumber>(\d+)</PartNumber>", item)
        told = re.search(rb"<ChecksumSHA256>(.*?)</ChecksumSHA256>", item)
        if told is None:
            return "400 Bad Request", "InvalidRequest", "The complete request must include the checksum for each part"
        part = upload.parts.get(int(number[1])) if number else None
        if part is not None and told[1].decode() != _sum(part):
            return "400 Bad Request", "InvalidPart", "a part has another checksum"
    return None


def _checksum(upload: Any) -> str:
    """Of an object in parts S3 keeps a checksum of their checksums, and says of how many; moto leaves that out."""
    sums = [base64.b64decode(_sum(part)) for _, part in sorted(upload.parts.items())]
    return f"{base64.b64encode(hashlib.sha256(b''.join(sums)).digest()).decode()}-{len(sums)}"


def _summed(upload: Any) -> bool:
    return bool(upload.metadata.get("x-amz-checksum-algorithm") == "SHA256")


def _sum(part: Any) -> str:
    """The SHA-256 of a part, as S3 writes it; taken once."""
    if not hasattr(part, "standin_sum"):
        part.standin_sum = base64.b64encode(hashlib.sha256(part.value).digest()).decode()
    return str(part.standin_sum)


def _source(environ: dict[str, Any]) -> Any:
    parts = urlsplit(environ["HTTP_X_AMZ_COPY_SOURCE"])
    bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
    return _object(bucket, key, parse_qs(parts.query).get("versionId", [None])[0])


def _backend() -> Any:
    from moto.backends import get_backend
    from moto.core.models import DEFAULT_ACCOUNT_ID

    return get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"]


def _upload(bucket: str, upload_id: str) -> Any:
    stored = _backend().buckets.get(bucket)
    return None if stored is None else stored.multiparts.get(upload_id)


def _object(bucket: str, key: str, version: str | None) -> Any:
    backend = _backend()
    return backend.get_object(bucket, key, version_id=version) if bucket in backend.buckets else None
