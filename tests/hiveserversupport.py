"""A real HiveServer2 3.1.3 for tests, with its metastore, compactor and cleaner: two processes on loopback, over a real
HDFS.

Hive 3.1 was made for Java 8. On newer ones its classes need a class loader of the old kind, which Hadoop's own `RunJar`
makes. One class reads private fields of `java.util.ArrayList$SubList`, which Java 9 renamed; the names are changed in it.
"""

from __future__ import annotations

import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hive_metastore.ttypes import DataOperationType, LockComponent, LockLevel, LockRequest, LockType

from pii_tracer.lake.catalogs.hive.client import Metastore
from tests.hdfssupport import SUPERUSER, Hdfs, hadoop_jars, java
from tests.hivesupport import STANDALONE, standalone_jars
from tests.kafkasupport import free_ports
from tests.servers import end, retrieved

ANSWERS_WITHIN = 240.0
_PACKAGES = (
    "lang",
    "util",
    "net",
    "util.concurrent",
    "util.concurrent.atomic",
    "nio",
    "util.regex",
    "io",
    "time",
    "text",
)
_SUBLIST = "org/apache/hadoop/hive/ql/exec/SerializationUtilities$ArrayListSubListSerializer.class"
_RENAMED = {b"parentOffset": b"offset", b"parent": b"root"}
_HADOOPS_OWN = ("guava-", "log4j-slf4j-", "log4j-1.2-", "slf4j-api-")
"""Jars of which Hadoop's are there already, and others would not go with them."""

_LONE = (
    ("org.apache.hive", "hive-service", STANDALONE),
    ("org.apache.hive", "hive-service-rpc", STANDALONE),
    ("org.apache.hive", "hive-common", STANDALONE),
    ("org.apache.hive", "hive-serde", STANDALONE),
    ("org.apache.hive", "hive-llap-server", STANDALONE),
    ("org.apache.hive", "hive-llap-client", STANDALONE),
    ("org.apache.hive", "hive-llap-common", STANDALONE),
    ("org.apache.calcite", "calcite-core", "1.16.0"),
    ("org.apache.calcite", "calcite-linq4j", "1.16.0"),
    ("org.apache.calcite", "calcite-druid", "1.16.0"),
    ("org.apache.calcite.avatica", "avatica", "1.11.0"),
    ("net.hydromatic", "aggdesigner-algorithm", "6.0"),
    ("com.esri.geometry", "esri-geometry-api", "2.0.0"),
    ("com.yahoo.datasketches", "sketches-core", "0.9.0"),
    ("com.yahoo.datasketches", "memory", "0.9.0"),
    ("org.antlr", "ST4", "4.0.4"),
    ("net.sf.supercsv", "super-csv", "2.2.0"),
    ("org.codehaus.janino", "janino", "2.7.6"),
    ("org.codehaus.janino", "commons-compiler", "2.7.6"),
    ("com.lmax", "disruptor", "3.3.7"),
)
_IVY = """\
<ivy-module version="2.0">
  <info organisation="tests" module="hiveserver2"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconfmapping="default->default">{}</dependencies>
</ivy-module>
"""
_SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    # some of its methods leave a transaction open, which a pool ends
    "datanucleus.connectionPoolingType": "dbcp",
    "hive.metastore.schema.verification": "false",
    "hive.metastore.server.min.threads": "2",
    "hive.metastore.event.db.notification.api.auth": "false",
    # makes the tables of transactions, which no schema tool of the jars does
    "hive.in.test": "true",
    "metastore.client.capability.check": "false",
    "hive.support.concurrency": "true",
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    # with it the cleaner starts; by itself it begins no compaction within the time of a test
    "hive.compactor.initiator.on": "true",
    "hive.compactor.worker.threads": "1",
    "hive.compactor.cleaner.run.interval": "500ms",
    "hive.execution.engine": "mr",
    "mapreduce.framework.name": "local",
    "hive.exec.dynamic.partition.mode": "nonstrict",
    "hive.server2.thrift.bind.host": "127.0.0.1",
    "hive.server2.webui.port": "0",
    "hive.server2.enable.doAs": "false",
    "hive.server2.materializedviews.registry.impl": "DUMMY",
    "hive.notification.event.poll.interval": "-1s",
}
_FOLDERS = {
    "hive.exec.local.scratchdir": "local",
    "hive.querylog.location": "queries",
    "hive.server2.logging.operation.log.location": "operations",
    "hadoop.tmp.dir": "hadoop",
}


