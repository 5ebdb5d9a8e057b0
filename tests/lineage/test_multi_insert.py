"""FROM … INSERT … SELECT …: each INSERT's own SELECT says what goes where, not the query that it selects from."""

from __future__ import annotations

import pytest

from pii_tracer.lineage.sql.parse_lines import answer_sql

TABLES = {
    "people": ["id", "ref_id", "mail"],
    "t": ["id", "ref_id"],
    "u": ["id", "ref_id"],
    "parted": ["id", "mail", "ds"],
    "tags": ["id", "tag"],
}
SUB = "FROM (SELECT id, ref_id, mail FROM people) x "
BOTH = "people.ref_id -> t.id, people.id -> t.ref_id"

CASES = {
    "columns swapped over a subquery": (SUB + "INSERT INTO t SELECT ref_id, id", BOTH),
    "with the alias": (SUB + "INSERT OVERWRITE TABLE t SELECT x.ref_id, x.id", BOTH),
    "over a set operation": (
        "FROM (SELECT id, ref_id FROM people UNION ALL SELECT id, ref_id FROM u) x INSERT INTO t SELECT ref_id, id",
        BOTH + ", u.ref_id -> t.id, u.id -> t.ref_id",
    ),
    "several INSERTs": (
        SUB + "INSERT INTO t SELECT ref_id, id WHERE id > 1 INSERT INTO u SELECT id, ref_id",
        BOTH + ", people.id -> u.id, people.ref_id -> u.ref_id",
    ),
    "aggregates and literals": (SUB + "INSERT INTO t SELECT max(ref_id), 7 GROUP BY id", "people.ref_id -> t.id"),
    "a list of columns": (SUB + "INSERT INTO t (ref_id, id) SELECT id, ref_id", "people.id -> t.ref_id, people.ref_id -> t.id"),
    "a list of some columns": (SUB + "INSERT INTO t (ref_id) SELECT id", "people.id -> t.ref_id"),
    "a static partition": (
        SUB + "INSERT OVERWRITE TABLE parted PARTITION (ds = 'a') SELECT ref_id, mail",
        "people.ref_id -> parted.id, people.mail -> parted.mail",
    ),
    "a dynamic partition": (
        SUB + "INSERT OVERWRITE TABLE parted PARTITION (ds) SELECT ref_id, mail, id",
        "people.ref_id -> parted.id, people.mail -> parted.mail, people.id -> parted.ds",
    ),
    "a join": (
        SUB + "JOIN tags g ON x.id = g.id INSERT INTO t SELECT g.tag, x.id INSERT INTO u SELECT x.ref_id, g.id",
        "tags.tag -> t.id, people.id -> t.ref_id, people.ref_id -> u.id, tags.id -> u.ref_id",
    ),
    "LATERAL VIEW of the source": (
        SUB + "LATERAL VIEW explode(split(mail, '@')) e AS part INSERT INTO t SELECT part, id",
        "people.mail -> t.id, people.id -> t.ref_id",
    ),
    "LATERAL VIEW of the INSERT": (
        SUB + "INSERT INTO t SELECT part, id LATERAL VIEW explode(split(mail, '@')) e AS part",
        "people.mail -> t.id, people.id -> t.ref_id",
    ),
    "a common table expression": (
        "WITH q AS (SELECT id, ref_id FROM people) FROM q INSERT INTO t SELECT ref_id, id INSERT INTO u SELECT id, ref_id",
        BOTH + ", people.id -> u.id, people.ref_id -> u.ref_id",
    ),
    "a common table expression in the subquery": (
        "FROM (WITH q AS (SELECT id, ref_id FROM people) SELECT ref_id AS id, id AS ref_id FROM q) x "
        "INSERT INTO t SELECT id, ref_id",
        BOTH,
    ),
    "every column": (SUB + "INSERT INTO parted SELECT *", "people.id -> parted.id, people.ref_id -> parted.mail, people.mail -> parted.ds"),
    "a folder": (SUB + "INSERT OVERWRITE DIRECTORY '/out' SELECT ref_id", "people.ref_id -> path.`/out`.ref_id"),
    "a source that is written to as well": (
        "FROM t INSERT OVERWRITE TABLE t SELECT ref_id, id INSERT INTO u SELECT id, ref_id",
        "t.ref_id -> t.id, t.id -> t.ref_id, t.id -> u.id, t.ref_id -> u.ref_id",
    ),
}  # fmt: skip


def edges_of(sql: str, dialect: str) -> tuple[set[str], bool, list[str]]:
    answer = answer_sql(sql, dialect, {t: [(c, "") for c in columns] for t, columns in TABLES.items()})
    return {f"{e['from']} -> {e['to']}" for e in answer["edges"]}, answer["complete"], answer["unresolved"]


@pytest.mark.parametrize("dialect", ["spark", "hive", "databricks"])
@pytest.mark.parametrize("name", CASES)
def test_each_insert_selects_for_itself(name: str, dialect: str):
    sql, edges = CASES[name]
    found, complete, unresolved = edges_of(sql, dialect)
    assert found == set(edges.split(", "))
    assert complete, unresolved


def test_rows_are_decided_by_the_inserts_own_clauses():
    schemas = {t: [(c, "") for c in columns] for t, columns in TABLES.items()}
    sql = SUB + "INSERT INTO t SELECT ref_id, id WHERE mail > 'a' GROUP BY ref_id, id HAVING max(mail) > 'b'"
    answer = answer_sql(sql, "hive", schemas)
    assert {f"{i['from']} {i['subtype']}" for i in answer["indirect"]} == {
        "people.mail FILTER", "people.ref_id GROUP_BY", "people.id GROUP_BY",
    }  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        SUB + "INSERT INTO t SELECT id, ref_id FROM u",
        SUB + "INSERT INTO t SELECT x.id, x.ref_id UNION ALL SELECT x.ref_id, x.id",
    ],
)
def test_a_form_that_no_engine_has_is_not_taken_for_understood(sql: str):
    assert edges_of(sql, "hive")[1] is False


def test_insert_first_goes_by_the_conditions_before_it():
    schemas = {t: [(c, "") for c in columns] for t, columns in TABLES.items()}
    sql = (
        "INSERT FIRST WHEN mail > 'a' THEN INTO t (id, ref_id) VALUES (ref_id, id) ELSE INTO u (id) VALUES (id) "
        "SELECT id, ref_id, mail FROM people"
    )
    answer = answer_sql(sql, "oracle", schemas)
    assert {f"{e['from']} -> {e['to']}" for e in answer["edges"]} == {*BOTH.split(", "), "people.id -> u.id"}
    assert {f"{i['from']} {i['subtype']}" for i in answer["indirect"]} == {"people.mail FILTER"}
    assert answer["complete"], answer["unresolved"]
