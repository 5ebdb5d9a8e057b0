"""A routine that is called for what it does is never followed in silence, whatever form the call has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.lineage.sql.parse_lines import answer_sql

TABLES = {name: [("id", ""), ("mail", "")] for name in ("s", "t")}
AND_MORE = "CREATE TABLE z (a INT)"

ORACLE = [
    "BEGIN IF {f} = 1 THEN NULL; END IF; END;",
    "BEGIN IF 1 = 2 THEN NULL; ELSIF {f} = 1 THEN NULL; END IF; END;",
    "BEGIN WHILE {f} = 1 LOOP NULL; END LOOP; END;",
    "BEGIN FOR i IN 1 .. {f} LOOP NULL; END LOOP; END;",
    "BEGIN CASE {f} WHEN 1 THEN NULL; END CASE; END;",
    "BEGIN LOOP EXIT WHEN {f} = 1; END LOOP; END;",
    "DECLARE x NUMBER; BEGIN x := {f}; END;",
    "DECLARE x NUMBER; BEGIN x := 1 + nvl({f}, 2); END;",
    "DECLARE x NUMBER := {f}; BEGIN NULL; END;",
    "DECLARE x NUMBER DEFAULT {f}; BEGIN NULL; END;",
    "BEGIN dbms_output.put_line({f}); END;",
    "BEGIN raise_application_error(-20001, {f}); END;",
    "CREATE FUNCTION g RETURN NUMBER IS BEGIN RETURN {f}; END;",
    "CREATE PROCEDURE p (a IN NUMBER) IS x NUMBER; BEGIN x := {f}; END;",
    "CREATE PACKAGE BODY k IS x NUMBER := {f}; PROCEDURE p IS BEGIN NULL; END; END;",
]
POSTGRES = [
    "SELECT {f}",
    "SELECT {f} AS done, {f}",
    "VALUES ({f})",
    *(
        f"{head} $x$ {body} $x$ {tail}"
        for head, tail in (("DO", ""), ("CREATE PROCEDURE p() LANGUAGE plpgsql AS", ""),
                           ("CREATE FUNCTION p() RETURNS void AS", "LANGUAGE plpgsql"))
        for body in ("BEGIN PERFORM {f}; END", "BEGIN CALL {f}; END", "DECLARE x int; BEGIN x := {f}; END", "BEGIN RETURN {f}; END",
                     "DECLARE x int := {f}; BEGIN NULL; END", "BEGIN IF {f} THEN NULL; END IF; END",
                     "-- once\nBEGIN CALL {f}; END", "<<a>> BEGIN PERFORM {f}; END", "BEGIN EXECUTE q; END")
    ),
]  # fmt: skip
MYSQL = [
    "SET @x = {f}",
    "SELECT {f}",
    "DO {f}",
    "CREATE PROCEDURE p() BEGIN SET @x = {f}; END",
    "CREATE PROCEDURE p() BEGIN IF {f} THEN SELECT 1; END IF; END",
    "CREATE PROCEDURE p() BEGIN DECLARE x INT DEFAULT {f}; END",
]
SNOWFLAKE = [
    "EXECUTE IMMEDIATE $$ BEGIN CALL {f}; END $$",
    "EXECUTE IMMEDIATE $$ BEGIN LET x := (CALL {f}); END $$",
    "CREATE PROCEDURE q() RETURNS INT LANGUAGE SQL AS $$ BEGIN LET x := (CALL {f}); RETURN x; END $$",
    "CREATE PROCEDURE q() RETURNS INT LANGUAGE SQL AS 'BEGIN CALL {f}; END'",
    "DECLARE x INT; BEGIN x := (CALL {f}); RETURN x; END;",
]
FORMS = [
    *(("oracle", one) for one in ORACLE),
    *(("postgres", one) for one in POSTGRES),
    *(("mysql", one) for one in MYSQL),
    *(("snowflake", one) for one in SNOWFLAKE),
]


def doubts(dialect: str, text: str) -> list[str]:
    """Why the text and a harmless one behind it are partial: a text alone may be called empty."""
    end = "\n/\n" if dialect == "oracle" else ";\n"
    answer = answer_sql(f"{text}{end}{AND_MORE}", dialect, TABLES)
    assert answer["complete"] is not bool(answer["unresolved"])
    return list(answer["unresolved"])


@pytest.mark.parametrize(("dialect", "form"), FORMS, ids=[f"{d} {one[:60]}" for d, one in FORMS])
def test_what_a_called_routine_does_is_not_known(dialect: str, form: str) -> None:
    for call in ("move_rows(1)", "jobs.move_rows(id)", "MOVE_ROWS ()", '"Jobs"."Move Rows"(1)'):
        assert doubts(dialect, form.replace("{f}", call))


@given(st.sampled_from(FORMS), st.from_regex(r"\A[a-z]{3,8}_(?:user|row|old)s?\Z"))
def test_no_name_of_a_routine_is_taken_for_a_function_of_the_language(form: tuple[str, str], name: str) -> None:
    assert doubts(form[0], form[1].replace("{f}", f"{name}(1)"))


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("oracle", "DECLARE x VARCHAR2(9) := nvl(upper('a'), to_char(sysdate, 'YYYY')); BEGIN x := substr(x, 1, 2); END;"),
        ("oracle", "DECLARE TYPE many IS TABLE OF NUMBER; r many; x NUMBER; BEGIN x := r(1); END;"),
        ("oracle", "CREATE PROCEDURE p (a IN many) IS x NUMBER; BEGIN x := a(1); END;"),
        ("oracle", "DECLARE FUNCTION f (a NUMBER) RETURN NUMBER IS BEGIN RETURN a; END; x NUMBER; BEGIN x := f(1); END;"),
        ("oracle", "BEGIN dbms_output.put_line('a' || to_char(1)); END;"),
        ("oracle", "DECLARE x NUMBER; BEGIN x := ids.nextval; END;"),
        ("postgres", "SELECT now(), pg_sleep(1), setval('ids', 5), gen_random_uuid()"),
        ("postgres", "DO $$ DECLARE x numeric(9, 2) := round(1.5); BEGIN x := coalesce(x, 1); END $$"),
        ("mysql", "SET @x = concat('a', last_insert_id())"),
        ("mysql", "SELECT get_lock('a', 1)"),
        ("tsql", "SET @x = dbo.total(1)"),
    ],
)  # fmt: skip
def test_functions_of_the_language_and_of_the_unit_change_no_rows(dialect: str, text: str) -> None:
    assert doubts(dialect, text) == []
