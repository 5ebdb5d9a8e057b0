"""HDFS as a store, by the tests for all of them, on a real NameNode and DataNode; and what only it does."""

from __future__ import annotations

import pytest

from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.hdfs import store
from pii_tracer.lake.stores.hdfs.store import HdfsStore
from pii_tracer.model.errors import Refused
from pii_tracer.run.store_lease import LeaseObject
from tests.hdfssupport import Hdfs
from tests.kits.lease_kit import LeaseKit, take
from tests.kits.store_kit import FolderKit, put


class TestHdfsStore(FolderKit):
    @pytest.fixture
    def store(self, hdfs: Hdfs) -> HdfsStore:
        return hdfs.store(hdfs.folder())

    @pytest.fixture
    def refusing(self, hdfs: Hdfs) -> HdfsStore:
        folder = hdfs.folder()
        hdfs.ask(folder, "SETPERMISSION", permission="700")
        return hdfs.store(folder, "somebody")

    def test_a_folder_is_no_object(self, store: HdfsStore) -> None:
        put(store, "a/b", b"1")
        store.delete_version("a", "null")
        assert [v.key for v in store.versions("")] == ["a/b"]

    def test_a_refusal_says_what_to_grant(self, refusing: HdfsStore) -> None:
        with pytest.raises(StoreError) as caught:
            list(refusing.versions(""))
        assert caught.value.code == "AccessControlException"
        assert "right" in str(caught.value.todo)


class TestLeaseInHdfs(LeaseKit):
    @pytest.fixture
    def store(self, hdfs: Hdfs) -> HdfsStore:
        return hdfs.store(hdfs.folder())

    def test_a_lock_that_a_dead_writer_left_is_named(self, place: LeaseObject, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(store, "_PATIENCE", 0.0)
        assert isinstance(place.store, HdfsStore)
        lease = take(place)
        lock = f"{place.store.folder}/leases/.plan-1.lease.json.pii-tracer-lock"
        place.store.client.create(lock, b"")
        with pytest.raises(Refused, match="cannot be confirmed: Locked") as caught:
            lease.check()
        assert str(caught.value.where).endswith(lock)
        assert "delete the lock file" in str(caught.value.todo)
        place.store.client.delete(lock)
        lease.check()
