"""Places in stores, listed from a bucket's own listing: sizes, versions, classes, and what refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.listing.estate_file_sizes import list_estate
from pii_tracer.lake.listing.listed_place import ListedFile, ListedPlace, NotListed, PlaceKind
from pii_tracer.model.datasets import Format
from tests.gcssupport import Gcs, strict_gcs
from tests.s3support import World, estate, standin, world

__all__ = ["standin", "world"]


@pytest.fixture(scope="module")
def gcs() -> Iterator[Gcs]:
    with strict_gcs() as running:
        yield running


def listed(made: Estate, base: Path) -> tuple[dict[str, tuple[ListedPlace, list[ListedFile]]], list[NotListed]]:
    listing = list_estate(made, base)
    return {place.location: (place, list(place.files)) for place in listing.places}, listing.not_listed


def tables(**formats: tuple[str, str]) -> dict[str, object]:
    named = [{"name": f"app.{n}", "format": kind, "location": place} for n, (kind, place) in formats.items()]
    return {"catalogs": {"spark_catalog": {"type": "declared", "tables": named}}}


def test_every_version_is_listed_with_its_class(world: World, tmp_path: Path) -> None:
    bucket = world.new("lake")
    world.put(bucket, "t/_delta_log/0.json", b"x" * 5)
    world.put(bucket, "t/a.parquet", b"x" * 10)
    world.put(bucket, "t/a.parquet", b"x" * 12)
    world.put(bucket, "t2/a.parquet", b"x" * 99)
    world.put(bucket, "old/2024/a.csv", b"x" * 7, StorageClass="GLACIER")
    world.put(bucket, "old/2024/b.csv", b"x" * 3)
    world.client().delete_object(Bucket=bucket, Key="old/2024/b.csv")
    archive = {"name": "old", "of": "app.t", "bucket": bucket, "prefix": "old/20", "format": "csv"}
    made = estate(world.endpoint_url, [archive], **tables(t=("delta", f"s3://{bucket}/t")))
    found, missing = listed(made, tmp_path)
    assert missing == []
    table, files = found[f"s3://{bucket}/t"]
    assert (table.name, table.kind, table.format) == ("app.t", PlaceKind.BUCKET_TABLE, DELTA)
    assert sorted((f.size, f.data, f.live) for f in files) == [(5, True, True), (10, True, False), (12, True, True)]
    place, files = found[f"s3://{bucket}/old/20"]
    assert (place.kind, place.format) == (PlaceKind.ARCHIVE, Format.CSV)
    assert sorted((f.size, f.live, f.storage_class) for f in files) == [(3, False, "STANDARD"), (7, True, "GLACIER")]
    assert all(f.modified for f in files)
    assert len(found) == 2


def test_a_root_has_nothing_of_what_is_declared_in_it_and_is_named(world: World, tmp_path: Path) -> None:
    bucket = world.new("lake")
    for key in ("lake/t/a.parquet", "lake/u/b.parquet"):
        world.put(bucket, key, b"x" * len(key))
    root = f"s3://{bucket}/lake"
    made = estate(world.endpoint_url, roots=[root], **tables(t=("parquet", f"{root}/t")))
    found, missing = listed(made, tmp_path)
    assert {name: (place.kind, [f.size for f in files]) for name, (place, files) in found.items()} == {
        root: (PlaceKind.SEARCHED, []),
        f"{root}/u": (PlaceKind.SEARCHED, [16]),
        f"{root}/t": (PlaceKind.ARCHIVE, [16]),
    }
    assert [one.where for one in missing] == [f"{root}/"]


def test_a_bucket_that_refuses_is_named(world: World, tmp_path: Path) -> None:
    gone = f"s3://nobody-{world.suffix}/t"
    found, missing = listed(estate(world.endpoint_url, **tables(t=("delta", gone))), tmp_path)
    assert [files for _, files in found.values()] == [[]]
    [one] = missing
    assert one.where == f"{gone}/"
    assert one.reason.startswith("it cannot be listed: ")


def test_places_without_sizes_are_named(world: World, tmp_path: Path) -> None:
    made = estate(
        world.endpoint_url,
        kafka=[
            {
                "name": "k",
                "bootstrap": "127.0.0.1:1",
                "topics": [{"name": "orders", "of": "app.t", "value": {"format": "json", "fields": {"id": "user_id"}}}],
            }
        ],
        vaults=[{"name": "cold", "of": "app.t", "vault": "v", "region": "eu-west-1", "format": "csv"}],
        lakefs=[
            {
                "name": "l",
                "endpoint": "http://127.0.0.1:1",
                "repositories": [{"name": "repo", "of": "app.t", "format": "csv", "owner": "Ann", "collect_days": 1}],
            }
        ],
        hdfs=[{"namenode": "hdfs://nn", "webhdfs": "http://127.0.0.1:1", "user": "hdfs"}],
        **tables(h=("csv", "hdfs://nn/t")),
    )
    found, missing = listed(made, tmp_path)
    assert {one.where for one in missing} == {"orders", "cold", "repo", "hdfs://nn/t/"}
    [(place, files)] = found.values()
    assert (place.kind, files) == (PlaceKind.HDFS_FOLDER, [])


def test_a_place_of_another_store_has_its_versions_and_its_soft_delete(gcs: Gcs, tmp_path: Path) -> None:
    gcs.bucket("shop", versioning=True, soft_delete=604_800)
    for size in (4, 6):
        gcs.put("shop", "exports/a.csv", b"x" * size)
    stores = [{"store": "gs://shop", "endpoint": gcs.endpoint, "anonymous": True, "places": [{"prefix": "exports"}]}]
    found, missing = listed(estate("http://127.0.0.1:1", object_stores=stores), tmp_path)
    [(place, files)] = found.values()
    assert (place.kind, place.location, place.soft_delete_seconds) == (PlaceKind.OBJECTS, "gs://shop/exports", 604_800)
    assert sorted((f.size, f.live) for f in files) == [(4, False), (6, True)]
    assert missing == []
    gcs.put("shop", "exports/t/_delta_log/00000000000000000000.json", b"{}")
    declared = tables(t=("delta", "gs://shop/exports/t"), h=("hudi", "gs://shop/h"))
    found, _ = listed(estate("http://127.0.0.1:1", object_stores=stores, **declared), tmp_path)
    assert {(p.location, p.kind, len(files)) for p, files in found.values()} == {
        ("gs://shop/exports", PlaceKind.OBJECTS, 2),
        ("gs://shop/exports/t", PlaceKind.TABLE, 1),
        ("gs://shop/h", PlaceKind.TABLE, 0),
    }
