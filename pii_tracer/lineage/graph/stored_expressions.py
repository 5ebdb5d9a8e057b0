"""Expressions as the graph's file keeps them: a literal stays only where it can say nothing but what is done."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from pii_tracer.lineage.graph.edges import NOT_STORED
from pii_tracer.lineage.sql.text.literal_redaction import SHOWN

_PLAIN = re.compile(r"[A-Za-z_.(), ]*")
"""A text without literals, names in quotes and comments."""
_WORD = re.compile(r"[^\W\d]\w*")
_UNIT = r"(?i:year|yyyy|yy|quarter|month|mon|mm|week|day|dd|hour|minute|second|millisecond|microsecond)"
_RUN = r"(?:y{2,4}|M{2,4}|d{2}|H{2}|h{2}|m{2}|s{2}|S{2,9}|E{2,4})"
_ONE = rf"(?:{_RUN}+|[yMdHhmsSaEQz])"
_FORMAT = rf"{_ONE}(?:(?:[-/.:,_ ]{{1,2}}|'T')(?:{_ONE}))*"
_PATH = r"\$(?!.*\d{3})(?:\.[A-Za-z_]\w*|\[\d{1,2}\]|\[\*\])*"
_PATTERN = r"(?:\\{1,2}[dDwWsSbB.+*?()|$^\[\]-]|a-z|A-Z|0-9|\{\d{1,2}(?:,\d{0,2})?\}|[^\w\s{}]| )*"
_LENGTH = r"-?\d{1,4}"
_TYPE = r"\d{1,3}"
_CODE = {
    ("DATE_TRUNC", 0): _UNIT,
    ("TRUNC", 1): _UNIT,
    ("DATE_FORMAT", 1): _FORMAT,
    ("TO_DATE", 1): _FORMAT,
    ("TO_TIMESTAMP", 1): _FORMAT,
    ("FROM_UNIXTIME", 1): _FORMAT,
    ("UNIX_TIMESTAMP", 1): _FORMAT,
    ("GET_JSON_OBJECT", 1): _PATH,
    ("REGEXP_REPLACE", 1): _PATTERN,
    ("REGEXP_EXTRACT", 1): _PATTERN,
    ("SPLIT", 1): _PATTERN,
    ("SHA2", 1): r"0|224|256|384|512",
    **{(name, place): _LENGTH for name in ("SUBSTRING", "SUBSTR") for place in (1, 2)},
    **{(name, 1): _LENGTH for name in ("LEFT", "RIGHT")},
    **{(name, place): _TYPE for name in ("DECIMAL", "VARCHAR", "CHAR") for place in (0, 1)},
}
"""Which arguments of which functions are code, and what they look like. A person's name looks like none of them, but
for the name of a field in a path: fields are names, and names are stored.
"""
_ALLOWED = {argument: re.compile(pattern, re.ASCII) for argument, pattern in _CODE.items()}
_OPEN = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSE = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_TEXTS = frozenset({TokenType.STRING, TokenType.RAW_STRING})


def stored(expression: str) -> str:
    """A Spark expression with `'…'` for each text and 0 for each number. Kept are those of `_CODE`, numbers of up to
    four digits behind `%`, and texts of up to three signs. Comments are left out.

    What cannot be cut into tokens is not stored at all.
    """
    if expression == NOT_STORED or _PLAIN.fullmatch(expression):
        return expression
    try:
        tokens = Dialect.get_or_raise("spark").tokenize(expression)
    except SqlglotError:
        return NOT_STORED
    except Exception:  # the tokenizer is foreign code that reads foreign text
        return NOT_STORED
    around: list[tuple[str, int]] = [("", 0)]
    made: list[str] = []
    last = 0
    for number, token in enumerate(tokens):
        if token.start < last:  # `5L` makes three tokens of one text
            continue
        between, whole = expression[last : token.start], expression[token.start : token.end + 1]
        made.append(between if not between or between.isspace() else " ")
        last = token.end + 1
        if token.token_type in _OPEN:
            around.append((_called(tokens, number), 0))
        elif token.token_type in _CLOSE and len(around) > 1:
            around.pop()
        elif token.token_type is TokenType.COMMA:
            around[-1] = (around[-1][0], around[-1][1] + 1)
        made.append(_kept(tokens, number, whole, around[-1]))
    return "".join(made)


def _called(tokens: Sequence[Token], number: int) -> str:
    """The function whose arguments a parenthesis opens; empty of what is none, and of a function of somebody's own."""
    own = number > 1 and tokens[number - 2].token_type is TokenType.DOT
    call = number and not own and tokens[number].token_type is TokenType.L_PAREN
    return tokens[number - 1].text.upper() if call else ""


def _kept(tokens: Sequence[Token], number: int, whole: str, argument: tuple[str, int]) -> str:
    token = tokens[number]
    kind = token.token_type
    if kind is TokenType.IDENTIFIER and whole[0] == "`":
        return whole
    if kind is TokenType.NUMBER or whole[0].isdigit():
        behind_percent = bool(number) and tokens[number - 1].token_type is TokenType.MOD
        small = behind_percent and re.fullmatch(r"[0-9]{1,4}", whole) is not None
        return whole if small or _is_code(tokens, number, whole, argument) else "0"
    if kind in _TEXTS or "'" in whole or '"' in whole:
        signs = len(token.text) < 4 and token.text.isascii() and not any(map(str.isalnum, token.text))
        return whole if kind in _TEXTS and (signs or _is_code(tokens, number, token.text, argument)) else SHOWN
    return whole if _WORD.fullmatch(whole) or not any(map(str.isalnum, whole)) else SHOWN


def _is_code(tokens: Sequence[Token], number: int, text: str, argument: tuple[str, int]) -> bool:
    """Whether a literal is the whole of an argument that is code, and looks like it."""
    allowed = _ALLOWED.get(argument)
    first = number - 1
    if first > 0 and tokens[first].token_type is TokenType.DASH:
        first, text = first - 1, f"-{text}"
    end = next((t for t in tokens[number + 1 :] if t.start > tokens[number].end), None)
    alone = (
        first >= 0
        and tokens[first].token_type in (TokenType.L_PAREN, TokenType.COMMA)
        and end is not None
        and end.token_type in (TokenType.R_PAREN, TokenType.COMMA)
    )
    return allowed is not None and alone and allowed.fullmatch(text) is not None
