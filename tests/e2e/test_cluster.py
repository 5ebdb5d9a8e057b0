"""The whole path on a cluster: a master and a worker of Spark's own, whose executor is another process than the driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from executors.spark import java_home
from pii_tracer.journal import Kind
from pii_tracer.review.planfile import load_plan
from tests.e2e import clinic
from tests.e2e.processes import history, run_until
from tests.e2e.test_kill import others, rows
from tests.kafkasupport import free_ports
from tests.leaks import leaks
from tests.servers import end, own_java, spark_jars

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

WITHIN = 60.0


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A standalone cluster with one worker on loopback (https://spark.apache.org/docs/latest/spark-standalone.html)."""
    port, page = free_ports(2)
    address = f"spark://127.0.0.1:{port}"
    environment = os.environ | {"SPARK_HOME": str(spark_jars().parent), "SPARK_LOCAL_IP": "127.0.0.1"}
    # as Spark's own scripts set it for a worker, which asks for it when it starts an executor
    [library] = spark_jars().glob("scala-library-*.jar")
    environment["SPARK_SCALA_VERSION"] = ".".join(library.stem.rpartition("-")[2].split(".")[:2])
    environment["JAVA_HOME"] = java_home() or os.environ.get("JAVA_HOME", "")
    begin = [own_java(), "-Xmx256m", "-cp", f"{spark_jars()}/*"]
    parts = {
        "master.Master": ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)],
        "worker.Worker": [
            "--host",
            "127.0.0.1",
            "--cores",
            "1",
            "--memory",
            "1g",
            "--webui-port",
            "0",
            "--work-dir",
            str(folder / "work"),
            address,
        ],
    }
    running: list[subprocess.Popen[bytes]] = []
    try:
        for name, words in parts.items():
            log = folder / f"{name}.log"
            with log.open("wb") as out:
                command = [*begin, f"org.apache.spark.deploy.{name}", *words]
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


def test_erased_by_a_cluster(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "clinic"
    base.mkdir()
    clinic.build(base, spark)
    before = rows(base)
    (tmp_path / "cluster").mkdir()
    (tmp_path / "events").mkdir()
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    with cluster(tmp_path / "cluster") as address:
        estate = yaml.safe_load((base / "pii-tracer.yaml").read_text())
        conf = estate["spark"]["conf"] | {"spark.executor.memory": "640m", "spark.driver.host": "127.0.0.1"}
        conf |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": (tmp_path / "events").as_uri()}
        estate["spark"] |= {"master": address, "conf": conf}
        (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
        words = [*clinic.approve(base), "--format", "json"]
        done = run_until(words, tmp_path / "apply")
    assert done.code == 0, done
    told = json.loads(done.stdout)
    assert (told["state"], told["copies_erased"], told["copies_total"]) == ("complete", 7, 7)
    assert (told["residue"], told["unverified"], told["bystander_rows_lost"]) == ([], [], 0)
    assert others(rows(base)) == others(before)
    journal = base / "state" / "runs" / load_plan(base / "clinic.plan.json").plan.plan_id / "journal.jsonl"
    assert any(record.kind is Kind.STEP_RESULT for record in history(journal))
    work = list((tmp_path / "cluster" / "work").glob("app-*/*/stderr"))
    assert work, "an executor of the cluster did the work"
    events = "".join(log.read_text() for log in (tmp_path / "events").iterdir())
    assert "pii-tracer: search the bytes of files" in events
    assert "search no files" not in done.stderr
    assert leaks(clinic.PERSON, [tmp_path / "cluster", tmp_path / "events", base / "state"]) == []
