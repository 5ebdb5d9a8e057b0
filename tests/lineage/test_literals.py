"""Literals in SQL are found and hidden whatever they hold; names stay."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.graph.edges import NOT_STORED
from pii_tracer.lineage.graph.graph_file import save
from pii_tracer.lineage.graph.stored_expressions import stored
from pii_tracer.lineage.sql.text.literal_redaction import hidden, literals
from tests.lineage.harvesting import harvest


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


@pytest.mark.parametrize("text", ["'\\" * 10_001, "\"'" * 10_001 + "\\", "r'" * 10_001, "/*" * 10_001, "`" * 10_001])
def test_what_is_not_closed_takes_no_longer(text: str) -> None:
    began = time.process_time()
    hidden(text)
    list(literals(text))
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("CASE WHEN a.n = 'Mira Zoe' AND 42 < b THEN 1 END -- zoe", "CASE WHEN a.n = '…' AND 0 < b THEN 0 END"),
        ("regexp_replace(CASE WHEN a.n = 'Mira Zoe' THEN a.k END, 'x', '')", "regexp_replace(CASE WHEN a.n = '…' THEN a.k END, '…', '')"),
        ("`it's` = 7", "`it's` = 0"),
        ("x IN (42, 43) OR x BETWEEN 1 AND 2", "x IN (0, 0) OR x BETWEEN 0 AND 0"),
        ("array_contains(array(4417, 'Mira'), a.id)", "array_contains(array(0, '…'), a.id)"),
        ("substring(array[1, 44, 'm'], 4417, 9)", "substring(array[0, 0, '…'], 4417, 9)"),
        ("map('Mira Zoe', 1)[a.n] || a.m['mz']", "map('…', 0)[a.n] || a.m['…']"),
        ("named_struct('Mira', a.k)", "named_struct('…', a.k)"),
        ("sha2(concat(a.k, 'Mira'), 256)", "sha2(concat(a.k, '…'), 256)"),
        ("sha2(a.k, 4417)", "sha2(a.k, 0)"),
        ("concat_ws('-', substring(a.k, 1, -4), '')", "concat_ws('-', substring(a.k, 1, -4), '')"),
        ("substring(a.k = 4417, 44177) + x.substring(a, 4417)", "substring(a.k = 0, 0) + x.substring(a, 0)"),
        ("a.k % 10 + 4417 + 0x616263 + 4417700102L + X'4d69'", "a.k % 10 + 0 + 0 + 0 + '…'"),
        ("get_json_object(a.p, '$.user.id')", "get_json_object(a.p, '$.user.id')"),
        ("get_json_object(a.p, 'Mira') || get_json_object(a.p, '$.c4417')", "get_json_object(a.p, '…') || get_json_object(a.p, '…')"),
        ("regexp_replace(a.p, '[a-z] \\\\d{4}', '')", "regexp_replace(a.p, '[a-z] \\\\d{4}', '')"),
        ("regexp_replace(a.p, 'm i r a', '+91 (984) 50')", "regexp_replace(a.p, '…', '…')"),
        ("split('Mira Zoe', ' ') || rlike(a.n, 'Mira')", "split('…', ' ') || rlike(a.n, '…')"),
        ("to_date('03 Feb 1990', 'dd MMM yyyy')", "to_date('…', 'dd MMM yyyy')"),
        ("date_format(a.at, 'yyyyMMdd HH:mm:ss') || date_format(a.at, 'Sam') || date_format(a.at, 'Emma')", "date_format(a.at, 'yyyyMMdd HH:mm:ss') || date_format(a.at, '…') || date_format(a.at, '…')"),
        ("date_trunc('month', a.at) > date_trunc('Mira', DATE '1990-02-03')", "date_trunc('month', a.at) > date_trunc('…', DATE '…')"),
        ("cast(a.k AS DECIMAL(10, 2))", "cast(a.k AS DECIMAL(10, 2))"),
        ("a.`4417700102` + t.c_4417700102", "a.`4417700102` + t.c_4417700102"),
        ("a /* x /* y */ mira */ + b", "a + b"),
        ("a = 'open mira", NOT_STORED),
    ],
)  # fmt: skip
def test_what_is_stored_is_code(sql: str, kept: str) -> None:
    assert " ".join(stored(sql).split()) == kept
    assert stored(stored(sql)) == stored(sql)


STATEMENTS = [
    ("spark", "INSERT INTO c SELECT k FROM a /* x /* y */ {} */;"),
    ("trino", "INSERT INTO c SELECT k FROM a WHERE split_part(p, '\\', 1) = '{}';"),
    ("trino", "INSERT INTO c SELECT k FROM a WHERE contains(ARRAY['{}'], p);"),
    ("postgres", "INSERT INTO c SELECT k FROM a WHERE m = $${}$$ OR n = $x${}$x$;"),
    ("bigquery", 'INSERT INTO c SELECT k FROM a # of {}\nWHERE m = """a "{}" b""";'),
    ("oracle", "INSERT INTO c SELECT k FROM a WHERE m = q'[it's {}]';"),
    ("spark", "INSERT INTO c SELECT CASE WHEN k = '{}' THEN k END AS y FROM a;"),
    ("trino", "INSERT INTO c SELECT CASE WHEN p = '\\' THEN k WHEN p = '{}' THEN '' END AS y FROM a;"),
    ("spark", "INSERT INTO c SELECT k FROM a WHERE m = '{}\\"),
]


@pytest.mark.parametrize(("dialect", "sql"), STATEMENTS)
def test_no_text_of_a_statement_comes_into_the_file(dialect: str, sql: str, tmp_path: Path) -> None:
    """Each engine has rules of its own for where a text begins and ends."""
    (tmp_path / "a.sql").write_text(sql.replace("{}", "Mira Zoe"))
    graph = harvest(LineageSources(sql=("a.sql",), dialect=dialect), tmp_path)
    save(graph, tmp_path / "g")
    assert b"Mira" not in (tmp_path / "g").read_bytes()
    assert "Mira" in "".join((*graph.columnar.jobs, *graph.columnar.expressions)) or graph.gaps


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
    kept = stored(sql)
    assert "@" not in kept
    assert "4417" not in kept.replace(" ", "")
