"""A store that is overloaded or drops connections: tried again within a bound, then told, and resumed without repeating."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pii_tracer.app.execution.run_outputs import step_facts
from pii_tracer.model.actions import Action
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.run_state import RunState, State
from pii_tracer.run.runner import run
from tests.review.plans import plan
from tests.run.fakes import FakeLease, Ticking
from tests.run.history import violations
from tests.s3support import World, standin, step, world
from tests.servers import Kept

__all__ = ["standin", "world"]


class Weather(ThreadingHTTPServer):
    """Passes requests on to the stand-in, but for the next `bad` deletes: refused, or the connection cut.

    late: the delete is passed on, and only its answer is lost.
    """

    def __init__(self, endpoint: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = urlsplit(endpoint).netloc
        self.bad, self.how, self.late = 0, "throttle", False
        self.asked: list[str] = []


class _Handler(Kept):
    server: Weather

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        weather = self.server
        deletes = self.command == "POST" and self.path.endswith("?delete")
        if deletes:
            weather.asked.append(self.path)
        if deletes and weather.bad:
            weather.bad -= 1
            if weather.late:
                self._ask(body)
            if weather.how == "reset":
                self.connection.close()
                self.close_connection = True
                return
            answer = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
            self._answer(503, {"Content-Type": "application/xml"}, answer)
            return
        self._answer(*self._ask(body))

    def _ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        behind = http.client.HTTPConnection(self.server.behind, timeout=60)
        behind.request(self.command, self.path, body, dict(self.headers))
        answer = behind.getresponse()
        data = answer.read()
        behind.close()
        return answer.status, dict(answer.getheaders()), data

    def _answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass


@pytest.fixture
def weather(world: World) -> Iterator[Weather]:
    server = Weather(world.endpoint_url)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """How long the client and the executor would have waited before each further try: in all, not a minute. Others of
    this process, such as servers of earlier tests, wait as ever.
    """
    waited: list[float] = []
    others, real = set(threading.enumerate()) - {threading.current_thread()}, time.sleep

    def wait(seconds: float) -> None:
        (real if threading.current_thread() in others else waited.append)(seconds)

    monkeypatch.setattr("time.sleep", wait)
    yield waited
    assert sum(waited) < 60


def prepared(world: World) -> tuple[str, dict[str, Any]]:
    bucket = world.new("weather")
    versions = [world.put(bucket, f"a/{n}", b"x") for n in range(3)]
    world.put(bucket, "b/other", b"y")
    return bucket, {"bucket": bucket, "region": "ap-south-1", "versions": versions}


def go(tmp_path: Path, weather: Weather, parameters: dict[str, Any]) -> RunState:
    a_plan = plan([step(Action.S3_DELETE_VERSIONS, parameters).model_copy(update={"irreversible": True})], [])
    clock = Ticking()
    through = World(f"http://127.0.0.1:{weather.server_port}")
    journal = Journal.open(tmp_path / "j", clock)
    clock.now = max([clock.now, *(r.time for r in journal.records)])
    state = run(a_plan, {"s3": through.executor()}, journal, clock=clock, lease=FakeLease())
    assert violations(journal.records, a_plan) == []
    return state


@pytest.mark.parametrize("how", ["throttle", "reset"])
def test_a_short_trouble_is_waited_out(world: World, weather: Weather, tmp_path: Path, how: str) -> None:
    bucket, parameters = prepared(world)
    weather.bad, weather.how = 2, how
    assert go(tmp_path, weather, parameters).state is State.COMPLETE
    assert len(weather.asked) == 3
    assert [key for key, _ in world.versions(bucket)] == ["b/other"]


@pytest.mark.parametrize("how", ["throttle", "reset"])
def test_a_long_trouble_ends_after_few_attempts_and_is_resumed(
    world: World, weather: Weather, tmp_path: Path, how: str, waits: list[float]
) -> None:
    bucket, parameters = prepared(world)
    weather.bad, weather.how = 10_000, how
    state = go(tmp_path, weather, parameters)
    assert waits, "it gave the store time"
    assert (state.state, state.done, len(state.failed)) == (State.PARTIAL, (), 1)
    assert len(weather.asked) <= 16, "not once more for each version"
    assert len(world.versions(bucket)) == 4, "nothing was deleted, and nothing is said to be"
    weather.bad = 0
    assert go(tmp_path, weather, parameters).state is State.COMPLETE
    assert [key for key, _ in world.versions(bucket)] == ["b/other"]


@pytest.mark.parametrize("how", ["throttle", "reset"])
def test_a_delete_that_worked_and_whose_answer_was_lost_is_recognised(
    world: World, weather: Weather, tmp_path: Path, how: str
) -> None:
    bucket, parameters = prepared(world)
    weather.bad, weather.how, weather.late = 10_000, how, True
    go(tmp_path, weather, parameters)
    weather.bad, so_far = 0, len(weather.asked)
    assert go(tmp_path, weather, parameters).state is State.COMPLETE
    assert len(weather.asked) == so_far, "seen to be done, not asked for again"
    assert [key for key, _ in world.versions(bucket)] == ["b/other"]
    kinds = [r.kind for r in Journal.open(tmp_path / "j", Ticking()).records]
    assert kinds.count(Kind.STEP_INTENT) == 1


def test_a_legal_hold_keeps_the_step_open_until_it_is_lifted(world: World, weather: Weather, tmp_path: Path) -> None:
    bucket = world.new("held", ObjectLockEnabledForBucket=True)
    versions = [world.put(bucket, f"a/{n}", b"x") for n in range(3)]
    where = {"Bucket": bucket, "Key": "a/1", "VersionId": versions[1]["version_id"]}
    world.client().put_object_legal_hold(**where, LegalHold={"Status": "ON"})
    parameters = {"bucket": bucket, "region": "ap-south-1", "versions": versions}
    state = go(tmp_path, weather, parameters)
    assert (state.state, state.done) == (State.PARTIAL, ())
    assert "AccessDenied" in state.failed[0].reason
    assert [key for key, _ in world.versions(bucket)] == ["a/1"]
    world.client().put_object_legal_hold(**where, LegalHold={"Status": "OFF"})
    assert go(tmp_path, weather, parameters).state is State.COMPLETE
    assert world.versions(bucket) == []
    deleted = step_facts(Journal.open(tmp_path / "j", Ticking()).records)["step_1"]["deleted"]
    assert sorted(item["key"] for item in deleted) == ["a/0", "a/1", "a/2"]
