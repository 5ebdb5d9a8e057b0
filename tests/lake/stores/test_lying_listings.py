"""The clients of all stores beside S3 before a store that lies about its listing (`tests/kits/listing_kit.py`).

Of S3: `tests/verify/test_lying_stores.py`. Of what an error in a listing does to a plan and to a verification, the tests
of each store speak.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points

import pytest
from azure.storage.blob import ContainerClient
from botocore.exceptions import BotoCoreError

from pii_tracer.config.lakefs import LakefsServer
from pii_tracer.lake.stores.azure.listed_blobs import deleted_above, listed
from pii_tracer.lake.stores.gcs.credentials import no_credentials
from pii_tracer.lake.stores.gcs.json_api import GcsBucket
from pii_tracer.lake.stores.gcs.store import GcsStore
from pii_tracer.lake.stores.glacier.vault_discovery import VaultClient
from pii_tracer.lake.stores.hdfs.name_nodes import NameNodes
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from pii_tracer.lake.stores.lakefs.client import LakefsClient
from pii_tracer.model.errors import EstateError
from tests.kits.listing_kit import Lie, ListingKit, Page

_NO_END = "a page without a token is the last one: the protocol has no other sign"


class TestGcs(ListingKit):
    without = {Lie.NOWHERE: _NO_END}
    again = True
    strange = tuple(
        json.dumps({"kind": "storage#objects", "items": [item]}).encode()
        for item in ({}, "a", {"name": ["a"], "generation": "1"}, {"name": "a", "generation": {}}, {"name": "a"})
    )

    def token(self, query: Mapping[str, str]) -> str | None:
        return query.get("pageToken")

    def behind(self, query: Mapping[str, str]) -> str | None:
        return query.get("startOffset")

    def answer(self, page: Page, *, nowhere: bool) -> bytes:
        one = {"generation": "1", "metageneration": "1", "size": "1", "timeCreated": "2026-11-01T00:00:00Z"}
        items = [{"name": name, **one} for name in page.names]
        told = {"kind": "storage#objects", "items": items, **({"nextPageToken": page.token} if page.token else {})}
        return json.dumps(told).encode()

    def listed(self, url: str) -> Iterable[str]:
        store = GcsStore(GcsBucket("b", url, no_credentials, pause=lambda seconds: None))
        return (version.key for version in store.live_objects(""))


class TestGcsVersions(TestGcs):
    def listed(self, url: str) -> Iterable[str]:
        store = GcsStore(GcsBucket("b", url, no_credentials, pause=lambda seconds: None))
        return (version.key for version in store.versions(""))


class TestAzure(ListingKit):
    without = {Lie.NOWHERE: _NO_END}
    other = b"<html>no</html>"
    media_type = "application/xml"
    hierarchical = False
    again = True

    def token(self, query: Mapping[str, str]) -> str | None:
        return query.get("marker")

    def behind(self, query: Mapping[str, str]) -> str | None:
        return query.get("startFrom")

    def answer(self, page: Page, *, nowhere: bool) -> bytes:
        blobs = "".join(
            f"<Blob><Name>{name}</Name><Properties><Etag>0x{name}</Etag><Content-Length>1</Content-Length>"
            "<Last-Modified>Sun, 01 Nov 2026 00:00:00 GMT</Last-Modified><BlobType>BlockBlob</BlobType></Properties></Blob>"
            for name in page.names
        )
        marker = f"<NextMarker>{page.token}</NextMarker>" if page.token else "<NextMarker/>"
        return f'<?xml version="1.0"?><EnumerationResults><Blobs>{blobs}</Blobs>{marker}</EnumerationResults>'.encode()

    def container(self, url: str) -> ContainerClient:
        return ContainerClient(url, "c", retry_total=0)

    def listed(self, url: str) -> Iterable[str]:
        found = listed(self.container(url), "", "abfss://c", hierarchical=self.hierarchical)
        return (str(item.name) for item in found)


class TestAzureHierarchical(TestAzure):
    hierarchical = True


class TestAzureDeletedFolders(TestAzure):
    without = {**TestAzure.without, Lie.LETTERS: "the names that are asked for are above the place"}

    def listed(self, url: str) -> Iterable[str]:
        found = deleted_above(self.container(url), "a/x", "abfss://c")
        return [*(str(item.name) for item in found), "a", "b", "c", "d"]

    def token(self, query: Mapping[str, str]) -> str | None:
        assert query["showonly"] == "deleted"
        return query.get("marker")

    def answer(self, page: Page, *, nowhere: bool) -> bytes:
        return super().answer(Page(tuple(f"a{name}" for name in page.names), page.token), nowhere=nowhere)


_OF_HDFS = {"pathSuffix": "a", "type": "FILE", "length": 1, "modificationTime": 1, "fileId": 1}


def _of_hdfs(item: object) -> bytes:
    listed = {"partialListing": {"FileStatuses": {"FileStatus": [item]}}, "remainingEntries": 0}
    return json.dumps({"DirectoryListing": listed}).encode()


class TestWebHdfs(ListingKit):
    strange = tuple(map(_of_hdfs, ({}, "a", {**_OF_HDFS, "pathSuffix": ["a"]}, {**_OF_HDFS, "type": 1})))
    without = {Lie.RENAMED: "the token is the last name of a page"}

    def token(self, query: Mapping[str, str]) -> str | None:
        return query.get("startAfter", "").replace("b", "d")

    def behind(self, query: Mapping[str, str]) -> str | None:
        return query.get("startAfter")

    def beside(self, path: str) -> bytes | None:
        return b'{"beans": [{"BlockPoolId": "BP-1", "State": "active"}]}' if path.startswith("/jmx") else None

    def answer(self, page: Page, *, nowhere: bool) -> bytes:
        names = () if nowhere else page.names
        found = {"FileStatuses": {"FileStatus": [{**_OF_HDFS, "pathSuffix": name} for name in names]}}
        left = 2 if page.token or nowhere else 0
        return json.dumps({"DirectoryListing": {"partialListing": found, "remainingEntries": left}}).encode()

    def listed(self, url: str) -> Iterable[str]:
        return (one.name for one in WebHdfs("hdfs://nn", NameNodes((url,)), "lake").entries("/d"))


class TestLakefs(ListingKit):
    strange = tuple(
        json.dumps({"results": [item], "pagination": {"has_more": False}}).encode() for item in ({}, "a", {"path": 1})
    )

    @pytest.fixture(autouse=True)
    def _keys(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("K", "k")

    def token(self, query: Mapping[str, str]) -> str | None:
        return query.get("after", "").replace("b", "d")

    def behind(self, query: Mapping[str, str]) -> str | None:
        return query.get("after")

    def answer(self, page: Page, *, nowhere: bool) -> bytes:
        token = "b" if page.names[-1:] == ("b",) and page.token == "d" else page.token  # the last name of the page
        more = {"has_more": bool(token) or nowhere, "next_offset": token or ""}
        return json.dumps({"results": [{"path": name} for name in page.names], "pagination": more}).encode()

    def listed(self, url: str) -> Iterable[str]:
        client = LakefsClient(self.server(url))
        return (str(one["path"]) for one in client.objects("repo", "main"))

    def server(self, url: str) -> LakefsServer:
        told = {"name": "l", "endpoint": url, "access_key_env": "K", "secret_key_env": "K"}
        repository = {
            "name": "repo",
            "of": "t",
            "format": "parquet",
            "prefixes": ["a/"],
            "owner": "o",
            "collect_days": 1,
        }
        return LakefsServer.model_validate({**told, "repositories": [repository]})


class TestGlacier(ListingKit):
    without = {Lie.NOWHERE: _NO_END, Lie.CUT: "only markers of the server's own lead on"}
    refusals = (EstateError, BotoCoreError)
    strange = (b'{"JobList": [{}]}', b'{"JobList": [{"JobId": "a"}]}')

    @pytest.fixture(autouse=True)
    def _keys(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "k")

    def token(self, query: Mapping[str, str]) -> str | None:
        return query.get("marker")

    def behind(self, query: Mapping[str, str]) -> str | None:
        return None

    def answer(self, page: Page, *, nowhere: bool) -> bytes:
        one = {"Action": "InventoryRetrieval", "StatusCode": "InProgress", "CreationDate": "2026-11-01T00:00:00Z"}
        return json.dumps({"JobList": [{"JobId": name, **one} for name in page.names], "Marker": page.token}).encode()

    def listed(self, url: str) -> Iterable[str]:
        import boto3

        client = boto3.client("glacier", region_name="eu-west-1", endpoint_url=url)
        return (job.job_id for job in VaultClient("v", "-", client).jobs())


def test_two_deleted_files_of_one_name_are_two() -> None:
    """Those of a hierarchical account have no versions: they differ in when they were deleted."""
    kit = TestAzureHierarchical()
    one = "<Blob><Name>a</Name><Deleted>true</Deleted><Properties>{}<Content-Length>1</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>"
    days = "".join(one.format(f"<DeletedTime>Sun, 0{n} Nov 2026 00:00:00 GMT</DeletedTime>") for n in (1, 8))
    body = f'<?xml version="1.0"?><EnumerationResults><Blobs>{days}</Blobs><NextMarker/></EnumerationResults>'
    with kit._lying(Lie.OTHER, body.encode()) as url:
        assert [item.deleted for item in listed(kit.container(url), "", "abfss://c", hierarchical=True)] == [True, True]


KITS = {"gs": TestGcs, "abfss": TestAzure, "hdfs": TestWebHdfs}


def test_the_client_of_each_store_lists_before_a_store_that_lies() -> None:
    assert {point.name for point in entry_points(group="pii_tracer.stores")} == {*KITS, "s3"}
    assert all(issubclass(kit, ListingKit) for kit in KITS.values())
