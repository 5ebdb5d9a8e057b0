"""Units of PL/SQL and of Snowflake's blocks: where one ends, and the statements that its declarations and bodies hold.

A unit is an anonymous block, a routine, a trigger, a package or the body of a type. It has declarations, which may hold
routines of their own, and a body between BEGIN and END. SQL*Plus ends it with a line that holds a slash alone.

Sources: https://docs.oracle.com/en/database/oracle/oracle-database/19/lnpls/block.html,
https://docs.oracle.com/en/database/oracle/oracle-database/19/lnpls/CREATE-PACKAGE-BODY-statement.html,
https://docs.snowflake.com/en/developer-guide/snowflake-scripting/blocks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot.tokenizer_core import TokenType

Token = Any
"""A token of the parser's tokenizer: `text`, `start` and `end` (inclusive) in the text, `line`."""

DIALECTS = frozenset({"oracle", "snowflake"})
"""Dialects whose blocks declare before BEGIN."""

_HEAD = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:(?:NON)?EDITIONABLE\s+)?(?:IF\s+NOT\s+EXISTS\s+)?"
    r"(?P<kind>PROCEDURE|FUNCTION|TRIGGER|PACKAGE|TYPE\s+BODY)\b",
    re.IGNORECASE,
)
_QUOTED = frozenset(
    {TokenType.STRING, TokenType.IDENTIFIER, TokenType.HEREDOC_STRING, TokenType.RAW_STRING, TokenType.NATIONAL_STRING}
)
_ROUTINES = frozenset({"PROCEDURE", "FUNCTION"})
_OF_TYPES = frozenset({"MEMBER", "STATIC", "CONSTRUCTOR", "MAP", "ORDER", "FINAL", "INSTANTIABLE", "OVERRIDING"})
_MOMENTS = frozenset({"BEFORE", "AFTER", "INSTEAD"})
"""What the parts of a compound trigger begin with."""
_FOREIGN = frozenset({"LANGUAGE", "EXTERNAL", "MLE"})
_APART = frozenset({"IF", "LOOP", "FOR", "WHILE", "REPEAT"})
"""What END closes without a BEGIN or CASE before it."""


@dataclass(frozen=True)
class Chunk:
    """What stands between two semicolons of a unit. declared: among its declarations, and not in a body."""

    tokens: Sequence[Token]
    declared: bool


class _NoUnit(Exception):
    """The text is not built like a unit."""


@dataclass
class _Reader:
    tokens: Sequence[Token]
    position: int
    chunks: list[Chunk] = field(default_factory=list)

    def word(self, ahead: int = 0) -> str:
        """A token in capitals; a quote for a text or a quoted name, and nothing behind the last."""
        at = self.position + ahead
        if at >= len(self.tokens):
            return ""
        return "'" if self.tokens[at].token_type in _QUOTED else self.tokens[at].text.upper()

    def until(self, *ends: str) -> None:
        """Forward to the first of these words outside of parentheses.

        Raises:
            _NoUnit: there is none.
        """
        depth = 0
        while self.position < len(self.tokens):
            word = self.word()
            if depth == 0 and word in ends and not (word == "AS" and self.word(1) == "RESULT"):
                return
            depth += (word == "(") - (word == ")")
            self.position += 1
        raise _NoUnit

    def routine(self) -> None:
        """From its head to the semicolon behind it; a declaration without a body ends there as well."""
        self.until("IS", "AS", ";")
        if self.word() != ";":
            self.position += 1
            if self.word() in _FOREIGN:
                self.until(";")
                return
            self.declarations()
            self.body()
        self.finished()

    def declarations(self) -> None:
        """Up to BEGIN or END."""
        while self.word() not in ("BEGIN", "END"):
            first = self.position
            if self.word() in (_ROUTINES | _OF_TYPES | _MOMENTS):
                self.routine()
            else:
                self.until(";")
                self.chunks.append(Chunk(self.tokens[first : self.position], declared=True))
            self.position += 1

    def body(self) -> None:
        """From BEGIN to the word behind its END."""
        if self.word() != "BEGIN":
            raise _NoUnit
        depth, first = 0, self.position + 1
        while self.position < len(self.tokens):
            word = self.word()
            if word == "DECLARE":
                self._add(first)
                self.position += 1
                self.declarations()
                first = self.position
                continue
            if word in ("BEGIN", "CASE"):
                depth += 1
            elif word == "END" and self.word(1) not in _APART:
                depth -= 1
                if depth == 0:
                    self._add(first)
                    self.position += 1
                    return
                self.position += self.word(1) == "CASE"
            elif word == ";":
                self._add(first)
                first = self.position + 1
            self.position += 1
        raise _NoUnit

    def _add(self, first: int) -> None:
        if first < self.position:
            self.chunks.append(Chunk(self.tokens[first : self.position], declared=False))

    def finished(self) -> None:
        """Up to the semicolon behind END and a name, or to the text's end.

        Raises:
            _NoUnit: something else stands there.
        """
        first = self.position
        while self.word() not in (";", ""):
            if self.tokens[self.position].line != self.tokens[first - 1].line or not _OF_NAME.fullmatch(self.word()):
                raise _NoUnit
            self.position += 1
        if self.position - first > _NAMES:
            raise _NoUnit


