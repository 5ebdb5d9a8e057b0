"""One way to ask servers: credentials stay with the server that was named, and half an answer is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EHOSTUNREACH
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.common.http import (
    NoAnswer,
    ask,
    basic,
    bearer,
    patiently,
)
from pii_tracer.config.catalogs import Catalog
from pii_tracer.config.lakefs import LakefsServer
from pii_tracer.lake.catalogs.nessie.client import NessieClient
from pii_tracer.lake.stores.lakefs.client import LakefsClient
from pii_tracer.lake.streams.kafka.schema_registry import AUTH, SchemaRegistry
from pii_tracer.lineage.sources.openlineage.event_fetching import Reading, Unreachable
from pii_tracer.lineage.sources.openlineage.marquez import MarquezSource
from pii_tracer.model.errors import PiiTracerError
from pii_tracer.proof.rfc3161_timestamps import request_stamp
from tests.servers import Json, answering

SECRET = "hunter2"
Heads = list[str | None]


@contextmanager
def taking(heads: Heads, to: str | None = None, body: bytes = b"{}", promised: int | None = None) -> Iterator[str]:
    """A server that keeps the credentials that it is given, and redirects, or answers with a body of another size."""

    class Handler(Json):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            heads.append(self.headers.get("Authorization"))
            self.send_response(307 if to else 200)
            if to:
                self.send_header("Location", to + self.path)
            self.send_header("Content-Length", str(0 if to else promised or len(body)))
            self.end_headers()
            if not to:
                self.wfile.write(body)

        do_POST = do_GET

    with answering(Handler) as url:
        yield url


def lakefs(url: str) -> Any:
    server = {"name": "lake", "endpoint": url, "repositories": [{"name": "shop", "branch": "main"}]}
    return LakefsClient(LakefsServer.model_construct(**server, access_key_env="K", secret_key_env="S")).repository(
        "shop"
    )


CLIENTS: dict[str, Callable[[str], Any]] = {
    "schema registry": lambda url: SchemaRegistry(url).avro(1),
    "Nessie": lambda url: NessieClient("n", Catalog.model_construct(uri=url)).default_branch(),
    "lakeFS": lakefs,
    "Marquez": lambda url: list(MarquezSource(url).events(Reading(None))),
    "time stamps": lambda url: request_stamp(url, b"x", []),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_nothing_is_taken_along_to_another_server(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (AUTH, "PII_TRACER_CATALOG_N_TOKEN", "K", "S", "PII_TRACER_MARQUEZ_KEY"):
        monkeypatch.setenv(name, SECRET)
    first: Heads = []
    other: Heads = []
    refused = pytest.raises((PiiTracerError, Unreachable), match="HTTP 307")
    with taking(other) as elsewhere, taking(first, to=elsewhere) as url, refused as caught:
        CLIENTS[client](url)
    assert len(first) == 1
    assert other == []
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "promised", "reason"),
    [(b"12345678", 9, "cut off"), (b"123456789", None, "too large")],
    ids=["cut", "large"],
)
def test_half_an_answer_is_none(body: bytes, promised: int | None, reason: str) -> None:
    with taking([], body=body, promised=promised) as url, pytest.raises(NoAnswer, match=reason) as caught:
        ask(url, seconds=1, limit=8)
    assert caught.value.status is None


def test_only_servers_of_http_are_asked(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("x")
    with pytest.raises(NoAnswer, match="http"):
        ask((tmp_path / "here").as_uri(), seconds=1, limit=8)


def test_a_secret_that_is_no_header_is_not_told() -> None:
    with taking([]) as url, pytest.raises(NoAnswer, match="does not answer: ValueError") as caught:
        ask(url, seconds=1, limit=8, headers=bearer("hunter2\nX: y"))
    assert SECRET not in str(caught.value)


def test_credentials_and_json_arrive() -> None:
    heads: Heads = []
    with taking(heads, body=json.dumps([1]).encode()) as url:
        assert json.loads(ask(url, seconds=1, limit=8, query={"a": 1}, body={"b": 2}, headers=basic("u:p"))) == [1]
    assert heads == ["Basic dTpw"]


@pytest.mark.parametrize(
    ("answers", "waits"),
    [
        ([], []),
        ([(429, 7.0)], [7.0]),
        ([(503, None), (503, None), (503, None)], [1.0, 2.0, 4.0]),
        ([(429, 3600.0)], [32.0]),
    ],
)
def test_a_busy_server_is_asked_again(answers: list[tuple[int, float | None]], waits: list[float]) -> None:
    left, waited = list(answers), list[float]()

    def once() -> bytes:
        if left:
            status, after = left.pop(0)
            raise NoAnswer("is busy", status, retry_after=after)
        return b"done"

    assert patiently(once, {429, 503}, waited.append) == b"done"
    assert waited == waits


@pytest.mark.parametrize(("status", "tries"), [(429, 6), (403, 1), (None, 1)])
def test_a_refusal_is_not_asked_again_and_a_busy_server_not_for_ever(status: int | None, tries: int) -> None:
    asked: list[int] = []

    def once() -> bytes:
        asked.append(1)
        raise NoAnswer("no", status)

    with pytest.raises(NoAnswer):
        patiently(once, {429}, lambda seconds: None)
    assert len(asked) == tries


@pytest.mark.parametrize(("where", "unsent"), [("connect", True), ("getresponse", False)])
def test_an_error_while_the_answer_is_waited_for_says_nothing_of_what_was_sent(
    monkeypatch: pytest.MonkeyPatch, where: str, unsent: bool
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError(EHOSTUNREACH, "no route to host")

    with answering(Json) as address:
        monkeypatch.setattr(HTTPConnection, where, unreachable)
        with pytest.raises(NoAnswer) as caught:
            ask(address, seconds=5, limit=100)
    assert caught.value.unsent is unsent
