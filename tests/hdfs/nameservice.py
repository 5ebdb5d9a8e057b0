"""A real HDFS with high availability: two NameNodes, of which one is active, and a DataNode, each a process."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pii_tracer.lake.stores.hdfs.name_nodes import NameNodes
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from tests.hdfssupport import ANSWERS_WITHIN, SUPERUSER, Hdfs, hadoop_jars, java
from tests.servers import PROMPT_HDFS, end, free_ports

SERVICE = "testns"
BOTH = ("nn1", "nn2")
_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_ADMIN = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"


@dataclass(frozen=True)
class Nameservice(Hdfs):
    """base: the folder of the whole cluster. http, rpc: ports, by NameNode. running: processes of the NameNodes.

    states: what each was made.
    """

    base: Path
    http: dict[str, int]
    rpc: dict[str, int]
    running: dict[str, subprocess.Popen[bytes]]
    states: dict[str, str]

    @property
    def active(self) -> str:
        return next(name for name in BOTH if self.states[name] == "active")

    @property
    def active_address(self) -> str:
        return f"http://127.0.0.1:{self.http[self.active]}"

    @property
    def addresses(self) -> list[str]:
        return [f"http://127.0.0.1:{self.http[name]}" for name in BOTH]

    @property
    def block_pool(self) -> str:
        version = (self.base / "nn1" / "current" / "VERSION").read_text()
        return next(line.partition("=")[2] for line in version.splitlines() if line.startswith("blockpoolID"))

    @property
    def declared(self) -> dict[str, Any]:
        rpc = [f"127.0.0.1:{self.rpc[name]}" for name in BOTH]
        more = {"webhdfs": self.addresses, "rpc": rpc, "block_pool": self.block_pool}
        return {"namenode": self.uri, "user": SUPERUSER, **more}

    def client(self, user: str = SUPERUSER) -> WebHdfs:
        return WebHdfs(self.uri, NameNodes(tuple(self.addresses), self.block_pool), user)

    def at(self, name: str) -> WebHdfs:
        """One NameNode alone."""
        return WebHdfs(self.uri, NameNodes((f"http://127.0.0.1:{self.http[name]}",)), SUPERUSER)

    def fail_over(self) -> None:
        """The standby becomes active; the active one goes on as a standby, if it lives."""
        old = self.active
        new = next(name for name in BOTH if name != old)
        if self.running[old].poll() is None:
            self._admin("-transitionToStandby", old)
            self._admin("-transitionToActive", new)
        else:
            self._admin("-transitionToActive", "--forceactive", new)
        self.states.update({old: "standby", new: "active"})

    def kill_active(self) -> None:
        """It ends without a word."""
        self.running[self.active].kill()
        self.running[self.active].wait()

    def start(self, name: str) -> None:
        """A NameNode that was killed is there again, as a standby."""
        self.running[name] = _started(self.base, name, _NAME_NODE)
        _await(self.running[name], self.rpc[name], self.base / f"{name}.log")

    def _admin(self, *words: str) -> None:
        subprocess.run([*_java(self.base), _ADMIN, *words], check=True, timeout=ANSWERS_WITHIN, capture_output=True)


@contextmanager
def nameservice(base: Path) -> Iterator[Nameservice]:
    """A cluster with its files in a folder; `nn1` is active."""
    ports = free_ports(4)
    http, rpc = dict(zip(BOTH, ports[:2], strict=True)), dict(zip(BOTH, ports[2:], strict=True))
    _configured(base, http, rpc)
    _run(base, _NAME_NODE, "-Ddfs.ha.namenode.id=nn1", "-format", "-nonInteractive")
    shutil.copytree(base / "nn1", base / "nn2")
    running = {name: _started(base, name, _NAME_NODE) for name in BOTH}
    data_node = _started(base, "dn", _DATA_NODE)
    try:
        for name in BOTH:
            _await(running[name], rpc[name], base / f"{name}.log")
        found = Nameservice(f"hdfs://{SERVICE}", "", base, http, rpc, running, dict.fromkeys(BOTH, "standby"))
        found._admin("-transitionToActive", "nn1")
        found.states["nn1"] = "active"
        until = time.monotonic() + ANSWERS_WITHIN
        while True:  # until the DataNode is known
            try:
                found.put("/known", b"x")
                break
            except Exception:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
        yield found
    finally:
        for process in (*running.values(), data_node):
            end(process)


def _java(base: Path) -> list[str]:
    return java(f"{base / 'conf'}{os.pathsep}{hadoop_jars()}/*", "160m")


def _run(base: Path, *words: str) -> None:
    subprocess.run([*_java(base), *words], check=True, timeout=ANSWERS_WITHIN, capture_output=True)


def _started(base: Path, name: str, program: str) -> subprocess.Popen[bytes]:
    words = [f"-Ddfs.ha.namenode.id={name}"] if name in BOTH else []
    command = [*_java(base), program, *words]
    with (base / f"{name}.log").open("ab") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=base)


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + ANSWERS_WITHIN
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > until or process.poll() is not None:
            raise RuntimeError(f"a NameNode does not answer: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)


def _configured(base: Path, http: dict[str, int], rpc: dict[str, int]) -> None:
    settings = {
        "fs.defaultFS": f"hdfs://{SERVICE}",
        "dfs.nameservices": SERVICE,
        f"dfs.ha.namenodes.{SERVICE}": ",".join(BOTH),
        f"dfs.client.failover.proxy.provider.{SERVICE}": (
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        ),
        "dfs.namenode.shared.edits.dir": f"file://{base / 'edits'}",
        "dfs.ha.automatic-failover.enabled": "false",
        "dfs.ha.fencing.methods": "shell(/bin/true)",
        "dfs.ha.tail-edits.period": "1s",
        "dfs.namenode.safemode.extension": "0",
        "dfs.replication": "1",
        **PROMPT_HDFS,
        "dfs.datanode.data.dir": f"file://{base / 'dn'}",
        **{f"dfs.datanode.{what}address": "127.0.0.1:0" for what in ("", "http.", "ipc.")},
    }
    for name in BOTH:
        settings |= {
            f"dfs.namenode.rpc-address.{SERVICE}.{name}": f"127.0.0.1:{rpc[name]}",
            f"dfs.namenode.http-address.{SERVICE}.{name}": f"127.0.0.1:{http[name]}",
            f"dfs.namenode.name.dir.{SERVICE}.{name}": f"file://{base / name}",
        }
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
    text = f"<configuration>{''.join(lines)}</configuration>"
    (base / "conf").mkdir()
    for file in ("core-site.xml", "hdfs-site.xml"):
        (base / "conf" / file).write_text(text)
