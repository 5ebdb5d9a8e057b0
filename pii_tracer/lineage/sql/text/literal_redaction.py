"""Literals in the text of SQL: a job can name a person in one, so that they are hidden wherever SQL is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

SHOWN = "'…'"
"""What stands for a literal in a text that is shown."""

_PARTS = re.compile(
    r"(?P<name>`(?:[^`]|``)*`)"
    r"|(?P<raw>\b[rR](?:'[^']*'|\"[^\"]*\"))"
    r"|(?P<text>'(?:[^'\\]|\\(?:.|\Z)|'')*(?:'|\Z)|\"(?:[^\"\\]|\\(?:.|\Z)|\"\")*(?:\"|\Z))"
    r"|(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))",
    re.DOTALL,
)
"""Spark's own lexical rules: both kinds of quotes make literals, backticks make names. What is not closed goes on."""
_ESCAPED = re.compile(r"\\(.)|''|\"\"", re.DOTALL)


def hidden(sql: str) -> str:
    """The text with `'…'` for every literal, and without what comments say."""
    return _PARTS.sub(_instead, sql)


def literals(sql: str) -> Iterator[str]:
    """What stands in literals and comments, as Spark understands it."""
    for found in _PARTS.finditer(sql):
        if found["text"]:
            yield _ESCAPED.sub(lambda e: e[1] or e[0][0], found["text"][1:].removesuffix(found["text"][0]))
        elif found["raw"]:
            yield found["raw"][2:-1]
        elif found["comment"]:
            yield found["comment"].removeprefix("/*").removeprefix("--").removesuffix("*/").strip()


def _instead(found: re.Match[str]) -> str:
    if found["name"]:
        return found[0]
    return "/* … */" if found["comment"] else SHOWN
