"""Literals in SQL are found and hidden whatever they hold; names stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.lineage.sql.text.literal_redaction import code_alone, hidden, literals


@pytest.mark.parametrize(
    ("sql", "shown", "inside"),
    [
        ("a = 'P-1' OR b <> \"mira\"", "a = '…' OR b <> '…'", ["P-1", "mira"]),
        ("`it's` = 'O''Brien'", "`it's` = '…'", ["O'Brien"]),
        (r"a = 'x\'y' AND b", "a = '…' AND b", ["x'y"]),
        (r"rlike(a, r'\') AND b = 'q'", "rlike(a, '…') AND b = '…'", ["\\", "q"]),
        ("a /* mira's */ + b -- zoe\n+ c", "a /* … */ + b /* … */\n+ c", ["mira's", "zoe"]),
        ("a = 'open", "a = '…'", ["open"]),
        ("date'2026-01-01' + CAST(x AS STRING)", "date'…' + CAST(x AS STRING)", ["2026-01-01"]),
        ("sha2(db.people.cust, 256)", "sha2(db.people.cust, 256)", []),
    ],
)
def test_literals_are_found_and_hidden(sql: str, shown: str, inside: list[str]) -> None:
    assert hidden(sql) == shown
    assert list(literals(sql)) == inside


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("a = 'Mira Zoe' AND 42 < b -- zoe", "a = '…' AND 0 < b /* … */"),
        ("`it's` = 7", "`it's` = 0"),
        ("x IN (42, 43) OR x BETWEEN 1 AND 2", "x IN (0, 0) OR x BETWEEN 0 AND 0"),
        ("INSERT INTO t VALUES (42, 'Mira')", "INSERT INTO t VALUES (0, '…')"),
        ("sha2(concat(a.k, 'Mira'), 256)", "sha2(concat(a.k, '…'), 256)"),
        ("concat_ws('-', substring(a.k, 1, 4), '')", "concat_ws('-', substring(a.k, 1, 4), '')"),
        ("a.k % 10 + 4417700102 + 0x616263 + 4417700102L", "a.k % 10 + 0 + 0 + 0"),
        ("get_json_object(a.p, '$.user.id')", "get_json_object(a.p, '$.user.id')"),
        ("regexp_replace(a.p, '[a-z] ', '')", "regexp_replace(a.p, '[a-z] ', '')"),
        ("regexp_replace(a.p, 'mira@x', '441-770')", "regexp_replace(a.p, '…', '…')"),
        ("named_struct('id', a.k, 'of', 'Mira')['id']", "named_struct('id', a.k, 'of', '…')['id']"),
        ("date_trunc('month', a.at) > DATE '1990-02-03'", "date_trunc('month', a.at) > DATE '…'"),
        ("a.`4417700102` + t.c_4417700102", "a.`4417700102` + t.c_4417700102"),
    ],
)
def test_what_is_stored_is_code(sql: str, kept: str) -> None:
    assert code_alone(sql) == kept
    assert code_alone(kept) == kept


VALUES = st.sampled_from(
    ["'mira@x.example'", "4417700102", "'4417 700 102'", "'O''Mira 44177'", "-4417700102.5", "r'm@x'"]
)
CALLS = st.sampled_from(
    ["{} = a.k", "f(a.k, {})", "named_struct({}, 1)", "a.m[{}]", "split({}, a.k)", "CASE WHEN {} THEN 1"]
)


@given(VALUES, st.lists(CALLS, min_size=1, max_size=3))
def test_no_place_keeps_an_address_or_a_key(value: str, around: list[str]) -> None:
    sql = value
    for place in around:
        sql = place.format(sql)
    kept = code_alone(sql)
    assert "@" not in kept
    assert "4417" not in kept.replace(" ", "")
