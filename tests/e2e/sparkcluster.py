"""A cluster of Spark's own on loopback: a master and two workers, whose executors are processes of their own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from executors.engine.spark_session import java_home
from tests.servers import end, free_ports, own_java, spark_jars

WITHIN = 60.0
WORKERS = ("work-1", "work-2")
"""Their folders."""


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A standalone cluster with two workers on loopback (https://spark.apache.org/docs/latest/spark-standalone.html)."""
    port, page = free_ports(2)
    address = f"spark://127.0.0.1:{port}"
    environment = os.environ | {"SPARK_HOME": str(spark_jars().parent), "SPARK_LOCAL_IP": "127.0.0.1"}
    # as Spark's own scripts set it for a worker, which asks for it when it starts an executor
    [library] = spark_jars().glob("scala-library-*.jar")
    environment["SPARK_SCALA_VERSION"] = ".".join(library.stem.rpartition("-")[2].split(".")[:2])
    environment["JAVA_HOME"] = java_home() or os.environ.get("JAVA_HOME", "")
    begin = [own_java(), "-Xmx256m", "-cp", f"{spark_jars()}/*"]
    port_and_page = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]
    small = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
    parts = [("master.Master", "master", port_and_page)]
    parts += [("worker.Worker", name, [*small, "--work-dir", str(folder / name), address]) for name in WORKERS]
    running: list[subprocess.Popen[bytes]] = []
    try:
        for program, name, words in parts:
            log = folder / f"{name}.log"
            with log.open("wb") as out:
                command = [*begin, f"org.apache.spark.deploy.{program}", *words]
                running.append(subprocess.Popen(command, stdout=out, stderr=out, env=environment, cwd=folder))
            _wait_for("started" if name.startswith("master") else "Successfully registered", log, running[-1])
        yield address
    finally:
        for process in reversed(running):
            end(process)


def _wait_for(text: str, log: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + WITHIN
    while text not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > until:
            raise AssertionError(log.read_text(errors="replace")[-2000:])
        time.sleep(0.1)


def cluster_conf(events: Path) -> dict[str, str]:
    """Settings of a session on such a cluster, which writes its event log into a folder."""
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "640m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
    }


def executors_worked(folder: Path, events: Path) -> bool:
    """Whether each worker of the cluster started an executor, and these searched bytes."""
    logged = "".join(log.read_text() for log in events.iterdir())
    started = [name for name in WORKERS if any((folder / name).glob("app-*/*/stderr"))]
    return started == list(WORKERS) and "pii-tracer: search the bytes of files" in logged