@dataclass(frozen=True)
class HiveServer:
    """uri: of its metastore; port: of HiveServer2; scratch: a folder in HDFS for keys. folder: with its logs."""

    hdfs: Hdfs
    uri: str
    port: int
    scratch: str
    folder: Path

    @property
    def declared(self) -> dict[str, Any]:
        """The catalog, as an estate file declares it."""
        server = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": SUPERUSER,
            "scratch": f"{self.hdfs.uri}{self.scratch}",
        }
        return {"type": "hive", "uri": self.uri, "hiveserver2": server}

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Statements in one session; the rows of the last one."""
        from impala.dbapi import connect

        given = {"host": "127.0.0.1", "port": self.port, "user": SUPERUSER, "password": "none"}
        connection = connect(auth_mechanism="PLAIN", **given)
        try:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    @contextmanager
    def reading(self, database: str, table: str) -> Iterator[None]:
        """Somebody reads a table, as a long SELECT does: a transaction with a shared lock."""
        from hive_metastore.ttypes import AbortTxnRequest, OpenTxnRequest

        with Metastore(self.uri) as store:
            (txn,) = store.ask("open_txns", OpenTxnRequest(1, SUPERUSER, "localhost")).txn_ids
            part = LockComponent(
                LockType.SHARED_READ, LockLevel.TABLE, database, table, operationType=DataOperationType.SELECT
            )
            store.ask("lock", LockRequest([part], txnid=txn, user=SUPERUSER, hostname="localhost"))
            try:
                yield
            finally:
                store.ask("abort_txn", AbortTxnRequest(txn))


@contextmanager
def hive_serving(hdfs: Hdfs, folder: Path) -> Iterator[HiveServer]:
    """Both processes, until the block ends. Tables are kept in memory, their files in HDFS."""
    metastore, port = free_ports(2)
    root, scratch = hdfs.folder(), hdfs.folder()
    hdfs.ask(scratch, "SETPERMISSION", permission="770")
    settings = _SETTINGS | {key: str(folder / name) for key, name in _FOLDERS.items()}
    settings |= {"fs.defaultFS": hdfs.uri, "hive.metastore.warehouse.dir": f"{hdfs.uri}{root}/warehouse"}
    settings |= {"hive.exec.scratchdir": f"{hdfs.uri}{root}/scratch", "hive.server2.thrift.port": str(port)}
    settings |= {"hive.metastore.uris": f"thrift://127.0.0.1:{metastore}"}
    conf = folder / "conf"
    conf.mkdir()
    text = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())
    (conf / "hive-site.xml").write_text(f"<configuration>{text}</configuration>", encoding="utf-8")
    server = HiveServer(hdfs, f"thrift://127.0.0.1:{metastore}", port, scratch, folder)
    jar = _jar(folder)
    with ExitStack() as stack:
        _run(stack, folder, jar, "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(metastore))
        _await(lambda: Metastore(server.uri).ask("get_all_databases"))
        _run(stack, folder, jar, "org.apache.hive.service.server.HiveServer2")
        _await(lambda: server.run("SELECT 1"))
        yield server


def _jar(folder: Path) -> Path:
    """A jar that names the others, with the one class that is changed."""
    ivy = "".join(f'<dependency org="{o}" name="{n}" rev="{r}" transitive="false"/>' for o, n, r in _LONE)
    own = retrieved("hiveserver2", STANDALONE, ivy=_IVY.format(ivy), shared=False)
    jars = sorted([*standalone_jars().glob("*.jar"), *own.glob("*.jar")])
    named = [jar for jar in jars if not jar.name.startswith(_HADOOPS_OWN)]
    rest = "Class-Path: " + " ".join(jar.as_uri() for jar in named)
    lines = [rest[:70], *(" " + rest[at : at + 69] for at in range(70, len(rest), 69))]
    with zipfile.ZipFile(next(jar for jar in named if jar.name.startswith("hive-exec-"))) as brought:
        changed = brought.read(_SUBLIST)
    for old, new in _RENAMED.items():  # a text of a class is a 1, its length, and itself
        changed = changed.replace(_text(old), _text(new))
    made = folder / "hive.jar"
    with zipfile.ZipFile(made, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n" + "\n".join(lines) + "\n\n")
        jar.writestr(_SUBLIST, changed)
    return made


def _text(name: bytes) -> bytes:
    return b"\x01" + len(name).to_bytes(2, "big") + name


def _run(stack: ExitStack, folder: Path, jar: Path, program: str, *words: str) -> None:
    command = java(f"{folder / 'conf'}:{hadoop_jars()}/*", "512m")
    opened = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _PACKAGES]
    command[1:1] = [
        *opened,
        f"-Djava.io.tmpdir={folder}",
        f"-Dderby.stream.error.file={folder / 'derby.log'}",
        "-XX:+UseSerialGC",
    ]
    run = [*command, "org.apache.hadoop.util.RunJar", str(jar), program, *words]
    with (folder / f"{program.rpartition('.')[2]}.log").open("wb") as log:
        process = subprocess.Popen(run, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
    stack.callback(end, process)


def _await(ask: Any) -> None:
    until = time.monotonic() + ANSWERS_WITHIN
    while True:
        with suppress(Exception):  # of several families, until it listens
            ask()
            return
        if time.monotonic() > until:
            raise RuntimeError("Hive does not answer; see its logs")
        time.sleep(0.3)
