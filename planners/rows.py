"""Counting a person's rows in rows that were read without Spark: an estimate for the plan, exact where it is given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pii_tracer.model import FieldAccess, KeySet, Match, MatchTerm


def count_rows(rows: Iterable[Mapping[str, Any]], match: Match, key_sets: Mapping[str, KeySet]) -> int:
    """Number of rows in which any term matches. Rows are mappings from column to Python value."""
    values = {term.key_set: frozenset(v for _, v in key_sets[term.key_set].values) for term in match.terms}
    return sum(any(leaf(row, term) in values[term.key_set] for term in match.terms) for row in rows)


def leaf(row: Mapping[str, Any], term: MatchTerm) -> str | None:
    """The value a term looks at, as text; None where there is none."""
    value: Any = row.get(term.column)
    for access in term.access:
        if isinstance(access, FieldAccess):
            value = value.get(access.name) if isinstance(value, Mapping) else None
        else:
            value = _member(value, access.path)
    return None if value is None else str(value)


def _member(text: Any, path: tuple[str, ...]) -> Any:
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
