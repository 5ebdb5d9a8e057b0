"""A login with Entra ID: tokens over TLS, which are renewed, end in the middle, and are shown to nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pii_tracer.config.stores.object_stores import DeclaredStore
from pii_tracer.lake.stores.azure import file_rewrite, login
from pii_tracer.lake.stores.azure.client import files_of, patiently
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.object_places.version_types import VersionState
from pii_tracer.model.azure_location import azure_location
from pii_tracer.model.errors import EstateError
from tests.azure.blob_service import blob_service
from tests.azure.blob_state import Account, Refused, State
from tests.azure.dfs_service import dfs_service
from tests.azure.entra import CONTRIBUTOR, OWNER, READER, Entra, identity
from tests.azure.path_state import Paths
from tests.azure.shared_key import ACCOUNT
from tests.azure.shop import STORE, Shop
from tests.certificates import Authority
from tests.hdfs.shop import OTHERS, PERSON, csv

ACL = "user::rw-,group::---,other::---"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.made(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def entra(monkeypatch: pytest.MonkeyPatch) -> Iterator[Entra]:
    made = Entra()
    login.entra_login.cache_clear()
    for name in (login.KEY, login.SIGNATURE, "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    with identity(made) as address:
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        monkeypatch.setenv("IDENTITY_ENDPOINT", address)
        monkeypatch.setenv("IDENTITY_HEADER", made.header)
        yield made
    login.entra_login.cache_clear()


@pytest.fixture
def shop(entra: Entra, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A data lake whose account takes tokens alone."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.ca))
    account = Account(hierarchical=True)
    with (
        blob_service(account, entra, authority.server) as service,
        dfs_service(account, entra, authority.server) as dfs,
    ):
        made = Shop.on(service, tmp_path)
        made.dfs = dfs
        made.export("a", "x.csv", csv(OTHERS[0], PERSON), acl=ACL, owner="her")
        yield made
        assert dfs.unknown == []


def leaked(shop: Shop, entra: Entra) -> list[str]:
    """Files below the estate's folder with a token in them, or with the secret that gets one."""
    texts = [text.encode() for text in (*entra.given, entra.header)]
    files = (path for path in shop.base.rglob("*") if path.is_file())
    return [str(path) for path in files if any(text in path.read_bytes() for text in texts)]


def test_a_person_is_erased_with_a_login_whose_tokens_end_soon(
    shop: Shop, entra: Entra, capfd: pytest.CaptureFixture[str]
) -> None:
    """A token that ends in less than five minutes is renewed before each request."""
    entra.seconds = 250
    assert shop.plan()[0] == 0
    assert shop.approve() == 0
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    current = shop.blob("a/x.csv").current
    assert current is not None
    assert (current.data, current.acl, current.owner) == (csv(OTHERS[0]), ACL, "her")
    assert len(entra.given) > 9
    said = "".join(capfd.readouterr())
    assert leaked(shop, entra) == []
    assert not any(token in said for token in (*entra.given, entra.header))


