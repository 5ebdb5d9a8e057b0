"""A receiver of OTLP over HTTP on loopback, which decodes what it gets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector(ThreadingHTTPServer):
    """Takes OTLP/HTTP as protobuf. hangs: does not answer until `answers` is set. sends: where it redirects to."""

    daemon_threads = True

    def __init__(self, status: int = 200, location: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.location, self.answers = status, location, threading.Event()
        self.answers.set()
        self.asked: list[str] = []
        self.got: list[ExportTraceServiceRequest] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self) -> list[Span]:
        return [s for got in self.got for r in got.resource_spans for scope in r.scope_spans for s in scope.spans]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.server.asked.append(self.path)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(ExportTraceServiceRequest.FromString(body))
        self.server.answers.wait()
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


def served(collector: Collector) -> Iterator[Collector]:
    thread = threading.Thread(target=collector.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield collector
    collector.answers.set()
    collector.shutdown()
    collector.server_close()
    thread.join()


def attributes(span: Span) -> dict[str, str | int]:
    values = ((a.key.removeprefix("pii_tracer."), a.value) for a in span.attributes)
    return {name: getattr(value, str(value.WhichOneof("value"))) for name, value in values}
