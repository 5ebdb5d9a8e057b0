"""Shapes of statements: texts that differ only in literals of which their lineage does not depend.

The rule has three parts, and a literal is taken out only where all three hold. Otherwise the text keeps it.

1. By its place in the text (`shape_of`). Candidates are numbers and quoted texts right behind a comparison (`=`, `<`,
   `LIKE`, `BETWEEN … AND`), behind `LIMIT` and `OFFSET`, in a list behind `IN`, and between commas behind `VALUES`;
   quoted dates, times and UUIDs anywhere. A list of `IN`, and all rows after a first one of literals alone, count as
   one candidate of any length. A quoted text that holds a quote, `;`, a comment sign or a word that SQL statements
   are made of is no candidate. In a text with a backslash, `$$` or a stray quote nothing is.
2. By its place in the syntax tree (`unread_place`), looked at when the shape is parsed. Each candidate is replaced by a
   marker, and the marker has to be found in the parsed tree as a literal. There it is compared in a condition (WHERE,
   HAVING, QUALIFY, ON, the conditions of MERGE), assigned to a column by UPDATE, a value of a row of VALUES or of
   MERGE's INSERT, or a number of rows. No rule of lineage reads a literal there. So paths, stages, options, names in
   texts, positions of columns, JSON paths and statements in texts are never taken out: they stand elsewhere, or the
   statement is read as a text and has no tree at all. Of dates, times and UUIDs any place in the tree will do.
3. By the result. No marker may show up in the lineage of the marked text: in an expression, a name, a path or a reason.

Texts of one shape have the same tree but for such literals, because a text without quotes and backslashes is one token
of the parser, whatever it holds. So the lineage of the marked text is that of each of them. Where one candidate fails,
the texts of the shape are told apart by the values of the candidates that failed, and each is parsed for itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

MOST_LITERALS = 5_000
"""Candidates of one text beyond which it keeps all its literals."""

_DATE = (
    r"(?:\d{4}-\d\d(?:-\d\d)?(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?|\d{8}|\d{10}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
)
_WORDS = (
    "select|insert|update|delete|merge|replace|truncate|create|alter|drop|begin|end|else|then|when|case|as|is|do|from|into"
    "|table|view|with|union|values|set|where|join|on|using|call|exec|execute|immediate|copy|clone|language|declare|for|if"
    "|loop|while|proc|procedure|trigger|function|task|event|alert|location|options|partition|schema|evolution|piislot"
)
_INSIDE = r"[^'\\`;\n\r\x00/-]|-(?!-)|/(?!\*)"
"""What a quoted text may hold, if it is to be taken out."""
_TEXT = rf"'(?!(?:[^']*\W)?(?:{_WORDS})\b)(?:{_INSIDE})*'(?!')"
_NUMBER = r"(?<![\w.$@])\d+(?:\.\d+)?(?![\w.$@])"
_HEX = r"(?<![\w.$@])0x[0-9a-fA-F]+(?![\w.$@])"
_ONE = rf"(?:{_TEXT}|[+-]?\s?(?:{_HEX}|{_NUMBER}))"
_CELL = rf"(?:{_ONE}|\b(?:DATE|TIMESTAMP)\s?'{_DATE}'|\b(?:NULL|TRUE|FALSE|DEFAULT)\b)"
_ROW = rf"\(\s?{_CELL}(?:\s?,\s?{_CELL})*\s?\)"
_PATTERN = r"""
    (?=['"`/=<>(,-]|(?<!\w)[ailorvb])(?:
    (?P<skip>--[^\n]*|/\*.*?\*/|`[^`]*`{names})
    |'(?P<date>{date})'(?!')
    |(?:(?<![-:=])(?<!->)[=<>]|\b(?:LIKE|ILIKE|RLIKE|BETWEEN|AND|LIMIT|OFFSET)\b)\s?[+-]?\s?(?P<value>{text}|{hex}|{number})
    |\bIN\s?\(\s?(?P<items>{one}(?:\s?,\s?{one})*)(?=\s?\))
    |\bVALUES\s?(?P<first>{row})(?P<more>(?:\s?,\s?{row})*)(?=\s*(?:$|\)|ON\b|RETURNING\b|AS\b|;))
    |(?P<values>\bVALUES\b)
    |[(,]\s?[+-]?\s?(?P<cell>{text}|{hex}|{number})(?=\s?[,)])
    |(?P<other>'[^']*(?:''[^']*)*'?))
"""


def _compiled(names: str) -> re.Pattern[str]:
    text = _PATTERN.format(names=names, one=_ONE, row=_ROW, date=_DATE, text=_TEXT, hex=_HEX, number=_NUMBER)
    return re.compile(text, re.VERBOSE | re.DOTALL | re.IGNORECASE)


_CANDIDATES = _compiled(r'|"[^"]*"')
_LITERAL = re.compile(rf"'{_DATE}'|{_TEXT}|{_HEX}|{_NUMBER}", re.IGNORECASE)
_ONLY_DATE = re.compile(rf"'{_DATE}'")
_SIGNS = re.compile(r"\$\$|\$\w+\$|(?:^|\s)#")

MARKER = re.compile(r"'piislot(\d+)([td])e'|7700770077(\d{4})(?:\.5)?|0x7700770077(\d{4})|/\*piislot(\d+)re\*/")
_SHOWN = re.compile(r"piislot(\d+)[tdr]e|7700770077(\d{4})", re.IGNORECASE)
_DATES = re.compile(r"'piislot(\d+)de'")


class Shaped(NamedTuple):
    """A text with a marker for each candidate, and what stands there in the text."""

    marked: str
    values: tuple[str, ...]


def shape_of(text: str) -> Shaped:
    """The text with its candidates marked; texts of one shape have the same marked text."""
    if _keeps_all(text):
        return Shaped(text, ())
    values: list[str] = []
    of_rows = False

    def marked(value: str) -> str:
        values.append(value)
        return _marker(len(values) - 1, value)

    def instead(found: re.Match[str]) -> str:
        nonlocal of_rows
        kind, whole = found.lastgroup, found.group()
        if kind == "cell":
            candidate = of_rows or _ONLY_DATE.fullmatch(found["cell"])
            return whole[: -len(found["cell"])] + marked(found["cell"]) if candidate else whole
        if kind == "skip" or kind == "other" or kind == "values":
            of_rows = of_rows or kind == "values"
            return whole
        if found["date"]:
            return marked(whole)
        if found["value"]:
            return whole[: -len(found["value"])] + marked(found["value"])
        if found["items"]:
            values.append(found["items"])
            return whole[: -len(found["items"])] + _marker(len(values) - 1, _LITERAL.search(whole)[0])  # type: ignore[index]
        first = _LITERAL.sub(lambda m: marked(m.group()), found["first"])
        more = found["more"]
        if more and len(_cells(more)) % len(_cells(found["first"])):
            return whole[: found.start("first") - found.start()] + first + more
        values.append(more)
        return f"{whole[: found.start('first') - found.start()]}{first}/*piislot{len(values) - 1}re*/"

    made = _CANDIDATES.sub(instead, text)
    return Shaped(made, tuple(values)) if len(values) <= MOST_LITERALS else Shaped(text, ())


def _keeps_all(text: str) -> bool:
    """Whether a text may be cut into words in several ways, or holds what looks like a marker."""
    if "\\" in text or "{{" in text or "{%" in text or text.count("'") % 2 or text.count('"') % 2:
        return True
    if ("$" in text or "#" in text) and _SIGNS.search(text):
        return True
    return "7700770077" in text or "piislot" in text.lower()


def _cells(rows: str) -> list[str]:
    return re.findall(_CELL, rows, re.IGNORECASE)


def _marker(number: int, value: str) -> str:
    if value.startswith("'"):
        return f"'piislot{number}{'d' if _ONLY_DATE.fullmatch(value) else 't'}e'"
    if value[:2].lower() == "0x":
        return f"0x7700770077{number:04}"
    return f"7700770077{number:04}{'.5' if '.' in value else ''}"


def _number(found: re.Match[str]) -> int:
    return int(next(group for group in found.groups() if group and group.isdigit()))


def markers(text: str) -> set[int]:
    """Numbers of the markers in a text, also without their quotes."""
    return {_number(found) for found in _SHOWN.finditer(text)}


def dates(marked: str) -> set[int]:
    """Numbers of the markers that stand for dates, times and UUIDs."""
    return {int(found[1]) for found in _DATES.finditer(marked)}


def filled(marked: str, values: Sequence[str], which: Collection[int] | None = None) -> str:
    """The text with the values of these markers; of all where none are named."""

    def instead(found: re.Match[str]) -> str:
        number = _number(found)
        return values[number] if which is None or number in which else found[0]

    return MARKER.sub(instead, marked)


def hidden(marked: str) -> str:
    """The text with `'…'` and 0 for markers: for texts that are shown, and never run again."""
    return MARKER.sub(lambda found: "" if found[0][0] == "/" else "'…'" if found[0][0] == "'" else "0", marked)


_THROUGH = (exp.Neg, exp.Paren, exp.Cast, exp.TryCast, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe)
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ,
             exp.Like, exp.ILike, exp.RegexpLike, exp.Between, exp.In)  # fmt: skip
_JOINED = (exp.And, exp.Or, exp.Xor, exp.Not, exp.Paren)
_CONDITIONS: Mapping[type[exp.Expr], str] = {
    exp.Where: "this", exp.Having: "this", exp.Qualify: "this", exp.PreWhere: "this",
    exp.Join: "on", exp.Merge: "on", exp.When: "condition",
}  # fmt: skip


def unread_place(literal: exp.Expression) -> bool:
    """Whether a literal stands where no rule of lineage reads it."""
    node: exp.Expression = literal
    while isinstance(node.parent, _THROUGH):
        node = node.parent
    around = node.parent
    if isinstance(around, exp.Limit | exp.Offset):
        return node is literal
    if isinstance(around, exp.Values):
        return True
    if isinstance(around, exp.Tuple):
        return isinstance(around.parent, exp.Values | exp.Insert) and around.arg_key in ("expression", "expressions")
    if not isinstance(around, _COMPARED):
        return False
    assigns = isinstance(around.parent, exp.Update | exp.OnConflict) and around.arg_key == "expressions"
    if isinstance(around, exp.EQ) and assigns:
        return node.arg_key == "expression"
    node = around
    while isinstance(node.parent, _JOINED):
        node = node.parent
    clause = node.parent
    return clause is not None and _CONDITIONS.get(type(clause)) == node.arg_key
