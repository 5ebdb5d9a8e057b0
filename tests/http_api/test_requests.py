"""Requests over HTTP: taken once, told, taken back; nobody without a token, and no value anywhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

import uvicorn

from pii_tracer.app.settings import Settings
from pii_tracer.http_api.request_api import MOST_BODY, OPERATIONS, application
from pii_tracer.http_api.server import listening
from pii_tracer.intake.request_databases.sqlite import FILE
from tests.http_api.clients import TOKEN, Client
from tests.intake.places import ago, opened, place
from tests.leaks import Person, leaks

KEY = "4417700101"
BODY = {"subject": "user", "key": KEY, "law": "GDPR"}
SAID = {"by": "Meera Iyer", "reason": "she keeps her account"}


@pytest.fixture
def settings(tmp_path: Path, database: str | None) -> Settings:
    found = place(tmp_path, database=database)
    opened(found)
    return found


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def client(settings: Settings, log: list[str]) -> Iterator[Client]:
    at = listening("127.0.0.1", 0)
    config = uvicorn.Config(application(settings, TOKEN, log.append), log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([at],), daemon=True)
    thread.start()
    yield Client(at.getsockname()[1])
    server.should_exit = True
    thread.join()
    at.close()


def test_a_request_goes_from_receipt_to_withdrawal(client: Client, settings: Settings) -> None:
    sent = client.send("POST", "/v1/requests", {**BODY, "id": "R-1", "received": ago(2)}, once="attempt-1")
    assert (sent.status, sent.told["outcome"]) == (201, "added")
    assert (sent.told["request"]["id"], sent.told["request"]["state"]) == ("R-1", "received")
    again = client.send("POST", "/v1/requests", {**BODY, "id": "R-1", "received": ago(2)}, once="attempt-1")
    assert (again.status, again.told["outcome"], again.told["request"]) == (200, "known", sent.told["request"])
    assert client.send("GET", "/v1/requests/R-1").told == {**sent.told["request"], "narrowings": []}

    joined = client.send("POST", "/v1/requests", {**BODY, "id": "R-2"}, once="attempt-2")
    assert (joined.status, joined.told["outcome"], joined.told["request"]["id"]) == (201, "joined", "R-1")
    assert client.send("GET", "/v1/requests/R-2").told["receipts"] == 2

    assert client.send("POST", "/v1/requests/R-1/withdrawal", {**SAID, "reason": f"of {KEY}"}).status == 409
    for _ in range(2):
        gone = client.send("POST", "/v1/requests/R-1/withdrawal", SAID)
        assert (gone.status, gone.told) == (200, {"id": "R-1", "state": "withdrawn", "released": []})
    [one] = opened(settings).requests()
    assert (one.state.value, one.reason) == ("withdrawn", SAID["reason"])


def test_a_request_is_narrowed_once_however_often_it_is_sent(client: Client, settings: Settings) -> None:
    assert (
        client.send("POST", "/v1/requests", {**BODY, "id": "R-1", "received": ago(2)}, once="attempt-1").status == 201
    )
    keeps = {"keep": ["app.orders"], "asked": ago(1), **SAID}
    for _ in range(2):
        done = client.send("POST", "/v1/requests/R-1/narrowing", keeps)
        assert (done.status, done.told["state"]) == (200, "received")
        [one] = done.told["narrowings"]
        assert (one["keep"], one["lapsed"], one["taken_back"]) == ("app.orders", False, False)
    assert client.send("GET", "/v1/requests/R-1").told == done.told
    told = client.send("POST", "/v1/requests/R-1/narrowing", {**keeps, "asked": ago(3)})
    assert (told.status, told.told["narrowings"]) == (200, done.told["narrowings"])

    for status, wrong in (
        (409, {"keep": [f"app.o_{KEY}"]}),
        (409, {"keep": ["app.more"], "asked": ago(3)}),
        (409, {"keep": ["app.more"], "asked": ago(-1)}),
        (409, {"keep": []}),
        (409, {"take_back": ["app.never"]}),
        (422, {"columns": ["city"]}),
        (422, {"keep": [KEY + "\nx"]}),
        (422, {"keep": ["x"] * 21}),
        (422, {"asked": None}),
    ):
        refused = client.send("POST", "/v1/requests/R-1/narrowing", {**keeps, **wrong})
        assert (refused.status, KEY in refused.text) == (status, False)
    assert client.send("POST", "/v1/requests/R-9/narrowing", keeps).status == 404
    back = {**keeps, "keep": ["app.more"], "take_back": ["app.orders"]}
    told = client.send("POST", "/v1/requests/R-1/narrowing", back)
    assert [(one["keep"], one["taken_back"]) for one in told.told["narrowings"]] == [
        ("app.orders", True),
        ("app.more", False),
    ]
    widens = client.send("POST", "/v1/requests", {**BODY, "received": ago(0)}, once="attempt-2")
    assert (widens.status, widens.told["widened"]) == (201, ["app.more"])
    assert client.send("GET", "/v1/requests/R-1").told["narrowings"][1]["lapsed"] is True


def test_an_attempt_without_an_id_or_a_time_is_known_again(client: Client, settings: Settings) -> None:
    """Its time is that of the first attempt. Without the key in the header, each attempt would be a receipt."""
    first = client.send("POST", "/v1/requests", BODY, once="attempt-1")
    again = client.send("POST", "/v1/requests", BODY, once="attempt-1")
    assert (first.status, again.status, first.told["request"]) == (201, 200, again.told["request"])
    other = client.send("POST", "/v1/requests", {**BODY, "key": "4417700102"}, once="attempt-1")
    assert (other.status, "a different request" in other.told["error"]) == (409, True)
    assert [one.receipts for one in opened(settings).requests()] == [1]


def test_pages_hold_every_request_once(client: Client, settings: Settings) -> None:
    for n in range(7):
        body = {**BODY, "key": f"441770020{n}", "id": f"R-{n}", "received": ago(9 - n)}
        assert client.send("POST", "/v1/requests", body, once=f"attempt-{n}").status == 201
    seen, after = [], ""
    while True:
        page = client.send("GET", f"/v1/requests?limit=3{after}").told
        seen += [one["id"] for one in page["requests"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert seen == [f"R-{n}" for n in range(7)]
    assert page["counts"]["received"] == 7
    assert client.send("GET", "/v1/requests?state=erased&state=withdrawn").told["requests"] == []
    for wrong in ("state=gone", "limit=0", "limit=many", "due_before=monday", "after=R-99"):
        assert client.send("GET", f"/v1/requests?{wrong}").status == 400


WRONG: list[tuple[str, int, Callable[[Client], Any]]] = [
    ("no token", 401, lambda c: c.send("GET", f"/v1/requests/{KEY}", authorization=None)),
    ("another token", 401, lambda c: c.send("POST", "/v1/requests", BODY, once="attempt-1", authorization="Bearer x")),
    ("no token for the document", 401, lambda c: c.send("GET", "/v1/openapi.json", authorization=None)),
    ("no such request", 404, lambda c: c.send("GET", f"/v1/requests/{KEY}")),
    ("none to withdraw", 404, lambda c: c.send("POST", f"/v1/requests/{KEY}/withdrawal", SAID)),
    ("no idempotency key", 400, lambda c: c.send("POST", "/v1/requests", BODY)),
    ("a person as one", 400, lambda c: c.send("POST", "/v1/requests", BODY, once=f"{KEY} €".encode().decode("latin1"))),
    ("no JSON", 400, lambda c: c.send("POST", "/v1/requests", KEY.encode() + b"{", once="attempt-1")),
    ("deep JSON", 400, lambda c: c.send("POST", "/v1/requests", b"[" * 9000, once="attempt-1")),
    (
        "a form",
        415,
        lambda c: c.send("POST", "/v1/requests", b"key=4417700101", once="attempt-1", content_type="text/a"),
    ),
    ("too long", 413, lambda c: c.send("POST", "/v1/requests", b" " * (MOST_BODY + 1), once="attempt-1")),
    ("no text", 422, lambda c: c.send("POST", "/v1/requests", {**BODY, "key": int(KEY)}, once="attempt-1")),
    ("an own field", 422, lambda c: c.send("POST", "/v1/requests", {**BODY, KEY: "x"}, once="attempt-1")),
    ("a list", 422, lambda c: c.send("POST", "/v1/requests", [KEY], once="attempt-1")),
    ("another law", 422, lambda c: c.send("POST", "/v1/requests", {**BODY, "law": KEY}, once="attempt-1")),
    ("the key as id", 422, lambda c: c.send("POST", "/v1/requests", {**BODY, "id": KEY}, once="attempt-1")),
    ("to come", 422, lambda c: c.send("POST", "/v1/requests", {**BODY, "received": ago(-1)}, once="attempt-1")),
]


@pytest.mark.parametrize(("status", "ask"), [pytest.param(*w[1:], id=w[0]) for w in WRONG])
@pytest.mark.parametrize("database", ["file"], indirect=True)
def test_what_is_wrong_is_refused_and_not_repeated(
    client: Client, settings: Settings, log: list[str], status: int, ask: Callable[[Client], Any]
) -> None:
    answer = ask(client)
    assert answer.status == status
    assert answer.told["error"]
    assert KEY not in answer.text
    assert KEY not in "\n".join(log)
    assert sum(opened(settings).counts().values()) == 0


@pytest.mark.parametrize("database", ["file"], indirect=True)
def test_an_unexpected_error_tells_neither_client_nor_log_what_was_sent(
    client: Client, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def choke(*_: object) -> None:
        raise ValueError(f"cannot read {KEY}")

    monkeypatch.setattr("pii_tracer.app.intake.single_requests.Rules.judge", choke)
    answer = client.send("POST", "/v1/requests", BODY, once="attempt-1")
    assert (answer.status, answer.told["error"]) == (500, "an unexpected error")
    assert "unexpected ValueError at" in log[0]
    assert KEY not in answer.text + "\n".join(log)


@pytest.mark.parametrize("database", ["file"], indirect=True)
def test_a_store_that_is_gone_is_not_begun_anew(client: Client, settings: Settings) -> None:
    file, away = settings.state / FILE, settings.base / "away"
    file.rename(away)
    refused = client.send("POST", "/v1/requests", BODY, once="attempt-1")
    assert (refused.status, "the request store is missing" in refused.text, file.exists()) == (503, True, False)
    away.rename(file)
    assert client.send("POST", "/v1/requests", BODY, once="attempt-1").status == 201


def test_twenty_clients_at_once_lose_nothing_and_double_nothing(
    client: Client, settings: Settings, log: list[str]
) -> None:
    """Each request is sent by two of them at the same time, with one idempotency key."""
    keys = [f"44177003{n:02}" for n in range(30)]

    def send(n: int) -> tuple[int, str]:
        key = keys[n % 30]
        sent = client.send("POST", "/v1/requests", {**BODY, "key": key}, once=f"attempt-{key}")
        return sent.status, sent.told["request"]["id"]

    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(send, range(60)))
    assert sorted(status for status, _ in done) == [200] * 30 + [201] * 30
    assert len({name for _, name in done}) == 30
    assert [one.receipts for one in opened(settings).requests()] == [1] * 30
    (settings.base / "log.txt").write_text("\n".join(log) + "\n".join(name for _, name in done))
    assert leaks(Person(values=tuple(keys)), [settings.base]) == []


@pytest.mark.parametrize("database", ["file"], indirect=True)
def test_the_document_has_every_route_and_every_field(client: Client) -> None:
    told = client.send("GET", "/v1/openapi.json").told
    assert {(path, method) for path, of in told["paths"].items() for method in of} == {
        (o.path, o.method.lower()) for o in OPERATIONS
    }
    schemas = told["components"]["schemas"]
    assert set(schemas["NewRequest"]["properties"]) >= {"subject", "key", "law", "received", "noticed"}
    assert "key" not in schemas["RequestView"]["properties"]
    used = {
        part.split('"')[0] for part in client.send("GET", "/v1/openapi.json").text.split("#/components/schemas/")[1:]
    }
    assert used <= set(schemas)
