"""Fetches a CloudTrail trail's log and digest files from its bucket, with what a copy of the files leaves behind.

A digest's signature is metadata of its object, and the public keys come from CloudTrail; both are written beside the
files, as `digest_chain` reads them. Nothing is judged here: what was fetched is checked offline, from the folder.
Layout of the bucket: https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.errors import ProofError
from pii_tracer.model.locations import object_uri
from pii_tracer.proof.aws_refusals import asked
from pii_tracer.proof.cloudtrail.digest_chain import SIDECAR

KEYS_NAME = "trail-keys.json"
_FOLDER = re.compile(
    r"(?:o-[a-z0-9]+/)?(?:\d{12}/(?:CloudTrail(?:-Digest)?/(?:[a-z0-9-]+/"
    r"(?:(?P<year>\d{4})/(?:(?P<month>\d{2})/(?:(?P<day>\d{2})/)?)?)?)?)?)?"
)
"""Organization, account, kind of file, region, day; whatever lies elsewhere is no part of a trail."""

T = TypeVar("T")


@dataclass(frozen=True)
class Fetched:
    """What was fetched: numbers of files."""

    logs: int
    digests: int
    keys: int


def fetch_trail(
    bucket: str, prefix: str, since: datetime, until: datetime, folder: Path, s3: Any, cloudtrail: Any
) -> Fetched:
    """Fetch everything of the days from `since` to `until`, a day more at both ends (UTC).

    Args:
        prefix: what lies before `AWSLogs/` in the bucket, with its slash; often nothing.
        s3, cloudtrail: clients of boto3.

    Raises:
        ProofError: AWS refuses, a name would lead out of the folder, or there are no such files.
    """
    days = (since - timedelta(days=1)).date(), (until + timedelta(days=1)).date()
    logs = digests = 0
    for key in _keys(bucket, f"{prefix}AWSLogs/", "", days, s3):
        path = _inside(folder, key.removeprefix(prefix))
        answer = _asked(lambda key=key: s3.get_object(Bucket=bucket, Key=key), bucket)  # type: ignore[misc]
        write_atomic(path, _asked(answer["Body"].read, bucket))
        if "/CloudTrail-Digest/" in key:
            said = json.dumps({"Metadata": answer["Metadata"]}).encode()
            write_atomic(path.with_name(path.name + SIDECAR), said)
            digests += 1
        else:
            logs += 1
    if not digests:
        raise ProofError(
            "the bucket contains no digest file for the days of the erasure",
            where=object_uri(bucket, prefix),
            todo=(
                "correct the trail's bucket and prefix; if log file validation was off before the erasure, the trail "
                "cannot be used"
            ),
        )
    keys = _public_keys(cloudtrail, since - timedelta(days=1), until + timedelta(days=1))
    write_atomic(folder / KEYS_NAME, (json.dumps({"PublicKeyList": keys}, indent=1) + "\n").encode())
    return Fetched(logs, digests, len(keys))


def _keys(bucket: str, root: str, below: str, days: tuple[date, date], s3: Any) -> Iterator[str]:
    """Objects below a folder, without walking through years that do not matter, or other parts of the bucket."""
    paginator = s3.get_paginator("list_objects_v2")
    pages = _asked(lambda: list(paginator.paginate(Bucket=bucket, Prefix=root + below, Delimiter="/")), bucket)
    for page in pages:
        for item in page.get("Contents", ()):
            if item["Key"].endswith(".json.gz"):
                yield item["Key"]
        for item in page.get("CommonPrefixes", ()):
            if _wanted(item["Prefix"].removeprefix(root), days):
                yield from _keys(bucket, root, item["Prefix"].removeprefix(root), days, s3)


def _wanted(folder: str, days: tuple[date, date]) -> bool:
    match = _FOLDER.fullmatch(folder)
    if match is None:
        return False
    named = "-".join(part for part in match.groups() if part)
    first, last = (day.isoformat()[: len(named)] for day in days)
    return first <= named <= last


def _inside(folder: Path, name: str) -> Path:
    """A key as a path below the folder. A key is untrusted: `..` and absolute parts lead nowhere."""
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name or "\\" in name:
        raise ProofError(
            "an object in the trail's bucket has a name that is not valid for a file",
            todo="correct the bucket and prefix, because they are not those of a trail",
        )
    return folder / name


def _public_keys(cloudtrail: Any, since: datetime, until: datetime) -> list[dict[str, str]]:
    """As `aws cloudtrail list-public-keys` prints them."""
    found: list[dict[str, str]] = []
    token: dict[str, str] = {}
    while True:
        answer = _asked(
            lambda token=token: cloudtrail.list_public_keys(StartTime=since, EndTime=until, **token),  # type: ignore[misc]
            "CloudTrail's public keys",
        )
        for item in answer["PublicKeyList"]:
            value = base64.b64encode(bytes(item["Value"])).decode()
            found.append({"Value": value, "Fingerprint": str(item["Fingerprint"])})
        if not answer.get("NextToken"):
            return found
        token = {"NextToken": answer["NextToken"]}


def _asked(call: Callable[[], T], where: str) -> T:
    todo = "grant s3:ListBucket, s3:GetObject and cloudtrail:ListPublicKeys, and check the bucket's name"
    return asked(call, "AWS", where=where, todo=todo)
