"""The tests of every store on real servers that keep S3's protocol: MinIO and versitygw (`make stores`)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from pii_tracer.lake.stores.s3.object_versions import S3Client
from tests import storeservers
from tests.kits.s3_store_kit import S3Kit
from tests.storeservers import Store, signed

__all__ = ["signed"]

pytestmark = pytest.mark.nightly


class _OnServer(S3Kit):
    """Abstract: the server's program, and how it is started."""

    program: ClassVar[str]

    @pytest.fixture(scope="class")
    def server(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
        if storeservers.program(self.program) is None:
            pytest.skip(f"{self.program} has not been built (`make stores`)")
        start = {"minio": storeservers.minio, "versitygw": storeservers.versioned}[self.program]
        with start(tmp_path_factory.mktemp(self.program)) as running:
            assert running.kind == self.program
            yield running

    @pytest.fixture
    def client(self, server: Store) -> S3Client:
        return server.client()

    @pytest.fixture
    def bucket(self, client: S3Client) -> str:
        return self._made(client, ObjectLockEnabledForBucket=True)

    @pytest.fixture
    def plain(self, client: S3Client) -> str:
        return self._made(client)

    def _made(self, client: S3Client, **more: Any) -> str:
        name = f"kit-{uuid.uuid4().hex[:12]}"
        client.create_bucket(Bucket=name, **more)
        return name


class TestMinio(_OnServer):
    program = "minio"


class TestVersitygw(_OnServer):
    program = "versitygw"
    writes_behind_markers = False
    """Its `If-None-Match: *` counts an object that was deleted as there (docs/storage.md)."""