_OF_NAME = re.compile(r"[\w$#]+|[.']")
_NAMES = 4
"""How many words may stand between END and its semicolon: `END BEFORE EACH ROW`, `END schema.name`."""


@dataclass(frozen=True)
class Unit:
    """A unit's chunks in the order in which they are written, and the token behind it.

    names: in lower case, what it declares: variables, parameters, collections, and routines whose bodies are in it.
    """

    chunks: Sequence[Chunk]
    end: int
    names: frozenset[str] = frozenset()


def unit_of(sql: str, tokens: Sequence[Token], first: int) -> Unit | None:
    """The unit that starts at a token; None where none does, or where it is not built like one."""
    reader = _Reader(tokens, first)
    head = _HEAD.match(sql, tokens[first].start)
    try:
        while reader.word() == "<<":
            reader.position += 3
        if reader.word() == "DECLARE":
            reader.position += 1
            reader.declarations()
            reader.body()
        elif reader.word() == "BEGIN" and reader.word(1) not in _TRANSACTION:
            reader.body()
        elif head is not None:
            _created(reader, head["kind"].upper())
        else:
            return None
        reader.finished()
    except _NoUnit:
        return None
    last = tokens[min(reader.position, len(tokens)) - 1]
    plain = _TEXTS.sub(" ", sql[tokens[first].start : last.end + 1])
    return Unit(reader.chunks, reader.position, _names(plain))


_DECLARED = re.compile(
    r"\b(?:FUNCTION|PROCEDURE|TYPE|SUBTYPE|CURSOR)\s+(?P<routine>[^\W\d][\w$#]*)"
    r"|(?:[(,;]|\b(?:IS|AS|DECLARE|FOR|LET)\b)\s*(?P<variable>(?!(?:FUNCTION|PROCEDURE|(?:SUB)?TYPE|CURSOR)\b)"
    r"[^\W\d][\w$#]*)\s+(?=[^\W\d])",
    re.IGNORECASE,
)
_TRANSACTION = frozenset({";", "", "TRAN", "TRANSACTION", "WORK", "NAME"})


def _names(text: str) -> frozenset[str]:
    return frozenset((found["routine"] or found["variable"]).lower() for found in _DECLARED.finditer(text))


