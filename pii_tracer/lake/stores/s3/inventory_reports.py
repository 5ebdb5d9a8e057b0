"""S3 Inventory reports as a listing: a million versions in a few files instead of a thousand calls.

A report is a snapshot that S3 took at some time and may lack what was written shortly before
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory.html), so it serves planning only: deletes
look at the bucket again, and the verification lists it. A report that is old, incomplete or damaged is not used at all.
Layout and checksums: https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import IO, Any

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.common.http_dates import http_date
from pii_tracer.config.s3_inventory import InventoryReports
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.inventory_report_files import KINDS, columns, rows
from pii_tracer.lake.stores.s3.object_versions import S3Client, iso
from pii_tracer.model.errors import EstateError

_FIELDS = ("key", "versionid", "islatest", "isdeletemarker", "size", "lastmodifieddate", "etag", "storageclass")
_MAX_MANIFEST = 64 * 1024**2
_PIECE = 1 << 20


class ReportUnusable(EstateError):
    """There is no report that can be relied on; the bucket is listed instead."""


@dataclass(frozen=True)
class Report:
    """A report whose manifest holds. taken: when S3 began it. files: (key, MD5) of its data files."""

    bucket: str
    taken: datetime
    kind: str
    schema: str
    files: tuple[tuple[str, str], ...]


def newest_report(client: S3Client, source_bucket: str, wanted: InventoryReports) -> Report:
    """The newest report about a bucket, with its manifest checked.

    Raises:
        ReportUnusable: none, too old (by the server's clock), damaged, about another bucket, or without a field.
    """
    bucket, _, prefix = wanted.location.removeprefix("s3://").partition("/")
    try:
        folders = _folders(client, bucket, prefix)
        if not folders:
            raise ReportUnusable("the bucket has no inventory report yet", where=wanted.location)
        manifest, answered = _get(client, bucket, folders[-1] + "manifest.json")
        told, _ = _get(client, bucket, folders[-1] + "manifest.checksum")
    except (ClientError, BotoCoreError) as error:
        raise ReportUnusable(f"inventory reports cannot be read: {error_code(error)}", where=wanted.location) from None
    if hashlib.md5(manifest, usedforsecurity=False).hexdigest() != told.decode("ascii", "replace").strip():
        raise ReportUnusable("the checksum of the inventory's manifest is wrong", where=wanted.location)
    report = _report(manifest, bucket, source_bucket, wanted)
    if answered - report.taken > timedelta(hours=wanted.max_age_hours):
        raise ReportUnusable("the newest inventory report is too old", where=wanted.location)
    return report


def iter_report(client: S3Client, report: Report, prefix: str) -> Iterator[ObjectVersion]:
    """Every version and delete marker of the report under a prefix; each file's MD5 is checked before its first row.

    Raises:
        ReportUnusable: a file is missing, damaged or not what the manifest says. Nothing of the report counts then.
    """
    for key, md5 in report.files:
        with tempfile.TemporaryFile() as file:
            _download(client, report.bucket, key, md5, file)
            try:
                for row in rows(file, report.kind, report.schema):
                    if row["key"].startswith(prefix):
                        yield _version(row)
            # the libraries' messages can quote names from the report
            except Exception as error:
                reason = f"a file of the inventory report cannot be read: {type(error).__name__}"
                raise ReportUnusable(reason, where=f"s3://{report.bucket}") from None


def _folders(client: S3Client, bucket: str, prefix: str) -> list[str]:
    """The dated folders (`2026-11-21T01-00Z/`), oldest first; `data/` and `hive/` lie beside them."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
    names = [item["Prefix"] for page in pages for item in page.get("CommonPrefixes", ())]
    return sorted(name for name in names if name.removeprefix(prefix)[:4].isdigit())


def _get(client: S3Client, bucket: str, key: str) -> tuple[bytes, datetime]:
    answer = client.get_object(Bucket=bucket, Key=key)
    with closing(answer["Body"]) as body:
        if answer["ContentLength"] > _MAX_MANIFEST:
            raise ReportUnusable("the inventory's manifest is too large", where=f"s3://{bucket}")
        data: bytes = body.read()
    answered = http_date(answer["ResponseMetadata"]["HTTPHeaders"].get("date"))
    if answered is None:
        raise ReportUnusable("the store gives no time, so the age of a report is unknown", where=f"s3://{bucket}")
    return data, answered


def _report(manifest: bytes, bucket: str, source_bucket: str, wanted: InventoryReports) -> Report:
    try:
        data = json.loads(manifest)
        if data["sourceBucket"] != source_bucket:
            raise ReportUnusable("the inventory belongs to a different bucket", where=wanted.location)
        kind = str(data["fileFormat"]).upper()
        report = Report(
            bucket=bucket,
            taken=datetime.fromtimestamp(int(data["creationTimestamp"]) / 1000, timezone.utc),
            kind=kind,
            schema=str(data["fileSchema"]),
            files=tuple((str(item["key"]), str(item["MD5checksum"])) for item in data["files"]),
        )
    except (ValueError, KeyError, TypeError):
        raise ReportUnusable("the inventory's manifest is not valid", where=wanted.location) from None
    missing = set(_FIELDS) - columns(kind, report.schema)
    if kind not in KINDS or missing:
        what = f"lacks {', '.join(sorted(missing))}" if kind in KINDS else f"has the unknown format {kind[:20]!r}"
        raise ReportUnusable(f"the inventory {what}", where=wanted.location)
    return report


def _download(client: S3Client, bucket: str, key: str, md5: str, file: IO[bytes]) -> None:
    found = hashlib.md5(usedforsecurity=False)
    try:
        with closing(client.get_object(Bucket=bucket, Key=key)["Body"]) as body:
            while piece := body.read(_PIECE):
                found.update(piece)
                file.write(piece)
    except (ClientError, BotoCoreError) as error:
        raise ReportUnusable(
            f"a file of the inventory report cannot be read: {error_code(error)}", where=f"s3://{bucket}"
        ) from None
    if found.hexdigest() != md5:
        raise ReportUnusable("a file of the inventory report differs from its manifest", where=f"s3://{bucket}")
    file.seek(0)


def _version(row: Mapping[str, Any]) -> ObjectVersion:
    marker = _true(row["isdeletemarker"])
    modified = row["lastmodifieddate"]
    if isinstance(modified, str):
        modified = datetime.fromisoformat(modified.replace("Z", "+00:00"))
    return ObjectVersion(
        key=row["key"],
        version_id=row["versionid"] or "null",
        latest=_true(row["islatest"]),
        delete_marker=marker,
        size=0 if marker else int(row["size"]),
        etag="" if marker else str(row["etag"] or "").strip('"'),
        storage_class="STANDARD" if marker else str(row["storageclass"] or "STANDARD"),
        modified=iso(modified if modified.tzinfo else modified.replace(tzinfo=timezone.utc)),
    )


def _true(value: Any) -> bool:
    """`true` in CSV, a boolean elsewhere; anything else raises, so that the report is not used."""
    return {"true": True, "false": False, True: True, False: False}[value]
