"""Spans of a command, its stages and its steps, sent by OpenTelemetry's SDK over OTLP/HTTP.

Needs the extra `telemetry`. The SDK reads its own variables: `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, …
(https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/). A receiver that is down or slow
costs the work nothing: spans are sent beside it, and after the first failure no more.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Status, StatusCode, set_span_in_context

from pii_tracer.common.work_facts import Facts
from pii_tracer.model.errors import ExitCode
from reports.watch.watch import DONE, FAILED, Piece

PATIENCE = 5.0
"""Seconds that the end of a command waits for a receiver to take what is still to be sent."""
RUN = "run_id"
"""The fact that gives a trace its id: every process of a run adds its spans to one trace."""

ACTION = "action"
"""The fact that names the kind of a run's step."""


class Spans:
    """A `Listener`. The command's own span begins with its first stage or step, when it is known what it is about.

    warn: hears once why nothing more is sent. version: of this program.
    """

    def __init__(self, command: str, version: str, warn: Callable[[str], None]) -> None:
        for name in ("opentelemetry", "urllib3"):  # what they say would fill the terminal; we say it once
            logging.getLogger(name).addHandler(logging.NullHandler())
        self._command, self._warn, self._begun = command, warn, time.time()
        self._ids, self._exporter = _Ids(), _UntilFailure()
        resource = Resource.create()
        if str(resource.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: "pii-tracer"}))
        self._provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("pii_tracer", version)
        self._about: dict[str, str | int | float] = {}
        self._root: Any = None
        self._stage: Any = None
        self._step: Any = None
        self._warned = False

    def about(self, facts: Facts) -> None:
        self._about.update(facts)
        if RUN in facts and self._root is None:
            self._ids.trace = trace_of(str(facts[RUN]))
        for span in filter(None, (self._root, self._stage)):
            span.set_attributes(_attributes(facts))

    def begin_stage(self, stage: Piece) -> None:
        self._stage = self._start(stage, self._whole())

    def end_stage(self, state: str, at: float) -> None:
        if self._stage is not None:
            _end(self._stage, state, at)
        self._stage = None

    def begin_step(self, step: Piece) -> None:
        self._step = self._start(step, self._stage or self._whole())
        self._complain()

    def end_step(self, step: Piece, state: str, at: float, facts: Facts, why: str = "") -> None:
        if self._step is not None:
            self._step.set_attributes(_attributes({**facts, "state": state}))
            _end(self._step, state, at, why)
        self._step = None

    def warn(self, message: str) -> None:
        at = self._step or self._stage
        if at is not None:
            at.add_event("warning", {"message": message})

    def end(self, exit_code: int) -> None:
        """End the command's span, and give the receiver a moment for what is still to be sent."""
        root = self._whole()
        root.set_attributes(_attributes({**self._about, "exit_code": exit_code}))
        state = DONE if exit_code in (ExitCode.DONE, ExitCode.WAITING) else FAILED
        _end(root, state, time.time(), f"exit code {exit_code}" if state == FAILED else "")
        last = threading.Thread(target=self._provider.shutdown, name="opentelemetry", daemon=True)
        last.start()
        last.join(PATIENCE)
        if last.is_alive() and not self._exporter.problem:
            self._exporter.problem = f"the collector takes longer than {PATIENCE:.0f} s"
        self._complain()

    def _whole(self) -> Any:
        if self._root is None:
            self._root = self._tracer.start_span(
                f"pii-tracer {self._command}",
                context={},  # type: ignore[arg-type]  # no span of a program that calls this one
                start_time=_nanoseconds(self._begun),
                attributes=_attributes({"command": self._command, **self._about}),
            )
        return self._root

    def _start(self, piece: Piece, parent: Span) -> Any:
        told = {**self._about, **({"detail": piece.detail} if piece.detail else {}), **piece.facts}
        return self._tracer.start_span(
            str(piece.facts.get(ACTION, piece.name)),  # spans of one kind have one name
            context=set_span_in_context(parent),
            start_time=_nanoseconds(piece.begun),
            attributes=_attributes(told),
        )

    def _complain(self) -> None:
        if self._exporter.problem and not self._warned:
            self._warned = True
            self._warn(f"traces are no longer sent: {self._exporter.problem}")


def trace_of(run: str) -> int:
    """The trace of a run, from its id: a resumed run adds to it."""
    return int.from_bytes(hashlib.sha256(f"pii-tracer run {run}".encode()).digest()[:16], "big")


def _attributes(facts: Facts) -> dict[str, str | int | float]:
    return {f"pii_tracer.{name}": value for name, value in facts.items()}


def _end(span: Any, state: str, at: float, why: str = "") -> None:
    if state == FAILED:
        span.set_status(Status(StatusCode.ERROR, why or None))
    span.end(_nanoseconds(at))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)


class _Ids(RandomIdGenerator):
    """Ids by chance, but for the trace where it has one of its own."""

    trace: int | None = None

    def generate_trace_id(self) -> int:
        return self.trace if self.trace is not None else super().generate_trace_id()


class _UntilFailure(SpanExporter):
    """OTLP/HTTP to the receiver that was named and to no other, until it fails once."""

    def __init__(self) -> None:
        session = requests.Session()
        session.max_redirects = 0  # a receiver does not choose who else gets the spans
        self._exporter = OTLPSpanExporter(session=session)
        self.problem = ""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.problem:
            return SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        except Exception as error:
            result, kind = SpanExportResult.FAILURE, type(error).__name__
        else:
            kind = "not reachable, or it refuses them"
        if result is not SpanExportResult.SUCCESS:
            self.problem = f"the collector failed ({kind})"
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True
