"""Leaving projections out: words in quotes, brackets and comments are none, and what follows keeps its place."""

from __future__ import annotations

import re

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from planners.skeleton import skeleton


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("INSERT INTO t SELECT a, 'x from y' AS b FROM u", "SELECT 1 FROM u"),
        ("SELECT extract(YEAR FROM d), `from` FROM u -- from v", "SELECT 1 FROM u -- from v"),
        ("SELECT a /* from v */ FROM u WHERE x = 'select'", "SELECT 1 FROM u WHERE x = 'select'"),
        ('SELECT arr[0], "select", xfrom, from_unixtime(b) FROM u', "SELECT 1 FROM u"),
        ("select İ, ſelect from İstanbul", "select 1 from İstanbul"),
        ("SELECT year'x' FROM u", "SELECT 1 FROM u"),
    ],
)
def test_the_projections_of_one_query_are_left_out(text: str, short: str) -> None:
    found = skeleton(text)
    assert found is not None
    assert re.sub(r" +", " ", found) == short


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM u UNION SELECT a FROM v",
        "SELECT (SELECT max(a) FROM v) FROM u",
        "WITH v AS (TABLE w) SELECT a FROM v",
        "SELECT r'\\' FROM v WHERE b = ' FROM u",
        "SELECT a FROM TABLE f(1)",
        "SELECT 1",
        "UPDATE t SET a = 1",
    ],
)
def test_every_other_statement_is_read_whole(text: str) -> None:
    assert skeleton(text) is None


PIECES = [
    "a",
    "f(b, 'from')",
    "`select`",
    "arr[1]",
    "extract(DAY FROM d)",
    '"from"',
    "/* from */ c",
    "CASE a WHEN 1 THEN 2 END",
]
SOURCES = [
    "u",
    "u JOIN v ON u.k = v.k",
    "u, v",
    "u LEFT JOIN `from` w USING (k)",
    "u WHERE x = 'from ('",
    "u GROUP BY a",
]


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=6),
    st.sampled_from(SOURCES),
    st.sampled_from(["", "DISTINCT "]),
    st.booleans(),
)
def test_the_short_text_reads_the_tables_and_groups_of_the_whole_one(
    columns: list[str], source: str, distinct: str, lower: bool
) -> None:
    text = f"INSERT INTO t SELECT {distinct}{', '.join(columns)} FROM {source}"
    text = text.replace("SELECT ", "select ").replace(" FROM ", " from ") if lower else text
    short = skeleton(text)
    assert short is not None
    whole, made = (sqlglot.parse_one(t, dialect="spark").find(exp.Select) for t in (text, short))
    assert whole is not None
    assert made is not None
    for part in ("from_", "joins", "where", "group", "distinct"):
        assert made.args.get(part) == whole.args.get(part)
