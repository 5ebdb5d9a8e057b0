"""The DFS endpoint of the stand-in refuses what Azure refuses, and shows the bytes of the blob endpoint."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.azure.blob_service import BlobService
from tests.azure.dfs_service import DfsService
from tests.azure.shared_key import ACCOUNT, signature
from tests.azure.shop import CONTAINER, Shop

_NEW = {"If-None-Match": "*"}


@dataclass
class Driver:
    """What a driver asks, signed."""

    dfs: DfsService

    def asks(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str, bytes]:
        """The status, the service's code, and the answer's body."""
        whole = f"/{ACCOUNT}/{CONTAINER}{path}"
        sent = {name.replace("_", "-"): value for name, value in headers.items()} | {"x-ms-version": "2018-11-09"}
        sent |= {"Content-Length": str(len(body))} if body else {}
        parts = urlsplit(whole)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        sent.setdefault("Authorization", signature(method, parts.path, query, sent))
        connection = http.client.HTTPConnection(self.dfs.address)
        connection.request(method, whole, body or None, sent)
        answer = connection.getresponse()
        found = answer.status, answer.getheader("x-ms-error-code") or "", answer.read()
        connection.close()
        return found

    def code(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str]:
        return self.asks(method, path, body, **headers)[:2]

    def write(self, path: str, data: bytes) -> None:
        """A new file, as the driver writes it."""
        assert self.code("PUT", f"{path}?resource=file", **_NEW)[0] == 201
        patch = {"X-HTTP-Method-Override": "PATCH"}
        assert self.code("PUT", f"{path}?action=append&position=0", data, **patch)[0] == 202
        assert self.code("PUT", f"{path}?action=flush&position={len(data)}&close=true", **patch)[0] == 200


@pytest.fixture
def driver(dfs: DfsService) -> Driver:
    return Driver(dfs)


def test_both_endpoints_show_the_same_bytes(azure: BlobService, driver: Driver, tmp_path: Path) -> None:
    shop = Shop.on(azure, tmp_path, hierarchical=True, page=1)
    driver.write("/t/a=1/x", b"first")
    assert shop.store.read("t/a=1/x", 9).data == b"first"
    shop.put("t/y", b"second")
    assert driver.asks("GET", "/t/y", Range="bytes=1-3")[2] == b"eco"
    assert [version.key for version in shop.store.live_objects("t/")] == ["t/a=1/", "t/a=1/x", "t/y"]
    page = json.loads(driver.asks("GET", "?resource=filesystem&directory=t&recursive=true")[2])
    assert [one["name"] for one in page["paths"]] == ["t/a=1"], "the next page has more"
    page = json.loads(driver.asks("GET", "?resource=filesystem&directory=t/y&recursive=false")[2])
    assert [one["name"] for one in page["paths"]] == ["t/y"], "a file has itself"


def test_what_a_path_is_refused(azure: BlobService, driver: Driver, tmp_path: Path) -> None:
    shop = Shop.on(azure, tmp_path, hierarchical=True, page=9)
    driver.write("/t/x", b"1")
    patch = {"X-HTTP-Method-Override": "PATCH"}
    assert driver.code("GET", "/t/x", Authorization="SharedKey x:y") == (403, "AuthenticationFailed")
    assert driver.code("GET", "/t/gone") == (404, "PathNotFound")
    assert driver.code("GET", "?resource=filesystem&directory=gone&recursive=false") == (404, "PathNotFound")
    assert driver.code("PUT", "/t/x?resource=file", **_NEW) == (409, "PathAlreadyExists")
    assert driver.code("PUT", "/t/x/y?resource=file", **_NEW) == (409, "PathConflict")
    assert driver.code("PUT", "/t/x?resource=file", If_Match='"old"') == (412, "ConditionNotMet")
    assert driver.code("GET", "/t/x", If_Match='"old"') == (412, "ConditionNotMet")
    assert driver.code("DELETE", "/t?recursive=false") == (409, "DirectoryNotEmpty")
    assert driver.code("PUT", "/t/x?action=append&position=5", b"5", **patch) == (202, "")
    assert driver.code("PUT", "/t/x?action=flush&position=6", **patch) == (400, "InvalidFlushPosition")
    renamed = {"x-ms-rename-source": f"/{CONTAINER}/t/x", **_NEW}
    shop.put("t/z", b"2")
    assert driver.code("PUT", "/t/z", **renamed) == (409, "PathAlreadyExists")
    assert driver.code("PUT", "/no/z", **renamed) == (404, "RenameDestinationParentPathNotFound")
    shop.blob("t/x").lease = "somebody"
    assert driver.code("DELETE", "/t/x") == (412, "LeaseIdMissing")
    assert driver.code("PUT", "/t/new", **renamed) == (412, "LeaseIdMissing")
    shop.blob("t/x").lease, shop.container.policy = None, True
    assert driver.code("DELETE", "/t?recursive=true") == (409, "PathImmutableDueToPolicy")
    assert driver.code("PUT", "/t/new", **renamed) == (409, "PathImmutableDueToPolicy")
    shop.container.policy = False
    assert driver.code("PUT", "/t/new", **renamed) == (201, "")
    assert shop.read("t/new") == b"1"


def test_a_flat_account_has_no_access_lists_and_no_soft_delete(
    azure: BlobService, driver: Driver, tmp_path: Path
) -> None:
    shop = Shop.on(azure, tmp_path, versioning=True)
    assert driver.code("HEAD", "/?action=getAccessControl")[0] == 400
    assert driver.code("PUT", "/x?resource=file", x_ms_permissions="0700") == (400, "UnsupportedHeader")
    driver.write("/t/x", b"1")
    assert driver.code("HEAD", "/t?action=getStatus") == (200, ""), "a directory that nobody created"
    assert driver.code("DELETE", "/t?recursive=true") == (200, "")
    assert shop.kept() == [b"", b"1"], "versions of what was created, written and deleted"
    azure.account.soft_delete_days = 7
    assert driver.code("HEAD", "/?action=getAccessControl") == (409, "EndpointUnsupportedAccountFeatures")
    azure.account.hierarchical, azure.account.versioning = True, False
    assert driver.code("HEAD", "/?action=getAccessControl") == (200, "")


def test_bytes_that_a_killed_writer_did_not_flush_are_waited_for(
    azure: BlobService, driver: Driver, tmp_path: Path
) -> None:
    """No reader gets them, and Azure keeps them for a week."""
    shop = Shop.on(azure, tmp_path, hierarchical=True, soft_delete_days=7)
    assert driver.code("PUT", "/t/x?resource=file", **_NEW)[0] == 201
    patch = {"X-HTTP-Method-Override": "PATCH"}
    assert driver.code("PUT", "/t/x?action=append&position=0", b"somebody", **patch)[0] == 202
    assert [one.version_id for one in shop.store.all_versions("t/") if one.gone_on] == ["uncommitted blocks"]
    azure.account.days = 8
    assert [one.version_id for one in shop.store.all_versions("t/") if one.gone_on] == []
