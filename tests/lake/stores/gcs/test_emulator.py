"""Live objects on fake-gcs-server (https://github.com/fsouza/fake-gcs-server), where it is on the path.

Asked to delete a noncurrent generation it puts the live one away, and it knows no soft delete: no place on it can be
planned. What it does as Google does is run here: reading, conditional writing, and the rewrite of a live object.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from pii_tracer.lake.stores.base import Absent, Changed, StoreError
from pii_tracer.lake.stores.gcs.credentials import no_credentials
from pii_tracer.lake.stores.gcs.json_api import GcsBucket
from pii_tracer.lake.stores.gcs.store import GcsStore
from pii_tracer.lake.stores.object_places.version_types import VersionState
from tests.kits.store_kit import put
from tests.servers import end, free_ports

SERVER = shutil.which("fake-gcs-server")
pytestmark = [pytest.mark.nightly, pytest.mark.skipif(SERVER is None, reason="fake-gcs-server is not on the path")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GcsStore]:
    """An empty bucket with versions asked for."""
    [port] = free_ports(1)
    address = f"127.0.0.1:{port}"
    options = [
        "-scheme",
        "http",
        "-host",
        "127.0.0.1",
        "-port",
        str(port),
        "-backend",
        "memory",
        "-public-host",
        address,
    ]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([str(SERVER), *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        body = json.dumps({"name": "real", "versioning": {"enabled": True}}).encode()
        until = time.monotonic() + 60
        while True:
            try:
                headers = {"Content-Type": "application/json"}
                urllib.request.urlopen(
                    urllib.request.Request(f"http://{address}/storage/v1/b", body, headers), timeout=5
                )
                break
            except OSError:
                assert time.monotonic() < until, (tmp_path / "log").read_text()
                time.sleep(0.1)
        yield GcsStore(GcsBucket("real", f"http://{address}", no_credentials))
    finally:
        end(process)


def test_live_objects_are_read_and_written_on_their_mark(store: GcsStore) -> None:
    for number in range(3):
        put(store, f"a/{number}", b"first %d" % number)
    with pytest.raises(Changed):
        put(store, "a/0", b"again")
    seen = store.live_version("a/0")
    assert store.read("a/0", 100) == (b"first 0", seen.mark)
    assert store.read_version(seen, 2, 3) == b"rst"
    made = store.replace(seen, b"second", "plan-1")
    assert (made.plan, store.read("a/0", 100).data) == ("plan-1", b"second")
    with pytest.raises(Changed):
        store.replace(seen, b"third", "plan-1")
    with pytest.raises(Changed):
        store.put_if_unchanged("a/0", b"third", "text/csv", seen.mark)
    assert [v.key for v in store.versions("a/") if v.latest] == ["a/0", "a/1", "a/2"]
    with pytest.raises(Absent):
        store.live_version("a")


def test_what_it_only_says_is_not_believed(store: GcsStore) -> None:
    """It says that an old generation was deleted, and keeps it; it answers for deleted objects with live ones."""
    put(store, "a/0", b"first")
    old = store.live_version("a/0")
    store.replace(old, b"second", "plan-1")
    store.delete_exactly(old)
    assert store.version("a/0", old.version_id).state is VersionState.NONCURRENT, "which is what the step's check asks"
    with pytest.raises(Absent):
        store.live_version("a/0")  # it took the live one instead: the step stops there
    put(store, "a/1", b"other")
    with pytest.raises(StoreError, match="NoJsonApi"):
        list(store.all_versions("a/"))
