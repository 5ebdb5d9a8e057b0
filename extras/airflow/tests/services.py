"""A real Airflow on loopback: API server, DAG processor, scheduler with LocalExecutor, triggerer; SQLite below it."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

HERE = Path(__file__).parents[1]
SERVICES = {
    "api-server": ["--workers", "1"],
    "dag-processor": [],
    "scheduler": [],
    "triggerer": [],
}


class Airflow:
    """The services, and what the metadata database knows."""

    def __init__(self, home: Path, dags: dict[str, str], more: dict[str, str]) -> None:
        self.home = home
        self.database = home / "airflow.db"
        (home / "dags").mkdir()
        for name, text in dags.items():  # before anything starts: Airflow looks for new files every five minutes
            (home / "dags" / name).write_text(text)
        port = _free_port()
        self.address = f"http://127.0.0.1:{port}/execution/"
        self.environment = {
            **os.environ,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": self.address,
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.database}",
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "120",  # busy machines
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of this test, which ends with it",
            "AIRFLOW__API__SECRET_KEY": "another secret of this test",
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(_free_port()),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(_free_port()),
            "PYTHONPATH": str(HERE),
            "no_proxy": "127.0.0.1",
            **more,
        }
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Start one service; its output goes to `NAME.out` in Airflow's home."""
        with (self.home / f"{name}.out").open("ab") as out:
            self._running[name] = subprocess.Popen(
                _airflow(name, *SERVICES[name]), stdout=out, stderr=out, env=self.environment, start_new_session=True
            )

    def kill(self, name: str) -> None:
        """End one service at once, with what it started."""
        process = self._running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End all of them."""
        for process in self._running.values():
            process.terminate()
        for name in list(self._running):
            try:
                self._running[name].wait(20)
            except subprocess.TimeoutExpired:
                self.kill(name)

    def answers(self) -> bool:
        """Whether tasks can reach the API server."""
        try:
            with urlopen(f"{self.address}health", timeout=60) as answer:
                return int(answer.status) == 200
        except OSError:
            return False

    def run(self, *words: str) -> None:
        """An `airflow` command."""
        done = subprocess.run(_airflow(*words), env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        """Rows of the metadata database."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=60)) as database:
            return database.execute(query, values).fetchall()

    def task(self, dag: str, task: str) -> tuple[str | None, int]:
        """State of a task in the newest run of a DAG, and the number of its try."""
        query = "SELECT state, try_number FROM task_instance WHERE dag_id = ? AND task_id = ? ORDER BY updated_at DESC"
        found = self.rows(query, dag, task)
        return found[0] if found else (None, 0)

    def until(self, what: str, holds: Callable[[], bool], seconds: float = 900) -> None:
        """Wait until something holds."""
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, f"{what}: not within {seconds:.0f} s\n{self.told()}"
            time.sleep(0.05)

    def until_task(self, dag: str, task: str, *states: str) -> int:
        """Wait until a task is in one of these states; the number of its try."""
        ends = {*states, "failed", "upstream_failed", "success", "skipped"}
        self.until(f"{dag}.{task} {states}", lambda: self.task(dag, task)[0] in ends)
        state, number = self.task(dag, task)
        assert state in states, f"{dag}.{task} is {state}\n{self.log(dag, task)}"
        return number

    def log(self, dag: str, task: str) -> str:
        """What all tries of a task have logged, the triggerer's part included."""
        found = sorted((self.home / "logs" / f"dag_id={dag}").glob(f"*/task_id={task}/*"))
        return "\n".join(path.read_text(errors="replace") for path in found if path.is_file())

    def told(self) -> str:
        """The last lines of every service."""
        lines = {path.name: path.read_text(errors="replace").splitlines()[-15:] for path in self.home.glob("*.out")}
        states = self.rows("SELECT dag_id, task_id, state, try_number FROM task_instance")
        return f"{states}\n" + "\n".join(f"--- {name}\n" + "\n".join(text) for name, text in lines.items())


@contextmanager
def running(home: Path, dags: dict[str, str], more: dict[str, str]) -> Iterator[Airflow]:
    """All services, up and ready. dags: files by name. more: environment."""
    airflow = Airflow(home, dags, more)
    airflow.run("db", "migrate")
    try:
        for name in SERVICES:
            airflow.start(name)
        airflow.until("the API answers", airflow.answers, 300)
        yield airflow
    finally:
        airflow.stop()


def _airflow(*words: str) -> list[str]:
    return [sys.executable, "-m", "airflow", *words]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
