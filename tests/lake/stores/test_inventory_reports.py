"""S3 Inventory reports: read where they can be relied on, never where not; what came after one is still found."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.lake.inventory import ObjectSet, ObjectVersion
from pii_tracer.lake.packed_versions import Packed
from pii_tracer.lake.stores.s3.archive_versions import discover_archives, iter_version_bytes, s3_clients
from tests.s3support import World, estate, standin, world

__all__ = ["standin", "world"]

PREFIX = "archive/pay ments+é/"
NAMES = ("Bucket", "Key", "VersionId", "IsLatest", "IsDeleteMarker", "Size", "LastModifiedDate", "ETag", "StorageClass")
SNAKE = ("bucket", "key", "version_id", "is_latest", "is_delete_marker", "size", "last_modified_date", "e_tag")
COLUMNS = (*SNAKE, "storage_class")


def rows(world: World, bucket: str) -> list[dict[str, Any]]:
    """What S3 would write: every version and delete marker of the bucket, as it is now."""
    answer = world.client().list_object_versions(Bucket=bucket)
    found = []
    for part in ("Versions", "DeleteMarkers"):
        for item in answer.get(part, ()):
            marker = part == "DeleteMarkers"
            values = (
                bucket,
                item["Key"],
                item["VersionId"],
                item["IsLatest"],
                marker,
                None if marker else item["Size"],
            )
            etag = None if marker else item["ETag"].strip('"')
            storage = None if marker else item["StorageClass"]
            found.append(dict(zip(COLUMNS, (*values, item["LastModified"], etag, storage), strict=True)))
    return found


def as_csv(found: list[dict[str, Any]]) -> tuple[bytes, str]:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    for row in found:
        cells = {**row, "key": quote_plus(row["key"], safe="/")}
        cells["last_modified_date"] = row["last_modified_date"].strftime("%Y-%m-%dT%H:%M:%S.000Z")
        plain = (str(v).lower() if isinstance(v, bool) else "" if v is None else v for v in cells.values())
        writer.writerow(plain)
    return gzip.compress(text.getvalue().encode()), ", ".join(NAMES)


def as_table(found: list[dict[str, Any]]) -> pa.Table:
    kinds = [pa.string(), pa.string(), pa.string(), pa.bool_(), pa.bool_(), pa.int64(), pa.timestamp("ms", "UTC")]
    kinds += [pa.string(), pa.string()]
    return pa.Table.from_pylist(found, schema=pa.schema(list(zip(COLUMNS, kinds, strict=True))))


def as_parquet(found: list[dict[str, Any]]) -> tuple[bytes, str]:
    sink = io.BytesIO()
    pq.write_table(as_table(found), sink)
    schema = "message s3.inventory { required binary bucket (STRING); "
    return sink.getvalue(), schema + " ".join(f"optional binary {name};" for name in COLUMNS[1:]) + " }"


def as_orc(found: list[dict[str, Any]]) -> tuple[bytes, str]:
    sink = io.BytesIO()
    orc.write_table(as_table(found), sink)
    return sink.getvalue(), "struct<" + ",".join(f"{name}:string" for name in COLUMNS) + ">"


def report(
    world: World, bucket: str, kind: str = "CSV", age: timedelta = timedelta(), halves: bool = True, **changes: Any
) -> str:
    """Write a report into a bucket of its own, in two data files; returns its location."""
    reports = f"reports-{bucket}"
    if not any(b["Name"] == reports for b in world.client().list_buckets()["Buckets"]):
        world.client().create_bucket(Bucket=reports, CreateBucketConfiguration={"LocationConstraint": "ap-south-1"})
    write = {"CSV": as_csv, "Parquet": as_parquet, "ORC": as_orc}[kind]
    found = changes.pop("rows", None) or rows(world, bucket)
    prefix = f"inv/{bucket}/all/"
    files, schema = [], ""
    for number, part in enumerate((found[::2], found[1::2])):
        data, schema = write(part)
        key = f"{prefix}data/{number}.{kind.lower()}"
        world.client().put_object(Bucket=reports, Key=key, Body=data)
        files.append({"key": key, "size": len(data), "MD5checksum": hashlib.md5(data).hexdigest()})
    taken = datetime.now(timezone.utc) - age
    manifest = {
        "sourceBucket": bucket,
        "destinationBucket": f"arn:aws:s3:::{reports}",
        "version": "2016-11-30",
        "creationTimestamp": str(int(taken.timestamp() * 1000)),
        "fileFormat": kind,
        "fileSchema": schema,
        "files": files,
        **changes,
    }
    folder = f"{prefix}{taken:%Y-%m-%dT%H-%MZ}/"
    body = json.dumps(manifest).encode()
    world.client().put_object(Bucket=reports, Key=folder + "manifest.json", Body=body)
    digest = hashlib.md5(body).hexdigest().encode()
    world.client().put_object(Bucket=reports, Key=folder + "manifest.checksum", Body=digest)
    return f"s3://{reports}/{prefix}"


def discover(world: World, bucket: str, location: str) -> tuple[ObjectSet, list[str]]:
    archive = {"name": "a", "of": "t", "bucket": bucket, "prefix": PREFIX, "format": "parquet"}
    made = estate(world.endpoint_url, [archive | {"inventory": {"location": location}}])
    told: list[str] = []
    [found], gaps = discover_archives(made, s3_clients(made), Path(), told.append)
    assert gaps == ()
    return found, told


def planted(world: World) -> str:
    bucket = world.new("inv")
    for name in ("1.parquet", "1.parquet", "a b+c%20.parquet", 'q"uote,.parquet'):
        world.put(bucket, PREFIX + name, b"x", StorageClass="GLACIER" if name[0] == "a" else "STANDARD")
    world.client().delete_object(Bucket=bucket, Key=PREFIX + "1.parquet")
    world.put(bucket, "elsewhere/1", b"y")
    return bucket


@pytest.mark.parametrize("kind", ["CSV", "Parquet", "ORC"])
def test_a_report_says_the_same_as_a_listing(world: World, kind: str) -> None:
    bucket = planted(world)
    found, told = discover(world, bucket, report(world, bucket, kind))
    listed, _ = discover(world, bucket, "s3://nowhere-at-all/x/")
    assert "from the inventory report" in told[0]
    order = [sorted(s.versions, key=lambda v: (v.key, v.version_id)) for s in (found, listed)]
    assert order[0] == order[1]
    assert len(found.versions) == 5


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"age": timedelta(hours=49)}, "too old"),
        ({"sourceBucket": "another"}, "a different bucket"),
        ({"fileSchema": "Bucket, Key, Size"}, "lacks"),
        ({"fileFormat": "XML"}, "format"),
        ({"files": [{"key": "none", "MD5checksum": "0"}]}, "NoSuchKey"),
        ({"files": "x"}, "manifest is not valid"),
        ({"creationTimestamp": "soon"}, "manifest is not valid"),
    ],
)
def test_a_report_that_cannot_be_relied_on_is_not_used(world: World, changes: dict[str, Any], why: str) -> None:
    bucket = planted(world)
    found, told = discover(world, bucket, report(world, bucket, **changes))
    assert why in told[-1]
    assert told[-1].endswith("the bucket is listed")
    assert len(found.versions) == 5


def test_a_changed_manifest_or_data_file_is_seen(world: World) -> None:
    bucket = planted(world)
    location = report(world, bucket)
    reports, client = f"reports-{bucket}", world.client()
    prefix = location.removeprefix(f"s3://{reports}/")
    data, _ = as_csv(rows(world, bucket)[:1])
    client.put_object(Bucket=reports, Key=f"{prefix}data/1.csv", Body=data)
    found, told = discover(world, bucket, location)
    assert "differs from its manifest" in told[-1]
    assert len(found.versions) == 5, "half of a report counts for nothing"
    [manifest] = [
        o["Key"] for o in client.list_objects_v2(Bucket=reports)["Contents"] if o["Key"].endswith("manifest.json")
    ]
    client.put_object(Bucket=reports, Key=manifest, Body=b"{}")
    assert "checksum" in discover(world, bucket, location)[1][0]


def test_what_came_after_a_report_is_found_by_the_verification(world: World) -> None:
    bucket = planted(world)
    location = report(world, bucket)
    late = world.put(bucket, PREFIX + "late.parquet", b"z")
    found, _ = discover(world, bucket, location)
    assert late["version_id"] not in {v.version_id for v in found.versions}
    read = iter_version_bytes(world.client(), bucket, PREFIX, datetime.now(timezone.utc))
    assert late["version_id"] in {v.version_id for v in read}


versions = st.builds(
    ObjectVersion,
    key=st.text(min_size=1),
    version_id=st.text(min_size=1),
    latest=st.booleans(),
    delete_marker=st.booleans(),
    size=st.integers(0, 2**62),
    modified=st.just("2026-11-21T00:00:00Z"),
)


@given(st.lists(versions, max_size=30))
def test_packed_versions_are_the_versions(items: list[ObjectVersion]) -> None:
    packed = Packed(ObjectVersion, items)
    assert (list(packed), len(packed)) == (items, len(items))
    assert packed == tuple(items)
    assert packed[1:3] == tuple(items[1:3])
    assert all(packed[n] == item for n, item in enumerate(items))
    assert packed.digest() == Packed(ObjectVersion, items).digest()
    if items:
        assert packed[-1] == items[-1]
        assert packed.digest() != Packed(ObjectVersion, items[:-1]).digest()


def test_packed_versions_are_told_apart_over_chunks() -> None:
    items = [
        ObjectVersion(key=f"k{n}", version_id=str(n), latest=True, size=n, modified="2026-01-01") for n in range(4001)
    ]
    packed = Packed(ObjectVersion, items)
    assert [packed[n].size for n in (0, 1999, 2000, 4000, -1)] == [0, 1999, 2000, 4000, 4000]
    with pytest.raises(IndexError):
        packed[4001]
