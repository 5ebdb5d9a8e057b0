"""Whose a record is by a key of several columns: all of them are the person's, wherever in the record they stand."""

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
from pii_tracer.model.datasets import Format, JsonAccess, KeyPart, KeySet, Match, MatchTerm
from pii_tracer.scan.known_columns import row_columns
from pii_tracer.scan.value_forms import build_patterns
from tests.kits.tenant_rows import NAME, Ring

SCHEMAS = ClusterSchemas(KafkaCluster(name="c", bootstrap="b:1"), Path())
TOPIC = Topic.model_validate(
    {
        "name": "t",
        "of": "users",
        "key": {"format": "string", "column": "user_id"},
        "value": {"format": "json", "fields": {"who.tenant": "tenant_id", "who.user": "user_id"}},
    }
)
TENANT = KeyPart(column="value", access=(JsonAccess(path=("who", "tenant")),), type="string")
USER = KeyPart(column="value", access=(JsonAccess(path=("who", "user")),), type="string")
BY_VALUE = Match(terms=(MatchTerm(**dict(TENANT), key_set=NAME, beside=(USER,)),))
BY_BOTH = Match(terms=(MatchTerm(**dict(TENANT), key_set=NAME, beside=(KeyPart(column="key", type="string"),)),))
ASHA = {("4", "17")}
MAIL = KeySet(name="customer.email", origin="email", weak=False, values=(("p0", "asha@north.example"),))
PATTERNS = build_patterns([Ring(ASHA).keys, MAIL])
VALUES = {NAME: frozenset(value for _, value in Ring(ASHA).keys.values)}


def record(key: str | None, content: Any) -> Record:
    data = None if content is None else json.dumps(content).encode()
    return Record(0, 1, 1, None if key is None else key.encode(), data)


def is_hers(match: Match, one: Record) -> bool:
    return RecordMatcher(TOPIC, match, VALUES, SCHEMAS, keyless=True).matches(one)


def is_seen(match: Match, one: Record) -> bool:
    """As the verifier looks at it, in code of its own."""
    found = scan_record(one, TOPIC, PATTERNS.comparing(row_columns(match, Format.KAFKA)), SCHEMAS)
    return any(hit.key_set == NAME for hit in found.hits())


TENANTS = st.sampled_from(["4", "5", 4, 44, None])
USERS = st.sampled_from(["17", 17, "1", 18, None])


@given(TENANTS, USERS, st.sampled_from(["17", "18", "4"]))
def test_all_columns_are_hers_or_the_record_is_not(tenant: Any, user: Any, key: str) -> None:
    one = record(key, {"who": {"tenant": tenant, "user": user}})
    for match, second in ((BY_VALUE, user), (BY_BOTH, key)):
        hers = (str(tenant), str(second)) in ASHA
        assert (is_hers(match, one), is_seen(match, one)) == (hers, hers)


@pytest.mark.parametrize("match", [BY_VALUE, BY_BOTH], ids=["in the value", "in both"])
def test_a_tombstone_names_nobody_where_the_value_has_a_column(match: Match) -> None:
    assert not is_hers(match, record("17", None))
    assert not is_seen(match, record("17", None))


@pytest.mark.parametrize(
    ("match", "key", "content"),
    [
        (BY_VALUE, "17", {"who": {"user": 17}}),
        (BY_BOTH, "17", {"who": {}}),
        (BY_BOTH, None, {"who": {"tenant": "4"}}),
    ],
)
def test_a_record_that_lacks_a_column_may_be_hers_and_is_never_decided(
    match: Match, key: str | None, content: Any
) -> None:
    with pytest.raises(Undecodable, match="a declared member of a key of several columns is missing"):
        is_hers(match, record(key, content))


def test_one_that_cannot_be_hers_is_somebody_elses() -> None:
    assert not is_hers(BY_VALUE, record("1", {"who": {"user": 18}}))
    assert not is_hers(BY_VALUE, record("1", {"event": "tick"}))
