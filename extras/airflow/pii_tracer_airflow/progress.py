"""The progress of pii-tracer in the log of a task."""

from __future__ import annotations

import logging
from typing import Any

from pii_tracer_airflow.stopping import Stopped


class TaskProgress:
    """Receives what a use case reports (`show=` of `pii_tracer.app`), and ends it once the task was told to stop."""

    def __init__(self, log: logging.Logger | Any) -> None:
        self._log = log
        self.stopped = False

    def stage(self, title: str) -> None:
        """A part of the work begins."""
        self._report(logging.INFO, title)

    def step(self, name: str, detail: str = "") -> None:
        """A step begins."""
        self._report(logging.INFO, f"{name} {detail}".rstrip())

    def stop(self, why: str) -> None:
        """The work ends early."""
        self._report(logging.WARNING, why)

    def warn(self, message: str) -> None:
        """Something that a person should read."""
        self._report(logging.WARNING, message)

    def _report(self, level: int, text: str) -> None:
        if self.stopped:
            raise Stopped("the task was told to stop")
        self._log.log(level, text)
