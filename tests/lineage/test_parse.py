from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.lineage.sql.parse_lines import answer_line, answer_sql, parse_lines
from pii_tracer.lineage.sql.sql_lineage import parse_statements
from tests.lineage.cases import CASES, SCHEMAS, Case

TYPED = {table: [(c, "") for c in columns] for table, columns in SCHEMAS.items()}


def edges_of(answer):
    masked = {True: " masked", False: ""}
    return {f"{e['from']} -> {e['to']} {e['subtype']}{masked[e['masking']]}" for e in answer["edges"]}


def indirect_of(answer):
    return {f"{i['from']} {i['subtype']}" for i in answer["indirect"]}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_case(case: Case):
    answer = answer_sql(case.sql, case.dialect, TYPED)
    assert edges_of(answer) == {line.strip() for line in case.edges.splitlines() if line.strip()}
    assert indirect_of(answer) == {item.strip() for item in case.indirect.split(",") if item.strip()}
    assert answer["complete"] is case.complete, answer["unresolved"]
    assert bool(answer["unresolved"]) is not case.complete


@pytest.mark.parametrize("case", [c for c in CASES if c.complete], ids=lambda c: c.name)
def test_types_follow_subtypes_and_nothing_is_repeated(case: Case):
    answer = answer_sql(case.sql, case.dialect, TYPED)
    direct = {"IDENTITY", "TRANSFORMATION", "AGGREGATION"}
    assert all((e["type"] == "DIRECT") is (e["subtype"] in direct) for e in answer["edges"])
    assert len({json.dumps(e, sort_keys=True) for e in answer["edges"]}) == len(answer["edges"])


def test_expression_is_composed_down_to_the_sources():
    sql = (
        "CREATE TEMP VIEW v AS SELECT lower(phone) AS p, user_id FROM payments; "
        "WITH q AS (SELECT regexp_replace(p, '[^0-9]', '') AS d, user_id + 1 AS n FROM v) "
        "SELECT sha2(d, 256) AS h, n * 2 AS m FROM q"
    )
    found = {e["to"]: e["expression"] for e in answer_sql(sql, "spark", TYPED)["edges"]}
    assert found["lineage_out.h"] == "SHA2(REGEXP_REPLACE(LOWER(payments.phone), '[^0-9]', ''), 256)"
    assert found["lineage_out.m"] == "(payments.user_id + 1) * 2"


def test_every_constant_of_values_is_in_an_expression():
    """A hash with one of two salts would find half of the persons."""
    sql = "INSERT INTO target (pan) SELECT sha2(concat(p.pan, v.c), 256) FROM payments p CROSS JOIN (VALUES {}) AS v(c)"
    few, many = (
        {
            e.expression
            for e in parse_statements(sql.format(", ".join(f"('{n}')" for n in range(rows))), "spark", TYPED)[0].edges
        }
        for rows in (2, 50)
    )
    assert few == {f"SHA2(CONCAT(payments.pan, '{n}'), 256)" for n in range(2)}
    assert many == {None}


def test_columns_stand_in_a_stars_place_in_the_expression():
    sql = "SELECT to_json(struct(x.*)) AS j FROM (SELECT user_id AS k, lower(email) AS mail FROM users) x"
    (text,) = {e["expression"] for e in answer_sql(sql, "spark", TYPED)["edges"]}
    assert text == "TO_JSON(STRUCT(users.user_id AS k, LOWER(users.email) AS mail))"


def test_defaults_qualify_and_schemas_are_found_by_them():
    answer = answer_sql("SELECT * FROM orders", "snowflake", {"db.sales.orders": [("id", "")]}, "db", "sales")
    assert edges_of(answer) == {"db.sales.orders.id -> lineage_out.id IDENTITY"}
    assert answer["complete"]


def test_a_table_of_the_same_name_in_another_schema_is_another_table():
    schemas = {"prod.payments": [("pan", "")]}
    there = answer_sql("SELECT pan FROM payments", "spark", schemas, default_schema="other")
    here = answer_sql("SELECT pan FROM payments", "spark", schemas, default_schema="prod")
    assert [e["from"] for e in there["edges"]] == ["other.payments.pan"]
    assert [e["from"] for e in here["edges"]] == ["prod.payments.pan"]


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("lake.db.a", "db.b", "lake.db.b"),
        ("lake.db.a", "b", "lake.db.b"),
        ("db.a", "b", "db.b"),
        ("db.a", "other.b", "other.b"),
        ("lake.db.a", "lake.db.b", "lake.db.b"),
        ("a", "b", "b"),
    ],
)
def test_a_renamed_table_stays_in_its_catalog(old: str, new: str, name: str):
    schemas = {old: [("id", "")]}
    answer = answer_sql(f"ALTER TABLE {old} RENAME TO {new}; INSERT INTO z SELECT id FROM {name}", "spark", schemas)
    assert edges_of(answer) == {f"{old}.id -> z.id IDENTITY"}
    assert answer["complete"], answer["unresolved"]


def test_values_of_persons_do_not_come_out_of_errors():
    answer = answer_sql("DELETE FRM payments WHERE phone = '9812345678' ((", "spark", TYPED)
    assert "9812345678" not in json.dumps(answer)
    assert not answer["complete"]


