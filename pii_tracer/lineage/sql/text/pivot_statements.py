"""DuckDB's statements PIVOT and UNPIVOT, in the form of the operators that stand behind a table in FROM.

https://duckdb.org/docs/stable/sql/statements/pivot, https://duckdb.org/docs/stable/sql/statements/unpivot. Asked with
texts and quoted names set aside.
"""

from __future__ import annotations

import re

from pii_tracer.lineage.sql.text.parentheses import end_of

_NAME = r"[\w.$#\x00]+"
_STATEMENT = re.compile(rf"\b(?P<un>UN)?PIVOT(?:_WIDER|_LONGER)?\s+(?P<source>{_NAME}(?=\s)|\()", re.IGNORECASE)
_ON = re.compile(r"\s*ON\s+", re.IGNORECASE)
_WIDE = re.compile(
    r"(?P<on>\w+\s+IN\s*\([^()]*\))(?:\s+USING\s+(?P<using>.*?))?(?:\s+GROUP\s+BY\s+(?P<group>.*?))?"
    r"(?P<tail>\s+(?:ORDER|LIMIT)\b.*)?\s*",
    re.IGNORECASE | re.DOTALL,
)
_LONG = re.compile(
    r"(?P<on>[\w\x00]+(?:\s*,\s*[\w\x00]+)*)(?:\s+INTO\s+NAME\s+(?P<name>[\w\x00]+)\s+VALUE\s+(?P<value>[\w\x00]+))?"
    r"(?P<tail>\s+(?:ORDER|LIMIT)\b.*)?\s*",
    re.IGNORECASE | re.DOTALL,
)


def as_operators(text: str) -> str:
    """The text with each such statement as a query; one whose columns depend on the data stays as it is."""
    found = _STATEMENT.search(text)
    while found is not None:
        source, place = found["source"], found.end()
        if source == "(":
            place = end_of(text, found.end()) + 1
            source = text[found.end() - 1 : place]
        on = _ON.match(text, place)
        end = end_of(text, place)
        if on is not None:
            made = _query(source, text[on.end() : end], long=found["un"] is not None)
            if made is not None:
                text = text[: found.start()] + made + text[end:]
        found = _STATEMENT.search(text, found.end())
    return text


def _query(source: str, rest: str, *, long: bool) -> str | None:
    found = (_LONG if long else _WIDE).fullmatch(rest)
    if found is None:
        return None
    tail = found["tail"] or ""
    if long:
        name, value = found["name"] or "name", found["value"] or "value"
        return "".join(("SELECT * FROM ", source, f" UNPIVOT ({value} FOR {name} IN ({found['on']}))", tail))
    group = f" GROUP BY {found['group']}" if found["group"] else ""
    operator = f" PIVOT ({found['using'] or 'count(*)'} FOR {found['on']}{group})"
    return "".join(("SELECT * FROM ", source, operator, tail))
