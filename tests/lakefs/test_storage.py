"""The storage below lakeFS: what a collector's delete leaves in a bucket with versions, and what must not look empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.app.lakefs_objects import begun_uploads
from pii_tracer.config.lakefs import LakefsServer
from pii_tracer.lake.stores.lakefs.repository_discovery import repository_dataset
from pii_tracer.lake.stores.lakefs.repository_state import LakefsState
from pii_tracer.lake.stores.lakefs.underlying_storage import Storage, Stored, storage_of
from pii_tracer.model.errors import EstateError
from tests.s3support import World, estate, standin, world

__all__ = ["standin", "world"]

REPOSITORY = {"name": "shop", "of": "users", "format": "csv", "owner": "platform"}
SERVER = LakefsServer.model_validate({"name": "lake", "endpoint": "http://127.0.0.1:1", "repositories": [REPOSITORY]})


def bucket_storage(world: World, bucket: str) -> Storage:
    found = storage_of(f"s3://{bucket}/ns", SERVER, estate(world.endpoint_url), Path())
    assert found is not None
    return found


def test_a_delete_in_a_bucket_with_versions_leaves_the_object(world: World) -> None:
    bucket = world.new("lake")
    kept = world.put(bucket, "ns/data/a", b"the person")
    world.put(bucket, "ns/data/ab", b"another's, whose name goes on")
    world.put(bucket, "elsewhere/data/a", b"not below the namespace")
    storage, address = bucket_storage(world, bucket), f"s3://{bucket}/ns/data/a"
    assert storage.versions(address) == 1
    world.client().delete_object(Bucket=bucket, Key="ns/data/a")  # as a collector deletes
    assert storage.versions(address) == 1
    stored = Stored(address, kept["version_id"])
    assert stored in set(storage.stored())
    assert storage.read(stored) == b"the person"
    assert {s.address for s in storage.stored()} == {address, f"s3://{bucket}/ns/data/ab"}
    world.client().delete_object(Bucket=bucket, Key="ns/data/a", VersionId=kept["version_id"])
    assert storage.versions(address) == 0


def test_a_bucket_without_versions(world: World) -> None:
    bucket = world.new("plain", versioned=False)
    world.put(bucket, "ns/data/a", b"x")
    storage = bucket_storage(world, bucket)
    (found,) = storage.stored()
    assert storage.read(found) == b"x"
    world.client().delete_object(Bucket=bucket, Key="ns/data/a")
    assert storage.versions(found.address) == 0


def test_a_bucket_that_refuses_is_not_an_empty_one(world: World) -> None:
    storage = bucket_storage(world, "there-is-none")
    with pytest.raises(EstateError, match="NoSuchBucket"):
        list(storage.stored())
    with pytest.raises(EstateError, match="NoSuchBucket"):
        storage.versions("s3://there-is-none/ns/data/a")


def test_local_addresses_do_not_lead_out_of_the_servers_folder(tmp_path: Path) -> None:
    server = SERVER.model_copy(update={"local_root": "store"})
    (tmp_path / "store" / "shop").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"x")
    storage = storage_of("local://shop", server, estate("http://127.0.0.1:1"), tmp_path)
    assert storage is not None
    with pytest.raises(EstateError, match="is outside of the server's folder"):
        storage.versions("local://../secret")
    with pytest.raises(EstateError, match="cannot be read"):
        storage.read(Stored("local://shop/none"))
    (tmp_path / "store" / "shop" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(EstateError, match="a link"):
        list(storage.stored())


def test_other_storages_cannot_be_seen_from_here() -> None:
    assert storage_of("gs://bucket/ns", SERVER, estate("http://127.0.0.1:1"), Path()) is None
    assert storage_of("local://shop", SERVER, estate("http://127.0.0.1:1"), Path()) is None


def test_unfinished_uploads_below_a_repository_are_told(world: World) -> None:
    """lakeFS uploads in parts, and what a broken upload leaves no listing of objects shows."""
    bucket = world.new("parts")
    server = SERVER.model_copy(update={"name": "lake"})
    told = estate(world.endpoint_url).model_copy(update={"lakefs": (server,)})
    dataset = repository_dataset(server, server.repositories[0])
    state = LakefsState.model_construct(dataset=dataset, storage=f"s3://{bucket}/ns")
    for key in ("ns/data/a", "elsewhere/b"):
        world.client().create_multipart_upload(Bucket=bucket, Key=key)
    assert begun_uploads(told, Path(), state) == [
        f"s3://{bucket}/ns: 1 unfinished multipart upload with bytes that nobody can read"
    ]
    gone = state.model_copy(update={"storage": "s3://there-is-none/ns"})
    [refused] = begun_uploads(told, Path(), gone)
    assert "NoSuchBucket" in refused
    assert begun_uploads(told, Path(), state.model_copy(update={"storage": "gs://b/ns"})) == []
