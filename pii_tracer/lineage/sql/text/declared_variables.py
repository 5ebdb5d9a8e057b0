"""Variables and parameters that a script or a routine declares, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TEXT = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_DECLARED = re.compile(
    r"\b(?:DECLARE\s+(?:OR\s+REPLACE\s+)?(?:VARIABLE\s+)?|LET\s+|SET\s+VAR(?:IABLE)?\s+|FOR(?:ALL)?\s+)"
    r"(?P<names>@?\w+(?:\s*,\s*@?\w+)*)",
    re.IGNORECASE,
)
_ROUTINE = re.compile(
    r"\b(?:PROC(?:EDURE)?|FUNCTION|MACRO)\s+(?:IF\s+NOT\s+EXISTS\s+)?[\w.\"`\[\]]+\s*\(", re.IGNORECASE
)
_ITEM = re.compile(r"\s*(?:(?:IN\s+OUT|INOUT|IN|OUT|VARIADIC)\s+)?(?P<name>@?\w+)\s+[\w%.]+", re.IGNORECASE)
_HEADING = re.compile(
    r"\b(?:DECLARE|IS|AS)\b(?P<items>(?:(?!\b(?:BEGIN|SELECT|INSERT|DECLARE|IS|AS)\b).)*)\bBEGIN\b",
    re.IGNORECASE | re.DOTALL,
)
_TABLE = re.compile(r"(?P<name>@\w+)\s+(?:AS\s+)?TABLE\b", re.IGNORECASE)


def declared_in(sql: str) -> frozenset[str]:
    """Names (in lower case) of what a text declares as a variable or parameter; types may be among them."""
    if not _MAY_DECLARE.search(sql):
        return frozenset()
    return frozenset(name.lower() for name in _names(_TEXT.sub("''", sql)))


_MAY_DECLARE = re.compile(r"\b(?:DECLARE|LET|VAR|VARIABLE|FOR(?:ALL)?|PROC|PROCEDURE|FUNCTION|MACRO)\b", re.IGNORECASE)


def tables_declared_in(sql: str) -> frozenset[str]:
    """T-SQL's table variables (in lower case) whose rows a text puts into them: `DECLARE @t TABLE (…)`."""
    return frozenset(found["name"].lower() for found in _TABLE.finditer(sql)) if "@" in sql else frozenset()


def _names(sql: str) -> Iterator[str]:
    for found in _DECLARED.finditer(sql):
        yield from (name.strip() for name in found["names"].split(","))
    for found in _ROUTINE.finditer(sql):
        yield from _of_items(_parenthesised(sql, found.end()), ",")
    for found in _HEADING.finditer(sql):
        yield from _of_items(found["items"], ";")


def _of_items(text: str, sign: str) -> Iterator[str]:
    yield from (found["name"] for item in text.split(sign) if (found := _ITEM.match(item)))


def _parenthesised(sql: str, start: int) -> str:
    depth = 1
    for position in range(start, len(sql)):
        depth += (sql[position] == "(") - (sql[position] == ")")
        if depth == 0:
            return sql[start:position]
    return ""
