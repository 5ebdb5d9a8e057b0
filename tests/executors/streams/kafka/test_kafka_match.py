"""Whose a record is: the executor's comparison never takes more than the verifier's scan sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.config.kafka import KafkaCluster, Topic
from pii_tracer.lake.streams.kafka.record_scan import scan_record
from pii_tracer.lake.streams.kafka.records import Record, RecordMatcher, Undecodable
from pii_tracer.lake.streams.kafka.schema_lookup import ClusterSchemas
from pii_tracer.model.datasets import Match
from pii_tracer.scan.value_forms import build_patterns
from tests.kafkasupport import BY_KEY, BY_VALUE, KEYS, USER, USERS
from tests.protobufsupport import COMMON, ORDER, descriptor_set, order

TOPIC = Topic.model_validate({"name": "t", "of": "users", **USERS})
SCHEMAS = ClusterSchemas(KafkaCluster(name="c", bootstrap="b:1"), Path())
MATCHER = RecordMatcher(TOPIC, Match(terms=(BY_KEY, BY_VALUE)), {"uid": frozenset([USER])}, SCHEMAS)
PATTERNS = build_patterns(KEYS)

ids = st.sampled_from([USER, int(USER), "1", 1, None, True, 1.5, USER + "0", "0" + USER])
documents = st.recursive(
    ids, lambda inner: st.dictionaries(st.sampled_from(["user", "id", "x"]), inner) | st.lists(inner), max_leaves=8
)


def record(key: str | None, content: Any, *, ascii_only: bool = True) -> Record:
    data = None if content is None else json.dumps(content, ensure_ascii=ascii_only).encode()
    return Record(0, 1, 1, None if key is None else key.encode(), data)


@given(st.sampled_from([USER, "1", USER + "0"]), documents)
def test_what_the_executor_takes_the_verifier_sees(key: str, content: Any) -> None:
    one = record(key, content)
    try:
        taken = MATCHER.matches(one)
    except Undecodable:
        return
    assert not taken or scan_record(one, TOPIC, PATTERNS, SCHEMAS).hits()
    bystander = json.dumps([key, content]).count(USER) == 0
    assert not (bystander and taken)


@pytest.mark.parametrize(
    ("key", "content", "person"),
    [
        (USER, {"user": {"id": "1"}}, True),
        ("1", {"user": {"id": USER}}, True),
        ("1", {"user": {"id": int(USER)}}, True),
        (USER, None, True),
        ("1", None, False),
        ("1", {"user": {"id": USER + "0"}}, False),
        ("1", {"user": {"name": USER}}, False),
        ("1", {"user": None}, False),
        ("1", {"id": USER}, False),
    ],
)
def test_declared_places_are_compared_whole(key: str, content: Any, person: bool) -> None:
    assert MATCHER.matches(record(key, content)) is person


@pytest.mark.parametrize(
    ("key", "content"),
    [(None, {}), ("1", {"user": [{"id": USER}]}), ("1", {"user": {"id": [USER]}}), ("1", {"user": {"id": {"a": 1}}})],
    ids=["no key", "a list of people", "a list of ids", "no single value"],
)
def test_what_may_be_several_peoples_is_never_decided(key: str | None, content: Any) -> None:
    with pytest.raises(Undecodable) as caught:
        MATCHER.matches(record(key, content))
    assert USER not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "person"), [({"user": {"id": USER}}, True), ({"user": {"id": "1"}}, False), (None, False)]
)
def test_where_keys_may_be_missing_the_value_tells(content: Any, person: bool) -> None:
    terms = Match(terms=(BY_KEY, BY_VALUE))
    lenient = RecordMatcher(TOPIC, terms, {"uid": frozenset([USER])}, SCHEMAS, keyless=True)
    assert lenient.matches(record(None, content)) is person
    assert lenient.matches(record(USER, content))


def test_nothing_that_is_printed_holds_a_value() -> None:
    assert USER not in f"{record(USER, {'user': {'id': USER}})!r}{MATCHER!r}"


def _protobuf(tmp_path: Path, person: str) -> RecordMatcher:
    (tmp_path / "order.desc").write_bytes(descriptor_set(COMMON, ORDER))
    value = {"format": "protobuf", "schema_file": "order.desc", "message": "shop.Order", "fields": {"user.id": "uid"}}
    topic = Topic.model_validate({"name": "t", "of": "users", "value": value})
    schemas = ClusterSchemas(KafkaCluster(name="c", bootstrap="b:1"), tmp_path)
    return RecordMatcher(topic, Match(terms=(BY_VALUE,)), {"uid": frozenset([person])}, schemas)


@pytest.mark.parametrize(
    ("person", "data", "is_person"),
    [
        (USER, order(int(USER), ""), True),
        (USER, order(5, ""), False),
        (USER, b"", False),
        (USER, b"\x0a\x00", False),
        ("0", b"", False),
        ("0", b"\x0a\x02\x08\x00", True),
        ("0", order(5, ""), False),
    ],
)
def test_numbers_of_protobuf_are_compared_as_text(tmp_path: Path, person: str, data: bytes, is_person: bool) -> None:
    assert _protobuf(tmp_path, person).matches(Record(0, 1, 1, None, data)) is is_person


def test_a_person_whose_key_is_what_nobody_writes_is_never_decided(tmp_path: Path) -> None:
    with pytest.raises(Undecodable, match="it is unknown whether"):
        _protobuf(tmp_path, "0").matches(Record(0, 1, 1, None, b"\x0a\x00"))
