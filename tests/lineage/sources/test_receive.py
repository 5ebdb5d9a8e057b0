from __future__ import annotations

import gzip
import http.client
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from openlineage.client import OpenLineageClient, event_v2
from openlineage.client.transport.http import HttpCompression, HttpConfig, HttpTransport

from pii_tracer.cli.main import run
from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.harvest import Given, harvest_all
from pii_tracer.lineage.sources.openlineage import http_receiver
from pii_tracer.lineage.sources.openlineage.event_log import EventLog
from pii_tracer.lineage.sources.openlineage.http_receiver import Receiver
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import UsageError
from tests.kits.test_kept_connections import HELD_BACK, quickest
from tests.lineage.conftest import COPY, PAYMENTS, column_facet, dataset, event

FACET = column_facet(pan=(PAYMENTS, "pan", "IDENTITY"))
EVENT = event("1", "COMPLETE", [dataset(PAYMENTS)], [dataset(COPY, columnLineage=FACET)])


@contextmanager
def serving(folder: Path, count: int | None = None, key: str | None = None) -> Iterator[Receiver]:
    """A receiver that runs until the block ends, or `count` events came."""
    receiver = Receiver("127.0.0.1", 0, EventLog(folder), key)
    thread = threading.Thread(target=receiver.run, args=(count or 10**9, 30))
    thread.start()
    try:
        yield receiver
    finally:
        receiver._server.shutdown()
        with receiver._changed:
            receiver.received.stored += 10**9
            receiver._changed.notify_all()
        thread.join()


def post(receiver: Receiver, body: bytes, path: str = "/api/v1/lineage", **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(receiver.address, timeout=60)
    sent = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
    connection.request("POST", path, body, sent)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if text else None


def lines(folder: Path) -> int:
    return sum(len(f.read_text().splitlines()) for f in folder.glob("*.ndjson"))


@pytest.mark.parametrize("packed", [None, HttpCompression.GZIP])
def test_the_reference_client_sends_and_harvest_reads(tmp_path: Path, packed: HttpCompression | None):
    with serving(tmp_path / "log") as receiver:
        config = HttpConfig(url=f"http://{receiver.address}", compression=packed)
        client = OpenLineageClient(transport=HttpTransport(config))
        for state in (event_v2.RunState.START, event_v2.RunState.COMPLETE):
            client.emit(
                event_v2.RunEvent(
                    eventTime="2026-11-01T10:00:00Z",
                    eventType=state,
                    run=event_v2.Run(str(uuid.UUID(int=1))),
                    job=event_v2.Job("jobs", "copy"),
                    inputs=[event_v2.InputDataset("file", "/a")],
                    outputs=[event_v2.OutputDataset("file", "/b")],
                )
            )
        client.close()
    found = harvest_all(LineageSources(), Given(tmp_path, log=tmp_path / "log"))
    assert found.summary.events == 2
    assert found.graph.downstream(DatasetId(namespace="file", name="/a")) == (DatasetId(namespace="file", name="/b"),)


def test_single_batch_gzip_and_chunks(tmp_path: Path):
    body = json.dumps(EVENT).encode()
    batch = json.dumps([EVENT, event("2", "START", [], [])]).encode()
    with serving(tmp_path) as receiver:
        assert post(receiver, body) == (201, None)
        assert post(receiver, gzip.compress(body), Content_Encoding="gzip") == (201, None)
        assert post(receiver, iter([body[:10], body[10:]])) == (201, None)  # type: ignore[arg-type]
        status, answer = post(receiver, batch, "/api/v1/lineage/batch")
        assert (status, answer["summary"]) == (201, {"received": 2, "successful": 2, "failed": 0})
        assert (receiver.received.stored, receiver.received.known) == (2, 3)
    assert lines(tmp_path) == 2


def test_the_answer_to_a_batch_is_not_held_back(tmp_path: Path):
    with serving(tmp_path) as receiver:
        connection = http.client.HTTPConnection(receiver.address)
        took = quickest(connection, "POST", "/api/v1/lineage/batch", json.dumps([EVENT]).encode())
        connection.close()
    assert took < HELD_BACK


def test_a_bad_event_of_a_batch_is_named_and_the_others_are_stored(tmp_path: Path):
    with serving(tmp_path) as receiver:
        status, answer = post(receiver, json.dumps([EVENT, {"a": 1}, 5]).encode(), "/api/v1/lineage/batch")
    assert status == 400
    assert [f["index"] for f in answer["failed_events"]] == [1, 2]
    assert lines(tmp_path) == 1


@pytest.mark.parametrize(
    ("body", "path", "headers", "status"),
    [
        (b"{", "/api/v1/lineage", {}, 400),
        (b"[]", "/api/v1/lineage", {}, 400),
        (b'{"run": {}}', "/api/v1/lineage", {}, 400),
        (b"{}", "/api/v1/lineage/batch", {}, 400),
        (b"{}", "/api/v1/other", {}, 404),
        (b"not gzip", "/api/v1/lineage", {"Content_Encoding": "gzip"}, 400),
        (gzip.compress(b"{}" * 1000, mtime=0)[:-12], "/api/v1/lineage", {"Content_Encoding": "gzip"}, 400),
        (b"{}", "/api/v1/lineage", {"Content_Encoding": "br"}, 415),
        (b"{}", "/api/v1/lineage", {"Content_Type": "text/plain"}, 415),
        (b"", "/api/v1/lineage", {"Content_Length": str(10**12)}, 413),
        (b"", "/api/v1/lineage", {"Content_Length": "-5"}, 411),
        (b"", "/api/v1/lineage", {"Content_Length": "9" * 5000}, 411),
        (b"-5\r\n\r\n", "/api/v1/lineage", {"Transfer_Encoding": "chunked"}, 400),
        (b"zz\r\n\r\n", "/api/v1/lineage", {"Transfer_Encoding": "chunked"}, 400),
        (b"ffffffff\r\n", "/api/v1/lineage", {"Transfer_Encoding": "chunked"}, 413),
    ],
)
def test_refusals_say_why_and_store_nothing(tmp_path: Path, body, path, headers, status):
    with serving(tmp_path) as receiver:
        got, answer = post(receiver, body, path, **headers)
        assert got == status
        assert answer["error"]
        assert receiver.received.refused == 1
        assert post(receiver, json.dumps(EVENT).encode()) == (201, None)
    assert lines(tmp_path) == 1


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_receiver, "LARGEST_BODY", 100_000)
    bomb = gzip.compress(b" " * 10_000_000)
    assert len(bomb) < 100_000
    with serving(tmp_path) as receiver:
        assert post(receiver, bomb, Content_Encoding="gzip")[0] == 413


