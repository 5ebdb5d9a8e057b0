"""Protobuf schemas from a registry: with all that they refer to, and never half of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from pii_tracer.config.kafka import KafkaCluster, RecordPart
from pii_tracer.lake.streams.kafka.records import Undecodable, decode
from pii_tracer.lake.streams.kafka.schema_lookup import ClusterSchemas
from pii_tracer.lake.streams.kafka.schema_registry import AUTH
from pii_tracer.model.errors import EstateError
from tests.protobufsupport import COMMON, ORDER, file, framed, order
from tests.servers import served

SECRET = "reader:hunter2"
PART = RecordPart.model_validate({"format": "protobuf", "framed": True, "fields": {"user.id": "uid"}})
COMMON_V3 = {"name": "common.proto", "subject": "shop/common", "version": 3}
LONE = ORDER.replace('dependency: "common.proto"', "").replace(".shop.Person", ".shop.Shop")


def _registered(text: str, *references: dict[str, Any], **more: Any) -> dict[str, Any]:
    made = file(text)
    made.name = "default"  # registries do not keep the name
    serialized = base64.b64encode(made.SerializeToString()).decode()
    return {"schemaType": "PROTOBUF", "schema": serialized, "references": list(references), **more}


UNUSED = {"name": "unused.proto", "subject": "gone", "version": 1}
BY_ID = {
    7: _registered(ORDER, COMMON_V3),
    8: _registered(LONE),
    9: _registered(ORDER),
    10: {"schema": json.dumps("string")},
    11: {**_registered(ORDER, COMMON_V3), "schema": 'syntax = "proto3"; message Order {}'},
    12: _registered(ORDER, {**COMMON_V3, "version": 4}),
    13: _registered(ORDER, COMMON_V3, {**COMMON_V3, "version": 4}),
    14: {**_registered(ORDER, COMMON_V3), "schema": base64.b64encode(b"\xff\xff").decode()},
    15: _registered(ORDER, COMMON_V3, UNUSED),
}
BY_VERSION = {("shop/common", 3): _registered(COMMON, subject="shop/common", version=3, id=6)}


class Registry(BaseHTTPRequestHandler):
    """As a registry answers: source text unless descriptors are asked for, deleted versions only where asked for."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        expected = "Basic " + base64.b64encode(SECRET.encode()).decode()
        parts, query = urlsplit(self.path).path.split("/")[1:], parse_qs(urlsplit(self.path).query)
        found = None
        if parts[:2] == ["schemas", "ids"] and len(parts) == 3:
            found = BY_ID.get(int(parts[2]))
        elif parts[0] == "subjects" and parts[2] == "versions" and len(parts) == 4 and query.get("deleted") == ["true"]:
            found = BY_VERSION.get((unquote(parts[1]), int(parts[3])))
        if self.headers.get("Authorization") != expected:
            self.send_error(401)
        elif found is None:
            self.send_error(404)
        else:
            if query.get("format") != ["serialized"]:
                found = {**found, "schema": "syntax = ..."}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

    def log_message(self, *_: Any) -> None:
        """Nothing between the lines of a test."""


@pytest.fixture
def schemas(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterSchemas]:
    monkeypatch.setenv(AUTH, SECRET)
    server = HTTPServer(("127.0.0.1", 0), Registry)
    url = f"http://127.0.0.1:{server.server_port}/"
    with served(server):
        yield ClusterSchemas(KafkaCluster(name="c", bootstrap="b:1", registry_url=url), Path())


@pytest.mark.parametrize("schema_id", [7, 15], ids=["what it imports", "a reference that it does not use"])
def test_a_schema_comes_with_what_it_refers_to(schemas: ClusterSchemas, schema_id: int) -> None:
    data = framed(schema_id, b"\x02\x02", order(990000000077, "x@example.org"))
    assert decode(PART, data, "value", schemas)["user"] == {"id": 990000000077, "mail": "x@example.org"}


def test_well_known_files_are_not_asked_for(schemas: ClusterSchemas) -> None:
    assert decode(PART, framed(8, b"\x02\x02", b"\x42\x02\x08\x05"), "value", schemas)["buyer"] == 5


@pytest.mark.parametrize(
    ("schema_id", "reason"),
    [
        (9, "lacks imports"),
        (10, "not Protobuf"),
        (11, "gives no descriptors"),
        (12, "does not know"),
        (13, "two versions"),
        (14, "lacks imports"),
        (99, "does not know"),
    ],
    ids=[
        "an import without a reference",
        "Avro",
        "source text",
        "a version that is gone",
        "two versions of a file",
        "other bytes",
        "an unknown id",
    ],
)
def test_a_schema_that_cannot_be_put_together_reads_nothing(
    schemas: ClusterSchemas, schema_id: int, reason: str
) -> None:
    data = framed(schema_id, b"\x02\x02", order(5, "x"))
    with pytest.raises(Undecodable, match=reason):
        decode(PART, data, "value", schemas)
    asked = len(Registry.asked)
    with pytest.raises(Undecodable, match=reason):
        decode(PART, data, "value", schemas)
    assert len(Registry.asked) == asked, "a topic has millions of records"


def test_a_registry_that_refuses_is_an_error_not_a_verdict(
    schemas: ClusterSchemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(AUTH, "reader:wrong")
    with pytest.raises(EstateError, match="HTTP 401") as caught:
        schemas.protobuf(PART, 7)
    assert "wrong" not in str(caught.value)
