"""The command line in processes of their own, which die as a killed machine dies: at once, the engine with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pii_tracer.run.journal import JournalError, Record, parse

REPO = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ended:
    """How a process ended. killed: by us, at the point that was asked for."""

    killed: bool
    code: int
    stdout: str
    stderr: str


def history(journal: Path) -> tuple[Record, ...]:
    """What stands in a journal by now; a line being written counts as not there."""
    try:
        return parse(journal.read_bytes())[0]
    except (FileNotFoundError, JournalError):
        return ()


ANSWERED = 20.0
"""Seconds after a signal in which a command ends, also where the machine is busy."""


def start(words: list[str], log: Path, more: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """`pii-tracer` WORDS in a process group of its own; output beside `log`. more: environment."""
    environment = {**os.environ, "PYTHONPATH": str(REPO), "NO_COLOR": "1", **more}
    with log.with_suffix(".out").open("wb") as out, log.with_suffix(".err").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, "-m", "pii_tracer.cli.main", *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=REPO,
            env=environment,
            start_new_session=True,
        )


def run_until(
    words: list[str],
    log: Path,
    point: Callable[[], bool] = lambda: False,
    *,
    after: float = 0.0,
    seconds: float = 1500.0,
    more: Mapping[str, str] = MappingProxyType({}),
    engine_alone: bool = False,
    by: signal.Signals = signal.SIGKILL,
) -> Ended:
    """Run a command, and kill its whole process group `after` seconds past the point that the run reaches.

    engine_alone: only its Java processes, once; the command lives on and ends by itself. by: another signal, which the
    command is left to answer: within `ANSWERED`.
    """
    process = start(words, log, more)
    killed = False
    try:
        end = time.monotonic() + seconds
        while process.poll() is None:
            if time.monotonic() > end:
                raise AssertionError(f"{words[0]} does not end: {log.with_suffix('.err').read_text()[-2000:]}")
            if not killed and point():
                time.sleep(after)
                if engine_alone:
                    killed = _kill_java(process.pid)
                    continue
                killed = process.poll() is None
                if by is signal.SIGKILL:
                    break
                os.killpg(process.pid, by)
                end = time.monotonic() + ANSWERED
            time.sleep(0.002)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return Ended(
        killed,
        process.returncode,
        log.with_suffix(".out").read_text(errors="replace"),
        log.with_suffix(".err").read_text(errors="replace"),
    )


def _kill_java(group: int) -> bool:
    """Kill the Java processes of a process group; whether there was one."""
    found = []
    for told in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = told.read_text().rpartition(")")
        except OSError:  # it ended meanwhile
            continue
        if name.endswith("(java") and int(rest.split()[2]) == group:
            found.append(int(told.parent.name))
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return bool(found)
