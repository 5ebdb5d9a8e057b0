"""Binary cells that are text: raw tables keep the messages of Kafka so. Short and weak values count in them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.value_forms import build_patterns
from tests.scan import drawn_cells
from tests.scan.support import avro, parquet, scan

NUMBER, NAME, KEY = "5510209", "José O'Neil", "0f8fad5b-d9cb-469f-a165-70867728950e"
MESSAGES = {
    "json": lambda value: json.dumps({"user": value, "at": "Pune"}),
    "json, a number": lambda value: json.dumps({"user": int(value) if value.isdigit() else value}),
    "several of them": lambda value: f'{{"n": 1}}\n{{"user": "{value}"}}\n',
    "csv": lambda value: f"7,{value},x",
    "xml": lambda value: f"<user>{value}</user>",
    "logfmt": lambda value: f"at=Pune user={value}",
}
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "value", "type": "bytes"}]}


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("frame", [b"", b"\0\0\0\0\x07"])
@pytest.mark.parametrize(("value", "weak"), [(NUMBER, True), ("Rao", False), (NAME, False), (KEY, False)])
def test_a_value_in_a_message_of_bytes_is_found(message: str, frame: bytes, value: str, weak: bool) -> None:
    text = MESSAGES[message](value)
    if frame and not text.startswith("{"):
        return
    patterns, cells = drawn_cells.patterns_of((value, weak)), [b"other", frame + text.encode(), b"\xff\xfe\0"]
    for result in (
        scan("a.parquet", parquet(pa.table({"value": pa.array(cells, pa.binary())})), patterns),
        scan("a.avro", avro(SCHEMA, [{"value": cell} for cell in cells]), patterns),
    ):
        assert {(hit.key_set, hit.weak) for hit in result.hits} == {("key0", weak)}


def test_the_member_of_a_message_is_named() -> None:
    collector = Collector(drawn_cells.patterns_of((NUMBER, True)))
    collector.binary(json.dumps({"user": {"id": int(NUMBER)}}).encode(), "data", "value")
    assert [(hit.column, hit.count) for hit in collector.hits()] == [("value.$.user.id", 1)]


@pytest.mark.parametrize(
    "cell", [b"\x02" + NUMBER.encode(), NUMBER.encode() + b"\xff", b"\0" + NUMBER.encode(), b"a" + b"5510209123"]
)
def test_bytes_that_are_no_text_hold_no_weak_value(cell: bytes) -> None:
    collector = Collector(drawn_cells.patterns_of((NUMBER, True)))
    collector.binary(cell, "data", "value")
    assert collector.hits() == ()


@pytest.mark.parametrize(
    "written", ["Jos\\u00e9 O''Neil", "Jos%C3%A9+O%27Neil", "J\\u006fs\u00e9 O'Neil", "José\u200b O'Neil"]
)
def test_altered_values_in_messages_are_found_as_in_text(written: str) -> None:
    collector = Collector(drawn_cells.patterns_of((NAME, False)))
    collector.binary(json.dumps({"n": written}, ensure_ascii=False).encode(), "data", "value")
    assert collector.hits()


def test_a_longer_key_of_a_message_does_not_hide_a_short_one() -> None:
    keys = KeySet(name="key", origin="key", weak=False, values=(("s1", "AB12"), ("s2", "P-55102")))
    collector = Collector(build_patterns([keys]))
    collector.binary(b'{"user": "AB12", "other": "P-551020"}', "data", "value")
    assert [hit.column for hit in collector.hits()] == ["value.$.user"]
