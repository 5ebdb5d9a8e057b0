"""A real HDFS as banks run it, for tests: Kerberos, block tokens, and TLS alone. One process on loopback."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pii_tracer.lake.stores.hdfs.name_nodes import NameNodes
from pii_tracer.lake.stores.hdfs.security import Security
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from tests.certificates import HOST, PASSWORD, Authority
from tests.hdfssupport import ANSWERS_WITHIN, Hdfs, hadoop_jars
from tests.kerberossupport import Kdc, hadoop_xml, java_options, principal
from tests.servers import PROMPT_HDFS, end, free_ports, own_java


@dataclass(frozen=True)
class SecureHdfs(Hdfs):
    """A running cluster. conf: the folder of its clients' configuration."""

    conf: Path
    kdc: Kdc
    authority: Authority

    @property
    def declared(self) -> dict[str, Any]:
        return {
            "namenode": self.uri,
            "webhdfs": self.webhdfs,
            "kerberos": principal("pii"),
            "ca": str(self.authority.ca),
        }

    def client(self, user: str = "pii") -> WebHdfs:
        return WebHdfs(self.uri, NameNodes((self.webhdfs,)), "", Security(principal(user), str(self.authority.ca)))

    def ask(self, path: str, operation: str, method: str = "PUT", **query: str) -> dict[str, object]:
        client = self.client()
        answer = client._asked("a test asks", path, method, client._url(path, operation, **query))
        return dict(json.loads(answer or b"{}"))


def _xml(path: Path, settings: Mapping[str, str]) -> None:
    path.write_text(hadoop_xml(settings), encoding="utf-8")


def configured(folder: Path, uri: str, https: int, kdc: Kdc, authority: Authority) -> None:
    """The files that Hadoop reads, in a folder."""
    core = {
        "fs.defaultFS": uri,
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "false",
        "hadoop.user.group.static.mapping.overrides": "pii=supergroup;ann=staff;hdfs=supergroup",
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.simple.anonymous.allowed": "false",
        "hadoop.http.authentication.kerberos.principal": principal("HTTP"),
        "hadoop.http.authentication.kerberos.keytab": str(kdc.keytab),
    }
    keytab = str(kdc.keytab)
    hdfs = {
        "dfs.namenode.kerberos.principal": principal("hdfs"),
        "dfs.namenode.keytab.file": keytab,
        "dfs.datanode.kerberos.principal": principal("hdfs"),
        "dfs.datanode.keytab.file": keytab,
        "dfs.web.authentication.kerberos.principal": principal("HTTP"),
        "dfs.web.authentication.kerberos.keytab": keytab,
        "dfs.block.access.token.enable": "true",
        "dfs.http.policy": "HTTPS_ONLY",
        "dfs.namenode.https-address": f"{HOST}:{https}",
        "dfs.datanode.https.address": f"{HOST}:0",
        "dfs.datanode.hostname": HOST,
        "dfs.data.transfer.protection": "authentication",
        "dfs.client.use.datanode.hostname": "true",
        **PROMPT_HDFS,
    }
    store = {"keystore": authority.store, "truststore": authority.trust}
    for side in ("server", "client"):
        ssl = {f"ssl.{side}.{name}.location": str(path) for name, path in store.items()}
        ssl |= {f"ssl.{side}.{name}.{word}": PASSWORD for name in store for word in ("password", "keypassword")}
        _xml(folder / f"ssl-{side}.xml", ssl | {f"ssl.{side}.{name}.type": "pkcs12" for name in store})
    _xml(folder / "core-site.xml", core)
    _xml(folder / "hdfs-site.xml", hdfs)


@contextmanager
def secure_cluster(folder: Path, kdc: Kdc, authority: Authority) -> Iterator[SecureHdfs]:
    """A cluster with its files in a folder."""
    port, https = free_ports(2)
    uri, conf, told = f"hdfs://{HOST}:{port}", folder / "conf", folder / "details"
    conf.mkdir()
    configured(conf, uri, https, kdc, authority)
    command = [
        own_java(),
        "-Xmx384m",
        "-XX:TieredStopAtLevel=1",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        *java_options(kdc),
        "-cp",
        f"{conf}:{hadoop_jars()}/*",
        "org.apache.hadoop.mapreduce.MiniHadoopClusterManager",
        *("-nomr", "-format", "-datanodes", "1", "-nnport", str(port), "-writeDetails", str(told)),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
    try:
        until = time.monotonic() + ANSWERS_WITHIN
        while not told.exists():
            if time.monotonic() > until or process.poll() is not None:
                raise RuntimeError(f"HDFS does not answer: {(folder / 'log').read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        yield SecureHdfs(uri, f"https://{HOST}:{https}", conf, kdc, authority)
    finally:
        end(process)
