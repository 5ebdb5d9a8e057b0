"""Every part of a statement is accounted for: followed, known to move no data, or named as not understood."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from pii_tracer.lineage.sql.accounting import syntax_node_rules
from pii_tracer.lineage.sql.accounting.administration import administration
from pii_tracer.lineage.sql.accounting.harmless_statements import without_data
from pii_tracer.lineage.sql.parse_lines import answer_sql
from pii_tracer.lineage.sql.scopes import Findings
from pii_tracer.lineage.sql.statement_audit import audit
from pii_tracer.lineage.sql.text.table_names import Names

TABLES = {name: ["id", "mail"] for name in ("s", "t", "u", "log")}
STATEMENTS = [json.loads(line) for line in Path(__file__).with_name("statements.jsonl").read_text().splitlines()]
"""Statements of which a column, a table or a file once could get lost, and others of their kinds.

edges: all that it must give, and it is complete; partial: it must say that it is not; assumed: it says how it named the
columns of a table without a schema; tables: their columns, where they are others than `TABLES`.
"""


@pytest.mark.parametrize("one", STATEMENTS, ids=lambda one: f"{one['dialect']}: {one['sql'][:60]}")
def test_nothing_is_lost_in_silence(one: dict[str, Any]):
    tables = one.get("tables", TABLES)
    answer = answer_sql(one["sql"], one["dialect"], {t: [(c, "") for c in columns] for t, columns in tables.items()})
    assert answer["complete"] is not one.get("partial", False), answer["unresolved"]
    assert bool(answer["unresolved"]) is one.get("partial", False)
    assert bool(answer["assumed"]) is one.get("assumed", False)
    if "edges" in one:
        assert ", ".join(sorted({f"{e['from']} -> {e['to']}" for e in answer["edges"]})) == one["edges"]


class Novelty(exp.Expression):
    """A part of a statement that a coming version of the parser may know."""

    arg_types = {"this": False}


def doubts(node: exp.Expression) -> list[str]:
    findings = Findings(followed={id(node)})
    audit(node, findings, Names({}))
    return list(findings.reasons)


@pytest.mark.parametrize(
    ("sql", "mistaken"),
    [
        ("WITH x AS (SELECT 1 AS a) SELECT a FROM x", True),
        ("WITH x AS (SELECT 1 AS a) SELECT (SELECT max(a) FROM x) AS a", True),
        ("WITH x AS (SELECT 1 AS a), y AS (SELECT a FROM x) SELECT a FROM y", True),
        ("WITH x AS (SELECT a FROM x) SELECT a FROM y", False),
        ("WITH y AS (SELECT a FROM x), x AS (SELECT 1 AS a) SELECT a FROM y", False),
        ("SELECT a FROM x UNION SELECT a FROM (WITH x AS (SELECT 1 AS a) SELECT a FROM y)", False),
        ("WITH x AS (SELECT 1 AS a) SELECT a FROM d.x", False),
    ],
)
def test_a_query_that_was_taken_for_a_table_of_its_name(sql: str, mistaken: bool):
    tree = sqlglot.parse_one(sql)
    everything = {id(node) for node in tree.walk()}
    tables = {id(table) for table in tree.find_all(exp.Table) if table.name == "x"}
    findings = Findings(followed=everything, stored=tables)
    audit(tree, findings, Names({}))
    said = "x is a WITH query, but lineage took it for a table of that name"
    assert list(findings.reasons) == ([said] if mistaken else [])


@pytest.mark.parametrize("kind", list(syntax_node_rules.FOLLOWED), ids=lambda kind: kind.__name__)
def test_a_clause_that_nobody_classified_is_not_understood(kind: type[exp.Expression]):
    for value in (True, "NOVEL", exp.Literal.string("a"), Novelty()):
        assert doubts(kind(novel=value)) == [f"the clause NOVEL of {_called(kind)} is not supported"]


@pytest.mark.parametrize("holder", [exp.Where, exp.Alias, exp.Ordered, exp.Upper, exp.Add, exp.Anonymous, exp.Window])
def test_a_part_that_nobody_classified_is_not_understood(holder: type[exp.Expression]):
    assert doubts(holder(this=Novelty())) == ["a part of kind NOVELTY is not supported"]


@pytest.mark.parametrize("kind", [exp.Properties, exp.Schema])
def test_a_property_or_constraint_that_nobody_classified_is_not_understood(kind: type[exp.Expression]):
    assert doubts(kind(expressions=[Novelty()])) == ["a part of kind NOVELTY is not supported"]


def test_every_clause_that_is_classified_is_one_that_the_parser_has():
    for clauses in (syntax_node_rules.FOLLOWED, *syntax_node_rules.WITHOUT_DATA.values()):
        for kind, names in clauses.items():
            assert set(names.split()) <= set(kind.arg_types), kind


def test_no_clause_is_both_followed_and_without_data():
    for clauses in syntax_node_rules.WITHOUT_DATA.values():
        for kind, names in clauses.items():
            assert not set(names.split()) & set(syntax_node_rules.FOLLOWED[kind].split()), kind


@pytest.mark.parametrize("kind", ["PIPELINE", "MODEL", "DICTIONARY", "SYNONYM", "SHARE", "STREAMLIT", "SEMANTIC_VIEW"])
def test_a_kind_of_create_that_nobody_classified_is_not_complete(kind: str):
    answer = answer_sql("CREATE TABLE x (id INT)", "ansi", {})
    assert answer["complete"]
    assert not answer_sql(f"CREATE {kind} x", "snowflake", {})["complete"]


@pytest.mark.parametrize("verb", ["SHIP", "MIRROR", "REPLICATE", "BACKUP", "ARCHIVE"])
def test_a_verb_that_nobody_classified_is_not_complete(verb: str):
    assert not without_data(exp.Command(this=verb, expression="TABLE a TO b"))
    assert not answer_sql(f"{verb} TABLE s TO t", "spark", {})["complete"]


@pytest.mark.parametrize(
    "text", ["ALTER TABLE s OWNER TO x AS SELECT 1", "CREATE EXTENSION a FROM b", "UPDATE STATISTICS s SET a = b"]
)
def test_a_statement_of_administration_is_known_to_its_last_word(text: str):
    assert administration(text) is None


def _called(kind: type[exp.Expression]) -> str:
    return "".join(f" {c}" if c.isupper() and n and kind.__name__[n - 1].islower() else c
                   for n, c in enumerate(kind.__name__)).upper()  # fmt: skip
