"""Canonical JSON (RFC 8785), in which everything is written that is hashed or signed, and moments in it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, timezone
from enum import Enum
from typing import Any

import rfc8785

from pii_tracer.model.errors import JournalError

_LARGEST_JSON_INTEGER = 2**53 - 1


_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def canonical(value: Any) -> bytes:
    """Canonical JSON (RFC 8785) of plain values, dates, enums and tuples.

    Whole numbers beyond 2^53 - 1 (snapshot ids of Iceberg) become strings: RFC 8785, section 3.2.2.3, has no other
    numbers than IEEE 754 doubles.

    Raises:
        JournalError: a value that JSON cannot hold.
    """
    return written(value)[0]


def written(value: Any) -> tuple[bytes, Any]:
    """The line, and the value as the line's reader gets it."""
    differing: list[Any] = []
    plain = _plain(value, differing)
    try:
        return rfc8785.dumps(plain) if differing else _COMPACT.encode(plain).encode(), plain
    except (rfc8785.CanonicalizationError, UnicodeError) as error:
        raise JournalError(f"a fact cannot be written as canonical JSON: {type(error).__name__}") from None


def _plain(value: Any, differing: list[Any]) -> Any:
    """The value in JSON's own types.

    differing: takes what the standard library writes otherwise than RFC 8785 would: doubles (section 3.2.2.3), and
    names of members that may sort otherwise as UTF-16 (section 3.2.3).
    """
    if type(value) is str or value is None or value is True or value is False:
        return value
    if isinstance(value, Enum):
        return _plain(value.value, differing)
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST_JSON_INTEGER else str(value)
    if isinstance(value, (dict, Mapping)):
        members = {str(k): _plain(v, differing) for k, v in value.items()}
        differing.extend(name for name in members if not name.isascii())
        return members
    if isinstance(value, (list, tuple)):
        return [_plain(v, differing) for v in value]
    if isinstance(value, (set, frozenset)):
        return [_plain(v, differing) for v in sorted(value)]
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, float):
        if _LARGEST_JSON_INTEGER < abs(value) < math.inf:  # would be read as an integer that no double can hold
            return str(int(value))
        differing.append(value)
        return value
    if isinstance(value, str):
        return str(value)
    raise JournalError(f"a fact of type {type(value).__name__} cannot be written to the journal")


def iso(time: datetime) -> str:
    """A moment as RFC 3339 in UTC, microseconds always given.

    Raises:
        JournalError: the time has no zone.
    """
    if time.tzinfo is None:
        raise JournalError("a time without a zone cannot be recorded", todo="use a clock that knows its zone")
    return time.astimezone(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_time(text: str) -> datetime:
    """Reads what `iso` writes (Python 3.10's `fromisoformat` knows no `Z`)."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
