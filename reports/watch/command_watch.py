"""Everything that listens to one command line, from its begin to its exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from pii_tracer import __version__
from reports.watch.json_log import JsonLog, LinesAsJson
from reports.watch.watch import Listener, Watch

if TYPE_CHECKING:
    from reports.watch.opentelemetry_spans import Spans


class CommandWatch:
    """Made before the command is known; `end` puts everything back as it was."""

    def __init__(self) -> None:
        self._log: JsonLog | None = None
        self._stderr: TextIO | None = None
        self._spans: Spans | None = None
        self._watch: Watch | None = None

    def log_as_json(self) -> None:
        """From now on each line on standard error is a JSON object."""
        self._stderr = sys.stderr
        self._log = JsonLog(sys.stderr)
        sys.stderr = LinesAsJson(self._log)

    def name(self, command: str) -> None:
        """Say what the command is, once that is known."""
        if self._log is not None:
            self._log.command = command

    def show(self, command: str, stages: int | None = None) -> Watch:
        """The listener of a long command. stages: how many there will be, to number them."""
        from reports.progress import Progress

        listeners: list[Listener] = []
        self.name(command)
        if self._log is not None:
            listeners.append(self._log)
        problem = ""
        if wants_traces(os.environ):
            problem = self._trace(command)
        if self._spans is not None:
            listeners.append(self._spans)
        self._watch = Watch(None if self._log else Progress(stages), listeners)
        if problem:
            self._watch.warn(problem)
        return self._watch

    def _trace(self, command: str) -> str:
        """Begin to trace, or say why not: whoever set an endpoint expects spans there."""
        protocol = _of_traces(os.environ, "PROTOCOL") or "http/protobuf"
        if protocol != "http/protobuf":
            return f"traces are not sent: only OTLP by http/protobuf is supported, and the protocol is `{protocol}`"
        try:
            from reports.watch.opentelemetry_spans import Spans
        except Exception:  # missing, or its parts do not fit together
            return "traces are not sent: install `pii-tracer[telemetry]`, or unset OTEL_EXPORTER_OTLP_ENDPOINT"
        try:
            self._spans = Spans(command, __version__, self._warn)
        except Exception as error:  # a wrong setting must not stop an erasure
            return f"traces are not sent: OpenTelemetry rejects its settings ({type(error).__name__})"
        return ""

    def _warn(self, message: str) -> None:
        if self._watch is not None:
            self._watch.warn(message)

    def error(self, what: str, where: str | None = None, todo: str | None = None) -> bool:
        """Log why the command failed; False where people read standard error, and nothing was written."""
        if self._log is None:
            return False
        self._log.error(what, where, todo)
        return True

    def end(self, exit_code: int) -> None:
        """The command is over."""
        if self._spans is not None:
            with contextlib.suppress(Exception):  # what is not sent changes no result
                self._spans.end(exit_code)
        if self._log is not None and self._stderr is not None:
            sys.stderr.close()
            sys.stderr = self._stderr
            self._log.end(exit_code)


def wants_traces(environ: Mapping[str, str]) -> bool:
    """Whether somebody named a receiver of traces, and did not turn them off."""
    off = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    kinds = {kind.strip() for kind in (environ.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp").split(",")}
    return bool(_of_traces(environ, "ENDPOINT")) and "otlp" in kinds and not off


def _of_traces(environ: Mapping[str, str], name: str) -> str:
    whole = environ.get(f"OTEL_EXPORTER_OTLP_{name}", "")
    return (environ.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}", "") or whole).strip()
