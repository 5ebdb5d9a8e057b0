"""S3 Inventory in its three formats, listing files, and a walk: one normalised form."""

from __future__ import annotations

import gzip
import hashlib
import json
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote_plus

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pii_tracer.lake.stores.s3.object_versions import S3Client
from pii_tracer.model.errors import EstateError
from pii_tracer.retention.storage_listings import Listing, normalise, walk
from tests.unprivileged import open_folder, unprivileged

__all__ = ["open_folder"]

WHEN = datetime(2026, 11, 1, 2, 3, 4, tzinfo=timezone.utc)
MS = int(WHEN.timestamp() * 1000)
KEYS = ["t/city=New Delhi/a b+ü.parquet", "t/plain.parquet"]
SCHEMA = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate"


def rows_of(listing: Listing) -> list[tuple[str, int, bool, int]]:
    return [tuple(r.values()) for r in pq.read_table(listing.file).to_pylist()]


def nobody(region: str | None) -> S3Client:
    raise AssertionError("no table lies in S3")


def inventory(base: Path, kind: str) -> Path:
    """An inventory as S3 delivers it: two current objects, an old version, a delete marker."""
    made = [
        (KEYS[0], "v2", True, False, 10),
        (KEYS[0], "v1", False, False, 9),
        (KEYS[1], "v1", True, False, 20),
        ("t/gone", "v3", True, True, 0),
    ]
    data = base / "inv" / "data"
    data.mkdir(parents=True)
    file = data / f"part.{kind.lower()}"
    if kind == "CSV":
        file = data / "part.csv.gz"
        lines = [
            f'"lake","{quote_plus(key)}","{version}","{str(latest).lower()}","{str(marker).lower()}","{size}","2026-11-01T02:03:04.000Z"'
            for key, version, latest, marker, size in made
        ]
        file.write_bytes(gzip.compress("\n".join(lines).encode()))
    else:
        names = ("key", "version_id", "is_latest", "is_delete_marker", "size")
        table = pa.table(
            {"bucket": ["lake"] * len(made)}
            | dict(zip(names, map(list, zip(*made, strict=True)), strict=True))
            | {"last_modified_date": pa.array([WHEN] * len(made), pa.timestamp("ms", "UTC"))}
        )
        if kind == "ORC":
            orc.write_table(
                table.set_column(6, "last_modified_date", table["last_modified_date"].cast(pa.timestamp("ns", "UTC"))),
                file,
            )
        else:
            pq.write_table(table, file)
    manifest = base / "inv" / "2026-11-02T00-00Z" / "manifest.json"
    manifest.parent.mkdir()
    digest = hashlib.md5(file.read_bytes()).hexdigest()
    entry = {"key": f"some/prefix/lake/config/data/{file.name}", "size": 1, "MD5checksum": digest}
    manifest.write_text(
        json.dumps(
            {
                "sourceBucket": "lake",
                "destinationBucket": "arn:aws:s3:::inv",
                "version": "2016-11-30",
                "creationTimestamp": str(MS),
                "fileFormat": "Parquet" if kind == "PARQUET" else kind,
                "fileSchema": SCHEMA,
                "files": [entry],
            }
        )
    )
    return manifest


@pytest.mark.parametrize("kind", ["CSV", "ORC", "PARQUET"])
def test_s3_inventory(tmp_path: Path, kind: str) -> None:
    listing = normalise(inventory(tmp_path, kind), [], tmp_path / "out.parquet", {"s3://lake/": "/mnt/lake/"})
    assert rows_of(listing) == [(f"/mnt/lake/{KEYS[0]}", 10, False, MS), (f"/mnt/lake/{KEYS[1]}", 20, False, MS)]
    assert (listing.files, listing.bytes, listing.taken) == (2, 30, WHEN)


def test_a_damaged_or_missing_data_file_is_refused(tmp_path: Path) -> None:
    manifest = inventory(tmp_path, "CSV")
    (file,) = (tmp_path / "inv" / "data").iterdir()
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(EstateError, match="damaged"):
        normalise(manifest, [], tmp_path / "out.parquet", {})
    file.unlink()
    with pytest.raises(EstateError, match="missing"):
        normalise(manifest, [], tmp_path / "out.parquet", {})


@pytest.mark.parametrize("name", ["l.csv", "l.csv.gz", "l.parquet"])
def test_listing_files(tmp_path: Path, name: str) -> None:
    source = tmp_path / name
    table = {
        "path": ["file:///w/t/a b", "/w/t/d"],
        "length": [5, 0],
        "isDir": [False, True],
        "modificationTime": [MS, MS],
    }
    if name == "l.parquet":
        pq.write_table(pa.table(table), source)
    else:
        text = f"path,length,isDir,modificationTime\nfile:///w/t/a b,5,false,{MS}\n/w/t/d,0,true,{MS}\n".encode()
        source.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    listing = normalise(source, [], tmp_path / "out.parquet", {})
    assert rows_of(listing) == [("/w/t/a b", 5, False, MS), ("/w/t/d", 0, True, MS)]
    assert listing.files == 1


def test_a_walk_names_every_file_and_no_link(tmp_path: Path) -> None:
    (tmp_path / "t" / "deep").mkdir(parents=True)
    (tmp_path / "t" / "deep" / "a").write_bytes(b"abc")
    (tmp_path / "t" / "link").symlink_to(tmp_path / "t" / "deep" / "a")
    listing = normalise(None, walk([tmp_path / "t"], nobody), tmp_path / "out.parquet", {})
    assert [(path, size) for path, size, _, _ in rows_of(listing)] == [(str(tmp_path / "t" / "deep" / "a"), 3)]


def test_a_folder_that_may_not_be_listed_is_refused(open_folder: Path) -> None:
    (shut := open_folder / "t" / "old").mkdir(parents=True)
    (shut / "part-0.parquet").write_bytes(b"rows")
    assert len(list(walk([open_folder / "t"], nobody))) == 1
    shut.chmod(0)
    try:
        with unprivileged(), pytest.raises(EstateError, match="cannot be listed: Permission denied") as refused:
            list(walk([open_folder / "t"], nobody))
    finally:
        shut.chmod(0o755)
    assert refused.value.where == str(shut)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("x.csv", b"path,size\n/a,1\n", "no column length, modificationTime"),
        ("x.csv", b"path,length,isDir,modificationTime\n/a,secret,false,1\n", "cannot be read: ValueError"),
        ("x.parquet", b"PAR1", "cannot be read"),
        ("x.txt", b"", "inventory has an unknown form"),
        ("manifest.json", b"{}", "not a manifest of S3 Inventory"),
    ],
)
def test_what_is_no_inventory_is_refused(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    with pytest.raises(EstateError, match=what) as caught:
        normalise(source, [], tmp_path / "out.parquet", {})
    assert "secret" not in str(caught.value)
