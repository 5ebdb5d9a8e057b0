"""The sample estate's archive: weekly Parquet snapshots of the payments in Glacier, replicated to a second region."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sample_lineage.people import Payment

# boto3 makes its clients at run time; without its stub packages they have no static type
S3Client = Any

BUCKET, REGION = "blr-fintech-lake", "ap-south-1"
REPLICA_BUCKET, REPLICA_REGION = "sin-fintech-lake", "ap-southeast-1"
PREFIX = "archive/payments/"
WEEKS = 13
EXPIRY_DAYS = 90
# weeks whose snapshot was uploaded a second time, which leaves a noncurrent version
_UPLOADED_TWICE = (4, 9)

_SCHEMA = pa.schema(
    [
        ("payment_id", pa.string()),
        ("user_id", pa.int64()),
        ("pan", pa.string()),
        ("phone", pa.string()),
        ("aadhaar_ref", pa.string()),
        ("city", pa.string()),
        ("merchant_id", pa.int64()),
        ("amount", pa.decimal128(12, 2)),
        ("status", pa.string()),
        ("paid_at", pa.timestamp("us", tz="UTC")),
    ]
)


def weeks(as_of: datetime) -> list[date]:
    """Mondays of the last `WEEKS` whole weeks (Monday to Sunday, UTC) before `as_of`, oldest first."""
    today = as_of.astimezone(timezone.utc).date()
    monday = today - timedelta(days=today.weekday())
    return [monday - timedelta(weeks=back) for back in range(WEEKS, 0, -1)]


def object_key(week: date) -> str:
    """Key of a week's snapshot."""
    return f"{PREFIX}week={week.isoformat()}/part-0.parquet"


def archive(s3: S3Client, payments: Sequence[Payment], as_of: datetime, progress: Callable[[str], None]) -> None:
    """Make both buckets and upload the snapshots, each with all payments until the end of its week.

    s3: a client of `REGION`. The replica is filled by the store's own replication.
    """
    _make_buckets(s3)
    for index, week in enumerate(weeks(as_of)):
        end = datetime(week.year, week.month, week.day, tzinfo=timezone.utc) + timedelta(weeks=1)
        rows = [payment for payment in payments if payment.paid_at < end]
        if index in _UPLOADED_TWICE:
            # the first upload missed the latest rows
            _upload(s3, week, rows[:-5])
        _upload(s3, week, rows)
    progress(f"archive: {WEEKS} weekly snapshots in s3://{BUCKET}/{PREFIX}")


def _upload(s3: S3Client, week: date, rows: Sequence[Payment]) -> None:
    buffer = io.BytesIO()
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=_SCHEMA)
    pq.write_table(table, buffer, compression="zstd", row_group_size=500)
    s3.put_object(
        Bucket=BUCKET,
        Key=object_key(week),
        Body=buffer.getvalue(),
        StorageClass="GLACIER",
        Metadata={"week": week.isoformat()},
    )


def _make_buckets(s3: S3Client) -> None:
    import boto3

    other = boto3.client("s3", region_name=REPLICA_REGION, endpoint_url=s3.meta.endpoint_url, config=s3.meta.config)
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "ap-south-1"})
    other.create_bucket(Bucket=REPLICA_BUCKET, CreateBucketConfiguration={"LocationConstraint": "ap-southeast-1"})
    for client, bucket in ((s3, BUCKET), (other, REPLICA_BUCKET)):
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        client.put_bucket_lifecycle_configuration(
            Bucket=bucket,
            LifecycleConfiguration={
                "Rules": [
                    {
                        "ID": "payments-90-days",
                        "Status": "Enabled",
                        "Filter": {"Prefix": PREFIX},
                        "Expiration": {"Days": EXPIRY_DAYS},
                    }
                ]
            },
        )
    s3.put_bucket_replication(
        Bucket=BUCKET,
        ReplicationConfiguration={
            "Role": "arn:aws:iam::123456789012:role/replication",
            "Rules": [
                {
                    "ID": "to-singapore",
                    "Priority": 1,
                    "Status": "Enabled",
                    "Filter": {"Prefix": PREFIX},
                    "DeleteMarkerReplication": {"Status": "Disabled"},
                    "Destination": {"Bucket": f"arn:aws:s3:::{REPLICA_BUCKET}"},
                }
            ],
        },
    )
