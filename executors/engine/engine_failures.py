"""An executor whose engine's failures are told as such, whichever of its calls meets them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from executors.engine.retries import engine_error
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import (
    Check,
    Executor,
    Outcome,
    Progress,
)


class OnEngine:
    """Passes every call on. What Spark raises becomes a `RunError` of class names alone: its messages quote rows."""

    def __init__(self, executor: Executor) -> None:
        self.name = executor.name
        self._executor = executor

    def check(self, step: Step, copy: Copy | None) -> None:
        """As `Executor.check`."""
        with _told():
            self._executor.check(step, copy)

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """As `Executor.run`."""
        with _told():
            return self._executor.run(step, copy)

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """As `Executor.verify`."""
        with _told():
            return self._executor.verify(step, copy)

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """As `Executor.probe`."""
        with _told():
            return self._executor.probe(step, copy)


@contextmanager
def _told() -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, ConnectionError) as error:  # the last where the engine is no more
        raise engine_error(error) from None
