"""Rows of persons without an identifier, beside rows that have one: never erased by half in silence."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import (
    Edge,
    EdgeType,
    Evidence,
    JobRef,
    Membership,
    Subtype,
)
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, Column, ColumnId
from planners.locate.key_location import Carriage, follow
from planners.locate.sql.spark_functions import compute
from tests.planners.estates import PERSON, carriage, dataset, terms

KEY, UNKNOWN, IDENTIFIERS = Carries.KEY, Carries.UNKNOWN, Carries.IDENTIFIERS
SUBJECT = PERSON.model_copy(update={"record_keys": ()})
TABLES = {
    "prod.users": "user_id string, email string, alias string, city string, amount string",
    "prod.claims": "claim_no string, user_id string, diagnosis string, amount string",
    "prod.merchants": "claim_no string, city string",
    "prod.out": "c1 string, c2 string, c3 string",
}
CLAIMS = "INSERT OVERWRITE prod.claims SELECT alias || '-7', user_id, 'd' || alias, amount FROM prod.users; "


def told(sql: str) -> Carriage:
    return carriage((CLAIMS + sql).replace("; ", ";\n"), subject=SUBJECT, tables=TABLES)


def reason(found: Carriage) -> str:
    assert found.carries is UNKNOWN, (found.carries, terms(found))
    return found.reason


WITH_KEY = "INSERT INTO prod.out SELECT user_id, diagnosis, amount FROM prod.claims WHERE amount < 5; "

DARK = {
    "another statement": WITH_KEY + "INSERT INTO prod.out SELECT claim_no, diagnosis, amount FROM prod.claims",
    "another statement, first": "INSERT INTO prod.out SELECT claim_no, diagnosis, '1' FROM prod.claims; " + WITH_KEY,
    "a branch of a union": "INSERT INTO prod.out SELECT user_id, diagnosis, '1' FROM prod.claims"
    " UNION ALL SELECT claim_no, diagnosis, '2' FROM prod.claims",
    "a branch of a union inside": "INSERT INTO prod.out SELECT x.a, x.b, 'y' FROM (SELECT user_id AS a, diagnosis AS b"
    " FROM prod.claims UNION ALL SELECT claim_no, diagnosis FROM prod.claims) x",
    "a branch of a union in a CTE": "WITH x AS (SELECT claim_no AS a, diagnosis AS b FROM prod.claims UNION ALL"
    " SELECT user_id, diagnosis FROM prod.claims) INSERT INTO prod.out SELECT a, b, 'y' FROM x",
    "a condition": "INSERT INTO prod.out SELECT CASE WHEN amount > 5 THEN claim_no ELSE user_id END, diagnosis, '1'"
    " FROM prod.claims",
    "nothing by a condition": "INSERT INTO prod.out SELECT if(amount > 5, NULL, user_id), diagnosis, '1'"
    " FROM prod.claims",
    "another name first": "INSERT INTO prod.out SELECT coalesce(alias, user_id), city, '1' FROM prod.users",
    "an outer join on more": "INSERT INTO prod.out SELECT u.user_id, c.diagnosis, '1' FROM prod.claims c LEFT JOIN"
    " prod.users u ON u.user_id = c.user_id AND u.city = 'Bonn'",
    "an outer join the other way": "INSERT INTO prod.out SELECT u.user_id, c.diagnosis, '1' FROM prod.users u RIGHT JOIN"
    " prod.claims c ON u.user_id = c.user_id AND u.city = 'Bonn'",
    "an outer join's key by a condition": "INSERT INTO prod.out SELECT CASE WHEN u.amount > 5 THEN u.user_id ELSE c.user_id"
    " END, u.city, '1' FROM prod.users u LEFT JOIN prod.claims c ON u.user_id = c.user_id AND c.amount > 4",
    "the key of filtered rows": "INSERT INTO prod.out SELECT max(user_id) FILTER (WHERE amount > 5), max(diagnosis), '1'"
    " FROM prod.claims GROUP BY user_id",
    "the key of the row before": "INSERT INTO prod.out SELECT lag(user_id) OVER (PARTITION BY user_id ORDER BY amount),"
    " diagnosis, '1' FROM prod.claims",
    "the key of the row after, or a mark": "INSERT INTO prod.out SELECT lead(user_id, 1, 'none') OVER (PARTITION BY user_id"
    " ORDER BY amount), diagnosis, '1' FROM prod.claims",
    "the key of the second row": "INSERT INTO prod.out SELECT nth_value(user_id, 2) OVER (PARTITION BY user_id ORDER BY"
    " amount), diagnosis, '1' FROM prod.claims",
    "the key of the rows before": "INSERT INTO prod.out SELECT max(user_id) OVER (PARTITION BY user_id ORDER BY amount ROWS"
    " BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), diagnosis, '1' FROM prod.claims",
    "the key where it is not another column's": "INSERT INTO prod.out SELECT nullif(user_id, claim_no), diagnosis, '1'"
    " FROM prod.claims",
    "a row of another column": "INSERT INTO prod.out SELECT ref, diagnosis, kind FROM prod.claims"
    " UNPIVOT (ref FOR kind IN (user_id, claim_no))",
    "a session's view that unites": "CREATE OR REPLACE TEMP VIEW x AS SELECT user_id, diagnosis, amount FROM prod.claims"
    " UNION ALL SELECT NULL, diagnosis, amount FROM prod.claims; INSERT INTO prod.out SELECT user_id, diagnosis, amount"
    " FROM x",
    "a session's view over another": "CREATE TEMP VIEW x (a, b) AS SELECT user_id, diagnosis FROM prod.claims UNION ALL"
    " SELECT NULL, diagnosis FROM prod.claims; CREATE TEMP VIEW y AS SELECT a, b FROM x WHERE b > 'c'; INSERT INTO prod.out"
    " SELECT a, b, 'x' FROM y",
    "a session's view of a view of its name": "CREATE OR REPLACE TEMP VIEW x AS SELECT user_id, diagnosis FROM prod.claims"
    " UNION ALL SELECT NULL, diagnosis FROM prod.claims; CREATE OR REPLACE TEMP VIEW x AS SELECT user_id, diagnosis FROM x;"
    " INSERT INTO prod.out SELECT user_id, diagnosis, 'x' FROM x",
    "a session's view, joined": "CREATE TEMP VIEW x AS SELECT user_id, claim_no FROM prod.claims UNION ALL SELECT NULL,"
    " claim_no FROM prod.claims; INSERT INTO prod.out SELECT x.user_id, c.diagnosis, 'x' FROM prod.claims c JOIN x ON"
    " x.claim_no = c.claim_no",
    "a session's cached query": "CACHE TABLE x AS SELECT user_id, diagnosis FROM prod.claims UNION ALL SELECT NULL, diagnosis"
    " FROM prod.claims; INSERT INTO prod.out SELECT user_id, diagnosis, 'x' FROM x",
    "a view that unites": "CREATE VIEW prod.v AS SELECT user_id, diagnosis, amount FROM prod.claims UNION ALL SELECT NULL,"
    " diagnosis, amount FROM prod.claims; INSERT INTO prod.out SELECT user_id, diagnosis, amount FROM prod.v",
    "a table of another statement": "INSERT INTO prod.a SELECT user_id, diagnosis FROM prod.claims; INSERT INTO prod.a"
    " SELECT claim_no, diagnosis FROM prod.claims; INSERT INTO prod.out SELECT user_id, diagnosis, 'x' FROM prod.a",
    "a table of which rows changed": "CREATE TABLE prod.a AS SELECT user_id, diagnosis FROM prod.claims; UPDATE prod.a SET"
    " user_id = NULL WHERE diagnosis > 'd'; INSERT INTO prod.out SELECT user_id, diagnosis, 'x' FROM prod.a",
    "overwritten later": WITH_KEY + "UPDATE prod.out SET c1 = 'CLOSED' WHERE c3 > 150",
    "overwritten by a condition": WITH_KEY + "UPDATE prod.out SET c1 = CASE WHEN c3 > 5 THEN NULL ELSE c1 END",
    "overwritten by a condition in brackets": WITH_KEY + "UPDATE prod.out SET c1 = (if(c3 > 5, c2, c1))",
    "overwritten by a query": WITH_KEY + "UPDATE prod.out SET c1 = (SELECT max(m.claim_no) FROM prod.merchants m)",
    "overwritten by the merge that writes": "MERGE INTO prod.out o USING prod.claims c ON o.c1 = c.user_id WHEN MATCHED AND"
    " c.amount > 5 THEN UPDATE SET c1 = NULL WHEN NOT MATCHED THEN INSERT (c1, c2) VALUES (c.user_id, c.diagnosis)",
    "overwritten by SET *": WITH_KEY
    + "MERGE INTO prod.out o USING (SELECT claim_no AS c1, city AS c2 FROM prod.merchants)"
    " m ON o.c2 = m.c2 WHEN MATCHED THEN UPDATE SET *",
    "dropped, and added again": WITH_KEY
    + "ALTER TABLE prod.out DROP COLUMN c1; ALTER TABLE prod.out ADD COLUMN c1 STRING",
    "dropped with others": WITH_KEY + "ALTER TABLE prod.out DROP COLUMNS (c3, c1); ALTER TABLE prod.out ADD COLUMNS"
    " (c1 STRING, c3 STRING)",
    "renamed, and added again": WITH_KEY
    + "ALTER TABLE prod.out RENAME COLUMN c1 TO c4; ALTER TABLE prod.out ADD COLUMN c1"
    " STRING",
    "replaced": WITH_KEY + "ALTER TABLE prod.out REPLACE COLUMNS (c1 STRING, c2 STRING, c3 STRING)",
    "overwritten by a merge": WITH_KEY + "MERGE INTO prod.out o USING prod.merchants m ON o.c2 = m.city"
    " WHEN MATCHED THEN UPDATE SET o.c1 = m.claim_no",
    "inserted by a merge": WITH_KEY + "MERGE INTO prod.out o USING prod.claims c ON o.c2 = c.claim_no"
    " WHEN NOT MATCHED THEN INSERT (c1, c2, c3) VALUES (c.claim_no, c.diagnosis, 'x')",
    "one of two inserts of a merge": "MERGE INTO prod.out o USING prod.claims c ON o.c1 = c.user_id WHEN NOT MATCHED AND"
    " c.amount > 5 THEN INSERT (c2, c3) VALUES (c.diagnosis, c.amount) WHEN NOT MATCHED THEN INSERT (c1, c2, c3)"
    " VALUES (c.user_id, c.diagnosis, c.amount)",
    "NULL in one of two inserts of a merge": "MERGE INTO prod.out o USING prod.claims c ON o.c1 = c.user_id WHEN NOT"
    " MATCHED AND c.amount > 5 THEN INSERT (c1, c2) VALUES (NULL, c.diagnosis) WHEN NOT MATCHED THEN INSERT (c1, c2)"
    " VALUES (c.user_id, c.diagnosis)",
    "a merge that gives the key to old rows alone": "MERGE INTO prod.out o USING prod.claims c ON o.c2 = c.diagnosis WHEN"
    " MATCHED THEN UPDATE SET c1 = c.user_id WHEN NOT MATCHED THEN INSERT (c2, c3) VALUES (c.diagnosis, c.amount)",
    "one of several inserts": "FROM prod.claims INSERT INTO prod.out SELECT user_id, diagnosis, amount WHERE amount < 5"
    " INSERT INTO prod.out SELECT CAST(NULL AS STRING) AS c1, diagnosis, amount WHERE amount > 4",
}


@pytest.mark.parametrize("sql", DARK.values(), ids=DARK.keys())
def test_rows_without_an_identifier_make_the_dataset_unknown(sql: str) -> None:
    assert "do not all have an identifier that a step can match" in reason(told(sql))


FOUND = {
    "a constant for nobody": "INSERT INTO prod.out SELECT user_id, diagnosis, '1' FROM prod.claims"
    " UNION ALL SELECT 'none', city, '2' FROM prod.merchants",
    "rows of nobody": WITH_KEY + "INSERT INTO prod.out SELECT claim_no, city, '1' FROM prod.merchants",
    "constants beside": WITH_KEY + "INSERT INTO prod.out VALUES ('0', 'none', '0')",
    "joined to what names nobody": "INSERT INTO prod.out SELECT c.user_id, m.city, '1' FROM prod.claims c LEFT JOIN"
    " prod.merchants m ON m.claim_no = c.claim_no",
    "names nobody, joined": "INSERT INTO prod.out SELECT c.user_id, m.city, '1' FROM prod.merchants m LEFT JOIN"
    " prod.claims c ON m.claim_no = c.claim_no",
    "the key where it is there": "INSERT INTO prod.out SELECT coalesce(user_id, alias), city, '1' FROM prod.users",
    "either side's key": "INSERT INTO prod.out SELECT coalesce(u.user_id, c.user_id), c.diagnosis, '1' FROM prod.users u"
    " FULL JOIN prod.claims c ON u.user_id = c.user_id",
    "a condition on other columns": "INSERT INTO prod.out SELECT user_id, CASE WHEN amount > 5 THEN claim_no END,"
    " diagnosis FROM prod.claims",
    "the key under two conditions": "INSERT INTO prod.out SELECT CASE WHEN amount > 5 THEN user_id ELSE user_id END,"
    " diagnosis, '1' FROM prod.claims",
    "rows of columns beside it": "INSERT INTO prod.out SELECT user_id, ref, kind FROM (SELECT user_id, claim_no, diagnosis"
    " FROM prod.claims) UNPIVOT (ref FOR kind IN (claim_no, diagnosis))",
    "changed elsewhere": WITH_KEY + "UPDATE prod.out SET c2 = 'closed', c3 = '0' WHERE c3 > 150",
    "others dropped": WITH_KEY + "ALTER TABLE prod.out DROP COLUMN c3; ALTER TABLE prod.out ADD COLUMN c3 STRING",
    "changed to itself": WITH_KEY + "UPDATE prod.out SET c1 = CASE WHEN c3 > 5 THEN c1 ELSE lower(c1) END",
    "changed to the same key": "MERGE INTO prod.out o USING prod.claims c ON o.c1 = c.user_id WHEN MATCHED THEN UPDATE SET"
    " o.c1 = c.user_id, o.c2 = c.diagnosis WHEN NOT MATCHED THEN INSERT (c1, c2) VALUES (c.user_id, c.diagnosis)",
    "the key of the group": "INSERT INTO prod.out SELECT max(user_id) FILTER (WHERE user_id <> ''), max(diagnosis), '1' FROM"
    " prod.claims GROUP BY user_id",
    "the key of the row before, or its own": "INSERT INTO prod.out SELECT lag(user_id, 1, user_id) OVER (PARTITION BY"
    " user_id ORDER BY amount), diagnosis, '1' FROM prod.claims",
    "the key of the rows up to it": "INSERT INTO prod.out SELECT max(user_id) OVER (PARTITION BY user_id ORDER BY amount ROWS"
    " BETWEEN 1 PRECEDING AND CURRENT ROW), diagnosis, '1' FROM prod.claims",
    "the key, where it is no mark": "INSERT INTO prod.out SELECT nullif(user_id, ''), diagnosis, '1' FROM prod.claims",
    "what the rows only decided": WITH_KEY + "INSERT INTO prod.out SELECT m.claim_no, m.city, '1' FROM prod.merchants m"
    " LEFT SEMI JOIN prod.claims c ON m.claim_no = c.claim_no",
    "columns in another order": "INSERT INTO prod.out (c3, c1) SELECT amount, user_id FROM prod.claims UNION ALL SELECT"
    " city, user_id FROM prod.users",
    "two inserts of a merge": "MERGE INTO prod.out o USING prod.claims c ON o.c1 = c.user_id WHEN NOT MATCHED AND"
    " c.amount > 5 THEN INSERT (c1, c2) VALUES (c.user_id, c.diagnosis) WHEN NOT MATCHED THEN INSERT (c3, c1)"
    " VALUES (c.amount, c.user_id)",
    "everything by a merge": "MERGE INTO prod.out o USING (SELECT user_id AS c1, diagnosis AS c2, amount AS c3 FROM"
    " prod.claims) c ON o.c1 = c.c1 WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "several inserts": "FROM prod.claims INSERT INTO prod.out SELECT user_id, diagnosis, amount WHERE amount < 5"
    " INSERT INTO prod.out SELECT user_id, claim_no, amount WHERE amount > 4",
    "inserts into two tables": "FROM prod.claims INSERT INTO prod.out SELECT user_id, diagnosis, amount"
    " INSERT INTO prod.out2 SELECT NULL, diagnosis, amount",
    "a session's view with the key": "CREATE TEMP VIEW x AS SELECT user_id, diagnosis FROM prod.claims UNION ALL SELECT"
    " user_id, city FROM prod.users; INSERT INTO prod.out SELECT user_id, diagnosis, 'x' FROM x",
    "a session's view beside rows of nobody": "CREATE TEMP VIEW x AS SELECT user_id, diagnosis FROM prod.claims UNION ALL"
    " SELECT 'none', city FROM prod.merchants; INSERT INTO prod.out SELECT user_id, diagnosis, 'x' FROM x",
    "a view with the key": "CREATE VIEW prod.v AS SELECT user_id, diagnosis FROM prod.claims UNION ALL SELECT user_id, city"
    " FROM prod.users; INSERT INTO prod.out SELECT user_id, diagnosis, 'x' FROM prod.v",
    "a view joined to whom it knows": "CREATE VIEW prod.v AS SELECT user_id, diagnosis FROM prod.claims UNION ALL SELECT"
    " NULL, diagnosis FROM prod.claims; INSERT INTO prod.out SELECT u.user_id, v.diagnosis, 'x' FROM prod.v v JOIN"
    " prod.users u ON u.user_id = v.user_id",
    "the same union twice": "INSERT INTO prod.out SELECT c1, c2, 'z' FROM (SELECT user_id AS c1, diagnosis AS c2 FROM"
    " prod.claims UNION ALL SELECT user_id, city FROM prod.users) x",
}


@pytest.mark.parametrize("sql", FOUND.values(), ids=FOUND.keys())
def test_what_has_the_key_in_every_row_of_persons_is_found_by_it(sql: str) -> None:
    found = told(sql)
    assert found.carries is KEY, found.reason
    assert "c1 = user_id" in terms(found)


@pytest.mark.parametrize("name", ["another statement", "a branch of a union", "overwritten later"])
def test_statements_in_one_line_are_told_apart(name: str) -> None:
    found = carriage(CLAIMS + DARK[name], subject=SUBJECT, tables=TABLES)
    assert found.carries is UNKNOWN


def test_identifiers_of_different_branches_find_the_rows_together() -> None:
    found = told(
        "INSERT INTO prod.out SELECT user_id, 'x', city FROM prod.users UNION ALL SELECT 'x', email, city FROM prod.users"
    )
    assert found.carries is IDENTIFIERS
    assert terms(found) == ["c1 = user_id", "c2 = email"]


MIXED = {
    "a table joined with itself": "INSERT INTO prod.out SELECT a.user_id, b.diagnosis, '1' FROM prod.claims a JOIN"
    " prod.claims b ON a.amount = b.amount AND a.user_id <> b.user_id",
    "the row before": "INSERT INTO prod.out SELECT user_id, lag(diagnosis) OVER (ORDER BY amount), '1' FROM prod.claims",
    "one person's row in all": "INSERT INTO prod.out SELECT a.user_id, (SELECT b.diagnosis FROM prod.claims b WHERE"
    " b.claim_no = 'al1-7'), '1' FROM prod.claims a",
}


@pytest.mark.parametrize("sql", MIXED.values(), ids=MIXED.keys())
def test_values_of_one_persons_row_in_anothers_make_it_nobodys_to_delete(sql: str) -> None:
    found = told(sql)
    assert found.carries is KEY
    assert found.mixed


@pytest.mark.parametrize("sql", MIXED.values(), ids=MIXED.keys())
@pytest.mark.parametrize("again", ["", "CREATE TEMP VIEW w AS SELECT * FROM v;\n"])
def test_views_of_the_session_hide_no_join_of_persons(sql: str, again: str) -> None:
    view = f"CREATE TEMP VIEW v (user_id, d, n) AS {sql.removeprefix('INSERT INTO prod.out ')};\n{again}"
    found = told(f"{view}INSERT INTO prod.out SELECT user_id, d, '1' FROM {'w' if again else 'v'}")
    assert found.carries is KEY
    assert found.mixed


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO prod.out SELECT a.user_id, b.diagnosis, '1' FROM prod.claims a JOIN prod.claims b"
        " ON a.user_id = b.user_id",
        "INSERT INTO prod.out SELECT user_id, lag(diagnosis) OVER (PARTITION BY user_id ORDER BY amount), '1'"
        " FROM prod.claims",
        "INSERT INTO prod.out SELECT user_id, row_number() OVER (ORDER BY amount), '1' FROM prod.claims",
    ],
)
def test_rows_of_one_person_may_look_at_each_other(sql: str) -> None:
    found = told(sql)
    assert (found.carries, found.mixed) == (KEY, ())


def edge(source: str, target: str, job: str, subtype: Subtype = Subtype.IDENTITY) -> Edge:
    """As an event of the job tells it: with columns, and without an expression."""
    return Edge(
        source=column_named(source),
        target=column_named(target),
        type=EdgeType.DIRECT,
        subtype=subtype,
        evidence=(told_by(job),),
    )


def column_named(name: str) -> ColumnId:
    table, column = name.rsplit(".", 1)
    return ColumnId(dataset=dataset(table), column=column)


def told_by(job: str) -> Evidence:
    return Evidence(source="openlineage", job=job, where="events.json:1")


def told_by_events(*edges: Edge, joined: tuple[str, ...] = ()) -> Carriage:
    """joined: columns by which the job `one` joins."""
    schemas = {
        dataset(name): tuple(Column(name=part.split()[0], type="string") for part in ddl.split(", "))
        for name, ddl in TABLES.items()
    }
    jobs = [JobRef(job=name, sql=None, inputs=(), output=dataset("prod.out")) for name in ("one", "two")]
    members = [
        Membership(
            source=column_named(name), target=dataset("prod.out"), subtype=Subtype.JOIN, evidence=(told_by("one"),)
        )
        for name in joined
    ]
    graph = LineageGraph(collect(columns=schemas, edges=edges, memberships=members, jobs=jobs, gaps=[], aliases={}))
    return follow(graph, dataset("prod.users"), SUBJECT)[dataset("prod.out")]


@pytest.mark.parametrize(("column", "carries"), [("user_id", KEY), ("claim_no", UNKNOWN)])
def test_a_run_without_a_text_is_held_to_the_same(column: str, carries: Carries) -> None:
    """Two runs write one table; events tell the columns and no statement."""
    found = told_by_events(
        edge("prod.users.user_id", "prod.claims.user_id", "load"),
        edge("prod.claims.user_id", "prod.out.c1", "one"),
        edge(f"prod.claims.{column}", "prod.out.c1", "two"),
        edge("prod.claims.diagnosis", "prod.out.c2", "two"),
    )
    assert found.carries is carries


SEVERAL = (
    edge("prod.users.email", "prod.claims.diagnosis", "load"),
    edge("prod.users.user_id", "prod.out.c1", "one"),
    edge("prod.users.email", "prod.out.c2", "one", Subtype.TRANSFORMATION),
    edge("prod.claims.diagnosis", "prod.out.c2", "one", Subtype.TRANSFORMATION),
)
"""The key from one table, and something out of two tables that name persons in one column."""


@pytest.mark.parametrize(
    ("joined", "carries"),
    [
        ((), UNKNOWN),
        (("prod.users.alias",), UNKNOWN),
        (("prod.merchants.claim_no", "prod.claims.claim_no"), UNKNOWN),
        (("prod.users.alias", "prod.claims.claim_no"), KEY),
    ],
)
def test_several_tables_in_one_column_are_a_union_unless_a_join_is_told(
    joined: tuple[str, ...], carries: Carries
) -> None:
    assert told_by_events(*SEVERAL, joined=joined).carries is carries


def test_several_tables_are_a_union_where_one_goes_in_unchanged() -> None:
    told = (*SEVERAL, edge("prod.users.alias", "prod.out.c2", "one"))
    assert told_by_events(*told, joined=("prod.users.alias", "prod.claims.claim_no")).carries is UNKNOWN


def test_a_key_beside_something_computed_is_not_in_every_row() -> None:
    found = told_by_events(
        edge("prod.users.user_id", "prod.out.c1", "one"),
        edge("prod.users.alias", "prod.out.c1", "one", Subtype.TRANSFORMATION),
        edge("prod.users.city", "prod.out.c2", "one"),
    )
    assert found.carries is UNKNOWN


def test_nobody_claims_to_know_what_came_without_columns() -> None:
    job = JobRef(job="one", sql=None, inputs=(dataset("prod.users"),), output=dataset("prod.out"))
    graph = LineageGraph(collect(columns={}, edges=[], memberships=[], jobs=[job], gaps=[], aliases={}))
    found = follow(graph, dataset("prod.users"), SUBJECT)[dataset("prod.out")]
    assert (found.carries, found.reason) == (
        Carries.NONE,
        "lineage leads here, but names no columns, so nobody knows which values were copied",
    )


# --- an obviously right model: SQLite runs the statements with and without each person ---

PEOPLE = [(f"U{n}", f"u{n}@x.example", f"al{n}", "Bonn" if n % 2 else "Goa", str(3 + n)) for n in range(4)]

sources = st.sampled_from(
    [
        "prod.users u",
        "prod.claims c",
        "prod.merchants m",
        "prod.users u JOIN prod.claims c ON u.user_id = c.user_id",
        "prod.users u LEFT JOIN prod.claims c ON u.user_id = c.user_id AND c.amount > '4'",
        "prod.claims c LEFT JOIN prod.users u ON u.user_id = c.user_id AND u.city = 'Bonn'",
        "prod.users u RIGHT JOIN prod.claims c ON u.user_id = c.user_id AND u.city = 'Goa'",
        "prod.users u FULL JOIN prod.claims c ON u.user_id = c.user_id AND u.city = 'Goa'",
        "prod.merchants m LEFT JOIN prod.claims c ON m.claim_no = c.claim_no",
    ]
)
COLUMNS = {
    "u": ("user_id", "email", "alias", "city"),
    "c": ("claim_no", "user_id", "diagnosis"),
    "m": ("claim_no", "city"),
}
CONDITIONS = {"u": "u.amount > '4'", "c": "c.amount > '4'", "m": "m.city = 'Bonn'"}


@st.composite
def values(draw: st.DrawFn, aliases: list[str], kinds: list[str]) -> str:
    plain = st.sampled_from([f"{a}.{name}" for a in aliases for name in COLUMNS[a]] + ["'k'"])
    kind = draw(st.sampled_from(kinds))
    condition = CONDITIONS[draw(st.sampled_from(aliases))]
    if kind == "case":
        return f"CASE WHEN {condition} THEN {draw(plain)} ELSE {draw(plain)} END"
    if kind == "before":
        person = next((f"{a}.user_id" for a in aliases if a != "m"), "m.claim_no")
        return f"lag({draw(plain)}) OVER (PARTITION BY {person} ORDER BY {person})"
    if kind == "nothing":
        return f"CASE WHEN {condition} THEN {draw(plain)} END"
    return f"coalesce({draw(plain)}, {draw(plain)})" if kind == "coalesce" else draw(plain)


@st.composite
def groups(draw: st.DrawFn) -> str:
    """One row a person; the key of some rows of hers alone."""
    kept = draw(st.sampled_from(["", " FILTER (WHERE c.amount > '4')", " FILTER (WHERE c.user_id > 'U')"]))
    shown = [
        f"max(c.user_id){kept} AS c1",
        "max(c.diagnosis) AS c2",
        draw(st.sampled_from(["'k' AS c3", "c.user_id AS c3"])),
    ]
    return f"SELECT {', '.join(draw(st.permutations(shown)))} FROM prod.claims c GROUP BY c.user_id"


@st.composite
def selects(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 5)) == 0:
        return draw(groups())
    source = draw(sources)
    aliases = [a for a in COLUMNS if f" {a}" in source]
    # persons whom an outer join leaves empty would be one partition
    kinds = [
        "plain",
        "plain",
        "plain",
        "case",
        "coalesce",
        "nothing",
        *([] if "T JOIN" in source or "L JOIN" in source else ["before"]),
    ]
    shown = [f"{draw(values(aliases, kinds))} AS c{n}" for n in (1, 2, 3)]
    return f"SELECT {', '.join(shown)} FROM {source}"


@st.composite
def scripts(draw: st.DrawFn) -> str:
    statements = []
    for number in range(draw(st.integers(1, 2))):
        query = draw(selects())
        if draw(st.booleans()):
            query += f" UNION ALL {draw(selects())}"
        around = draw(st.sampled_from(["", "", "query", "view", "table"]))
        if around == "query":
            query = f"SELECT y.c1, y.c2, y.c3 FROM ({query}) y"
        elif around:
            name = f"v{number}" if around == "view" else ("prod.a", "prod.b")[number]
            statements.append(f"CREATE {'TEMP VIEW' if around == 'view' else 'TABLE'} {name} AS {query}")
            query = f"SELECT y.c1, y.c2, y.c3 FROM {name} y"
        statements.append(f"INSERT INTO prod.out {query}")
    changed = f"c{draw(st.integers(1, 3))}"
    change = draw(st.sampled_from(["", "", "", "'z' WHERE c2 > 'c'", "CASE", "itself"]))
    if change == "CASE":
        change = f"CASE WHEN c2 > 'c' THEN NULL ELSE {changed} END"
    elif change == "itself":
        change = f"CASE WHEN c2 > 'c' THEN {changed} ELSE lower({changed}) END"
    if change:
        statements.append(f"UPDATE prod.out SET {changed} = {change}")
    return "; ".join(statements)


def run(script: str, without: str | None = None) -> Counter[tuple[Any, ...]]:
    """The rows of `prod.out` that hold anything, the person of this key left out of the source."""
    with sqlite3.connect(":memory:") as base:
        base.execute("ATTACH ':memory:' AS prod")
        for table, ddl in TABLES.items():
            base.execute(f"CREATE TABLE {table} ({ddl.replace(' string', ' TEXT')})")
        base.executemany(
            "INSERT INTO prod.users VALUES (?, ?, ?, ?, ?)", [person for person in PEOPLE if person[0] != without]
        )
        base.execute("INSERT INTO prod.merchants VALUES ('al1-7', 'Bonn'), ('m-2', 'Goa')")
        for statement in (CLAIMS.replace("OVERWRITE", "INTO") + script).split(";"):
            base.execute(statement)
        rows = base.execute("SELECT c1, c2, c3 FROM prod.out").fetchall()
        return Counter(row for row in rows if not set(row) <= {None, "k", "z"})


def erased(rows: Counter[tuple[Any, ...]], found: Carriage, person: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    """What is left when the rows are deleted in which a term has the person's value."""
    known = {"user_id": person[0], "email": person[1]}
    wanted = {(name, str(compute(t.expression, known[t.origin]))) for name, t in found.terms if t.origin in known}
    return Counter(
        {row: n for row, n in rows.items() if not any((f"c{at}", cell) in wanted for at, cell in enumerate(row, 1))}
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scripts())
@example(
    "INSERT INTO prod.out SELECT u.alias AS c1, u.email AS c2, u.alias AS c3 FROM prod.users u;"
    " UPDATE prod.out SET c2 = CASE WHEN c2 > 'c' THEN NULL ELSE c2 END"
)
@example(
    "INSERT INTO prod.out SELECT u.alias AS c1, CASE WHEN u.email > 'c' THEN u.email END AS c2, 'k' AS c3 FROM prod.users u"
)
def test_what_is_called_found_is_erased_whole_and_nobody_else(script: str) -> None:
    try:
        found = told(script)
    except KeyError:  # nothing comes from the source
        assert all(run(script) == run(script, without=person[0]) for person in PEOPLE)
        return
    if found.carries not in (KEY, IDENTIFIERS) or found.mixed:
        return
    for person in PEOPLE:
        left, right = erased(run(script), found, person), run(script, without=person[0])
        assert not left - right, "rows of the person stay"
        # a shop's row beside which the person's claim stood is the person's in all its columns
        assert not right - left or "prod.merchants m LEFT JOIN" in script