def _created(reader: _Reader, kind: str) -> None:
    if kind in _ROUTINES:
        reader.until("IS", "AS")
        reader.position += 1
        if reader.word() in _FOREIGN or len(reader.word()) == 0:
            raise _NoUnit
        if reader.word() == "DECLARE":  # Snowflake's
            reader.position += 1
        reader.declarations()
        reader.body()
    elif kind == "TRIGGER":
        reader.until("DECLARE", "BEGIN", "COMPOUND")
        compound = reader.word() == "COMPOUND"
        reader.position += 2 if compound else reader.word() == "DECLARE"
        reader.declarations()
        if compound:
            reader.position += 1
        else:
            reader.body()
    else:  # a package, or the body of a type
        reader.until("IS", "AS")
        reader.position += 1
        reader.declarations()
        if reader.word() == "BEGIN":
            reader.body()
        else:
            reader.position += 1


_TEXTS = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_FORALL = re.compile(
    r"\s*FORALL\s+\w+\s+IN\b.*?(?=\b(?:INSERT|UPDATE|DELETE|MERGE|EXECUTE)\b)", re.IGNORECASE | re.DOTALL
)
_RETURNS = re.compile(
    r"\s*(?:INSERT|UPDATE|DELETE|MERGE)\b.*?(?P<clause>\bRETURN(?:ING)?\b.*\bINTO\b.*)", re.IGNORECASE | re.DOTALL
)
_RUN_LATER = re.compile(r"\s*OPEN\s+:?[\w.]+\s+FOR\s+(?!SELECT\b|WITH\b)", re.IGNORECASE)
_PIPED = re.compile(r"\s*PIPE\s+ROW\b", re.IGNORECASE)
_CALLED = re.compile(
    r"\s*(?!(?:SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|CALL|EXECUTE|LOCK|SAVEPOINT|SET|NULL|END|DBMS_OUTPUT)\b)"
    r"(?P<name>[^\W\d][\w$#]*(?:\.[^\W\d][\w$#]*)*(?:@\w+)?)\s*(?P<given>\(.*\))?\s*",
    re.IGNORECASE | re.DOTALL,
)
_ERROR = re.compile(r"\s*RAISE_APPLICATION_ERROR\s*\(", re.IGNORECASE)


@dataclass(frozen=True)
class Meaning:
    """A statement of a body as lineage takes it. text: what of it is followed. variable: values go through variables.
    doubt: what else of it is not followed.
    """

    text: str
    variable: bool = False
    doubt: str | None = None


def meaning(text: str) -> Meaning | None:
    """What a statement means that only bodies have; None for any other.

    A write may return values into variables (RETURNING INTO), or take them from collections (FORALL)
    (https://docs.oracle.com/en/database/oracle/oracle-database/19/lnpls/plsql-language-elements.html).
    """
    plain = _TEXTS.sub(lambda found: " " * len(found[0]), text)
    if _RUN_LATER.match(plain):
        return Meaning("", doubt="a statement is built at run time, which lineage does not follow")
    if _PIPED.match(plain):
        return Meaning("", doubt="lineage does not follow rows that a function returns one by one")
    each = _FORALL.match(plain)
    if each is not None:
        rest = meaning(text[each.end() :]) or Meaning(text[each.end() :])
        return Meaning(rest.text, rest.variable or not plain[each.end() :].upper().startswith("DELETE"), rest.doubt)
    returns = _RETURNS.fullmatch(plain)
    if returns is not None:
        return Meaning(text[: returns.start("clause")].rstrip(), variable=True)
    if _ERROR.match(plain) or _assigns(plain):
        return Meaning("", variable="SELECT" in plain.upper())
    return None


def _assigns(text: str) -> bool:
    """`rows(i).mail := value`."""
    return _CALLED.match(text) is not None and re.match(r"[\w.$#\s]*(?:\([^:]*?\)[\w.$#\s]*)*:=", text) is not None


def call(text: str) -> str | None:
    """The CALL that the name of a procedure alone is in PL/SQL; None for any other statement."""
    found = _CALLED.fullmatch(text)
    return None if found is None else f"CALL {found['name']}{found['given'] or '()'}"
