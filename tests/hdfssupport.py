"""A real HDFS for tests: a NameNode and a DataNode in one process on loopback, its jars fetched once by Spark's Ivy."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest

from pii_tracer.lake.stores.hdfs.name_nodes import NameNodes
from pii_tracer.lake.stores.hdfs.store import HdfsStore
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from tests.servers import PROMPT_HDFS, end, free_ports, own_java, retrieved

VERSION = "3.3.4"
SUPERUSER = "lake"
"""Whoever starts a NameNode is its superuser, under this name here."""
ANSWERS_WITHIN = 240.0

_IVY = f"""\
<ivy-module version="2.0">
  <info organisation="tests" module="hdfs"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconfmapping="default->default">
    <dependency org="org.apache.hadoop" name="hadoop-minicluster" rev="{VERSION}"/>
    <dependency org="org.mockito" name="mockito-core" rev="2.28.2"/>
    <dependency org="junit" name="junit" rev="4.13.2"/>
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True)
class Hdfs:
    """A running cluster. uri: of its NameNode; webhdfs: the address of its WebHDFS."""

    uri: str
    webhdfs: str

    @property
    def declared(self) -> dict[str, Any]:
        """As an estate file declares it."""
        return {"namenode": self.uri, "webhdfs": self.webhdfs, "user": SUPERUSER}

    @property
    def active_address(self) -> str:
        """Of the NameNode that answers."""
        return self.webhdfs

    def client(self, user: str = SUPERUSER) -> WebHdfs:
        return WebHdfs(self.uri, NameNodes((self.webhdfs,)), user)

    def store(self, folder: str, user: str = SUPERUSER) -> HdfsStore:
        return HdfsStore(self.client(user), folder)

    def put(self, path: str, data: bytes) -> None:
        """A new file."""
        self.client().create(path, data)

    def put_unchecked(self, path: str, file: Path) -> None:
        """A file of this machine, without checksums, as Delta writes its log."""
        with TemporaryDirectory() as settings:  # the shell insists on such a file
            (Path(settings) / "core-site.xml").write_text("<configuration/>")
            shell = java(f"{settings}:{hadoop_jars()}/*", "128m")
            put = ["org.apache.hadoop.fs.FsShell", "-Ddfs.checksum.type=NULL", "-put", "-f", str(file), self.uri + path]
            subprocess.run([*shell, *put], check=True, capture_output=True)

    def ask(self, path: str, operation: str, method: str = "PUT", **query: str) -> dict[str, object]:
        """One operation of the NameNode's, its answer as JSON."""
        asked = urlencode({"op": operation, "user.name": SUPERUSER, **query})
        request = urllib.request.Request(f"{self.active_address}/webhdfs/v1{quote(path)}?{asked}", method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return dict(json.loads(answer.read() or b"{}"))

    def folder(self) -> str:
        """The path of a new, empty folder."""
        path = f"/t{uuid.uuid4().hex[:12]}"
        self.ask(path, "MKDIRS")
        return path

    @contextmanager
    def writing(self, path: str, data: bytes) -> Iterator[None]:
        """A file whose writer has begun and not ended."""
        place = urlsplit(str(self.ask(path, "CREATE", noredirect="true", overwrite="false")["Location"]))
        connection = HTTPConnection(str(place.hostname), place.port, timeout=60)
        try:
            connection.putrequest("PUT", f"{place.path}?{place.query}")
            connection.putheader("Content-Type", "application/octet-stream")
            connection.putheader("Content-Length", str(len(data) + 1))
            connection.endheaders(data)
            until = time.monotonic() + 60
            while not any(
                entry.name == path.rpartition("/")[2] for entry in self.client().entries(path.rpartition("/")[0])
            ):
                assert time.monotonic() < until
                time.sleep(0.05)
            yield
        finally:
            connection.close()


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """One cluster for all tests of a process. Somebody's trash has a file, as that of other tests may have."""
    with running(tmp_path_factory.mktemp("hdfs")) as cluster:
        cluster.put("/user/someone/.Trash/Current/old.csv", b"mail\nsomeone.old@mail.example\n")
        yield cluster


def hadoop_jars() -> Path:
    """The folder with Hadoop's own jars."""
    return retrieved("hadoop-minicluster", VERSION, ivy=_IVY, shared=False)


def java(classes: str, memory: str) -> list[str]:
    """A command that runs a program of Hadoop's as the superuser, without the program."""
    return [
        own_java(),
        f"-Xmx{memory}",
        "-XX:TieredStopAtLevel=1",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        f"-Duser.name={SUPERUSER}",
        f"-DHADOOP_USER_NAME={SUPERUSER}",
        "-cp",
        classes,
    ]


@contextmanager
def running(folder: Path, datanodes: int = 1, settings: Mapping[str, str] = {}) -> Iterator[Hdfs]:
    """A cluster with its files in a folder."""
    port, http = free_ports(2)
    told = folder / "details"
    command = [
        *java(f"{hadoop_jars()}/*", "384m"),
        "org.apache.hadoop.mapreduce.MiniHadoopClusterManager",
        *("-nomr", "-format", "-datanodes", str(datanodes)),
        *(word for name, value in {**PROMPT_HDFS, **settings}.items() for word in ("-D", f"{name}={value}")),
        *("-nnport", str(port), "-nnhttpport", str(http), "-writeDetails", str(told)),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
    try:
        until = time.monotonic() + ANSWERS_WITHIN
        while not told.exists():
            if time.monotonic() > until or process.poll() is not None:
                raise RuntimeError(f"HDFS does not answer: {(folder / 'log').read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        yield Hdfs(f"hdfs://127.0.0.1:{port}", f"http://127.0.0.1:{http}")
    finally:
        end(process)
