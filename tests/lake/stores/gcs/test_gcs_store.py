"""Cloud Storage as a store, by the tests for all of them, on the strict stand-in; and what only it does."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from pii_tracer.config.stores.object_stores import DeclaredStore
from pii_tracer.lake.stores.base import Absent, Changed, StoreError
from pii_tracer.lake.stores.gcs.store import GcsStore
from pii_tracer.lake.stores.object_places.version_types import VersionState
from tests.gcssupport import Gcs, Lies, strict_gcs
from tests.kits.lease_kit import LeaseKit
from tests.kits.store_kit import StoreKit, put


@pytest.fixture(scope="module")
def running() -> Iterator[Gcs]:
    with strict_gcs() as gcs:
        yield gcs


@pytest.fixture
def gcs(running: Gcs) -> Gcs:
    running.lies = Lies()
    return running


class TestGcsStore(StoreKit):
    older_takes_its_place = has_markers = has_uploads = False

    @pytest.fixture
    def store(self, gcs: Gcs) -> GcsStore:
        return gcs.bucket(uuid.uuid4().hex)

    @pytest.fixture
    def refusing(self, gcs: Gcs) -> GcsStore:
        store = gcs.bucket(uuid.uuid4().hex)
        gcs.lies = Lies(refused=True)
        return store

    def hold(self, store: GcsStore, key: str, version_id: str) -> GcsStore:
        self.held[store.api.bucket].objects[-1]["temporaryHold"] = True
        return store

    @pytest.fixture(autouse=True)
    def _buckets(self, gcs: Gcs) -> None:
        self.held = gcs.buckets


class TestLeaseInGcs(LeaseKit):
    @pytest.fixture
    def store(self, gcs: Gcs) -> GcsStore:
        return gcs.bucket(uuid.uuid4().hex, versioning=True)


def test_every_generation_is_told_with_what_stands_against_its_deletion(gcs: Gcs) -> None:
    store = gcs.bucket("all", soft_delete=604_800)
    gcs.put("all", "a/1", b"first", metadata={"by": "job"}, eventBasedHold=False)
    gcs.put("all", "a/1", b"second", temporaryHold=True, storageClass="NEARLINE")
    gcs.put("all", "a/2", b"third", retention={"mode": "Locked", "retainUntilTime": "2099-01-01T00:00:00Z"})
    gcs.put("all", "a/3", b"fourth")
    gone = gcs.buckets["all"].objects[-1]["generation"]
    store.delete_version("a/3", str(gone))
    found = {(v.key, v.state): v for v in store.all_versions("a/")}
    assert sorted(found) == [
        ("a/1", VersionState.LIVE),
        ("a/1", VersionState.NONCURRENT),
        ("a/2", VersionState.LIVE),
        ("a/3", VersionState.SOFT_DELETED),
    ]
    live = found["a/1", VersionState.LIVE]
    assert (live.holds, live.storage_class) == (("a temporary hold",), "NEARLINE")
    assert found["a/2", VersionState.LIVE].retained_until == "2099-01-01T00:00:00Z"
    assert found["a/3", VersionState.SOFT_DELETED].gone_on is not None
    old = found["a/1", VersionState.NONCURRENT]
    assert (store.read_version(old, 1, 3), old.beside) == (b"irs", ("by", "job"))
    assert store.settings().soft_delete_seconds == 604_800
    with pytest.raises(Absent):
        store.version("a/3", str(gone))
    for code, key in (("objectUnderActiveHold", "a/1"), ("retentionPolicyNotMet", "a/2")):
        with pytest.raises(StoreError) as caught:
            store.replace(store.live_version(key), b"new", "p")
        assert (caught.value.code, "release the hold" in str(caught.value.todo)) == (code, True)


def test_a_new_generation_has_all_that_stood_beside_the_old_bytes(gcs: Gcs) -> None:
    store = gcs.bucket("fine", fine=True)
    acl = [{"entity": "user-ann@example.org", "role": "READER"}]
    kept: dict[str, Any] = {
        "contentType": "text/csv",
        "cacheControl": "no-store",
        "storageClass": "COLDLINE",
        "acl": acl,
    }
    kept["contexts"] = {"custom": {"team": {"value": "shop"}}}
    gcs.put("fine", "k", b"old", metadata={"by": "job"}, **kept)
    made = store.replace(store.live_version("k"), b"new", "plan-1")
    now = gcs.buckets["fine"].objects[-1]
    assert {name: now[name] for name in kept} == kept
    assert now["metadata"] == {"by": "job", "pii-tracer-plan": "plan-1"}
    assert (made.plan, now["data"]) == ("plan-1", b"new")


def test_metadata_that_changed_is_a_change(gcs: Gcs) -> None:
    store = gcs.bucket("meta")
    put(store, "k", b"1")
    seen = store.live_version("k")
    gcs.buckets["meta"].objects[-1]["metageneration"] = 2
    with pytest.raises(Changed):
        store.replace(seen, b"2", "p")
    with pytest.raises(Changed):
        store.delete_exactly(seen)
    assert gcs.live("meta", "k") == b"1"


@pytest.mark.parametrize("lies", [Lies(circle=True), Lies(deaf=True)])
def test_a_listing_that_cannot_be_relied_on_is_an_error(gcs: Gcs, lies: Lies) -> None:
    store = gcs.bucket(uuid.uuid4().hex)
    for number in range(5):
        put(store, f"a/{number}", b"1")
    gcs.lies = lies
    with pytest.raises(StoreError, match="NoJsonApi"):
        list(store.all_versions("a/"))


def test_a_busy_bucket_is_asked_again_as_it_says(gcs: Gcs) -> None:
    waited: list[float] = []
    store = gcs.bucket("busy")
    put(store, "k", b"1")
    store = GcsStore(type(store.api)("busy", gcs.endpoint, store.api.headers, pause=waited.append))
    gcs.lies = Lies(busy=[(429, "7"), (503, "")])
    assert store.read("k", 1).data == b"1"
    assert waited == [7.0, 2.0]
    gcs.lies = Lies(busy=[(429, "")] * 9)
    with pytest.raises(StoreError) as caught:
        store.read("k", 1)
    assert caught.value.code == "rateLimitExceeded"


def test_a_token_never_goes_over_plain_http() -> None:
    with pytest.raises(ValidationError, match="plain HTTP"):
        DeclaredStore(store="gs://b", endpoint="http://gcs.example", places=({"prefix": "a"},))
