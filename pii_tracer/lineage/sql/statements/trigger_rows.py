"""Triggers: what they call the rows of their table, `NEW` and `OLD`, `inserted` and `deleted`, is that table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from pii_tracer.lineage.sql.text.table_name_pattern import TABLE

_HEAD = re.compile(rf"\bTRIGGER\b.*?\bON\s+(?P<table>{TABLE})", re.IGNORECASE | re.DOTALL)
_REFERENCING = re.compile(
    r"\bREFERENCING\b(?P<names>.*?)(?=\bFOR\s+EACH\b|\bWHEN\b|\bBEGIN\b|\bEXECUTE\b|$)", re.IGNORECASE | re.DOTALL
)
_CALLED = re.compile(
    r"\b(?:NEW|OLD)(?P<table>\s*_?TABLE)?(?:\s+ROW)?\s+(?:AS\s+)?"
    r"(?P<name>(?!ROW\b|TABLE\b|AS\b|NEW\b|OLD\b)\w+)",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"^\s*(?:SET\s+)?:?NEW\.(?P<column>\w+)\s*:?=\s*(?P<value>.+)$", re.IGNORECASE | re.DOTALL)
_NEXT = re.compile(r",\s*:?NEW\.(\w+)\s*:?=", re.IGNORECASE)


@dataclass(frozen=True)
class Rows:
    """The table of a trigger, as written. one: names for a row of it, many: for a table of its rows; lower case."""

    table: str
    one: frozenset[str]
    many: frozenset[str]


def rows_of(text: str) -> Rows | None:
    """The rows that the body of a trigger speaks of; None for anything that is no trigger of a table."""
    found = _HEAD.search(text)
    if found is None:
        return None
    clause = _REFERENCING.search(text)
    named = list(_CALLED.finditer(clause["names"])) if clause else []
    one = {n["name"].lower() for n in named if not n["table"]}
    many = {n["name"].lower() for n in named if n["table"]}
    return Rows(found["table"], frozenset({"new", "old", *one}), frozenset({"inserted", "deleted", *many}))


def assigned(text: str, rows: Rows | None) -> str | None:
    """`SET NEW.column = value` as the UPDATE that it is; empty where nobody knows of which table; else None."""
    found = _ASSIGNED.match(text)
    if found is None:
        return None
    if rows is None:
        return ""
    value = _NEXT.sub(r", \1 =", found["value"])
    return " ".join(("UPDATE", rows.table, "SET", found["column"], "=", value))


def of_table(node: exp.Expression, rows: Rows, dialect: str) -> exp.Expression:
    """The statement with the trigger's table in the place of what its rows are called; changed in place."""
    table = exp.to_table(rows.table, dialect=dialect)
    for part in list(node.find_all(exp.Table, exp.Column, exp.Dot)):
        if isinstance(part, exp.Table):
            if part.name.lower() in rows.many and not part.args.get("db"):
                meant = table.copy()
                meant.set("alias", part.args.get("alias") or exp.TableAlias(this=exp.to_identifier(part.name)))
                part.replace(meant)
        elif (name := _column(part, rows)) is not None:
            query = exp.Select(expressions=[exp.column(name)]).from_(table.copy())
            part.replace(exp.Subquery(this=query))
    return node


def _column(part: exp.Expression, rows: Rows) -> str | None:
    """The column of the trigger's row that is meant: `NEW.a` or `:NEW.a`."""
    if isinstance(part, exp.Column):
        return part.name if part.table.lower() in rows.one else None
    before = part.this
    return part.expression.name if isinstance(before, exp.Placeholder) and before.name.lower() in rows.one else None
