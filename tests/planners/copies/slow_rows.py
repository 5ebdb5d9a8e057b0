"""A person's rows counted one by one, in Python: what the fast ways are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pii_tracer.model.datasets import KeySet, Match
from pii_tracer.model.number_keys import spelled
from planners.copies.person_rows import leaf


def count_rows(rows: Iterable[Mapping[str, Any]], match: Match, key_sets: Mapping[str, KeySet]) -> int:
    """Number of rows in which any term matches. Rows are mappings from column to Python value."""
    return sum(any(leaf(row, term) in spelled(key_sets[term.key_set]) for term in match.terms) for row in rows)
