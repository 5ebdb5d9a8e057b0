"""The small shop of `tests/hdfs/shop.py`, with its exports in a container of Azure Blob Storage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pii_tracer.lake.stores.azure.client import files_of, service_of
from pii_tracer.lake.stores.azure.store import AzureStore
from pii_tracer.model.azure_location import azure_location
from tests.azure.blob_service import BlobService
from tests.azure.blob_state import Blob, Container, State
from tests.azure.dfs_service import DfsService
from tests.azure.shared_key import ACCOUNT
from tests.gcs import shop

CONTAINER = "shop"
STORE = f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net"


@dataclass
class Shop(shop.Shop):
    """service: the stand-in, in which a naive user writes and deletes without this program. dfs: its other endpoint."""

    service: BlobService | None = None
    dfs: DfsService | None = None

    @classmethod
    def on(cls, service: BlobService, base: Path, **settings: Any) -> Shop:
        """A shop in a new container of an account that is set so."""
        for name, value in settings.items():
            setattr(service.account, name, value)
        service.account.containers[CONTAINER] = Container()
        return cls(None, base, "", service=service)  # type: ignore[arg-type]

    @property
    def container(self) -> Container:
        assert self.service is not None
        return self.service.account.container(CONTAINER)

    @property
    def store(self) -> AzureStore:
        assert self.service is not None
        place, more = azure_location(STORE), self._dfs_endpoint()
        files = files_of(place, self.service.uri, more.get("dfs_endpoint"), anonymous=False)
        return AzureStore(service_of(place, self.service.uri, anonymous=False), CONTAINER, STORE, files)

    def _dfs_endpoint(self) -> dict[str, str]:
        assert self.service is not None
        return (
            {"dfs_endpoint": f"{self.service.uri.partition(':')[0]}://{self.dfs.address}/{ACCOUNT}"} if self.dfs else {}
        )

    def blob(self, path: str) -> Blob:
        return self.container.blobs[path]

    def put(self, path: str, data: bytes, **more: Any) -> str:
        """What Put Blob does with headers of its own."""
        assert self.service is not None
        account = self.service.account
        account.write(self.container, path, State(data, account.etag(), account.now(), **more))
        return path

    def drop(self, path: str) -> None:
        """What Delete Blob does, by whoever knows of no versions."""
        assert self.service is not None
        self.service.account.delete_blob(self.container, self.blob(path), snapshots=None)

    def snapshot(self, path: str) -> None:
        """What Snapshot Blob does."""
        assert self.service is not None
        blob = self.blob(path)
        assert blob.current is not None
        taken = {**vars(blob.current), "version": None, "snapshot": self.service.account.tick()}
        blob.past.append(State(**taken))

    def read(self, path: str) -> bytes:
        current = self.blob(path).current
        assert current is not None
        return current.data

    def kept(self) -> list[bytes]:
        """The bytes of all that the account keeps beside what is current: versions, snapshots, deleted or not."""
        assert self.service is not None
        blobs = self.service.account.container(CONTAINER).blobs.values()
        return [one.data for blob in blobs for one in blob.past] + [d for b in blobs for d in b.blocks.values()]

    def stored(self, *prefixes: str) -> list[dict[str, Any]]:
        """`object_stores` of the estate file."""
        assert self.service is not None
        agreed = {"deletable": {"owner": "Ann", "reason": "nobody needs it"}} if self.agreed else {}
        places = [{"prefix": prefix, **agreed} for prefix in prefixes or sorted(self.exports)]
        return [{"store": STORE, "endpoint": self.service.uri, **self._dfs_endpoint(), "places": places}]

    def _dataset(self, folder: str) -> dict[str, str]:
        """As an engine with the older driver names it."""
        return {"namespace": f"wasbs://{CONTAINER}@{ACCOUNT}.blob.core.windows.net", "name": folder}


def until(text: str) -> datetime:
    """A moment of a plan."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
