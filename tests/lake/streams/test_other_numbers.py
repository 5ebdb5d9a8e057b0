"""Records of a topic with another system's numbers: exactly the declared member is left out."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from pii_tracer.config.kafka import Topic
from pii_tracer.lake.streams.kafka.record_scan import scan_record
from pii_tracer.lake.streams.kafka.records import Record
from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.hits import Form
from pii_tracer.scan.value_forms import build_patterns

KEY = "7340219981"
SETS = [KeySet(name="rider.id", origin="id", weak=False, values=(("s", KEY),))]
PATTERNS = build_patterns(SETS).leaving_out({"value.$.trip.driver": {"rider.id"}, "key": {"rider.id"}})
TOPIC = Topic.model_validate({"name": "t", "of": "s.trips", "key": {"format": "string"}, "value": {"format": "json"}})


def record(text: str, key: str = "k", headers: Any = ()) -> Record:
    return Record(partition=0, offset=0, timestamp=0, key=key.encode(), value=text.encode(), headers=tuple(headers))


@pytest.mark.parametrize(
    "given",
    [
        record(json.dumps({"trip": {"driver": KEY}, "note": "x"})),
        record(json.dumps({"trip": {"driver": int(KEY)}})),
        record("{}", key=KEY),
    ],
    ids=["text", "number", "the whole key"],
)
def test_the_declared_place_is_left_out_and_counted(given: Record) -> None:
    found = scan_record(given, TOPIC, PATTERNS, None)  # type: ignore[arg-type]
    assert found.hits() == ()
    assert [hit.count for hit in found.left.hits()] == [1]
    assert scan_record(given, TOPIC, build_patterns(SETS), None).hits()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        record(json.dumps({"trip": {"driver": KEY}, "note": f"of {KEY}"})),
        record(json.dumps({"trip": {"driver": KEY, KEY: 1}})),
        record(json.dumps({"driver": KEY})),
        record(json.dumps({"trip": {"driver": f"of {KEY}"}})),
        record(f'{{"trip": {{"driver": "{KEY}", "driver": "{KEY}"}}}}'),
        record("".join((json.dumps({"trip": {"driver": KEY}}), " ", KEY))),
        record("{}", headers=[("key", KEY.encode())]),
    ],
    ids=["beside it", "a member's name", "another place", "a longer text", "told twice", "no JSON", "a header"],
)
def test_the_same_number_anywhere_else_counts(given: Record) -> None:
    assert scan_record(given, TOPIC, PATTERNS, None).hits()  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [KEY, "1094795585"], ids=["bytes", "bytes that are letters"])
@pytest.mark.parametrize("order", ["big", "little"])
def test_a_key_or_value_that_is_a_packed_number_counts(number: str, order: Literal["big", "little"]) -> None:
    """As Kafka's `LongSerializer` writes it; the bytes of many a number are text."""
    sets = [KeySet(name="rider.id", origin="id", weak=False, values=(("s", number),))]
    topic = Topic.model_validate({"name": "t", "of": "s.trips", "value": {"format": "string"}})
    packed = int(number).to_bytes(8, order)
    for key, value in ((packed, b"x"), (b"k", packed)):
        given = Record(partition=0, offset=0, timestamp=0, key=key, value=value, headers=())
        assert [hit.form for hit in scan_record(given, topic, build_patterns(sets), None).hits()] == [Form.NUMBER]  # type: ignore[arg-type]
    given = Record(partition=0, offset=0, timestamp=0, key=packed + b"\1", value=b"x", headers=())
    assert scan_record(given, topic, build_patterns(sets), None).hits() == ()  # type: ignore[arg-type]
