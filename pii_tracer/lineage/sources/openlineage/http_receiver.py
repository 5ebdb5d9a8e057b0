"""An HTTP endpoint that takes events as an OpenLineage backend does, into the event log.

POST /api/v1/lineage with one event, POST /api/v1/lineage/batch with a list:
https://openlineage.io/apidocs/openapi
"""

from __future__ import annotations

import hmac
import re
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

import msgspec

from pii_tracer.lineage.sources.log_lines import decoded
from pii_tracer.lineage.sources.openlineage.event_log import Added, EventLog
from pii_tracer.lineage.sources.openlineage.event_parsing import not_an_event
from pii_tracer.model.errors import LineageError, UsageError

LARGEST_BODY = 32 * 1024 * 1024
"""Bytes of a request, packed or unpacked."""

_SECONDS_SILENT = 30
_JSON = "application/json"
_LENGTH = re.compile(r"[0-9]{1,18}", re.ASCII)
_CHUNK = re.compile(rb"[0-9a-fA-F]{1,15}")


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


@dataclass
class Received:
    """What came in so far."""

    stored: int = 0
    known: int = 0
    refused: int = 0
    repaired: int = 0

    @property
    def events(self) -> int:
        return self.stored + self.known


class Receiver:
    """The server; `run` serves until enough came or the time is over.

    key: what senders must give as bearer token; without one only loopback addresses are served.
    """

    def __init__(self, host: str, port: int, log: EventLog, key: str | None = None) -> None:
        if key is None and not _loopback(host):
            raise UsageError(
                f"{host} can be reached from other machines, and anybody could add lineage there",
                todo="set PII_TRACER_RECEIVE_KEY, or listen on 127.0.0.1",
            )
        self.received = Received()
        self._log, self._key = log, key
        self._changed = threading.Condition()
        receiver = self

        class Handler(_Handler):
            owner = receiver

        try:
            self._server = _Server((host, port), Handler)
        except OSError as error:
            raise UsageError(
                f"cannot listen on {host}:{port} ({error.strerror or type(error).__name__})",
                todo="give a different address with --listen",
            ) from None

    @property
    def address(self) -> str:
        """`host:port` it listens on."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def run(self, count: int | None, seconds: float | None) -> Received:
        """Serve until `count` events came in, or `seconds` have passed; without both until interrupted."""
        serving = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            with self._changed:
                self._changed.wait_for(lambda: count is not None and self.received.events >= count, seconds)
        finally:
            self._server.shutdown()
            serving.join()
            self._server.server_close()
        return self.received

    def allowed(self, authorization: str | None) -> bool:
        given = (authorization or "").removeprefix("Bearer ")
        return self._key is None or hmac.compare_digest(given.encode(), self._key.encode())

    def take(self, events: list[dict[str, Any]]) -> None:
        """Store events; they are on disk when it returns."""
        with self._changed:
            added: Added = self._log.append(events)
            self.received.stored += added.stored
            self.received.known += added.known
            self.received.repaired += added.repaired
            self._changed.notify_all()

    def refuse(self) -> None:
        with self._changed:
            self.received.refused += 1


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Server(ThreadingHTTPServer):
    """Threads end with the process, and what breaks a connection is not printed: its words could hold what was sent."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The connection is closed; nothing of it was stored, or all of it, as its sender can see by the answer."""


