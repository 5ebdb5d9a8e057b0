"""Sending: always to the file, to a receiver where one is configured, and never in the way of the erasure."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pii_tracer.run import openlineage_sender
from pii_tracer.run.journal import Journal
from pii_tracer.run.openlineage_sender import Sender, Sent
from pii_tracer.run.runner import run
from tests.run.fakes import (
    FakeLease,
    Fuse,
    Killed,
    Ticking,
    World,
)
from tests.run.test_openlineage_events import Counting, the_plan


class Receiver(ThreadingHTTPServer):
    """What OpenLineage's HTTP transport posts, and how it is answered: when `answers` is set."""

    def __init__(self, status: int = 201) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.answers = status, threading.Event()
        self.answers.set()
        self.got: list[tuple[str, dict[str, object]]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, json.loads(body)))
        self.server.answers.wait()
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    import os

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [n for n in os.environ if n.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(name)
    yield
    for name in [n for n in os.environ if n.startswith("OPENLINEAGE")]:  # the client sets some by itself
        os.environ.pop(name)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.answers.set()
    server.shutdown()
    server.server_close()
    thread.join()


def session(folder: Path, warned: list[str], world: World | None = None, fuse: Fuse | None = None) -> Sent | None:
    """One process of a run with its events; None when it was killed."""
    clock = Ticking()
    journal = Journal.open(folder / "j", clock)
    sender = Sender(the_plan(), folder / "events.ndjson", warned.append)
    executor = Counting(world or World(), fuse or Fuse(), clock=clock)
    try:
        run(
            the_plan(),
            {"fake": executor},
            journal,
            clock=clock,
            lease=FakeLease(),
            on_event=lambda event: sender.follow(journal.records),
        )
    except Killed:
        return None
    sender.follow(journal.records)
    return sender.finish()


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "events.ndjson").read_text().splitlines()]


def test_without_a_receiver_the_file_is_all(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    warned: list[str] = []
    sent = session(tmp_path, warned)
    assert sent == Sent(str(tmp_path / "events.ndjson"), 6, 0, None, None)
    assert [e["eventType"] for e in lines(tmp_path)] == ["START", "START", "COMPLETE", "START", "COMPLETE", "COMPLETE"]
    assert (tmp_path / "events.ndjson").stat().st_mode & 0o077 == 0
    assert (warned, capfd.readouterr().out) == ([], "")


def test_a_receiver_gets_the_same_events_in_order(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{receiver.server_port}")
    sent = session(tmp_path, [])
    assert sent is not None
    assert (sent.delivered, sent.receiver, sent.problem) == (6, "http", None)
    assert {path for path, _ in receiver.got} == {"/api/v1/lineage"}
    told = [(e["eventTime"], e["eventType"], e["run"]["runId"]) for e in lines(tmp_path)]  # type: ignore[index]
    assert [(e["eventTime"], e["eventType"], e["run"]["runId"]) for _, e in receiver.got] == told  # type: ignore[index]


def test_the_clients_own_configuration_file_is_obeyed(tmp_path: Path) -> None:
    log = tmp_path / "out" / "log"
    log.parent.mkdir()
    config = f"transport:\n  type: file\n  log_file_path: {log}\n  append: true\n"
    (tmp_path / "openlineage.yml").write_text(config)
    sent = session(tmp_path, [])
    assert sent is not None
    assert (sent.delivered, sent.receiver) == (6, "file")
    assert len(log.read_text().splitlines()) == 6


def test_disabled_is_disabled(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{receiver.server_port}")
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    sent = session(tmp_path, [])
    assert sent is not None
    assert (sent.told, sent.delivered, sent.receiver, receiver.got) == (6, 0, None, [])


def test_a_receiver_that_is_down_stops_nothing_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(openlineage_sender, "PATIENCE", 0.5)
    warned: list[str] = []
    with socket.socket() as deaf:  # it refuses connections, and nobody else gets its port meanwhile
        deaf.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{deaf.getsockname()[1]}/?token=s3cret")
        sent = session(tmp_path, warned)
    assert sent is not None
    assert (sent.told, sent.delivered, len(lines(tmp_path))) == (6, 0, 6)
    assert sent.problem
    assert len(warned) == 1
    assert "s3cret" not in f"{sent}{warned}{capfd.readouterr()}"


@pytest.mark.parametrize("hangs", [False, True])
def test_a_receiver_that_fails_or_hangs_is_not_waited_for(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    if hangs:
        receiver.answers.clear()
    else:
        receiver.status = 500
    monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{receiver.server_port}")
    monkeypatch.setattr(openlineage_sender, "PATIENCE", 0.5)
    warned: list[str] = []
    others = threading.enumerate()
    sent = session(tmp_path, warned)
    assert not hangs or [t for t in threading.enumerate() if t.name == "openlineage" and t not in others], "it sends"
    assert sent is not None
    assert sent.problem
    assert (sent.told, len(warned)) == (6, 1)


def test_a_wrong_configuration_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "openlineage.yml").write_text("transport:\n  type: pigeon\n")
    warned: list[str] = []
    sent = session(tmp_path, warned)
    assert sent is not None
    assert (sent.told, sent.delivered, len(warned)) == (6, 0, 1)
    assert sent.problem


@pytest.mark.parametrize("moment", range(15))
@pytest.mark.parametrize("torn", [0, 9])
def test_after_a_kill_no_event_is_missing_or_told_twice(tmp_path: Path, moment: int, torn: int) -> None:
    world = World()
    session(tmp_path, [], world, Fuse(moment))
    file = tmp_path / "events.ndjson"
    if file.exists():
        with file.open("r+b") as stream:
            stream.truncate(max(0, file.stat().st_size - torn))
    sent = session(tmp_path, [], world)
    assert sent is not None
    told = [json.dumps(e, sort_keys=True) for e in lines(tmp_path)]
    assert len(told) == len(set(told)) == sent.told
    assert [e["eventType"] for e in lines(tmp_path)][-1] == "COMPLETE"
    again = session(tmp_path, [], world)
    assert again is not None
    assert (again.told, [json.dumps(e, sort_keys=True) for e in lines(tmp_path)]) == (sent.told, told)
