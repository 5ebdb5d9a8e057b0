"""A copy's match as Spark SQL: a condition on rows, by semi-join against key views. No literal of a person in it."""

from __future__ import annotations

import re

from executors.context import ExecutionContext
from executors.engine.sql_names import quote, string_literal
from executors.engine.version_profiles import PROFILES
from pii_tracer.model.datasets import (
    WHOLE_NUMBER,
    Access,
    FieldAccess,
    JsonAccess,
    KeyPart,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import RunError
from pii_tracer.model.keys_as_text import joined_sql
from pii_tracer.model.number_keys import EXACT
from pii_tracer.model.plan import Copy

_COLLECTION = re.compile(r"\s*(array|map|struct)\b", re.IGNORECASE)
_MEMBER = re.compile(r"[^'?\\]+")
"""What Spark's JsonPathParser takes between quotes (jsonExpressions.scala); other paths give NULL for every row."""


_ELEMENT = "pii_tracer_element"
"""What an element is called; a column of a table that is called so, too, would be hidden behind it."""

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = "^(0|-?[1-9][0-9]{0,18})$"
"""Whole numbers as Spark writes them: what is written otherwise is no number of a column of integers."""

_BROADCAST = 100_000
"""Keys of a set that are sent to every executor; of more, both sides are shuffled."""


def leaf(term: MatchTerm, alias: str | None = None) -> str:
    """SQL for the leaf that a term compares, as a string; of a key of several columns for all of them together, and in
    a list or a map for each element of it, as an array.

    Raises:
        RunError: Spark would answer nothing to it instead of failing: a collection, or a member no path can name.
    """
    if term.within is not None:
        return f"transform({_elements(term, alias)}, {_ELEMENT} -> {element(term)})"
    return joined_sql([_text(_value(part, alias), part.type) for part in term.parts])


def element(term: MatchTerm) -> str:
    """SQL for the leaf that a term compares in an element of a list, or in a key of a map, as a string. The element is
    called as in `without`."""
    return _text(_along(_ELEMENT, term, term.access[1:]), term.type)


def _elements(term: MatchTerm, alias: str | None) -> str:
    """The elements of the list, or the keys of the map, that a term looks at.

    Raises:
        RunError: they are not those of a column, or of a key of several columns.
    """
    if term.access[0] != term.within or term.beside:
        raise RunError(f"`{term.label()}` is in a nested list", todo="make the plan again")
    column = _column(term, alias)
    return column if term.within.name == "element" else f"map_keys({column})"


def without(term: MatchTerm, alias: str, keys: str) -> str:
    """SQL for a list or a map without the elements in which a term finds one of some keys (SQL for an array of texts).

    All others stay, in their order, those without a key among them.
    """
    column = _column(term, alias)
    stays = f"NOT coalesce(array_contains({keys}, {element(term)}), false)"
    if term.within is not None and term.within.name == "key":
        return f"map_filter({column}, ({_ELEMENT}, {_ELEMENT}_value) -> {stays})"
    return f"filter({column}, {_ELEMENT} -> {stays})"


def _column(term: KeyPart, alias: str | None) -> str:
    return f"{alias}.{quote(term.column)}" if alias else quote(term.column)


def _value(term: KeyPart, alias: str | None = None) -> str:
    """The leaf as it stands."""
    return _along(_column(term, alias), term, term.access)


def _along(expression: str, term: KeyPart, way: tuple[Access, ...]) -> str:
    """The leaf that a way leads to from an expression."""
    if _COLLECTION.match(term.type):
        raise RunError(
            f"`{term.label()}` is of type {term.type}: keys of this type in lists and maps are not supported",
            todo="rebuild the copy from its erased source, or waive the gap of this copy",
        )
    for access in way:
        if not isinstance(access, JsonAccess):
            expression += f".{quote(access.name)}"
        else:
            if not all(_MEMBER.fullmatch(name) for name in access.path):
                raise RunError(
                    f"a JSON path cannot contain the name of a member in `{term.label()}`",
                    todo="waive the gap of this copy",
                )
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
    if term.within is not None:
        return f"arrays_overlap({leaf(term)}, (SELECT collect_list(k) FROM {keys}))"
    hint = f"/*+ BROADCAST({keys}) */ " if len(ctx.keyring.key_set(term.key_set).values) <= _BROADCAST else ""
    # what Iceberg a server of Spark Connect has nobody knows
    if ctx.estate.spark.remote or not PROFILES[ctx.estate.spark.profile].prunes_quietly:
        return f"concat('', {leaf(term)}) IN (SELECT {hint}k FROM {keys})"
    kind = term.type.strip().lower()
    if kind in _INTEGERS and not term.beside and all(isinstance(access, FieldAccess) for access in term.access):
        column = _value(term)
        # a narrower type is that of an Iceberg tag from before the column was widened
        types = ", ".join(f"'{name}'" for name in _INTEGERS[: _INTEGERS.index(kind) + 1])
        other = f"raise_error('the type of a column differs from the plan, {kind}')"
        told = f"IF(typeof({column}) IN ({types}), {column}, CAST({other} AS {kind}))"
        return f"{told} IN (SELECT {hint}try_cast(k AS {kind}) FROM {keys} WHERE k RLIKE '{_DIGITS}')"
    return f"{leaf(term)} IN (SELECT {hint}k FROM {keys} WHERE length(k) >= 0)"


def merge(ctx: ExecutionContext, relation: str, match: Match, then: str) -> str:
    """A MERGE into a relation, `t`, for all terms at once, so that no file is written twice.

    Joined by OR they would be compared row by row with every key. So the rows are told by all that the terms look at
    together, of which each combination is either the persons' or not. In the source, `s`, `e0` are the persons' keys
    among those of the list or the map that the first term looks at, and so on.
    """
    terms = list(enumerate(match.terms))
    looked = [f"{leaf(term)} AS k{number}" for number, term in terms]
    looked += [f"{_persons(ctx, term)} AS e{number}" for number, term in terms if term.within is not None]
    same = " AND ".join(f"{leaf(term, 't')} <=> s.k{number}" for number, term in terms)
    theirs = f"SELECT DISTINCT {', '.join(looked)} FROM {relation} WHERE {condition(ctx, match)}"
    return f"MERGE INTO {relation} t USING ({theirs}) s ON {same} {then}"


def _persons(ctx: ExecutionContext, term: MatchTerm) -> str:
    """The persons' keys among those in a list or a map."""
    return f"array_intersect({leaf(term)}, (SELECT collect_list(k) FROM {ctx.key_view(term.key_set)}))"


def match_of(copy: Copy | None) -> Match:
    """The match of a copy.

    Raises:
        RunError: the plan has none for this copy.
    """
    if copy is None or copy.match is None or not copy.match.terms:
        raise RunError("the plan does not name the columns that find the rows in this copy", todo="make the plan again")
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
