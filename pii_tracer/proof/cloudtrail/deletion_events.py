"""Deletions of S3 objects as two logs tell them: CloudTrail's data events and S3's server access logs.

CloudTrail writes one `DeleteObjects` event a call, whose record of old does not name the objects, and since then also
one `DeleteObject` event an object under the same request id; both are read, and objects that a call's own record names.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/cloudtrail-logging-s3-info.html

Access logs have a line an object for every way an object can go, lifecycle rules included, but they are delivered as
best effort and nobody signs them. https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import unquote

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.canonical_json import parse_time
from pii_tracer.proof.untrusted_json import json_object

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TIME = re.compile(r"(\d{2})/([A-Z][a-z]{2})/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})")
_FIELD = re.compile(r'\[([^\]]*)\]|"((?:[^"\\]|\\.)*)"|(\S+)')
_MAX_LINE = 2**14
"""Characters of a line; keys have 1,024 bytes at most, addresses and agents a few thousand."""
_BATCH_PARTS = ("delete", "Delete")
_LISTS = ("objects", "Objects", "object", "Object", "deleted", "Deleted")


class Source(StrEnum):
    """Who tells of a deletion."""

    CLOUDTRAIL = "cloudtrail"
    ACCESS_LOG = "access_log"
    LIFECYCLE = "lifecycle"


@dataclass(frozen=True)
class Deletion:
    """One record of a deletion that succeeded.

    keys: the object's key, as it may be meant (access logs encode it); none for a call that names no object.
    version_id: None where the record names no version. where: file and number of the record.
    """

    source: Source
    bucket: str
    keys: tuple[str, ...]
    version_id: str | None
    request_id: str
    time: datetime
    identity: str
    where: str


def trail_deletions(place: str, content: bytes) -> Iterator[Deletion]:
    """Deletions of one CloudTrail log file, unzipped.

    Raises:
        ValueError: it has not the form of one.
    """
    records = json_object(content).get("Records")
    if not isinstance(records, list):
        raise ValueError("no records")
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            raise ValueError("a record is not a JSON object")
        if record.get("eventSource") != "s3.amazonaws.com" or record.get("errorCode"):
            continue
        if record.get("eventName") in ("DeleteObject", "DeleteObjects"):
            yield from _of_event(record, f"{place}, record {number}")


def _of_event(record: Mapping[str, Any], where: str) -> Iterator[Deletion]:
    said = _mapping(record.get("requestParameters"))
    user = _mapping(record.get("userIdentity"))
    identity = str(user.get("arn") or user.get("principalId") or "")
    bucket = str(said.get("bucketName") or _bucket(record))
    request, time = str(record.get("requestID") or ""), zoned(record["eventTime"])
    named = tuple(dict.fromkeys(_objects(record, said)))
    for key, version in named:
        yield Deletion(Source.CLOUDTRAIL, bucket, (key,), version, request, time, identity, where)
    if not named:
        yield Deletion(Source.CLOUDTRAIL, bucket, (), None, request, time, identity, where)


def _objects(record: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Keys with versions, wherever a record of one of the known shapes has them."""
    if said.get("key"):
        yield str(said["key"]), _text(said.get("versionId"))
        return
    parts = [*(said.get(name) for name in _BATCH_PARTS), said, record.get("additionalEventData")]
    parts.append(record.get("responseElements"))
    found = False
    for part in map(_mapping, parts):
        for item in (item for name in _LISTS for item in _items(part.get(name))):
            key = item.get("key", item.get("Key"))
            if key:
                found = True
                yield str(key), _text(item.get("versionId", item.get("VersionId")))
    if not found:
        for item in map(_mapping, _items(record.get("resources"))):
            prefix, _, key = str(item.get("ARN", "")).partition("/")
            if item.get("type") == "AWS::S3::Object" and prefix.startswith("arn:") and key:
                yield key, None


def _bucket(record: Mapping[str, Any]) -> str:
    arns = (str(_mapping(item).get("ARN", "")) for item in _items(record.get("resources")))
    return next((arn.split(":::", 1)[1].split("/")[0] for arn in arns if ":::" in arn), "")


def access_log_deletions(name: str, text: str) -> tuple[list[Deletion], int]:
    """Deletions of one server access log file, and the number of lines that could not be read."""
    found, unread = [], 0
    for number, line in enumerate(text.splitlines()):
        if not line.strip():
            continue
        readable = len(line) <= _MAX_LINE
        fields = ["".join(match.groups(default="")) for match in _FIELD.finditer(line)] if readable else []
        time = _access_time(fields[2]) if len(fields) >= 18 else None
        if time is None:
            unread += 1
            continue
        source = _source(fields)
        if source is not None:
            keys = tuple(dict.fromkeys((fields[7], unquote(fields[7]), unquote(unquote(fields[7])))))
            found.append(
                Deletion(
                    source,
                    fields[1],
                    keys,
                    _text(fields[17]),
                    fields[5],
                    time,
                    fields[4],
                    f"{name}, line {number + 1}",
                )
            )
    return found, unread


def _source(fields: list[str]) -> Source | None:
    """A deletion that succeeded; an error code or any status but 200 and 204 says that it did not."""
    operation, status, error = fields[6], fields[9], fields[10]
    if error != "-":
        return None
    if operation == "S3.EXPIRE.OBJECT":
        return Source.LIFECYCLE
    deleted = operation in ("REST.DELETE.OBJECT", "BATCH.DELETE.OBJECT") and status in ("200", "204")
    return Source.ACCESS_LOG if deleted else None


def _access_time(text: str) -> datetime | None:
    """`06/Feb/2019:00:00:38 +0000`; the names of months do not depend on the machine's language."""
    match = _TIME.fullmatch(text)
    if match is None or match[2] not in _MONTHS:
        return None
    offset = timedelta(hours=int(match[8]), minutes=int(match[9])) * (-1 if match[7] == "-" else 1)
    day, year, clock = int(match[1]), int(match[3]), (int(match[4]), int(match[5]), int(match[6]))
    try:
        return datetime(year, _MONTHS.index(match[2]) + 1, day, *clock, tzinfo=timezone(offset))
    except ValueError:
        return None


def zoned(text: Any) -> datetime:
    """A moment as CloudTrail writes it. Raises `ValueError` when it is none, or has no zone."""
    time = parse_time(str(text))
    if time.tzinfo is None:
        raise ValueError("no zone")
    return time


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    """Objects of a list, or the one that stands there without a list."""
    if isinstance(value, dict):
        return [value]
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return str(value) if value not in (None, "", "-") else None
