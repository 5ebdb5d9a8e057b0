"""The stores that there are, by the tests for all of them; and what only one of them does."""

from __future__ import annotations

import pytest

from pii_tracer.lake.stores.base import ObjectStore, StoreError
from pii_tracer.lake.stores.registry import store_at
from pii_tracer.lake.stores.s3.object_versions import S3Client
from pii_tracer.lake.stores.s3.store import S3Store
from pii_tracer.model.errors import EstateError
from tests.kits.memory_store import Faults, MemoryStore
from tests.kits.s3_store_kit import S3Kit
from tests.kits.store_kit import StoreKit, put
from tests.s3support import World, estate, standin, world

__all__ = ["standin", "world"]


class TestS3Store(S3Kit):
    not_taken = ("line\nend",)
    """moto answers 404 to every request for it."""

    @pytest.fixture
    def client(self, world: World) -> S3Client:
        return world.client()

    @pytest.fixture
    def bucket(self, world: World) -> str:
        return world.new("kit", ObjectLockEnabledForBucket=True)

    @pytest.fixture
    def plain(self, world: World) -> str:
        return world.new("plain", versioned=False)


class TestMemoryStore(StoreKit):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def refusing(self) -> MemoryStore:
        names = ("versions", "read", "put_if_absent", "put_if_unchanged", "delete_version", "uploads")
        return MemoryStore(Faults(refused=dict.fromkeys(names, "AccessDenied")))

    def delete(self, store: ObjectStore, key: str) -> None:
        assert isinstance(store, MemoryStore)
        store.delete(key)

    def begin_upload(self, store: ObjectStore, key: str) -> None:
        assert isinstance(store, MemoryStore)
        store.begin(key)

    def hold(self, store: ObjectStore, key: str, version_id: str) -> ObjectStore:
        assert isinstance(store, MemoryStore)
        store.held.add((key, version_id))
        return store

    def test_what_is_deleted_by_its_version_is_put_away(self, store: MemoryStore) -> None:
        put(store, "k", b"1")
        [version] = store.versions("")
        store.delete_version("k", version.version_id)
        assert [data for _, data in store.put_away] == [b"1"]
        assert list(store.versions("")) == []

    def test_a_listing_that_breaks_off_is_an_error(self, store: MemoryStore) -> None:
        for key in "abc":
            put(store, key, b"12")
        store.faults.cut = 1
        with pytest.raises(StoreError, match="Cut"):
            list(store.versions(""))
        with pytest.raises(StoreError, match="Cut"):
            store.read("a", 2)


def test_a_store_is_found_by_its_scheme() -> None:
    described = estate("http://127.0.0.1:1")
    for place in ("s3://bucket/t/x/", "s3a://bucket/t/x/", "S3://bucket/t/x/"):
        store, prefix = store_at(described, place)
        assert isinstance(store, S3Store)
        assert (store.name, prefix) == ("s3://bucket", "t/x/"), "the last slash counts: a prefix is no folder"
    assert store_at(described, "s3://bucket")[1] == ""


@pytest.mark.parametrize("place", ["gs://bucket/x", "/plain/path", "bucket/x", "", "s3:///x", "file:///x"])
def test_a_place_of_no_known_store_is_refused(place: str) -> None:
    with pytest.raises(EstateError):
        store_at(estate("http://127.0.0.1:1"), place)
