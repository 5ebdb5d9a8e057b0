"""Log lines: one JSON object a line, for programs that collect logs. The same texts as the terminal shows."""

from __future__ import annotations

import io
import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from typing import TextIO

from pii_tracer.common.work_facts import NO_FACTS, Facts
from reports.escape import visible
from reports.watch.watch import FAILED, Piece


class JsonLog:
    """Writes lines; a `Listener`. A log that cannot be written ends, and the work goes on.

    command: what it is a log of, such as `apply`. quiet: seconds after which a step that still works is told again.
    """

    def __init__(
        self, out: TextIO, command: str = "", clock: Callable[[], float] = time.time, quiet: float = 20.0
    ) -> None:
        self._out, self._clock, self._begun, self._quiet = out, clock, clock(), quiet
        self.command = command
        self._about: dict[str, str | int | float] = {}
        self._stage = ""
        self._lock, self._lost = threading.Lock(), False
        self._beat: threading.Event | None = None

    def about(self, facts: Facts) -> None:
        self._about.update(facts)

    def begin_stage(self, stage: Piece) -> None:
        self._stage = stage.name
        self._write("info", "stage", stage.begun)

    def end_stage(self, state: str, at: float) -> None:
        """The next stage's line says it."""

    def begin_step(self, step: Piece) -> None:
        self._write("info", "step", step.begun, _over({"step": step.name, "detail": step.detail}, step.facts))
        self._beat = threading.Event()
        threading.Thread(target=self._tell_on, args=(self._beat, step), daemon=True).start()

    def end_step(self, step: Piece, state: str, at: float, facts: Facts, why: str = "") -> None:
        if self._beat is not None:
            self._beat.set()
        level = "warning" if state == FAILED else "info"
        ends: Facts = {"step": step.name, "state": state, "detail": why, "seconds": round(at - step.begun, 3)}
        self._write(level, "step_end", at, _over(ends, {**_ids(step), **facts}))

    def warn(self, message: str) -> None:
        self._write("warning", "warning", told={"message": message})

    def message(self, text: str) -> None:
        """What the command says beside its progress."""
        self._write("info", "message", told={"message": visible(text)})

    def error(self, what: str, where: str | None = None, todo: str | None = None) -> None:
        """Why the command failed."""
        told = {"message": visible(what), "where": visible(where or ""), "next": visible(todo or "")}
        self._write("error", "error", told=told)

    def end(self, exit_code: int) -> None:
        """The last line."""
        self._stage = ""
        level = "error" if exit_code == 1 else "warning" if exit_code else "info"
        self._write(level, "end", told={"exit_code": exit_code, "seconds": round(self._clock() - self._begun, 3)})

    def _tell_on(self, over: threading.Event, step: Piece) -> None:
        """The step still works: whoever collects lines can tell that from a process that hangs or is gone."""
        while not over.wait(self._quiet):
            seconds = round(self._clock() - step.begun, 3)
            self._write("info", "step_running", told={**_ids(step), "step": step.name, "seconds": seconds})

    def _write(self, level: str, event: str, at: float | None = None, told: Facts = NO_FACTS) -> None:
        moment = datetime.fromtimestamp(self._clock() if at is None else at, timezone.utc)
        head = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": level,
            "command": self.command,
            "event": event,
            "stage": self._stage,
        }
        line = {name: value for name, value in _over({**head, **self._about}, told).items() if value != ""}
        with self._lock:
            if self._lost:
                return
            try:
                self._out.write(json.dumps(line) + "\n")
                self._out.flush()
            except (OSError, ValueError):  # its reader is gone, the disk is full, or it is closed
                self._lost = True
                _discard(self._out)


def _discard(out: TextIO) -> None:
    """What could not be written goes nowhere: else Python tries it again at its end, and changes the exit code."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, out.fileno())
        os.close(nowhere)


def _ids(step: Piece) -> Facts:
    return {name: value for name, value in step.facts.items() if name != LEFT}


LEFT = "left_seconds"
"""Fact of a step that begins: the estimate of the time that is left, this step included."""


class LinesAsJson(io.TextIOBase):
    """A stream for standard error whose lines become messages of the log: nothing else is between its lines.

    What threads write at the same time is a line each.
    """

    def __init__(self, log: JsonLog) -> None:
        self._log, self._lock = log, threading.RLock()
        self._rest: dict[int, str] = {}

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            *lines, rest = (self._rest.pop(threading.get_ident(), "") + text).split("\n")
            if rest:
                self._rest[threading.get_ident()] = rest
            for line in filter(str.strip, lines):
                self._log.message(line)
        return len(text)

    def close(self) -> None:
        """What has no end of line is a line, too."""
        with self._lock:
            for line in filter(str.strip, self._rest.values()):
                self._log.message(line)
            self._rest.clear()
        super().close()


def _over(own: Facts, facts: Facts) -> Facts:
    """Both, the own ones in front. An executor's fact of the same name, such as `state`, changes none of these."""
    return {**own, **facts, **own}
