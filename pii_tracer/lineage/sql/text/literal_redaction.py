"""Literals in the text of SQL: a job can name a person in one, so that they are hidden wherever SQL is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

SHOWN = "'…'"
"""What stands for a literal in a text that is shown."""

_PARTS = re.compile(
    r"(?P<name>`(?:[^`]|``)*`)"
    r"|(?P<raw>\b[rR](?:'[^']*'|\"[^\"]*\"))"
    r"|(?P<text>'(?:[^'\\]|\\.|'')*(?:'|$)|\"(?:[^\"\\]|\\.|\"\")*(?:\"|$))"
    r"|(?P<comment>--[^\n]*|/\*.*?(?:\*/|$))",
    re.DOTALL,
)
"""Spark's own lexical rules: both kinds of quotes make literals, backticks make names. What is not closed goes on."""
_TOKENS = re.compile(
    _PARTS.pattern
    + r"""
    |(?P<number>(?<![\w.$@])\d[\w.]*)
    |(?P<word>\w+)
    |(?P<open>[(\[])|(?P<close>[)\]])
    |(?P<comma>,)
    |(?P<sign>[^\s\w()\[\]])""",
    re.DOTALL | re.VERBOSE,
)
_COMPARES = frozenset({
    "=", "<", ">", "!", "<=>", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "AND", "IN", "VALUES", "IS", "FROM",
    "DISTINCT",
})  # fmt: skip
"""What a literal stands beside that is compared or written: a value, whatever it looks like."""
_LISTS = frozenset({"IN", "VALUES"})
_CODE = frozenset({
    "FROM_JSON", "GET_JSON_OBJECT", "JSON_TUPLE", "JSON_EXTRACT", "FROM_CSV", "XPATH", "ELEMENT_AT", "STR_TO_MAP",
    "DATE_TRUNC", "TRUNC", "DATE_FORMAT", "TO_DATE", "TO_TIMESTAMP", "FROM_UNIXTIME", "UNIX_TIMESTAMP",
    "REGEXP_REPLACE", "REGEXP_EXTRACT", "REGEXP_EXTRACT_ALL", "SPLIT", "TRANSLATE",
})  # fmt: skip
"""Functions whose literals say what is done: a field's name, a path, a format, a pattern."""
_NAMES_FIRST = frozenset({"NAMED_STRUCT", "MAP"})
"""Functions of which every second argument, from the first on, is a field's name."""
_PERSONAL = re.compile(r"@|%40|\d(?:\W?\d){4}")
"""An address, or five digits and more: of a person even where code stands."""
_SMALL = re.compile(r"\d{1,4}(?:\.\d{1,4})?")
_ESCAPED = re.compile(r"\\(.)|''|\"\"", re.DOTALL)


def hidden(sql: str) -> str:
    """The text with `'…'` for every literal, and without what comments say."""
    return _PARTS.sub(_instead, sql)


def code_alone(sql: str) -> str:
    """The text with `'…'` and 0 for every literal that can be a value: what is kept on a disk.

    Kept are texts without a letter or digit (`''`, `'-'`), the literals of `_CODE` and of brackets (`tags['kind']`),
    and numbers of at most four digits that are not compared. Comments are not.
    """
    around = [("", 0)]
    made: list[str] = []
    before, last = "", 0
    tokens = list(_TOKENS.finditer(sql))
    for number, found in enumerate(tokens):
        kind, whole = found.lastgroup, found[0]
        made.append(sql[last : found.start()])
        last = found.end()
        if kind == "open":
            around.append(("[" if whole == "[" else before, 0))
        elif kind == "close" and len(around) > 1:
            around.pop()
        elif kind == "comma":
            around[-1] = (around[-1][0], around[-1][1] + 1)
        elif kind == "comment":
            whole = _instead(found)
        elif kind in ("text", "raw") and not _is_code(next(literals(whole), ""), *around[-1]):
            whole = SHOWN
        elif kind == "number":
            behind = tokens[number + 1][0].upper() if number + 1 < len(tokens) else ""
            compared = around[-1][0] in _LISTS or not _COMPARES.isdisjoint((before, behind))
            whole = whole if _SMALL.fullmatch(whole) and not compared else "0"
        made.append(whole)
        before = before if kind == "comment" else found[0].upper()
    return "".join((*made, sql[last:]))


def _is_code(text: str, within: str, place: int) -> bool:
    """Whether a text literal says what is done. within: the function, or the bracket, of whose arguments it is one."""
    if _PERSONAL.search(text):
        return False
    names = within in _CODE or within == "[" or (within in _NAMES_FIRST and place % 2 == 0)
    return names or not any(letter.isalnum() for letter in text)


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
