"""A real Hive metastore for tests, one process on loopback: 2.3.9 out of Spark's own jars, or 3.1.3 alone.

What Spark lacks is fetched once by the Ivy that it brings. Its database is Derby's, in the process' memory.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pii_tracer.lake.catalogs.hive.client import Metastore
from pii_tracer.lake.catalogs.hive.security import OPEN, Security
from tests.hdfssupport import hadoop_jars
from tests.s3jars import s3a_jars
from tests.servers import end, free_ports, own_java, retrieved, spark_jars
from tests.storeservers import ACCESS, REGION, SECRET, Store

DISRUPTOR = "3.3.7"
STANDALONE = "3.1.3"
ANSWERS_WITHIN = 120.0

PARQUET = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
ORC = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
AVRO = "org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat"
TEXT = "org.apache.hadoop.mapred.TextInputFormat"
JSON_SERDE = "org.apache.hive.hcatalog.data.JsonSerDe"
COLUMNS: Mapping[str, str] = {"uid": "bigint", "name": "string"}
_DESCRIBED = frozenset({"bucketCols", "numBuckets", "skewedInfo", "storedAsSubDirectories"})

_SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "hive.metastore.warehouse.dir": "{folder}/warehouse",
    "hive.metastore.server.min.threads": "2",
    "hive.metastore.event.listeners": "",
    "datanucleus.connectionPoolingType": "NONE",
    "hive.in.test": "false",
}
# Hive's own classes are there for it to know formats by; nothing compiles expressions over partitions, or compacts
_WITHOUT_HIVE = {
    "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
    "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
}
_IVY = f"""\
<ivy-module version="2.0">
  <info organisation="tests" module="hive"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconfmapping="default->default">
    <dependency org="org.apache.hive" name="hive-standalone-metastore" rev="{STANDALONE}">
      <exclude org="org.apache.hadoop"/>
      <exclude org="org.slf4j"/>
      <exclude org="org.eclipse.jetty"/>
      <exclude org="org.mortbay.jetty"/>
      <exclude org="com.sun.jersey"/>
    </dependency>
    <dependency org="org.apache.hive" name="hive-exec" rev="{STANDALONE}" transitive="false"/>
    <dependency org="org.apache.derby" name="derby" rev="10.14.1.0"/>
    <dependency org="org.apache.logging.log4j" name="log4j-api" rev="2.17.1"/>
  </dependencies>
</ivy-module>
"""


class Asked(Metastore):
    """A connection, of which a block sees the client."""

    def __enter__(self) -> Any:
        self.ask("get_all_databases")
        return self._client


@dataclass(frozen=True)
class Hive:
    """A running metastore. uri: as estate files write it; folder: its own."""

    uri: str
    folder: Path
    security: Security = OPEN

    def client(self) -> Asked:
        """Its generated client, for a block."""
        return Asked(self.uri, self.security)

    @contextmanager
    def database(self, name: str, **more: Any) -> Iterator[None]:
        """A new database, which is gone with its tables when the block ends; files stay."""
        from hive_metastore.ttypes import Database

        with self.client() as client:
            client.create_database(Database(name=name, locationUri=(self.folder / f"{name}.db").as_uri(), **more))
        try:
            yield
        finally:
            with self.client() as client:
                client.drop_database(name, False, True)

    def table(
        self,
        name: str,
        location: Path | str | None,
        stored: str = PARQUET,
        *,
        serde: str = "s",
        options: Mapping[str, str] | None = None,
        kind: str = "EXTERNAL_TABLE",
        partitions: Mapping[str, Path | str | None] | None = None,
        columns: Mapping[str, str] = COLUMNS,
        **more: Any,
    ) -> None:
        """A new table `database.table`. partitions: of the column `day`, each with its place. Of `more`, what a storage
        descriptor has goes there, and the rest into the table."""
        from hive_metastore.ttypes import FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table

        database, _, table = name.partition(".")
        described = {key: more.pop(key) for key in list(more) if key in _DESCRIBED}
        fields = [FieldSchema(column, of, None) for column, of in columns.items()]
        info = SerDeInfo(name=None, serializationLib=serde, parameters=dict(options or {}))

        def storage(place: Path | str | None) -> Any:
            text = None if place is None else str(place)
            writer = stored.replace("InputFormat", "OutputFormat")
            return StorageDescriptor(fields, text, stored, writer, False, -1, info, [], [], {})

        made = Table(
            tableName=table,
            dbName=database,
            owner="etl",
            sd=storage(location),
            partitionKeys=[FieldSchema("day", "string", None)] if partitions is not None else [],
            parameters={**({"EXTERNAL": "TRUE"} if kind == "EXTERNAL_TABLE" else {}), **more.pop("parameters", {})},
            tableType=kind,
            **more,
        )
        for key, value in described.items():
            setattr(made.sd, key, value)
        with self.client() as client:
            client.create_table(made)
            for day, place in (partitions or {}).items():
                client.add_partition(Partition([day], database, table, 0, 0, storage(place), {}))


@dataclass(frozen=True)
class Secured:
    """What a metastore with Kerberos or TLS has beside the rest. files: of its configuration, by name; security: of its
    clients."""

    settings: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    java: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    security: Security = OPEN


def _spark_brings() -> str:
    disruptor = retrieved("disruptor", DISRUPTOR, dependency=("com.lmax", "disruptor", DISRUPTOR))
    return f"{disruptor}/*:{spark_jars()}/*"


def standalone_jars() -> Path:
    """The folder with the metastore's own jars, 3.1.3."""
    return retrieved("hive-standalone-metastore", STANDALONE, ivy=_IVY, shared=False)


