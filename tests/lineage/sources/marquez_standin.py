"""A stand-in for Marquez's event endpoint, held to its resource class (parameters, defaults, refusals, order).

https://github.com/MarquezProject/marquez/blob/main/api/src/main/java/marquez/api/OpenLineageResource.java:
`before` and `after` are times (400 otherwise; `before` defaults to 2030), `limit` and `offset` are not negative (422 by
Dropwizard's validation), `sortDirection` is asc or desc; `after` is inclusive, `before` is not.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class _Refused(Exception):
    pass


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise _Refused(400) from None
    if found.tzinfo is None:
        raise _Refused(400)
    return found


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise _Refused(404) from None  # Jersey: a parameter that does not convert
    if value < 0:
        raise _Refused(422)
    return value


def answer(query: str, events: list[Any]) -> list[Any]:
    """The page Marquez would give."""
    given = {k: v[0] for k, v in parse_qs(query).items()}
    before = _time(given.get("before", "2030-01-01T00:00:00+00:00"))
    after = _time(given.get("after", "1970-01-01T00:00:00+00:00"))
    direction = given.get("sortDirection", "desc").lower()
    if direction not in ("asc", "desc"):
        raise _Refused(404)
    limit, offset = _count(given.get("limit", "100")), _count(given.get("offset", "0"))
    found = [e for e in events if "run" in e and after <= _time(e["eventTime"]) < before]
    found.sort(key=lambda e: _time(e["eventTime"]), reverse=direction == "desc")
    return found[offset : offset + limit]


@contextmanager
def marquez(
    events: list[Any], after_each: Callable[[int], None] = lambda number: None
) -> Iterator[tuple[str, list[str]]]:
    """The server's URL and the queries it got; `events` may change while it runs, also after each query."""
    queries: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            queries.append(url.query)
            number = len(queries)
            try:
                if url.path != "/api/v1/events/lineage":
                    raise _Refused(404)
                body = json.dumps({"events": answer(url.query, events), "totalCount": len(events)}).encode()
                after_each(number)  # before the client can ask again
                self.send_response(200)
            except _Refused as refused:
                body = json.dumps({"code": refused.args[0]}).encode()
                self.send_response(refused.args[0])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", queries
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
