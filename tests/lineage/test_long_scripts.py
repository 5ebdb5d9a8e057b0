"""A script of many statements costs as many times what one costs: twice the statements, twice the work."""

from __future__ import annotations

import sys
import time

import pytest

from pii_tracer.lineage.sql.accounting.meaning_changing_settings import read_otherwise
from pii_tracer.lineage.sql.parse_lines import answer_sql

SCHEMAS = {"s": [("id", ""), ("mail", "")], "t": [("id", ""), ("mail", "")]}
SCRIPTS = {
    "inserts into one table": "INSERT INTO t SELECT id, upper(mail) FROM s WHERE id > {0}",
    "inserts into tables without a schema": "INSERT INTO t{0} SELECT id, mail FROM s{0}",
    "tables that are made": "CREATE TABLE d.t{0} AS SELECT id, mail FROM d.s{0}",
    "updates": "UPDATE s SET mail = 'x{0}' WHERE id = {0}",
}
LOOP = "BEGIN WHILE true DO {}; END WHILE; END"
CHAIN = "INSERT INTO x{0} SELECT id, mail FROM x{1}"
"""Each statement of a loop reads what the next one fills."""


def work(template: str, statements: int, around: str = "{}", dialect: str = "spark") -> int:
    """Calls of functions, C's included: unlike time, the same in every run."""
    sql = around.format(";\n".join(template.format(n, n + 1) for n in range(1000, 1000 + statements)))
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        answer_sql(sql, dialect, SCHEMAS)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("name", SCRIPTS)
def test_work_grows_with_the_number_of_statements(name: str):
    work(SCRIPTS[name], 5)  # what is made once
    assert work(SCRIPTS[name], 320) < 4.3 * work(SCRIPTS[name], 80)


def test_work_grows_with_the_length_of_a_loop():
    work(CHAIN, 5, LOOP)
    assert work(CHAIN, 80, LOOP) < 4.3 * work(CHAIN, 20, LOOP)


MANY = 4000
TEXTS = {
    "assignments": ("tsql", "SET @x = 1\n" * MANY + "SET QUOTED_IDENTIFIER ON"),
    "updates": ("tsql", "UPDATE t SET mail = 'x'\n" * MANY + "SET QUOTED_IDENTIFIER ON"),
    "comments": ("spark", "-- set\n" * MANY + "SET spark.sql.ansi.doubleQuotedIdentifiers = false"),
    "rows": ("mysql", "SET sql_mode = ''; INSERT INTO t VALUES " + "(1, 'set'), " * MANY + "(1, 'x')"),
    "variables": ("mysql", "SET sql_mode = @a; " * MANY),
    "temporary tables": ("postgres", "".join(f"CREATE TEMP TABLE x{n} AS SELECT 1; COMMIT; " for n in range(MANY))),
}


@pytest.mark.parametrize("name", TEXTS)
def test_settings_of_a_long_text_are_found_in_one_pass(name: str):
    dialect, sql = TEXTS[name]
    before = time.thread_time()
    assert read_otherwise(sql, dialect, sql.split(";")) is None
    assert time.thread_time() - before < 1.5  # some hundredths of a second; several seconds in more passes
