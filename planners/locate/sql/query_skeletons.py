"""A single query's text without its projections, so that parsing it costs what its joins cost.

`INSERT INTO t SELECT a, b, c FROM u JOIN v USING (k)` becomes `SELECT 1 FROM u JOIN v USING (k)`. Only for texts in
which the word SELECT stands once and what belongs to it can be told for certain; others stay whole. Thousands of them
differ by their tables alone: with numbers for these, one is parsed for all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase

from sqlglot.dialects.dialect import Dialect

_QUOTED = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/""",
    re.DOTALL,
)
_MARKS = ("'", '"', "`", "--", "/*")
"""What such begins with."""

_WORD = re.compile(r"(?:select|from|merge|update|with|table|values)\b")
"""In lower case and without a boundary in front: so the engine leaps to the letters that a word begins with."""

_ELSE = ("merge", "update", "with", "values")
"""Other statements, and several queries."""

_RAW = re.compile(r"(?<!\w)r['\"]", re.IGNORECASE)
"""Raw strings, which end otherwise."""

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
"""`lower` of all of Unicode would move what follows: some letters become two."""

_TABLE = re.compile(
    r"(?<!\S)(?P<before>(?:select\s+(?:distinct|all)?\s*1 from|join|into|table|overwrite)[ \t\r\n]+)"
    r"(?P<name>[a-z_]\w*(?:\.[a-z_]\w*){1,2})(?=[ \t\r\n,)]|\Z)(?![ \t\r\n]*\()",
    re.IGNORECASE | re.ASCII,
)
"""A table's name of plain words in a skeleton, or in what stands before its query: `extract(DAY FROM u.d)` has none."""

_NUMBERED = "unnamed_"
_KEYWORDS = frozenset(Dialect.get_or_raise("spark").tokenizer_class.KEYWORDS)
"""The parser's, in upper case."""

_LEADING = re.compile(r"\s*select\s+(distinct\b|all\b)?", re.IGNORECASE)


@dataclass(frozen=True)
class Cut:
    """A statement that is one query, in parts: what stands before the query, and its query with `1` for projections.

    The projections hold no query of their own.
    """

    head: str
    projections: str
    body: str

    @property
    def names(self) -> tuple[str, ...] | None:
        """What the columns of the query are called, as their text says it; None where one does not."""
        bare, start, depth = _bare(self.projections), 0, 0
        ends = []
        for mark in _MARK.finditer(bare):
            sign = mark[0]
            depth += (sign in "([") - (sign in ")]")
            if sign == "," and not depth:
                ends.append(mark.start())
        found = []
        for end in (*ends, len(bare)):
            told = _NAMED.fullmatch(self.projections[start:end].strip())
            if told is None:
                return None
            found.append((told["alias"] or told["column"]).strip("`"))
            start = end + 1
        return tuple(found)


_MARK = re.compile(r"[,()\[\]]")
_NAMED = re.compile(
    r"(?:[^'\"]*(?:\s|\))as\s+(?P<alias>\w+|`[^`]+`)|(?:\w+\.)*(?P<column>[^\W\d]\w*))", re.IGNORECASE | re.DOTALL
)


def _bare(text: str) -> str:
    """In lower case, with blanks for what stands in quotes and comments."""
    if any(mark in text for mark in _MARKS):  # the pattern looks at every letter
        text = _QUOTED.sub(lambda found: " " * len(found[0]), text)
    return text.translate(_LOWER)


@dataclass(frozen=True)
class Unnamed:
    """A text with numbers for its tables' names, and what each number is called in it."""

    text: str
    names: Mapping[str, str]


def unnamed(text: str) -> Unnamed:
    """The text with numbers for names of tables, where another name changes nothing else of what the parser reads."""
    names: dict[str, str] = {}
    if "`" in text or "--" in text or "/*" in text or _NUMBERED in text.lower():
        return Unnamed(text, names)

    def numbered(found: re.Match[str]) -> str:
        if not _KEYWORDS.isdisjoint(found["name"].upper().split(".")):
            return found[0]
        number = f"{_NUMBERED}{len(names)}"
        names[number] = found["name"]
        return found["before"] + number

    return Unnamed(_TABLE.sub(numbered, text), names)


def skeleton(text: str) -> str | None:
    """The query with `1` for its projections, or None where the statement has to be read whole."""
    parts = cut(text)
    return None if parts is None else parts.body


def cut(text: str) -> Cut | None:
    """A statement in parts, or None where it has to be read whole.

    The single FROM that follows the single SELECT outside of brackets ends the projections (`extract(year FROM d)`
    stands in brackets).
    """
    if ("'" in text or '"' in text) and _RAW.search(text):
        return None
    bare = _bare(text)
    depth = last = 0
    begin: int | None = None
    end: int | None = None
    for found in _WORD.finditer(bare):
        at, word = found.start(), found[0]
        if at and (bare[at - 1].isalnum() or bare[at - 1] == "_"):
            continue
        depth += sum(bare.count(mark, last, at) for mark in "([") - sum(bare.count(mark, last, at) for mark in ")]")
        last = at
        if word in _ELSE or (word == "select" and (begin is not None or depth)) or (word == "table" and end):
            return None
        if word == "select":
            begin = at
        elif word == "from" and depth == 0:
            if begin is None or end is not None:
                return None
            end = at
    if begin is None or end is None:
        return None
    leading = _LEADING.match(text, begin)
    if leading is None:
        return None
    return Cut(text[:begin], text[leading.end() : end], f"{leading[0]} 1 {text[end:]}")
