"""Iceberg's own REST catalog server for tests: one process on loopback, its jars fetched once by the Ivy of Spark.

The newest release whose server is published as a jar; behind it stands Iceberg's JDBC catalog on a SQLite file.
"""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from executors.engine.version_profiles import installed_profile
from tests.servers import end, free_ports, own_java, retrieved, spark_jars

VERSION = "1.10.0"
ANSWERS_WITHIN = 120.0

_IVY = f"""\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tests" module="rest"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.iceberg" name="iceberg-open-api" rev="{VERSION}" conf="default->master" transitive="false">
      <artifact name="iceberg-open-api" type="jar" ext="jar" m:classifier="test-fixtures"/>
    </dependency>
    <dependency org="org.apache.iceberg" name="iceberg-core" rev="{VERSION}" conf="default->master,runtime,compile">
      <artifact name="iceberg-core" type="jar" ext="jar"/>
      <artifact name="iceberg-core" type="jar" ext="jar" m:classifier="tests"/>
    </dependency>
    <dependency org="org.eclipse.jetty" name="jetty-servlet" rev="11.0.26" conf="default->master,runtime,compile"/>
    <dependency org="org.xerial" name="sqlite-jdbc" rev="3.46.1.3" conf="default->master,runtime,compile"/>
  </dependencies>
</ivy-module>
"""

_S3A = (
    "*hadoop-aws*",
    "*aws-java-sdk-bundle*",
    "software.amazon*",
    "io.netty*",
    "org.reactivestreams*",
    "commons-codec*",
    "commons-logging*",
    "*httpcomponents*",
)
"""What S3A needs of the jars that a session has fetched, of either profile."""


def s3a_jars() -> list[Path]:
    """S3A's jars, which a Spark session that reaches S3 has fetched before."""
    fetched = Path.home() / installed_profile().ivy / "jars"
    return [path for name in _S3A for path in fetched.glob(f"{name}.jar")]


@dataclass(frozen=True)
class RestServer:
    """A running server. uri: for clients; warehouse: folder that its tables lie in, where they lie in one."""

    uri: str
    warehouse: Path


@contextmanager
def serving(
    folder: Path, warehouse: str | None = None, hadoop: Mapping[str, str] | None = None, jars: Sequence[Path] = ()
) -> Iterator[RestServer]:
    """A server whose database and warehouse lie in a folder, until the block ends.

    warehouse: another place for its tables, in a store; hadoop and jars: then settings and jars of the store's file
    system.
    """
    (port,) = free_ports(1)
    here = folder / "warehouse"
    hadoop_jars = [
        str(p) for name in ("hadoop-client-*", "commons-logging-*") for p in spark_jars().glob(f"{name}.jar")
    ]
    if hadoop is not None:
        properties = (f"<property><name>{k}</name><value>{v}</value></property>" for k, v in hadoop.items())
        (folder / "conf").mkdir()
        (folder / "conf" / "core-site.xml").write_text(f"<configuration>{''.join(properties)}</configuration>")
        hadoop_jars += [*map(str, jars), str(folder / "conf")]
    settings = {
        "CATALOG_CATALOG_NAME": "rest_backend",
        "CATALOG_REST_PORT": str(port),
        "CATALOG_URI": f"jdbc:sqlite:{folder / 'rest.db'}",
        "CATALOG_WAREHOUSE": warehouse or str(here),
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_JDBC_SCHEMA__VERSION": "V1",
    }
    small = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
    classes = ":".join([*hadoop_jars, f"{retrieved('iceberg-rest', VERSION, ivy=_IVY)}/*"])
    command = [own_java(), *small, "-cp", classes, "org.apache.iceberg.rest.RESTCatalogServer"]
    with (folder / "rest.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **settings})
    try:
        server = RestServer(f"http://127.0.0.1:{port}", here)
        _await(server, process)
        yield server
    finally:
        end(process)


def _await(server: RestServer, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + ANSWERS_WITHIN
    while True:
        assert process.poll() is None, "the server ended; see rest.log"
        assert time.monotonic() < until, "the server does not answer"
        try:
            with urllib.request.urlopen(f"{server.uri}/v1/config", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
