"""Members of a text that is JSON, with the labels that their hits have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_JSON_DEPTH = 40


def json_leaves(text: str) -> Iterator[tuple[str, Any]]:
    """Members of a text that is a JSON object or array, labelled `$.member`; nothing when it is not JSON.

    Whole numbers keep all their digits; others come as Decimal.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return
    try:
        parsed = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return
    yield from _leaves(parsed, "$", 0)


def member(key: Any) -> str:
    """A member's name for a label. A key that is no plain name may be somebody's data, so it is not repeated."""
    return key if isinstance(key, str) and _PLAIN.match(key) else "*"


def _leaves(value: Any, label: str, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > _JSON_DEPTH:
        yield label, json.dumps(value, default=str)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"{label}.(key)", key
            yield from _leaves(item, f"{label}.{member(key)}", depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, label, depth + 1)
    else:
        yield label, value
