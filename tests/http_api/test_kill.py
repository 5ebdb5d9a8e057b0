"""The server is killed while clients send: what it answered is there, and what is sent again is there once."""

from __future__ import annotations

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pii_tracer.cli.main import run
from tests.http_api.clients import Client, served
from tests.intake.places import opened, place

KEYS = [f"44177{n:05}" for n in range(120)]


def send(client: Client, key: str) -> tuple[int, str]:
    body = {"subject": "user", "key": key, "law": "GDPR"}
    answer = client.send("POST", "/v1/requests", body, once=f"attempt-{key}")
    return answer.status, answer.told["request"]["id"]


def test_a_killed_server_loses_nothing_and_takes_nothing_twice(tmp_path: Path, database: str | None) -> None:
    settings = place(tmp_path, database=database)
    opened(settings)
    answered: dict[str, str] = {}
    enough = threading.Event()

    def first(key: str) -> None:
        try:
            _, answered[key] = send(client, key)
        except (OSError, http.client.HTTPException):
            return
        if len(answered) == 25:
            enough.set()

    with served(settings) as (client, process), ThreadPoolExecutor(20) as pool:
        sending = [pool.submit(first, key) for key in KEYS]
        assert enough.wait(60)
        process.kill()  # SIGKILL, with twenty requests on their way
        for one in sending:
            one.result()
    assert 25 <= len(answered) < len(KEYS)
    there = {one.id for one in opened(settings).requests()}
    assert set(answered.values()) <= there  # what was answered is kept

    with served(settings) as (client, _), ThreadPoolExecutor(20) as pool:
        again = dict(zip(KEYS, pool.map(lambda key: send(client, key), KEYS), strict=True))
    assert all(again[key] == (200, name) for key, name in answered.items())
    store = opened(settings)
    assert {name for _, name in again.values()} == {one.id for one in store.requests()}
    assert [one.receipts for one in store.requests()] == [1] * len(KEYS)
    assert sorted(store.key_of(name) for _, name in again.values()) == KEYS


@pytest.mark.parametrize("token", [None, "", "short"])
def test_nobody_serves_without_a_token(
    tmp_path: Path, token: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = place(tmp_path)
    monkeypatch.delenv("PII_TRACER_REQUESTS_TOKEN", raising=False)
    if token is not None:
        monkeypatch.setenv("PII_TRACER_REQUESTS_TOKEN", token)
    assert run(["requests", "serve", "--estate", str(settings.estate_file), "--state", str(settings.state)]) == 2
    assert "token is missing" in capsys.readouterr().err
