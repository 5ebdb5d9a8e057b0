"""Real S3 servers for tests, where they have been built (`make stores`): versitygw for versions, MinIO for replication.

Where they have not, the strict stand-in serves the same tests; `Store.kind` says which it was. They bind to loopback,
keep their files in a temporary folder and are ended with the fixture that started them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
import botocore.loaders
import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.lake.stores.s3.object_versions import S3Client
from sample_lineage import s3_standin
from tests.servers import free_ports

ACCESS, SECRET = "storetest", "storetest-secret"
REGION = "us-east-1"
STANDIN = "stand-in"
_ANSWERS_WITHIN = 120.0
_LOADER = botocore.loaders.create_loader()


@dataclass(frozen=True)
class Store:
    """A server that answers. kind: `versitygw`, `minio` or `stand-in`."""

    kind: str
    endpoint_url: str

    def client(self) -> S3Client:
        """A client with the server's own credentials."""
        config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 5}, max_pool_connections=20)
        return boto3.client(
            "s3",
            region_name=REGION,
            endpoint_url=self.endpoint_url,
            aws_access_key_id=ACCESS,
            aws_secret_access_key=SECRET,
            config=config,
        )


def credentials() -> dict[str, str]:
    """What clients of all these servers use; it opens nothing else."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": "",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@pytest.fixture(autouse=True)
def signed(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every test of a module that imports it: these servers' credentials, and no others."""
    for name, value in credentials().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    # a session keeps the credentials that it found first; what it reads of AWS' services is the same for all
    session = botocore.session.Session()
    session.register_component("data_loader", _LOADER)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.session.Session(botocore_session=session))


def program(name: str) -> str | None:
    """A server's program: from `PII_TRACER_STORES`, from `.venv/stores`, or from the path."""
    folders = [os.environ.get("PII_TRACER_STORES", ""), str(Path(__file__).parents[1] / ".venv" / "stores")]
    return shutil.which(name, path=os.pathsep.join(f for f in folders if f)) or shutil.which(name)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A server with versions for all tests of a module that imports it."""
    with versioned(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(scope="module")
def strict_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The strict stand-in for all tests of a module that imports it: on versitygw, which keeps folders as such, S3A
    tries for ever to delete their markers."""
    with standin(tmp_path_factory.mktemp("store")) as running:
        yield running


@contextmanager
def versioned(folder: Path) -> Iterator[Store]:
    """A server that keeps versions: versitygw, or the stand-in."""
    found = program("versitygw")
    if found is None:
        with standin(folder) as store:
            yield store
        return
    root, versions = folder / "objects", folder / "versions"
    root.mkdir(parents=True)
    versions.mkdir()
    [port] = free_ports(1)
    command = [found, "--port", f"127.0.0.1:{port}", "posix", "--versioning-dir", str(versions), str(root)]
    environment = {"ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET}
    with _running(command, environment, Store("versitygw", f"http://127.0.0.1:{port}"), folder) as store:
        yield store


@contextmanager
def minio(folder: Path) -> Iterator[Store]:
    """A MinIO server.

    Raises:
        RuntimeError: it has not been built.
    """
    found = program("minio")
    if found is None:
        raise RuntimeError("MinIO has not been built; run `make stores`")
    (folder / "drive").mkdir(parents=True)
    [port] = free_ports(1)
    command = [found, "server", "--quiet", "--address", f"127.0.0.1:{port}", str(folder / "drive")]
    environment = {
        "MINIO_ROOT_USER": ACCESS,
        "MINIO_ROOT_PASSWORD": SECRET,
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
    }
    with _running(command, environment, Store("minio", f"http://127.0.0.1:{port}"), folder) as store:
        yield store


@contextmanager
def standin(folder: Path) -> Iterator[Store]:
    """The strict stand-in."""
    running = s3_standin.start(folder, max_seconds=1800, restore_seconds=0.4)
    try:
        yield Store(STANDIN, running.endpoint_url)
    finally:
        s3_standin.stop(running)


@contextmanager
def _running(command: list[str], environment: dict[str, str], store: Store, folder: Path) -> Iterator[Store]:
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder
        )
    try:
        _wait(store, process, folder / "server.log")
        yield store
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(store: Store, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _ANSWERS_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        try:
            store.client().list_buckets()
            return
        except (ClientError, BotoCoreError):
            time.sleep(0.1)
    raise RuntimeError(f"{store.kind} does not answer: {log.read_text(errors='replace')[-2000:]}")
