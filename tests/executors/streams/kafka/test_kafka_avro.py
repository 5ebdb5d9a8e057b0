"""Records in Avro, with a schema file or a registry's framing: erased and verified like JSON, refused when unknown."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from pii_tracer.config.kafka import KafkaCluster, RecordPart
from pii_tracer.lake.streams.kafka.records import Undecodable, decode
from pii_tracer.lake.streams.kafka.schema_lookup import ClusterSchemas
from pii_tracer.lake.streams.kafka.schema_registry import AUTH
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import EstateError, RunError
from tests.kafkasupport import BY_VALUE, MAIL, USER, Broker, broker, planned
from tests.servers import served

__all__ = ["broker"]

PERSON = {"type": "record", "name": "Person", "fields": [{"name": "id", "type": "string"}]}
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "user", "type": ["null", PERSON]},
        {"name": "mail", "type": "string"},
        {"name": "price", "type": "double"},
    ],
}
OLDER = {**SCHEMA, "fields": [SCHEMA["fields"][1], SCHEMA["fields"][0]]}  # type: ignore[index]
SECRET = "reader:hunter2"


def avro(user: str, mail: str, schema: dict[str, Any] = SCHEMA, schema_id: int | None = None) -> bytes:
    stream = io.BytesIO()
    if schema_id is not None:
        stream.write(struct.pack(">bI", 0, schema_id))
    schemaless_writer(stream, parse_schema(schema), {"user": {"id": user}, "mail": mail, "price": 1.5})
    return stream.getvalue()


class Registry(BaseHTTPRequestHandler):
    """As a registry answers: 401 without credentials, 404 for an unknown id, the schema as a string in JSON."""

    def do_GET(self) -> None:
        expected = "Basic " + base64.b64encode(SECRET.encode()).decode()
        known = {f"/schemas/ids/{n}": s for n, s in ((1, OLDER), (7, SCHEMA))}
        if self.headers.get("Authorization") != expected:
            self.send_error(401)
        elif self.path not in known:
            self.send_error(404)
        else:
            body = json.dumps({"schema": json.dumps(known[self.path])}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing between the lines of a test."""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv(AUTH, SECRET)
    server = HTTPServer(("127.0.0.1", 0), Registry)
    with served(server):
        yield f"http://127.0.0.1:{server.server_port}"


def declared(tmp_path: Path, **more: Any) -> dict[str, Any]:
    for name, schema in (("order", SCHEMA), ("older", OLDER)):
        (tmp_path / f"{name}.avsc").write_text(json.dumps(schema))
    return {"key": {"format": "string"}, "value": {"format": "avro", "fields": {"user.id": "uid"}, **more}}


def test_framed_records_of_two_schemas_are_erased_and_verified(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic("orders", cleanup_policy="compact")
    broker.send(topic, ("o-1", avro(USER, MAIL, OLDER, 1)), ("o-2", avro("2", "x@example.org", SCHEMA, 7)))
    broker.send(topic, ("o-3", avro(USER, MAIL, SCHEMA, 7)))
    parts = declared(
        tmp_path, framed=True, schema_ids={1: str(tmp_path / "older.avsc"), 7: str(tmp_path / "order.avsc")}
    )
    world = planned(broker, topic, parts, Strategy.TOMBSTONE, BY_VALUE)
    before = world.look()
    assert {r.where for r in before.bytes.residue} == {"record value: value.$.mail", "record value: value.$.user.id"}
    assert before.rows.rows_left == 2
    tombstones, _ = world.run()
    assert tombstones.facts["tombstones"] == 2
    after = world.look()
    assert after.bytes.clean
    assert after.baseline is not None
    assert after.baseline.states[0].rows_total == 1
    assert MAIL.encode() not in broker.segments(topic)


def test_an_unknown_schema_stops_it_and_is_never_clean(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic("orders", cleanup_policy="compact")
    broker.send(topic, ("o-1", avro(USER, MAIL, SCHEMA, 9)))
    parts = declared(tmp_path, framed=True, schema_ids={7: str(tmp_path / "order.avsc")})
    world = planned(broker, topic, parts, Strategy.TOMBSTONE, BY_VALUE)
    with pytest.raises(RunError, match="schema of a record is not known"):
        world.executor().run(world.steps[0], world.copy)
    assert world.look().bytes.unverified


@pytest.mark.parametrize(
    "data",
    [
        avro("1", "x", SCHEMA) + b"\0",
        avro("1", "x", SCHEMA)[:-1],
        avro("1", "x", OLDER),
        b"",
        b"{}",
    ],
    ids=["more behind it", "cut", "another schema", "empty", "JSON"],
)
def test_bytes_that_are_not_of_the_schema_are_told(tmp_path: Path, data: bytes) -> None:
    part = RecordPart.model_validate(declared(tmp_path, schema_file="order.avsc")["value"])
    schemas = ClusterSchemas(KafkaCluster(name="c", bootstrap="b:1"), tmp_path)
    assert decode(part, avro("1", "x"), "value", schemas)["user"] == {"id": "1"}
    with pytest.raises(Undecodable):
        decode(part, data, "value", schemas)


def test_framed_json_is_read_behind_its_frame(tmp_path: Path) -> None:
    part = RecordPart.model_validate({"format": "json", "framed": True})
    schemas = ClusterSchemas(KafkaCluster(name="c", bootstrap="b:1"), tmp_path)
    assert decode(part, b"\0\0\0\0\x05" + b'{"a": 1}', "value", schemas) == {"a": "1"}
    for data in (b'{"a": 1}', b"\0\0"):
        with pytest.raises(Undecodable):
            decode(part, data, "value", schemas)


def test_the_registry_is_asked_for_what_no_file_has(registry: str, tmp_path: Path) -> None:
    part = RecordPart.model_validate(declared(tmp_path, framed=True)["value"])
    schemas = ClusterSchemas(KafkaCluster(name="c", bootstrap="b:1", registry_url=registry), tmp_path)
    assert decode(part, avro("5", "y", OLDER, 1), "value", schemas)["user"] == {"id": "5"}
    with pytest.raises(Undecodable, match="does not know"):
        decode(part, avro("5", "y", SCHEMA, 2), "value", schemas)


def test_a_registry_that_refuses_or_is_down_is_an_error_not_a_verdict(
    registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = RecordPart.model_validate(declared(tmp_path, framed=True)["value"])
    monkeypatch.setenv(AUTH, "reader:wrong")
    cluster = KafkaCluster(name="c", bootstrap="b:1", registry_url=registry)
    with pytest.raises(EstateError, match="HTTP 401") as caught:
        ClusterSchemas(cluster, tmp_path).avro(part, 1)
    assert "wrong" not in str(caught.value)
    down = cluster.model_copy(update={"registry_url": "http://127.0.0.1:9"})
    with pytest.raises(EstateError, match="does not answer"):
        ClusterSchemas(down, tmp_path).avro(part, 1)


def test_a_registry_that_is_down_makes_a_topic_unread_at_verification(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic("orders", cleanup_policy="compact")
    broker.send(topic, ("o-1", avro(USER, MAIL, SCHEMA, 7)))
    world = planned(broker, topic, declared(tmp_path, framed=True), Strategy.TOMBSTONE, BY_VALUE)
    (cluster,) = world.estate.kafka
    down = world.estate.model_copy(
        update={"kafka": (cluster.model_copy(update={"registry_url": "http://127.0.0.1:9"}),)}
    )
    with pytest.raises(EstateError):
        replace(world, estate=down).look()
