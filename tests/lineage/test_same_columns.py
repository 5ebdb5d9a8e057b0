"""A table made after the columns of another, without its rows."""

from __future__ import annotations

from pii_tracer.lineage.sql.parse_lines import answer_sql


def test_a_table_of_the_same_columns_as_another_has_none_of_its_rows():
    tables = {"d.s": [("id", ""), ("mail", "")]}
    answer = answer_sql("CREATE TABLE d.t AS d.s; INSERT INTO d.t SELECT mail, id FROM d.s", "clickhouse", tables)
    assert {f"{e['from']} -> {e['to']}" for e in answer["edges"]} == {"d.s.mail -> d.t.id", "d.s.id -> d.t.mail"}
    assert answer["complete"], answer["unresolved"]
    copy = answer_sql("CREATE TABLE d.t ENGINE = MergeTree ORDER BY id AS SELECT * FROM d.s", "clickhouse", tables)
    assert {f"{e['from']} -> {e['to']}" for e in copy["edges"]} == {"d.s.mail -> d.t.mail", "d.s.id -> d.t.id"}
    clone = answer_sql("CREATE TABLE d.t CLONE AS d.s", "clickhouse", tables)
    assert len(clone["edges"]) == 2 or not clone["complete"]
