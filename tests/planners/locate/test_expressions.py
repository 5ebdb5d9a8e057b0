"""Recorded expressions: where a column ends up in them, and how hops compose."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.model.datasets import FieldAccess, JsonAccess
from planners.locate.sql.column_expressions import (
    Fate,
    Place,
    compose,
    locate,
)
from planners.locate.sql.spark_functions import INPUT, compute

FIELD_ID = (FieldAccess(name="id"),)
JSON_ID = (JsonAccess(path=("user_id",)),)
JSON_DEEP = (JsonAccess(path=("user", "id")),)
NOTHING = frozenset({()})
"""In other rows a constant or NULL stands instead."""

LOCATED = [
    ("unchanged", "payments.user_id", "user_id", (), [Place()]),
    ("cast", "CAST(payments.user_id AS STRING)", "user_id", (), [Place((), "CAST(x AS STRING)")]),
    ("struct", "named_struct('id', t.user_id, 'phone', t.phone)", "user_id", (), [Place(FIELD_ID)]),
    ("packed", "to_json(named_struct('user_id', t.user_id, 'pan', t.pan))", "user_id", (), [Place(JSON_ID)]),
    ("packed hash", "to_json(struct(md5(t.user_id) AS user_id))", "user_id", (), [Place(JSON_ID, "MD5(x)")]),
    ("hash", "sha2(CAST(t.user_id AS STRING), 256)", "user_id", (), [Place((), "SHA2(CAST(x AS STRING), 256)")]),
    ("prefix", "concat('u-', t.user_id)", "user_id", (), [Place((), "CONCAT('u-', x)")]),
    ("twice", "concat(t.user_id, '-', t.user_id)", "user_id", (), [Place((), "CONCAT(x, '-', x)")]),
    ("out of a struct", "events.payer.id", "payer", FIELD_ID, [Place()]),
    ("hash out of a struct", "md5(payer.phone)", "payer", (FieldAccess(name="phone"),), [Place((), "MD5(x)")]),
    ("out of JSON", "get_json_object(p.payload, '$.user_id')", "payload", JSON_ID, [Place()]),
    ("part of JSON", "get_json_object(p.payload, '$.user')", "payload", JSON_DEEP, [Place((JsonAccess(path=("id",)),))]),
    ("coalesce", "coalesce(t.phone, 'none')", "phone", (), [Place()]),
    ("hash of a coalesce", "sha2(coalesce(t.phone, g.other), 256)", "phone", (), [Place((), "SHA2(x, 256)")]),
    ("a branch", "CASE WHEN t.ok THEN t.phone END", "phone", (), [Place(instead=frozenset({()}))]),
    ("a branch by itself", "CASE WHEN length(t.phone) > 0 THEN t.phone END", "phone", (), [Place()]),
    ("no placeholder", "CASE WHEN trim(t.phone) NOT IN ('', 'n/a') THEN t.phone END", "phone", (), [Place()]),
    ("a placeholder of a CASE", "CASE t.phone WHEN '-' THEN NULL ELSE t.phone END", "phone", (), [Place()]),
    ("placeholders of numbers", "CASE WHEN t.id IN (0, -1, 999999) THEN NULL ELSE t.id END", "id", (), [Place()]),
    ("one person", "CASE WHEN t.id = 5 THEN 0 ELSE t.id END", "id", (), [Place(instead=frozenset({()}))]),
    ("all but one person", "nullif(t.phone, '+91 98450')", "phone", (), [Place(instead=frozenset({()}))]),
    ("all but one address", "IF(t.mail <> 'a@x.example', t.mail, NULL)", "mail", (), [Place(instead=frozenset({()}))]),
    ("all but one key of letters", "nullif(t.phone, 'u17')", "phone", (), [Place(instead=frozenset({()}))]),
    ("all but one name", "nullif(t.phone, 'Müller')", "phone", (), [Place(instead=frozenset({()}))]),
    ("all but one number", "nullif(t.phone, 5.0)", "phone", (), [Place(instead=frozenset({()}))]),
    ("all but one by exponent", "nullif(t.phone, 1e3)", "phone", (), [Place(instead=frozenset({()}))]),
    ("all but one by base", "nullif(t.phone, '0x1F')", "phone", (), [Place(instead=frozenset({()}))]),
    ("all but a huge one", "nullif(t.phone, 1e999999999)", "phone", (), [Place(instead=frozenset({()}))]),
    ("all but a list", "IF(t.phone IN ('a7', 'AB-12'), NULL, t.phone)", "phone", (), [Place(instead=frozenset({()}))]),
    ("placeholders in other forms", "IF(t.phone IN ('-1', 0.0, 999.0, ' NULL '), NULL, t.phone)", "phone", (), [Place()]),
    ("a part of the persons", "IF(t.phone > '5', t.phone, NULL)", "phone", (), [Place(instead=frozenset({()}))]),
    ("some by length", "CASE WHEN length(t.phone) > 4 THEN t.phone END", "phone", (), [Place(instead=frozenset({()}))]),
    ("some by pattern", "IF(t.phone LIKE '+91%', t.phone, '')", "phone", (), [Place(instead=frozenset({()}))]),
    ("another branch", "if(t.ok, t.phone, u.fax)", "phone", (), [Place(instead=frozenset({("u", "fax")}))]),
    ("the first that is there", "coalesce(t.phone, t.fax, '-')", "phone", (), [Place()]),
    ("what is there otherwise", "coalesce(t.fax, t.phone)", "phone", (), [Place(instead=frozenset({("t", "fax")}))]),
    ("two ways", "coalesce(md5(t.id), sha(t.id))", "id", (), [Place((), "MD5(x)"), Place((), "SHA(x)")]),
    ("an aggregate that keeps it", "max(t.phone)", "phone", (), [Place(group=True)]),
    ("hash of the latest", "md5(last(t.phone))", "phone", (), [Place((), "MD5(x)", group=True)]),
    ("latest by time", "max(struct(t.at, t.phone)).phone", "phone", (), [Place(group=True)]),
    ("filtered", "min(t.phone) FILTER (WHERE t.ok)", "phone", (), [Place(group=True, instead=NOTHING)]),
    ("filtered by itself", "min(t.phone) FILTER (WHERE t.phone <> '')", "phone", (), [Place(group=True)]),
    ("the row before", "lag(t.id) OVER (PARTITION BY t.city, t.day ORDER BY t.at)", "id", (),
     [Place(windows=((("t", "city"), ("t", "day")),), instead=NOTHING)]),
    ("the row before or its own", "lag(t.id, 1, t.id) OVER (PARTITION BY t.city)", "id", (), [Place(windows=((("t", "city"),),))]),
    ("in place of the row before", "lag(t.day, 1, t.id) OVER (PARTITION BY t.city)", "id", (),
     [Place(windows=((("t", "city"),),), instead=NOTHING)]),
    ("a named window", "first_value(t.id) OVER w", "id", (), [Place(windows=((),))]),
]  # fmt: skip

HIDDEN = [
    ("joined with another column", "concat(t.user_id, '-', t.pan)", "pan", ()),
    ("joined with its namesake", "concat(a.user_id, b.user_id)", "user_id", ()),
    ("does not parse", "sha2((", "phone", ()),
    ("the name does not occur", "somewhere.else", "phone", ()),
    ("an index in JSON", "get_json_object(p.payload, '$.users[0]')", "payload", JSON_ID),
    ("a function of the whole struct", "md5(to_json(payer))", "payer", FIELD_ID),
    ("an array of two columns", "array(t.sender, t.receiver)", "sender", ()),
    ("collect_list", "collect_list(t.user_id)", "user_id", ()),
    ("collect_set", "collect_set(t.user_id)", "user_id", ()),
    ("array_join", "array_join(collect_list(t.email), ',')", "email", ()),
    ("listagg", "listagg(t.email, ',')", "email", ()),
    ("structs in a list", "collect_list(named_struct('id', t.user_id))", "user_id", ()),
    ("a percentile", "percentile_approx(t.user_id, 0.5)", "user_id", ()),
    ("a sketch", "hll_sketch_agg(t.user_id)", "user_id", ()),
]

NOWHERE = [
    ("another field of the struct", "payer.phone", "payer", FIELD_ID),
    ("another member of the JSON", "get_json_object(p.payload, '$.amount')", "payload", JSON_ID),
    ("only the condition", "CASE WHEN t.phone = 'a' THEN 1 END", "phone", ()),
    ("only the order of max_by", "max_by(t.name, t.user_id)", "user_id", ()),
]

COUNTED = [
    "count(DISTINCT t.user_id)",
    "sum(t.user_id)",
    "round(avg(t.user_id), 2)",
    "approx_count_distinct(t.user_id)",
]


@pytest.mark.parametrize(
    ("expression", "column", "access", "places"), [c[1:] for c in LOCATED], ids=[c[0] for c in LOCATED]
)
def test_the_places_of_a_column_are_found(expression: str, column: str, access: Any, places: list[Place]) -> None:
    assert [replace(p, through=frozenset()) for p in locate(expression, column, access)] == places


@pytest.mark.parametrize(("expression", "column", "access"), [c[1:] for c in HIDDEN], ids=[c[0] for c in HIDDEN])
def test_what_cannot_be_matched_again_is_hidden_and_never_gone(expression: str, column: str, access: Any) -> None:
    assert [p.fate for p in locate(expression, column, access)] == [Fate.HIDDEN]


@pytest.mark.parametrize(("expression", "column", "access"), [c[1:] for c in NOWHERE], ids=[c[0] for c in NOWHERE])
def test_what_does_not_go_in_has_no_place(expression: str, column: str, access: Any) -> None:
    assert locate(expression, column, access) == ()


@pytest.mark.parametrize("expression", COUNTED)
def test_who_is_counted_is_not_named(expression: str) -> None:
    assert [p.fate for p in locate(expression, "user_id")] == [Fate.COUNTED]


def test_one_branch_that_hides_is_told_beside_one_that_does_not() -> None:
    found = locate("CASE WHEN t.ok THEN t.id ELSE concat(t.id, t.pan) END", "id")
    assert {p.fate for p in found} == {Fate.FOUND, Fate.HIDDEN}


def test_the_functions_on_the_way_are_named() -> None:
    assert [p.through for p in locate("my_mask(upper(t.pan))", "pan")] == [{"upper", "my_mask"}]
    assert [p.through for p in locate("concat(k_anon(t.pan, t.city), t.pan)", "pan")] == [{"concat"}]


def test_hops_compose() -> None:
    whole = compose("REGEXP_REPLACE(x, '[^0-9]', '')", "SHA2(x, 256)")
    assert compute(whole, "+91 98450 12345") == hashlib.sha256(b"919845012345").hexdigest()


@given(st.text(alphabet="ab1 -", max_size=6))
def test_composing_is_computing_in_turn(value: str) -> None:
    inner, outer = "upper(trim(x))", "concat('k', x)"
    assert compute(compose(inner, outer), value) == compute(outer, compute(inner, value) or "")


def test_the_input_has_one_name() -> None:
    assert locate("t.x", "x") == (Place((), INPUT),)
