"""Whether a decoded row (nested, from JSON or Avro) is the person's; `arrow_match` says it of Arrow tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from executors.formats.plain_files.arrow_match import (
    BY_HAND,
    Keys,
    RowsError,
    json_member,
    resolve,
)
from pii_tracer.model.datasets import ElementAccess, FieldAccess, KeyPart, Match, MatchTerm
from pii_tracer.model.keys_as_text import joined
from pii_tracer.model.number_keys import plain


def is_persons(row: Mapping[str, Any], match: Match, keys: Keys) -> bool:
    """True when any term's leaf is among its keys. A column that a row does not have matches nothing.

    Raises:
        RowsError: a leaf of a type that cannot be compared as Spark compares it.
    """
    return any(_matches(row, term, keys) for term in match.terms)


def has_column(names: list[str], match: Match) -> frozenset[str]:
    """Columns of the match that are among some names, as Spark resolves them (any case)."""
    return frozenset(column for column in match.columns if resolve(names, column) is not None)


def _matches(row: Mapping[str, Any], term: MatchTerm, keys: Keys) -> bool:
    text = joined([_leaf(row, part) for part in term.parts])
    return text is not None and text in keys[term.key_set]


def _leaf(row: Mapping[str, Any], term: KeyPart) -> str | None:
    value = _member(row, term.column)
    for access in term.access:
        if isinstance(access, ElementAccess):
            raise RowsError(f"`{term.label()}` is in a list, where the step compares no keys", todo=BY_HAND)
        names = (access.name,) if isinstance(access, FieldAccess) else access.path
        if isinstance(value, str) and not isinstance(access, FieldAccess):
            value = json_member(value, names)
            continue
        for name in names:
            if value is None:
                break
            if not isinstance(value, Mapping):
                raise RowsError(f"`{term.label()}` is not a field of a record in this file", todo=BY_HAND)
            value = _member(value, name)
    return _text(value, term)


def _member(row: Mapping[str, Any], name: str) -> Any:
    position = resolve(list(row), name)
    return None if position is None else list(row.values())[position]


def _text(value: Any, term: KeyPart) -> str | None:
    """As Spark casts it to a string. Numbers that are whole have no fraction."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (float, Decimal)):
        return plain(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, (UUID, date)) and not isinstance(value, datetime):
        return str(value)
    if isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    kind = type(value).__name__ if isinstance(value, (datetime, time)) else "value"
    raise RowsError(f"`{term.label()}` is a {kind} in this file, which the step cannot compare", todo=BY_HAND)
