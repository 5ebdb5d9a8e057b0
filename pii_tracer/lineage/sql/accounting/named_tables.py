"""The tables that the text of a statement names, for the reason why it is not followed."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SKIPPED = re.compile(r"'(?:[^'\\]|''|\\.)*'|\$\$.*?\$\$|--[^\n]*|/\*.*?\*/", re.DOTALL)
_ONE = r"(?:[^\W\d][\w$]*|\"[^\W\d][\w$]*\"|`[^\W\d][\w$]*`|\[[^\W\d][\w$]*\])"
_NAME = rf"{_ONE}(?:\.{_ONE})*"
_BEHIND = re.compile(
    rf"\b(?P<word>(?:INSERT|MERGE|COPY|REPLACE|OVERWRITE)\s+INTO|INSERT\s+OVERWRITE|FROM|JOIN|UPDATE|USING|TABLE|VIEW)\s+"
    rf"(?:(?:TABLE|ONLY|IF\s+(?:NOT\s+)?EXISTS)\s+)*(?P<names>{_NAME}(?:\s+(?:AS\s+)?\w+)?(?:\s*,\s*{_NAME}(?:\s+(?:AS\s+)?\w+)?)*)"
    r"(?![\w$.])(?P<called>\s*\()?",
    re.IGNORECASE,
)
_WORDS = frozenset(
    {"select", "set", "where", "values", "on", "as", "if", "not", "exists", "only", "table", "lateral", "unnest",
     "dual", "from", "into", "group", "order", "index", "or", "of", "system", "stdin", "stdout", "function", "external"}
)  # fmt: skip
_BEFORE_FUNCTIONS = frozenset({"FROM", "JOIN", "USING"})
_MOST = 8
"""How many names a reason shows."""


def tables_in(text: str) -> list[str]:
    """Names behind the words that tables follow, each once, in their order; at a quick look, and no texts."""
    return list(dict.fromkeys(_found(_SKIPPED.sub(" ' ", text))))


def _found(text: str) -> Iterator[str]:
    for clause in _BEHIND.finditer(text):
        if clause["called"] and clause["word"].upper() in _BEFORE_FUNCTIONS:
            continue
        for item in clause["names"].split(","):
            name = re.sub(r"[\"`\[\]]", "", item.split()[0])
            if name.lower() not in _WORDS:
                yield name


def naming(reason: str, text: str) -> str:
    """A reason with the tables that the statement names."""
    tables = tables_in(text)
    if not tables or not set(tables).isdisjoint(re.findall(r"[\w.$]+", reason)):
        return reason
    more = "" if len(tables) <= _MOST else f" and {len(tables) - _MOST} more"
    return f"{reason}; tables: {', '.join(tables[:_MOST])}{more}"
