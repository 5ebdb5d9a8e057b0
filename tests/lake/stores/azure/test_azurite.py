"""The same tests for all stores on Azurite, Microsoft's emulator (`npm install --global azurite@3.37.0`).

It has snapshots, uncommitted blocks and conditions; it has no versions, soft delete, holds or immutability.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pii_tracer.lake.stores.azure.client import service_of
from pii_tracer.lake.stores.azure.login import KEY as KEY_VARIABLE
from pii_tracer.lake.stores.azure.store import AzureStore
from pii_tracer.lake.stores.base import ObjectStore
from pii_tracer.model.azure_location import azure_location
from tests.kits.store_kit import StoreKit
from tests.servers import free_ports

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Of every Azurite, as its documentation says; it opens nothing else."""


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An emulator on loopback, which ends with the tests."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("azurite-blob is not on the path")
    [port] = free_ports(1)
    place: Path = tmp_path_factory.mktemp("azurite")
    words = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(place), "--skipApiVersionCheck"]
    with subprocess.Popen([program, *words, "--silent"]) as running:
        try:
            until = time.monotonic() + 60
            while True:
                with socket.socket() as there:
                    if not there.connect_ex(("127.0.0.1", port)):
                        break
                assert time.monotonic() < until
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/{ACCOUNT}"
        finally:
            running.kill()  # asked to end, it waits for connections that clients keep open


@pytest.mark.nightly
class TestAzurite(StoreKit):
    older_takes_its_place = has_markers = False
    keeps_versions = False
    not_taken = ("'\"<&>\\",)  # it writes a slash for a backslash

    def _store(self, endpoint: str, monkeypatch: pytest.MonkeyPatch, key: str) -> AzureStore:
        monkeypatch.setenv(KEY_VARIABLE, key)
        name = f"c{uuid.uuid4().hex[:20]}"
        place = azure_location(f"abfss://{name}@{ACCOUNT}.dfs.core.windows.net")
        client = service_of(place, endpoint, anonymous=False)
        if key == KEY:
            client.create_container(name)
        return AzureStore(client, name, place.store)

    @pytest.fixture
    def store(self, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
        return self._store(endpoint, monkeypatch, KEY)

    @pytest.fixture
    def refusing(self, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
        return self._store(endpoint, monkeypatch, "bm8gc3VjaCBrZXk=")

    def begin_upload(self, store: ObjectStore, key: str) -> None:
        assert isinstance(store, AzureStore)
        store.service.get_blob_client(store.container_name, key).stage_block("MDAx", b"a block")
