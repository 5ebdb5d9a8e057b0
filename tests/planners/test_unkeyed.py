"""Rows of persons without an identifier, beside rows that have one: never erased by half in silence."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_tracer.lineage.edges import Edge, EdgeType, Evidence, JobRef, Subtype
from pii_tracer.lineage.facts import collect
from pii_tracer.lineage.graph import LineageGraph
from pii_tracer.model import Carries, Column, ColumnId
from planners.carriage import Carriage, follow
from planners.functions import compute
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
    "a row of another column": "INSERT INTO prod.out SELECT ref, diagnosis, kind FROM prod.claims"
    " UNPIVOT (ref FOR kind IN (user_id, claim_no))",
    "overwritten later": WITH_KEY + "UPDATE prod.out SET c1 = 'CLOSED' WHERE c3 > 150",
    "overwritten by a merge": WITH_KEY + "MERGE INTO prod.out o USING prod.merchants m ON o.c2 = m.city"
    " WHEN MATCHED THEN UPDATE SET o.c1 = m.claim_no",
    "inserted by a merge": WITH_KEY + "MERGE INTO prod.out o USING prod.claims c ON o.c2 = c.claim_no"
    " WHEN NOT MATCHED THEN INSERT (c1, c2, c3) VALUES (c.claim_no, c.diagnosis, 'x')",
}


@pytest.mark.parametrize("sql", DARK.values(), ids=DARK.keys())
def test_rows_without_an_identifier_make_the_dataset_unknown(sql: str) -> None:
    assert "no identifier that can be matched in all of them" in reason(told(sql))


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
    "what the rows only decided": WITH_KEY + "INSERT INTO prod.out SELECT m.claim_no, m.city, '1' FROM prod.merchants m"
    " LEFT SEMI JOIN prod.claims c ON m.claim_no = c.claim_no",
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
    assert (found.carries, found.mixed) == (KEY, ("c1",))


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


@pytest.mark.parametrize(("column", "carries"), [("user_id", KEY), ("claim_no", UNKNOWN)])
def test_a_run_without_a_text_is_held_to_the_same(column: str, carries: Carries) -> None:
    """Two runs write one table; events tell the columns and no statement."""

    def edge(source: str, target: str, job: str) -> Edge:
        of, name = source.rsplit(".", 1)
        into, column_of_it = target.rsplit(".", 1)
        return Edge(
            source=ColumnId(dataset=dataset(of), column=name),
            target=ColumnId(dataset=dataset(into), column=column_of_it),
            type=EdgeType.DIRECT,
            subtype=Subtype.IDENTITY,
            evidence=(Evidence(source="openlineage", job=job, where="events.json:1"),),
        )

    edges = [
        edge("prod.users.user_id", "prod.claims.user_id", "load"),
        edge("prod.claims.user_id", "prod.out.c1", "one"),
        edge(f"prod.claims.{column}", "prod.out.c1", "two"),
        edge("prod.claims.diagnosis", "prod.out.c2", "two"),
    ]
    schemas = {
        dataset(name): tuple(Column(name=part.split()[0], type="string") for part in ddl.split(", "))
        for name, ddl in TABLES.items()
    }
    assert follow(_graph(edges, schemas), dataset("prod.users"), SUBJECT)[dataset("prod.out")].carries is carries


def _graph(edges: list[Edge], schemas: Any) -> LineageGraph:
    jobs = [JobRef(job=name, sql=None, inputs=(), output=dataset("prod.out")) for name in ("one", "two")]
    return LineageGraph(collect(columns=schemas, edges=edges, memberships=[], jobs=jobs, gaps=[], aliases={}))


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
def values(draw: st.DrawFn, aliases: list[str]) -> str:
    plain = st.sampled_from([f"{a}.{name}" for a in aliases for name in COLUMNS[a]] + ["'k'"])
    kind = draw(st.sampled_from(["plain", "plain", "plain", "case", "coalesce", "nothing"]))
    condition = CONDITIONS[draw(st.sampled_from(aliases))]
    if kind == "case":
        return f"CASE WHEN {condition} THEN {draw(plain)} ELSE {draw(plain)} END"
    if kind == "nothing":
        return f"CASE WHEN {condition} THEN {draw(plain)} END"
    return f"coalesce({draw(plain)}, {draw(plain)})" if kind == "coalesce" else draw(plain)


@st.composite
def selects(draw: st.DrawFn) -> str:
    source = draw(sources)
    aliases = [a for a in COLUMNS if f" {a}" in source]
    shown = [f"{draw(values(aliases))} AS c{n}" for n in (1, 2, 3)]
    return f"SELECT {', '.join(shown)} FROM {source}"


@st.composite
def scripts(draw: st.DrawFn) -> str:
    statements = []
    for _ in range(draw(st.integers(1, 2))):
        query = draw(selects())
        if draw(st.booleans()):
            query += f" UNION ALL {draw(selects())}"
        if draw(st.integers(0, 3)) == 0:
            query = f"SELECT y.c1, y.c2, y.c3 FROM ({query}) y"
        statements.append(f"INSERT INTO prod.out {query}")
    if draw(st.integers(0, 3)) == 0:
        statements.append(f"UPDATE prod.out SET c{draw(st.integers(1, 3))} = 'z' WHERE c2 > 'c'")
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


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scripts())
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
