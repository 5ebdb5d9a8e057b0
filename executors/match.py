"""A copy's match as Spark SQL: a condition on rows, by semi-join against key views. No literal of a person in it."""

from __future__ import annotations

import re

from executors.context import ExecutionContext
from executors.spark import quote, string_literal
from pii_tracer.errors import RunError
from pii_tracer.model import WHOLE_NUMBER, FieldAccess, Match, MatchTerm
from pii_tracer.plan import Copy
from pii_tracer.whole import EXACT

_COLLECTION = re.compile(r"\s*(array|map|struct)\b", re.IGNORECASE)
_MEMBER = re.compile(r"[^'?\\]+")
"""What Spark's JsonPathParser takes between quotes (jsonExpressions.scala); other paths give NULL for every row."""


def leaf(term: MatchTerm, alias: str | None = None) -> str:
    """SQL for the leaf that a term compares, as a string.

    Raises:
        RunError: Spark would answer nothing to it instead of failing: a collection, or a member no path can name.
    """
    if _COLLECTION.match(term.type):
        raise RunError(
            f"`{term.label()}` is of type {term.type}: keys inside collections are not supported yet",
            todo="rebuild the copy from its erased source, or waive it by name",
        )
    expression = f"{alias}.{quote(term.column)}" if alias else quote(term.column)
    for access in term.access:
        if isinstance(access, FieldAccess):
            expression += f".{quote(access.name)}"
        else:
            if not all(_MEMBER.fullmatch(name) for name in access.path):
                raise RunError(f"a member in `{term.label()}` cannot be named in a JSON path", todo="waive it by name")
            path = "$" + "".join(f"['{name}']" for name in access.path)
            expression = f"get_json_object({expression}, {string_literal(path)})"
    return _text(expression, term.type)


def _text(value: str, kind: str) -> str:
    """As text; whole numbers have no fraction, whatever type of number a job made of them."""
    text, limit = f"CAST({value} AS STRING)", EXACT.get(kind.strip().lower())
    if limit is not None:
        whole = f"CAST(CAST({value} AS BIGINT) AS STRING)"
        return f"CASE WHEN abs({value}) < {limit} AND {value} = floor({value}) THEN {whole} ELSE {text} END"
    if kind.strip().lower().startswith("decimal"):
        return f"regexp_replace({text}, {string_literal(WHOLE_NUMBER)}, '$1')"
    return text


def condition(ctx: ExecutionContext, match: Match) -> str:
    """A WHERE condition that is true for the persons' rows, by subqueries: for SELECT, Iceberg and Hudi DELETE."""
    return " OR ".join(f"{leaf(t)} IN (SELECT k FROM {ctx.key_view(t.key_set)})" for t in match.terms)


def match_of(copy: Copy | None) -> Match:
    """The match of a copy.

    Raises:
        RunError: the plan has none for this copy.
    """
    if copy is None or copy.match is None or not copy.match.terms:
        raise RunError("the plan does not say how rows are found here", todo="make the plan again")
    return copy.match


def places_of(copy: Copy | None) -> Match:
    """Wherever persons are looked for in a copy, whatever becomes of the row.

    Raises:
        RunError: the plan has nothing for this copy.
    """
    return match_of(copy.model_copy(update={"match": copy.places}) if copy else None)


def count(ctx: ExecutionContext, relation: str, match: Match) -> int:
    """Number of the persons' rows in a relation (a quoted name, or a parenthesised query)."""
    row = ctx.spark.sql(f"SELECT count(*) FROM {relation} WHERE {condition(ctx, match)}").first()
    return int(row[0]) if row else 0