@pytest.mark.parametrize(
    "sql", ["SELECT a FROM [8841302]", "SELECT a FROM t WHERE b = 8841302 8841302", "SELECT '8841302"]
)
def test_syntax_errors_do_not_show_the_text(sql: str):
    answer = answer_line(json.dumps({"id": 1, "sql": sql, "dialect": "redshift"}))
    assert answer["complete"] is False
    assert "8841302" not in json.dumps(answer)


@pytest.mark.parametrize("text", ["rahul@example.in", "9812345678", "Rahul Verma"])
def test_a_text_that_the_dialect_takes_for_a_name_is_not_shown(text: str):
    answer = answer_line(
        json.dumps({"sql": f'SELECT pan FROM payments WHERE phone = "{text}"', "dialect": "ansi", "schemas": SCHEMAS})
    )
    assert answer["complete"] is False
    assert text not in json.dumps(answer)


def test_protocol_keeps_order_and_never_stops():
    lines = [
        json.dumps({"id": 1, "sql": "SELECT pan FROM payments", "dialect": "spark", "schemas": SCHEMAS}),
        "{broken",
        json.dumps({"id": 3, "sql": 7}),
        json.dumps({"id": 4, "sql": "SELECT 1", "dialect": "klingon"}),
        json.dumps([1]),
        json.dumps({"id": 6, "sql": ""}),
        json.dumps({"id": 7, "sql": "SELECT '"}),
    ]
    out = io.StringIO()
    assert parse_lines(lines, out) is False
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [a["id"] for a in answers] == [1, None, 3, 4, None, 6, 7]
    assert [a["complete"] for a in answers] == [True] + [False] * 6
    assert all(a["error"] for a in answers[1:5])
    assert all(set(a) == {"id", "edges", "indirect", "complete", "unresolved", "assumed", "error"} for a in answers)


@given(st.text(max_size=200))
def test_garbage_is_answered(text: str):
    assert set(answer_line(text)) >= {"edges", "complete", "error"}
    answer = answer_line(json.dumps({"id": 1, "sql": text}))
    assert answer["id"] == 1


_TEXT = """SELECT FROM WHERE * , ( ) payments users p u . user_id pan AS JOIN ON = UNION ALL WITH INSERT INTO
target CASE WHEN THEN END sum count GROUP BY ORDER ; MERGE USING MATCHED UPDATE SET LATERAL VIEW explode OVER PIVOT
FOR IN CALL 1"""
_WORDS = st.sampled_from(_TEXT.split())


@given(st.lists(_WORDS, max_size=25))
def test_pieces_of_sql_are_answered(words: list[str]):
    answer = answer_sql(" ".join(words), "spark", TYPED) if words != [] else {"complete": False}
    assert isinstance(answer["complete"], bool)


_NAMES = st.text("abcdefgh", min_size=2, max_size=6).map(lambda t: "n_" + t)


@given(cte=_NAMES, alias=_NAMES, inner=_NAMES)
def test_names_of_aliases_and_ctes_change_nothing(cte: str, alias: str, inner: str):
    template = (
        "WITH {cte} AS (SELECT user_id AS {inner}, sum(amount) AS t FROM payments GROUP BY user_id) "
        "SELECT {alias}.{inner} AS u, {alias}.t + 1 AS t "
        "FROM {cte} AS {alias} JOIN users ON users.user_id = {alias}.{inner}"
    )
    one = answer_sql(template.format(cte="c", alias="a", inner="i"), "spark", TYPED)
    assert answer_sql(template.format(cte=cte, alias=alias, inner=inner), "spark", TYPED) == one


_STEPS = st.lists(
    st.sampled_from(["upper({0})", "{0}", "sha2({0}, 256)", "concat({0}, 'x')", "trim({0})"]), min_size=1, max_size=5
)


@given(_STEPS)
def test_a_statement_split_through_views_gives_the_same(steps: list[str]):
    whole = "pan"
    for step in steps:
        whole = step.format(whole)
    views, last = [], "payments"
    for number, step in enumerate(steps):
        views.append(f"CREATE TEMP VIEW v{number} AS SELECT {step.format('pan')} AS pan FROM {last}")
        last = f"v{number}"
    split = "; ".join([*views, f"CREATE TABLE done AS SELECT pan FROM {last}"])
    assert answer_sql(split, "spark", TYPED) == answer_sql(
        f"CREATE TABLE done AS SELECT {whole} AS pan FROM payments", "spark", TYPED
    )


def test_a_view_that_a_loop_defines_again_after_it_was_read():
    made = parse_statements(
        "CREATE OR REPLACE TEMP VIEW x AS SELECT id, mail FROM u; BEGIN WHILE true DO INSERT INTO t SELECT mail FROM x; "
        "CREATE OR REPLACE TEMP VIEW x AS SELECT id, mail FROM s; END WHILE; END",
        "databricks",
        {"s": [("id", ""), ("mail", "")], "u": [("id", ""), ("mail", "")], "t": [("mail", "")]},
    )
    assert {e.source for one in made for e in one.edges if e.target == ("t", "mail")} == {("u", "mail"), ("s", "mail")}
