"""A copy's match as Spark SQL: a condition on rows, by semi-join against key views. No literal of a person in it."""

from __future__ import annotations

import re

from executors.context import ExecutionContext
from executors.engine.sql_names import quote, string_literal
from executors.engine.version_profiles import PROFILES
from pii_tracer.model.datasets import (
    WHOLE_NUMBER,
    FieldAccess,
    KeyPart,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import RunError
from pii_tracer.model.key_columns import joined_sql
from pii_tracer.model.number_keys import EXACT
from pii_tracer.model.plan import Copy

_COLLECTION = re.compile(r"\s*(array|map|struct)\b", re.IGNORECASE)
_MEMBER = re.compile(r"[^'?\\]+")
"""What Spark's JsonPathParser takes between quotes (jsonExpressions.scala); other paths give NULL for every row."""


_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = "^(0|-?[1-9][0-9]{0,18})$"
"""Whole numbers as Spark writes them: what is written otherwise is no number of a column of integers."""

_BROADCAST = 100_000
"""Keys of a set that are sent to every executor; of more, both sides are shuffled."""


def leaf(term: MatchTerm, alias: str | None = None) -> str:
    """SQL for the leaf that a term compares, as a string; of a key of several columns for all of them together.

    Raises:
        RunError: Spark would answer nothing to it instead of failing: a collection, or a member no path can name.
    """
    return joined_sql([_text(_value(part, alias), part.type) for part in term.parts])


def _value(term: KeyPart, alias: str | None = None) -> str:
    """The leaf as it stands."""
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
    return expression


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
    return " OR ".join(_is_key(ctx, term) for term in match.terms)


def _is_key(ctx: ExecutionContext, term: MatchTerm) -> str:
    """Engines pass over partitions that no key can be in, by the keys that they have broadcast (ADR 14).

    They do so where the column is compared as it is, and the keys are chosen by a condition; these here leave none out.
    Where the engine would tell these keys nothing is passed over: no partition is of a text with something before it.
    """
    keys = ctx.key_view(term.key_set)
    hint = f"/*+ BROADCAST({keys}) */ " if len(ctx.keyring.key_set(term.key_set).values) <= _BROADCAST else ""
    # what Iceberg a server of Spark Connect has nobody knows
    if ctx.estate.spark.remote or not PROFILES[ctx.estate.spark.profile].prunes_quietly:
        return f"concat('', {leaf(term)}) IN (SELECT {hint}k FROM {keys})"
    kind = term.type.strip().lower()
    if kind in _INTEGERS and not term.beside and all(isinstance(access, FieldAccess) for access in term.access):
        column = _value(term)
        # a narrower type is that of an Iceberg tag from before the column was widened
        types = ", ".join(f"'{name}'" for name in _INTEGERS[: _INTEGERS.index(kind) + 1])
        other = f"raise_error('a column is of another type than the plan says, {kind}')"
        told = f"IF(typeof({column}) IN ({types}), {column}, CAST({other} AS {kind}))"
        return f"{told} IN (SELECT {hint}try_cast(k AS {kind}) FROM {keys} WHERE k RLIKE '{_DIGITS}')"
    return f"{leaf(term)} IN (SELECT {hint}k FROM {keys} WHERE length(k) >= 0)"


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