def test_the_bearer_token(tmp_path: Path):
    body = json.dumps(EVENT).encode()
    with serving(tmp_path, key="s3cret") as receiver:
        assert post(receiver, body)[0] == 401
        assert post(receiver, body, Authorization="Bearer wrong")[0] == 401
        assert lines(tmp_path) == 0
        assert post(receiver, body, Authorization="Bearer s3cret")[0] == 201


def test_without_a_token_only_loopback_is_served(tmp_path: Path):
    with pytest.raises(UsageError, match="reached from other machines"):
        Receiver("0.0.0.0", 0, EventLog(tmp_path))


def test_the_command_stops_after_count_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Until it listens nobody knows its port, so the events are sent from a thread that reads what it says."""
    state = tmp_path / "state"

    def send() -> None:
        for _ in range(400):
            said = capsys.readouterr().err
            if "listening on" in said:
                host = said.split("http://")[1].split("/")[0]
                connection = http.client.HTTPConnection(host, timeout=60)
                connection.request("POST", "/api/v1/lineage", json.dumps(EVENT), {"Content-Type": "application/json"})
                connection.getresponse().read()
                return
            threading.Event().wait(0.05)

    sender = threading.Thread(target=send)
    sender.start()
    code = run(["receive", "--listen", "127.0.0.1:0", "--count", "1", "--seconds", "20", "--state", str(state)])
    sender.join()
    assert code == 0
    assert "1 events stored" in capsys.readouterr().out
    assert lines(state / "lineage" / "events") == 1


def test_a_wrong_address_is_a_usage_error(capsys: pytest.CaptureFixture[str]):
    assert run(["receive", "--listen", "nowhere"]) == 2
    assert "is not HOST:PORT" in capsys.readouterr().err