def test_a_login_that_ends_in_the_middle_stops_the_run_and_is_taken_up_again(
    shop: Shop, entra: Entra, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shop.plan()[0] == 0
    assert shop.approve() == 0
    done: list[int] = []

    def ended(ask: Callable[[], Any]) -> Any:
        done.append(1)
        if len(done) == 4:
            entra.end()
            entra.locked = True
        return patiently(ask)

    with monkeypatch.context() as patched:
        patched.setattr(file_rewrite, "patiently", ended)
        code, result = shop.apply()
    assert (code != 0, result["state"]) == (True, "partial")
    assert PERSON[1].encode() in shop.read("a/x.csv")
    entra.locked = False
    login.entra_login.cache_clear()
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert [name for name, blob in shop.container.blobs.items() if blob.current and "/" in name] == ["a/x.csv"]
    assert leaked(shop, entra) == []


def test_a_missing_role_is_an_error_that_names_it(shop: Shop, entra: Entra) -> None:
    (live,) = (one for one in shop.store.live_objects("a/") if not one.key.endswith("/"))
    entra.roles = {CONTRIBUTOR, READER}
    with pytest.raises(
        StoreError, match="owner and access list cannot be set: AuthorizationPermissionMismatch"
    ) as told:
        shop.store.replace(live, b"new", "plan-1")
    assert "Storage Blob Data Owner" in str(told.value.todo)
    assert shop.read("a/x.csv") == csv(OTHERS[0], PERSON)
    entra.roles = {OWNER}
    with pytest.raises(StoreError, match="soft delete settings cannot be read") as told:
        shop.store.settings()
    assert "Reader" in str(told.value.todo)
    entra.roles = {READER}
    with pytest.raises(StoreError, match="AuthorizationPermissionMismatch"):
        list(shop.store.live_objects("a/"))


def test_a_flat_account_needs_the_same_role(shop: Shop, entra: Entra) -> None:
    """Its listings show index tags, and its old versions are deleted by their ids."""
    assert shop.service is not None
    shop.service.account.hierarchical, shop.service.account.versioning = False, True
    shop.put("b/x.csv", csv(OTHERS[0], PERSON), tags={"team": "n"})
    entra.roles = {CONTRIBUTOR, READER}
    with pytest.raises(StoreError, match="AuthorizationPermissionMismatch") as told:
        list(shop.store.live_objects("b/"))
    assert "Storage Blob Data Owner" in str(told.value.todo)
    entra.roles = {OWNER, READER}
    (live,) = shop.store.live_objects("b/")
    shop.store.replace(live, csv(OTHERS[0]), "plan-1")
    (old,) = (one for one in shop.store.all_versions("b/") if one.state is VersionState.NONCURRENT)
    entra.roles = {CONTRIBUTOR, READER}
    with pytest.raises(StoreError, match="AuthorizationPermissionMismatch"):
        shop.store.delete_exactly(old)
    entra.roles = {OWNER, READER}
    shop.store.delete_exactly(old)
    assert (shop.read("b/x.csv"), shop.kept()) == (csv(OTHERS[0]), [])


def test_who_has_no_valid_login_learns_what_to_do(shop: Shop, entra: Entra) -> None:
    assert shop.store.hierarchical
    entra.end()
    with pytest.raises(StoreError, match="InvalidAuthenticationInfo") as told:
        list(shop.store.live_objects("a/"))
    assert not any(token in f"{told.value} {told.value.todo}" for token in entra.given)
    entra.locked = True
    login.entra_login.cache_clear()
    with pytest.raises(StoreError, match="no token for the account") as told:
        shop.store.reader_options()
    assert "az login" in str(told.value.todo)


def test_the_kind_of_an_account_is_known_without_its_key(shop: Shop) -> None:
    assert shop.service is not None
    assert shop.store.hierarchical
    shop.service.account.hierarchical = False
    assert not shop.store.hierarchical
    shop.service.account.soft_delete_days = 7
    assert not shop.store.hierarchical
    shop.dfs = None
    with pytest.raises(StoreError, match="kind cannot be read") as told:
        assert shop.store.hierarchical
    assert "dfs_endpoint" in str(told.value.todo)


def test_another_answer_says_nothing_of_the_kind(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Paths, name: str) -> State:
        raise Refused(400, "InvalidUri")

    monkeypatch.setattr(Paths, "state", refused)
    with pytest.raises(StoreError, match="kind cannot be read: InvalidUri"):
        assert shop.store.hierarchical


@pytest.mark.parametrize(
    "settings",
    [
        {"AZURE_TOKEN_CREDENTIALS": "Nobody"},
        {"AZURE_CLIENT_CERTIFICATE_PATH": "/nowhere/cert.pem"},
        {"AZURE_TENANT_ID": "no tenant!", "AZURE_CLIENT_SECRET": "hers"},
        {"AZURE_AUTHORITY_HOST": "http://login.invalid", "AZURE_CLIENT_SECRET": "hers"},
    ],
)
def test_settings_that_no_login_can_have_are_named(
    settings: dict[str, str], entra: Entra, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = {"AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential", "AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c"}
    for name, value in {**service, **settings}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EstateError, match="settings of the login with Entra ID are wrong") as told:
        login.entra_login()
    assert next(iter(settings)) in str(told.value.todo)
    assert not any(value in f"{told.value}" for value in settings.values())


def test_no_token_goes_over_plain_http(shop: Shop, entra: Entra) -> None:
    assert shop.service is not None
    shop.service.uri = shop.service.uri.replace("https://", "http://")
    with pytest.raises(EstateError, match="a login over plain HTTP is not possible"):
        assert shop.store.hierarchical
    assert entra.given == []


def test_readers_in_rust_get_a_token(shop: Shop, entra: Entra) -> None:
    told = shop.store.reader_options()
    assert (told["azure_storage_account_name"], told["azure_storage_token"]) == (ACCOUNT, entra.given[-1])
    assert "azure_storage_account_key" not in told


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"dfs_endpoint": "http://files.example"}, "credentials would go over plain HTTP"),
        ({"dfs_endpoint": "files.example"}, "write the endpoint as"),
        (
            {"dfs_endpoint": "https://files.example", "store": "gs://bucket"},
            "applies only to a container of Azure Storage",
        ),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(more: dict[str, str], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        DeclaredStore.model_validate({"store": STORE, "places": [{"prefix": "a"}], **more})


@pytest.mark.parametrize(
    ("endpoint", "dfs_endpoint", "asked"),
    [
        (None, None, "https://shimaccount.dfs.core.windows.net"),
        (
            "https://shimaccount.privatelink.blob.core.windows.net",
            None,
            "https://shimaccount.privatelink.dfs.core.windows.net",
        ),
        ("https://storage.example", None, None),
        ("https://storage.example", "https://files.example", "https://files.example"),
    ],
)
def test_where_the_files_are_asked_for(
    endpoint: str | None, dfs_endpoint: str | None, asked: str | None, entra: Entra
) -> None:
    found = files_of(azure_location(STORE), endpoint, dfs_endpoint, anonymous=False)
    assert (found.url.rpartition("/")[0] if found else None) == asked
    assert entra.given == [], "nobody asked for a token yet"
