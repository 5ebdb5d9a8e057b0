"""Leaving projections out: words in quotes, brackets and comments are none, and what follows keeps its place."""

from __future__ import annotations

import re

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from planners.locate.sql.query_skeletons import Unnamed, skeleton, unnamed
from planners.locate.sql.statement_rows import Statement, parsed


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


PARTS = [
    *("lake", "B", "_t1", "unnamed", "x9", "json", "stream", "rows", "only", "lateral", "unnest", "values", "table"),
    *("user", "date", "from", "left", "on", "pivot", "window", "Ünder", "1st", "`a b`", "`x from a.b `", "t$1", "t-1"),
]
PLAIN = st.lists(st.sampled_from(PARTS[:8]), min_size=2, max_size=3).map(".".join)
NAMES = PLAIN | st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map(".".join)
AFTER = ["", " u", " AS u", " (1)", "(1)", " VERSION AS OF 3", " TABLESAMPLE (5 ROWS)", "@v1", ".", " -- u\n", "\tu"]
CONDITIONS = [
    " ON u.k = v.k",
    " USING (k)",
    " ON u.d IS NOT NULL AND u.x = ' join a.b '",
    " ON extract(DAY FROM lake.d) = 1",
    ' ON v.x = "select 1 from a.b c"',
    "",
]
JOINS = ["JOIN", "left outer join", "FULL JOIN", "CROSS JOIN", "LEFT SEMI JOIN", "JOIN LATERAL", ","]
ENDS = [
    "",
    " WHERE u.k > 1",
    " GROUP BY ROLLUP (u.k)",
    " GROUP BY extract(DAY FROM lake.d)",
    " LATERAL VIEW f(x) y AS z",
]
TABLE = st.tuples(NAMES, st.sampled_from(AFTER)).map("".join)


@st.composite
def queries(draw: st.DrawFn) -> str:
    distinct = draw(st.sampled_from(["", "DISTINCT "]))
    joined = draw(st.lists(st.tuples(st.sampled_from(JOINS), TABLE, st.sampled_from(CONDITIONS)), max_size=2))
    joins = "".join(f" {how} {table}{on}" for how, table, on in joined)
    return f"INSERT INTO t SELECT {distinct}a, b FROM {draw(TABLE)}{joins}{draw(st.sampled_from(ENDS))}"


@given(queries())
def test_a_text_with_numbers_for_its_tables_is_read_as_the_text_is(text: str) -> None:
    short = skeleton(text)
    if short is None:
        return
    found = unnamed(short)
    tree, made = parsed(short), parsed(found.text)
    assert (tree is None) == (made is None)
    if tree is None or made is None:
        return
    numbered = made.sql("spark")
    for number, name in found.names.items():
        numbered = numbered.replace(number, name)
    assert numbered == tree.sql("spark")
    named, plain = Statement(text), Statement(text)
    plain.__dict__["_short"] = Unnamed(short, {})
    for question in ("known", "joined", "preserved", "outer", "subtotals", "pivots", "unites", "grouping_levels"):
        assert getattr(named, question) == getattr(plain, question), question


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("SELECT 1 FROM lake.b.t u JOIN b.v ON u.k = v.k", 2),
        ("SELECT  DISTINCT  1 from b.t join b.t", 2),
        ("INSERT OVERWRITE TABLE lake.b.t SELECT 1", 1),
        ("INSERT INTO b.t (a, b) SELECT 1", 0),
        ("SELECT 1 FROM u, b.v", 0),
        ("SELECT 1 FROM b.table_1 WHERE extract(DAY FROM b.d) = 1 OR trim(1 FROM b._metadata) = 2", 1),
        ("SELECT 1 FROM lake.a.b.t", 0),
        ("SELECT 1 FROM b.values", 0),
        ("SELECT 1 FROM b.f (1)", 0),
        ("SELECT 1 FROM b.t /* u */ JOIN b.v", 0),
        ("SELECT 1 FROM b.t JOIN unnamed_0", 0),
    ],
)
def test_numbers_stand_for_plain_names_of_tables(text: str, number: int) -> None:
    found = unnamed(text)
    assert len(found.names) == number
    assert (found.text == text) is (number == 0)
