"""Commands of pii-tracer in a process beside that of the test: `python -m tests.commands_apart FD` is that process.

It takes one command a line and answers by its exit code, so that Python starts once for many commands, and Spark once for
all commands of one estate. A command that is killed takes the process and its Spark with it, as everywhere.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pii_tracer.cli.main import run

__all__ = ["end_it", "run_apart"]


@dataclass
class _Apart:
    """answers: where exit codes come from. spark_of: the estate and the environment that its Spark was started for."""

    process: subprocess.Popen[bytes]
    answers: int
    spark_of: object = None

    def ask(self, asked: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, until: Callable[[], bool]) -> dict[str, Any]:
        """until: when the process is killed."""
        while not select.select([self.answers], [], [], 0.02)[0]:
            if self.process.poll() is not None:  # processes of its own may hold the other end
                return {"code": self.process.returncode, "spark": False}
            if until():
                self.process.kill()
        told = os.read(self.answers, 4096)  # nothing, if it ended
        return json.loads(told) if told else {"code": self.process.wait(), "spark": False}

    def end(self) -> None:
        """It ends by itself when no command can come any more."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)


_RUNNING: list[_Apart] = []
"""The one of this process, if there is one."""


def run_apart(
    words: Sequence[str],
    log: Path,
    *,
    until: Callable[[], bool] = lambda: False,
    more: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """The exit code of `pii-tracer` WORDS; less than 0 if it was killed. log: beside the estate. more: environment."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"} | dict(more)
    mine = (log.parent, environment)
    if _RUNNING and _RUNNING[0].spark_of not in (None, mine):
        end_it()
    if not _RUNNING:
        _RUNNING.append(_started())
    [apart] = _RUNNING
    apart.ask({"words": list(words), "log": str(log), "environment": environment})
    try:
        told = apart.answer(until)
    except BaseException:
        end_it()
        raise
    if apart.process.poll() is not None:
        end_it()
    apart.spark_of = mine if told["spark"] else None
    return int(told["code"])


def end_it() -> None:
    """End the process, if there is one."""
    while _RUNNING:
        _RUNNING.pop().end()


def _started() -> _Apart:
    answers, telling = os.pipe()
    command = [sys.executable, "-m", __name__, str(telling)]
    try:
        return _Apart(subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[telling]), answers)
    finally:
        os.close(telling)


def _serve(telling: int) -> None:
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        os.environ.clear()
        os.environ.update(asked["environment"])
        log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        try:
            code = run(asked["words"])
        finally:
            sys.stdout.flush()
        os.write(telling, json.dumps({"code": code, "spark": _has_spark()}).encode())


def _has_spark() -> bool:
    spark = sys.modules.get("pyspark")
    return spark is not None and spark.SparkContext._active_spark_context is not None


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