class _Handler(BaseHTTPRequestHandler):
    """One request. Bodies are never logged: events can hold SQL with values of persons."""

    owner: Receiver
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else who sends batches waits 40 ms for the body of each answer
    timeout = _SECONDS_SILENT
    server_version = "pii-tracer"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what came in is counted."""

    def do_GET(self) -> None:
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "events are sent with POST to /api/v1/lineage"})

    def do_POST(self) -> None:
        try:
            self._post()
        except _Refused as refused:
            self.owner.refuse()
            self.close_connection = True  # what is left of the body is not read
            self._answer(refused.status, {"error": refused.reason})
        except LineageError as error:
            self.close_connection = True
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": error.what})
        except (TimeoutError, ConnectionError):
            self.close_connection = True

    def _post(self) -> None:
        routes: dict[str, Callable[[Any], None]] = {
            "/api/v1/lineage": self._single, "/api/v1/lineage/batch": self._batch,
        }  # fmt: skip
        route = routes.get(self.path.partition("?")[0].rstrip("/"))
        if route is None:
            raise _Refused(HTTPStatus.NOT_FOUND, "send events to /api/v1/lineage")
        if not self.owner.allowed(self.headers.get("Authorization")):
            raise _Refused(HTTPStatus.UNAUTHORIZED, "the bearer token is missing or wrong")
        if self.headers.get_content_type() != _JSON:  # no web page of a browser can send this without asking first
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the content type must be {_JSON}")
        value = decoded(self._unpacked(self._body()))
        if value is None:
            raise _Refused(HTTPStatus.BAD_REQUEST, "the body is not JSON")
        route(value)

    def _single(self, value: Any) -> None:
        reason = not_an_event(value)
        if reason:
            raise _Refused(HTTPStatus.BAD_REQUEST, reason)
        self.owner.take([value])
        self._answer(HTTPStatus.CREATED, None)

    def _batch(self, value: Any) -> None:
        if not isinstance(value, list):
            raise _Refused(HTTPStatus.BAD_REQUEST, "a batch is a list of events")
        reasons = [not_an_event(item) for item in value]
        self.owner.take([item for item, reason in zip(value, reasons, strict=True) if not reason])
        failed = [{"index": n, "reason": r, "retriable": False} for n, r in enumerate(reasons) if r]
        for _ in failed:
            self.owner.refuse()
        counts = {"received": len(value), "successful": len(value) - len(failed), "failed": len(failed)}
        # senders take every 2xx for "all is well": one that sent a bad event must learn of it; the good ones are stored
        status = HTTPStatus.BAD_REQUEST if failed else HTTPStatus.CREATED
        self._answer(status, {"summary": counts, "failed_events": failed})

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._chunks()
        length = self.headers.get("Content-Length", "")
        if not _LENGTH.fullmatch(length):
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "the length of the body is missing")
        return self._exactly(int(length), 0)

    def _chunks(self) -> bytes:
        """https://www.rfc-editor.org/rfc/rfc9112#section-7.1"""
        body = bytearray()
        while True:
            size = self.rfile.readline(100).partition(b";")[0].strip()
            if not _CHUNK.fullmatch(size):
                raise _Refused(HTTPStatus.BAD_REQUEST, "the body is not valid chunked encoding")
            length = int(size, 16)
            if not length:
                break
            body += self._exactly(length, len(body))
            self.rfile.readline(100)
        while self.rfile.readline(1000).strip():
            pass
        return bytes(body)

    def _exactly(self, length: int, before: int) -> bytes:
        if length + before > LARGEST_BODY:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {LARGEST_BODY} bytes")
        body = self.rfile.read(length)
        if len(body) < length:
            raise _Refused(HTTPStatus.BAD_REQUEST, "the body is truncated")
        return body

    def _unpacked(self, body: bytes) -> bytes:
        encoding = self.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding == "identity":
            return body
        if encoding != "gzip":
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the content encoding must be gzip, or none")
        unpacker = zlib.decompressobj(wbits=31)
        try:
            text = unpacker.decompress(body, LARGEST_BODY)
        except zlib.error:
            raise _Refused(HTTPStatus.BAD_REQUEST, "the body is not gzip") from None
        if unpacker.unconsumed_tail:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {LARGEST_BODY} bytes")
        if not unpacker.eof:
            raise _Refused(HTTPStatus.BAD_REQUEST, "the gzip body is truncated")
        return text

    def _answer(self, status: HTTPStatus, content: Any) -> None:
        body = b"" if content is None else msgspec.json.encode(content)
        try:
            self.send_response(status)
            self.send_header("Content-Type", _JSON)
            self.send_header("Content-Length", str(len(body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
        except (TimeoutError, ConnectionError):
            self.close_connection = True
