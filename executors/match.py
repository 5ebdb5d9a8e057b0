"""A copy's match as SQL: which rows are the person's. Names are quoted, values stay in the key views."""

from __future__ import annotations

import re
from collections.abc import Callable

from executors.spark import quote, string_literal
from pii_tracer.errors import RunError
from pii_tracer.model import FieldAccess, Match, MatchTerm

_JSON_MEMBER = re.compile(r"[^'?\\]+")
"""Member names that Spark's JSON path grammar can quote (JsonPathParser in Spark 3.5's jsonExpressions.scala)."""


def leaf(term: MatchTerm, alias: str | None = None) -> str:
    """SQL for the term's value as text; keys are compared as text (see `MatchTerm`).

    Raises:
        RunError: the leaf is a collection, or a JSON member's name cannot be quoted in a path.
    """
    if re.match(r"\s*(array|map|struct)\b", term.type, re.IGNORECASE):
        raise RunError(
            f"`{term.label()}` is a {term.type.split('<')[0].strip()}; keys inside collections are not supported yet",
            todo="waive the copy by name, or rebuild it from its erased source",
        )
    sql = (f"{quote(alias)}." if alias else "") + quote(term.column)
    for access in term.access:
        if isinstance(access, FieldAccess):
            sql += "." + quote(access.name)
        else:
            sql = f"get_json_object({sql}, {string_literal(_json_path(access.path, term))})"
    return f"CAST({sql} AS STRING)"


def _json_path(members: tuple[str, ...], term: MatchTerm) -> str:
    if not members or not all(_JSON_MEMBER.fullmatch(member) for member in members):
        raise RunError(f"the JSON path of `{term.label()}` has a member that cannot be quoted")
    return "$" + "".join(f"['{member}']" for member in members)


def condition(match: Match, view: Callable[[str], str], alias: str | None = None) -> str:
    """A WHERE condition that holds for the person's rows: any term's value is in its key view."""
    terms = (f"{leaf(term, alias)} IN (SELECT k FROM {quote(view(term.key_set))})" for term in match.terms)
    return "(" + " OR ".join(terms) + ")"


def merge_parts(match: Match, view: Callable[[str], str], alias: str) -> tuple[str, str]:
    """(source, condition) of a MERGE whose source is named `s`, for engines without subqueries in DELETE.

    Each source row carries the number of the key set it comes from, so that a key of one set never matches a column
    that belongs to another.
    """
    sets = list(dict.fromkeys(term.key_set for term in match.terms))
    source = " UNION ALL ".join(f"SELECT DISTINCT k, {n} AS n FROM {quote(view(name))}" for n, name in enumerate(sets))
    terms = [(sets.index(term.key_set), leaf(term, alias)) for term in match.terms]
    if len(sets) == 1:
        return source, " OR ".join(f"{sql} = s.k" for _, sql in terms)
    return source, " OR ".join(f"(s.n = {n} AND {sql} = s.k)" for n, sql in terms)


def columns_of(match: Match) -> tuple[str, ...]:
    """The top-level columns a match needs."""
    return tuple(dict.fromkeys(term.column for term in match.terms))
