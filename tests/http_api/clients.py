"""A client of the interface, and the server as a process of its own."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pii_tracer.app.settings import Settings

TOKEN = "b5d1c2f6a7e84093"


@dataclass(frozen=True)
class Answer:
    status: int
    text: str

    @property
    def told(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True)
class Client:
    port: int

    def send(
        self, method: str, path: str, body: object = None, *, once: str | None = None, **headers: str | None
    ) -> Answer:
        """One exchange. body: as JSON, or bytes as they are. headers: with `_` for `-`; None leaves one out."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {"authorization": f"Bearer {TOKEN}", "idempotency-key": once, "content-type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, data, {name: text for name, text in given.items() if text is not None})
            answer = connection.getresponse()
            return Answer(answer.status, answer.read().decode())
        finally:
            connection.close()


@contextmanager
def served(settings: Settings) -> Iterator[tuple[Client, subprocess.Popen[str]]]:
    """The server, started by its command; killed at the end if it is still there."""
    places = ["--estate", str(settings.estate_file), "--state", str(settings.state)]
    command = [sys.executable, "-m", "pii_tracer.cli.main", "requests", "serve", "--listen", "127.0.0.1:0", *places]
    log = settings.base / "server.log"
    with log.open("a") as written:
        process = subprocess.Popen(
            command,
            env={**os.environ, "PII_TRACER_REQUESTS_TOKEN": TOKEN},
            stderr=subprocess.PIPE,
            stdout=written,
            text=True,
        )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith("listening on http://127.0.0.1:"), said
        yield Client(int(said.rpartition(":")[2].partition("/")[0])), process
    finally:
        process.kill()
        process.wait()
