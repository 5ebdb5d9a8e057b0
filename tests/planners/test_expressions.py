"""Recorded expressions: where a column ends up, and what a value becomes, compared with Spark itself."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.model import FieldAccess, JsonAccess
from planners.expressions import INPUT, NotComputable, Place, compose, compute, is_plain, locate

FIELD_ID = (FieldAccess(name="id"),)
JSON_ID = (JsonAccess(path=("user_id",)),)

LOCATED = [
    ("unchanged", "payments.user_id", "user_id", (), [Place((), INPUT)]),
    ("cast", "CAST(payments.user_id AS STRING)", "user_id", (), [Place((), "CAST(x AS STRING)")]),
    ("struct", "named_struct('id', t.user_id, 'phone', t.phone)", "user_id", (), [Place(FIELD_ID, INPUT)]),
    ("packed", "to_json(named_struct('user_id', t.user_id, 'pan', t.pan))", "user_id", (), [Place(JSON_ID, INPUT)]),
    ("hash", "sha2(CAST(t.user_id AS STRING), 256)", "user_id", (), [Place((), "SHA2(CAST(x AS STRING), 256)")]),
    ("out of a struct", "events.payer.id", "payer", FIELD_ID, [Place((), INPUT)]),
    ("hash out of a struct", "md5(payer.phone)", "payer", (FieldAccess(name="phone"),), [Place((), "MD5(x)")]),
    ("out of JSON", "get_json_object(p.payload, '$.user_id')", "payload", JSON_ID, [Place((), INPUT)]),
    ("an aggregate that keeps it", "max(t.phone)", "phone", (), [Place((), INPUT)]),
    ("coalesce", "coalesce(t.phone, 'none')", "phone", (), [Place((), INPUT)]),
    ("a branch", "CASE WHEN t.ok THEN t.phone END", "phone", (), [Place((), INPUT)]),
]

LOST = [
    ("a sum", "sum(t.user_id)", "user_id", ()),
    ("joined with another column", "concat(t.user_id, '-', t.pan)", "pan", ()),
    ("another field of the struct", "payer.phone", "payer", FIELD_ID),
    ("only the condition", "CASE WHEN t.phone = 'a' THEN 1 END", "phone", ()),
    ("does not parse", "sha2((", "phone", ()),
]


@pytest.mark.parametrize(
    ("expression", "column", "access", "places"), [c[1:] for c in LOCATED], ids=[c[0] for c in LOCATED]
)
def test_the_places_of_a_column_are_found(expression: str, column: str, access: Any, places: list[Place]) -> None:
    assert list(locate(expression, column, access)) == places


@pytest.mark.parametrize(("expression", "column", "access"), [c[1:] for c in LOST], ids=[c[0] for c in LOST])
def test_what_cannot_be_matched_again_has_no_place(expression: str, column: str, access: Any) -> None:
    assert locate(expression, column, access) == ()


def test_hops_compose() -> None:
    whole = compose("REGEXP_REPLACE(x, '[^0-9]', '')", "SHA2(x, 256)")
    assert compute(whole, "+91 98450 12345") == hashlib.sha256(b"919845012345").hexdigest()


@pytest.mark.parametrize("expression", ["x", "CAST(x AS STRING)", "CAST(CAST(x AS STRING) AS BIGINT)"])
def test_casts_between_whole_numbers_and_text_leave_the_value_plain(expression: str) -> None:
    assert is_plain(expression)


@pytest.mark.parametrize("expression", ["lower(x)", "sha2(x, 256)", "CAST(x AS DOUBLE)", "CAST(x AS DATE)"])
def test_other_changes_are_not_plain(expression: str) -> None:
    assert not is_plain(expression)


@pytest.mark.parametrize(
    "expression",
    ["my_udf(x)", "xxhash64(x)", "CAST(x AS DOUBLE)", "regexp_replace(x, '(?<=a)b', '')", "regexp_replace(x, y, '')"],
)
def test_a_function_that_is_not_certain_is_refused_without_the_value(expression: str) -> None:
    with pytest.raises(NotComputable) as caught:
        compute(expression, "ABCPK1234F")
    assert "ABCPK1234F" not in str(caught.value)


KNOWN = [
    "sha2(x, 256)",
    "sha2(x, 512)",
    "md5(x)",
    "sha1(x)",
    "lower(x)",
    "upper(x)",
    "trim(x)",
    "ltrim(x)",
    "rtrim(x)",
    "substring(x, 2, 3)",
    "concat('u-', x)",
    "regexp_replace(x, '[^0-9]', '')",
    "regexp_replace(x, '\\\\D', '')",
    "regexp_replace(x, '[\\\\s-]+', '_')",
    "sha2(lower(trim(x)), 256)",
    "coalesce(x, 'none')",
]
VALUES = ["+91 98450 12345", "ABCPK1234F", " Asha.Rao@Example.COM ", "8841302", "", "ä-ß 9", "a\tb"]


@pytest.mark.spark
@pytest.mark.parametrize("expression", KNOWN)
def test_spark_gives_the_same(spark: Any, expression: str) -> None:
    frame = spark.createDataFrame([(v,) for v in VALUES], "x string")
    expected = [row[0] for row in frame.selectExpr(f"{expression} AS y").collect()]
    assert [compute(expression, value) for value in VALUES] == expected


@given(st.text(alphabet="ab1 -", max_size=6))
def test_composing_is_computing_in_turn(value: str) -> None:
    inner, outer = "upper(trim(x))", "concat('k', x)"
    assert compute(compose(inner, outer), value) == compute(outer, compute(inner, value) or "")
