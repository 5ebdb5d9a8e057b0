"""The Connect server of the tests: one process for all of them, on loopback, stopped by its own PID."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.processes import REPO, Ended, run_until

_SECONDS = 300.0


@dataclass(frozen=True)
class Server:
    """address: as the estate file has it. folder: where its log and its warehouse are."""

    address: str
    folder: Path


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that is up."""
    folder = tmp_path_factory.mktemp("connect-server")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.connect.server", str(folder)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=REPO,
        )
    port, end = folder / "port", time.monotonic() + _SECONDS
    while not port.exists():
        if process.poll() is not None or time.monotonic() > end:
            raise AssertionError((folder / "log").read_text()[-2000:])
        time.sleep(0.2)
    yield Server(f"sc://127.0.0.1:{port.read_text()}", folder)
    assert process.stdin is not None
    process.stdin.close()  # it ends with its engine
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


Cli = Callable[..., Ended]


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """`pii-tracer` WORDS for the estate in a folder, as a process: with Connect in use, ours could have no Spark."""
    logs = tmp_path_factory.mktemp("connect-cli")

    def call(base: Path, *words: str, estate: str = "pii-tracer.yaml") -> Ended:
        log = logs / f"{len(list(logs.iterdir()))}.log"
        state = [] if words[0] == "doctor" else ["--state", str(base / "state")]
        return run_until([*words, "--estate", str(base / estate), *state], log)

    return call


def shop(what: str, base: Path) -> Any:
    """`tests.connect.shop` in a process of its own."""
    words = [sys.executable, "-m", "tests.connect.shop", what, str(base)]
    done = subprocess.run(words, cwd=REPO, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
