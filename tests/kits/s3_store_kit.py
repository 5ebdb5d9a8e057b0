"""The tests of every store, for S3; on whichever server keeps its protocol."""

from __future__ import annotations

import pytest

from pii_tracer.lake.stores.base import ObjectStore
from pii_tracer.lake.stores.s3.object_versions import S3Client
from pii_tracer.lake.stores.s3.store import S3Store
from tests.kits.store_kit import StoreKit, put


class S3Kit(StoreKit):
    """Abstract: `client`, and `bucket`, which makes a bucket that keeps versions."""

    many = 1100
    """A page of S3 holds a thousand."""

    @pytest.fixture
    def client(self) -> S3Client:
        raise NotImplementedError

    @pytest.fixture
    def bucket(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def plain(self) -> str:
        """A bucket that never kept versions."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, client: S3Client, bucket: str) -> S3Store:
        return S3Store(client, bucket)

    @pytest.fixture
    def refusing(self, client: S3Client) -> S3Store:
        return S3Store(client, "nowhere-at-all")

    def delete(self, store: ObjectStore, key: str) -> None:
        assert isinstance(store, S3Store)
        store.client.delete_object(Bucket=store.bucket, Key=key)

    def begin_upload(self, store: ObjectStore, key: str) -> None:
        assert isinstance(store, S3Store)
        store.client.create_multipart_upload(Bucket=store.bucket, Key=key)

    def hold(self, store: ObjectStore, key: str, version_id: str) -> ObjectStore:
        assert isinstance(store, S3Store)
        store.client.put_object_legal_hold(
            Bucket=store.bucket, Key=key, VersionId=version_id, LegalHold={"Status": "ON"}
        )
        return store

    def test_versions_from_before_versioning_have_no_id(self, client: S3Client, plain: str) -> None:
        store = S3Store(client, plain)
        put(store, "k", b"1")
        assert [v.version_id for v in store.versions("")] == ["null"]
        store.delete_version("k", "null")
        assert list(store.versions("")) == []
