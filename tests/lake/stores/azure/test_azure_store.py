"""Azure Blob Storage as a store, by the tests for all of them, on the strict stand-in; and what only it does."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from azure.storage.blob import BlobServiceClient

from pii_tracer.lake.stores.azure.client import service_of
from pii_tracer.lake.stores.azure.login import KEY as KEY_VARIABLE
from pii_tracer.lake.stores.azure.store import AzureStore
from pii_tracer.lake.stores.base import Changed, ObjectStore, StoreError
from pii_tracer.model.azure_location import azure_location
from tests.azure.blob_service import BlobService, blob_service
from tests.azure.blob_state import Account
from tests.azure.shared_key import ACCOUNT, KEY
from tests.kits.lease_kit import LeaseKit
from tests.kits.store_kit import StoreKit, put


@pytest.fixture(scope="module")
def service() -> Iterator[BlobService]:
    with blob_service(Account(page=7)) as found:
        yield found


def store_on(service: BlobService, monkeypatch: pytest.MonkeyPatch, key: str = KEY) -> AzureStore:
    """A new container of an account."""
    monkeypatch.setenv(KEY_VARIABLE, key)
    name = f"c{uuid.uuid4().hex[:20]}"
    place = azure_location(f"abfss://{name}@{ACCOUNT}.dfs.core.windows.net")
    client = service_of(place, service.uri, anonymous=False)
    if key == KEY:
        client.create_container(name)
    return AzureStore(client, name, place.store)


class _Kit(StoreKit):
    older_takes_its_place = has_markers = False
    many = 23

    @pytest.fixture
    def refusing(self, service: BlobService, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
        return store_on(service, monkeypatch, "bm8gc3VjaCBrZXk=")

    def begin_upload(self, store: ObjectStore, key: str) -> None:
        assert isinstance(store, AzureStore)
        client: BlobServiceClient = store.service
        client.get_blob_client(store.container_name, key).stage_block("MDAx", b"a block")

    def hold(self, store: ObjectStore, key: str, version_id: str) -> ObjectStore:
        assert isinstance(store, AzureStore)
        store.service.get_blob_client(store.container_name, key).set_legal_hold(True)
        return store


class TestPlainAccount(_Kit):
    keeps_versions = False

    @pytest.fixture
    def store(self, service: BlobService, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
        service.account.versioning = False
        return store_on(service, monkeypatch)


class TestAccountWithVersions(_Kit):
    @pytest.fixture
    def store(self, service: BlobService, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
        service.account.versioning = True
        return store_on(service, monkeypatch)


class TestLeaseInAzure(LeaseKit):
    @pytest.fixture(params=[False, True])
    def store(
        self, request: pytest.FixtureRequest, service: BlobService, monkeypatch: pytest.MonkeyPatch
    ) -> ObjectStore:
        service.account.versioning = request.param
        return store_on(service, monkeypatch)


@pytest.mark.parametrize(
    ("change", "code", "todo"),
    [
        ({"tier": "Archive"}, "BlobArchived", "rehydrate"),
        ({"rehydrating": True}, "BlobBeingRehydrated", "rehydrated"),
    ],
)
def test_what_the_archive_keeps_says_how_it_comes_back(
    change: dict[str, object], code: str, todo: str, service: BlobService, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_on(service, monkeypatch)
    put(store, "k", b"first")
    current = service.account.containers[store.container_name].blobs["k"].current
    for name, value in change.items():
        setattr(current, name, value)
    with pytest.raises(StoreError) as caught:
        store.read("k", 10)
    assert (caught.value.code, todo in str(caught.value.todo)) == (code, True)


def test_a_lease_is_a_refusal_and_no_change(service: BlobService, monkeypatch: pytest.MonkeyPatch) -> None:
    service.account.versioning = False
    store = store_on(service, monkeypatch)
    put(store, "k", b"first")
    old = store.live_version("k")
    service.account.containers[store.container_name].blobs["k"].lease = "somebody"
    assert store.live_version("k").holds == ("an active lease",)
    with pytest.raises(StoreError, match="LeaseIdMissing") as caught:
        store.replace(old, b"new", "plan-1")
    assert not isinstance(caught.value, Changed)
    assert store.read("k", 10).data == b"first"


def test_a_busy_service_is_asked_again_and_a_refusal_is_not(
    service: BlobService, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_on(service, monkeypatch)
    monkeypatch.setattr("pii_tracer.lake.stores.azure.client._WAITS", (0.0, 0.0))
    service.account.faults[:] = [503, 429]
    put(store, "k", b"first")
    service.account.faults[:] = [403]
    with pytest.raises(StoreError, match="AuthorizationFailure"):
        put(store, "other", b"1")
    service.account.faults[:] = [403, 0]
    with pytest.raises(StoreError, match="AuthorizationFailure"):
        list(store.all_versions(""))
    assert service.account.faults == []
