"""Log lines: one JSON object a line, for programs that collect logs. The same texts as the terminal shows."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TextIO

from pii_tracer.common.work_facts import Facts
from reports.escape import visible
from reports.watch.watch import FAILED, Piece


class JsonLog:
    """Writes lines; a `Listener`. command: what it is a log of, such as `apply`."""

    def __init__(self, out: TextIO, command: str = "", clock: Callable[[], float] = time.time) -> None:
        self._out, self._clock, self._begun = out, clock, clock()
        self.command = command
        self._about: dict[str, str | int | float] = {}
        self._stage = ""
        self._lock = threading.Lock()

    def about(self, facts: Facts) -> None:
        self._about.update(facts)

    def begin_stage(self, stage: Piece) -> None:
        self._stage = stage.name
        self._write("info", "stage", stage.begun)

    def end_stage(self, state: str, at: float) -> None:
        """The next stage's line says it."""

    def begin_step(self, step: Piece) -> None:
        self._write("info", "step", step.begun, step=step.name, detail=step.detail, **step.facts)

    def end_step(self, step: Piece, state: str, at: float, facts: Facts, why: str = "") -> None:
        level = "warning" if state == FAILED else "info"
        ids = {name: value for name, value in step.facts.items() if name != LEFT}
        told = {**ids, **facts, "seconds": round(at - step.begun, 3)}
        self._write(level, "step_end", at, step=step.name, state=state, detail=why, **told)

    def warn(self, message: str) -> None:
        self._write("warning", "warning", message=message)

    def message(self, text: str) -> None:
        """What the command says beside its progress."""
        self._write("info", "message", message=visible(text))

    def error(self, what: str, where: str | None = None, todo: str | None = None) -> None:
        """Why the command failed."""
        self._write("error", "error", message=visible(what), where=visible(where or ""), next=visible(todo or ""))

    def end(self, exit_code: int) -> None:
        """The last line."""
        self._stage = ""
        level = "error" if exit_code == 1 else "warning" if exit_code else "info"
        self._write(level, "end", exit_code=exit_code, seconds=round(self._clock() - self._begun, 3))

    def _write(self, level: str, event: str, at: float | None = None, **more: str | int | float) -> None:
        moment = datetime.fromtimestamp(self._clock() if at is None else at, timezone.utc)
        head = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": level,
            "command": self.command,
            "event": event,
            "stage": self._stage,
        }
        line = {name: value for name, value in {**head, **self._about, **more}.items() if value != ""}
        with self._lock:
            self._out.write(json.dumps(line) + "\n")
            self._out.flush()


LEFT = "left_seconds"
"""Fact of a step that begins: the estimate of the time that is left, this step included."""


class LinesAsJson(io.TextIOBase):
    """A stream for standard error whose lines become messages of the log: nothing else is between its lines."""

    def __init__(self, log: JsonLog) -> None:
        self._log, self._rest = log, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in filter(str.strip, lines):
            self._log.message(line)
        return len(text)

    def close(self) -> None:
        """What has no end of line is a line, too."""
        if self._rest.strip():
            self._log.message(self._rest)
        self._rest = ""
        super().close()