def _standalone() -> str:
    """Hadoop's own jars before the metastore's."""
    return f"{hadoop_jars()}/*:{standalone_jars()}/*"


def in_s3(store: Store) -> dict[str, str]:
    """How a metastore, or Spark, reaches a server of S3 through S3A, in each of the schemes that people write."""
    system = {f"fs.{scheme}.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem" for scheme in ("s3", "s3a", "s3n")}
    return {
        **system,
        "fs.s3a.endpoint": store.endpoint_url,
        "fs.s3a.endpoint.region": REGION,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.access.key": ACCESS,
        "fs.s3a.secret.key": SECRET,
        "fs.s3a.change.detection.mode": "none",
        "fs.s3a.attempts.maximum": "2",
    }


@contextmanager
def serving(
    folder: Path, version: str = "2.3.9", secured: Secured | None = None, store: Store | None = None
) -> Iterator[Hive]:
    """A metastore that keeps its tables in memory, until the block ends; its log goes into the folder. store: in which
    it can have tables, too."""
    secured = secured or Secured()
    reached = in_s3(store) if store else {}
    (port,) = free_ports(1)
    alone = version == STANDALONE
    classes = ":".join([_standalone() if alone else _spark_brings(), *(map(str, s3a_jars()) if store else ())])
    conf = folder / "conf"
    conf.mkdir()
    properties = (
        f"<property><name>{key}</name><value>{value.format(folder=folder)}</value></property>"
        for key, value in (_SETTINGS | (_WITHOUT_HIVE if alone else {}) | secured.settings | reached).items()
    )
    (conf / "hive-site.xml").write_text(f"<configuration>{''.join(properties)}</configuration>", encoding="utf-8")
    for name, text in secured.files.items():
        (conf / name).write_text(text, encoding="utf-8")
    small = ("-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
    command = [
        own_java(),
        *small,
        *secured.java,
        f"-Djava.io.tmpdir={folder}",
        f"-Dderby.stream.error.file={folder / 'derby.log'}",
        "-cp",
        f"{conf}:{classes}",
        "org.apache.hadoop.hive.metastore.HiveMetaStore",
        "-p",
        str(port),
    ]
    with (folder / "hive.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
    try:
        server = Hive(f"thrift://{secured.host}:{port}", folder, secured.security)
        _await(server, process)
        yield server
    finally:
        end(process)


def _await(server: Hive, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + ANSWERS_WITHIN
    while True:
        assert process.poll() is None, "the metastore ended; see hive.log"
        assert time.monotonic() < until, "the metastore does not answer"
        try:
            with server.client():
                return
        except Exception:  # of several families, until it listens
            time.sleep(0.2)
