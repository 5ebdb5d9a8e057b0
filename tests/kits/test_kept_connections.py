"""Stand-ins answer at once on a connection that its client keeps, as the client libraries of stores do."""

from __future__ import annotations

import time
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from pathlib import Path

from tests.servers import Kept, served

TESTS = Path(__file__).parents[1]
HELD_BACK = 0.04
"""Seconds after which Linux acknowledges what it has nothing to answer to."""


class Told(Kept):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"body")


def quickest(connection: HTTPConnection, method: str = "GET", path: str = "/", body: bytes | None = None) -> float:
    """Seconds that the quickest of ten answers took, in which all would have been held back."""
    took = []
    for _ in range(10):
        begun = time.monotonic()
        connection.request(method, path, body, {"Content-Type": "application/json"})
        connection.getresponse().read()
        took.append(time.monotonic() - begun)
    return min(took[1:])


def test_an_answer_is_not_held_back() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Told)
    with served(server):
        assert quickest(HTTPConnection("127.0.0.1", server.server_port)) < HELD_BACK


def test_every_stand_in_that_keeps_connections_is_such_a_one() -> None:
    telling = "protocol_version" + " = "
    own = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py") if telling in path.read_text("utf-8")]
    assert own == ["servers.py"]
