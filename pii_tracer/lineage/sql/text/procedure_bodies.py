"""Procedures, triggers, tasks and blocks: the statements in their bodies, without the control flow around them.

Values that travel through variables are not followed: `doubts` says so where it happens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from pii_tracer.lineage.sql.accounting.called_routines import calls_of
from pii_tracer.lineage.sql.accounting.named_tables import naming
from pii_tracer.lineage.sql.statements.trigger_rows import Rows, assigned
from pii_tracer.lineage.sql.text import plsql_units

Token = Any
"""A token of the parser's tokenizer: `text`, `start` and `end` (inclusive) in the text, `line`."""

_HEAD = re.compile(
    r"^\s*(?:CREATE\s+(?:OR\s+(?:REPLACE|ALTER)\s+)?(?:EDITIONABLE\s+|NONEDITIONABLE\s+|TEMP(?:ORARY)?\s+)?|ALTER\s+)"
    r"(?P<kind>PROC(?:EDURE)?|TRIGGER|FUNCTION)\b",
    re.IGNORECASE,
)
_ANONYMOUS = re.compile(
    r"(?:DO|EXECUTE\s+IMMEDIATE)\s+(?:LANGUAGE\s+\w+\s+)?\$\w*\$\s*(?:BEGIN|DECLARE)\b", re.IGNORECASE
)
_BLOCK_OF_JOB = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TASK|EVENT|ALERT)\b[^;]*?\b(?:AS|DO|THEN)\s+BEGIN\b(?!\s+TRAN)", re.IGNORECASE
)
"""PostgreSQL's DO and Snowflake's EXECUTE IMMEDIATE of a block."""
_NOT_A_BLOCK = frozenset({"TRAN", "TRANSACTION", "WORK", "STATEMENT", ";", ""})
_CLOSED_APART = frozenset({"IF", "LOOP", "WHILE", "REPEAT", "FOR"})
"""What END closes without a BEGIN before it: `END IF`."""
_CONDITION = r"(?:NOT\s+FOUND\b|SQLSTATE\s+(?:VALUE\s+)?(?:'[^']*'|\"[^\"]*\")|`[^`]+`|[\w.]+)"
"""What a handler is for; behind the list stands its statement: https://dev.mysql.com/doc/refman/8.4/en/declare-handler.html."""
_CONTROL = re.compile(
    r"^\s*(?:(?:ELSE?IF|ELSIF|IF|WHEN)\b(?:(?!\bTHEN\b).)*\bTHEN\b|(?:WHILE|FOR)\b(?:(?!\b(?:DO|LOOP)\b).)*\b(?:DO|LOOP)\b"
    rf"|DECLARE\s+\w+\s+HANDLER\s+FOR\s+{_CONDITION}(?:\s*,\s*{_CONDITION})*"
    r"|\w+\s*:\s*(?=(?:BEGIN|LOOP|WHILE|REPEAT|FOR)\b)|<<\s*\w+\s*>>"
    r"|CASE\b(?:(?!\bTHEN\b).)*\bTHEN\b|BEGIN\b(?!\s+(?:TRAN|WORK))(?:\s+(?:TRY|CATCH|ATOMIC)\b)?|ELSE|LOOP|REPEAT|EXCEPTION|RETURN\s+QUERY"
    r"|END\s+(?:LOOP|WHILE|REPEAT|FOR)\s+\w+\s*$|END(?:\s+(?:TRY|CATCH|IF|LOOP|WHILE|REPEAT|FOR|CASE)\b)?)",
    re.IGNORECASE | re.DOTALL,
)
_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*(?![!+]).*?\*/)+", re.DOTALL)
"""Before a statement, at the place where `match` looks."""
_QUIET = re.compile(
    r"^\s*(?:DECLARE|SET|RETURN|RAISE|RAISERROR|SIGNAL|RESIGNAL|PRINT|THROW|OPEN|CLOSE|FETCH|LEAVE|ITERATE|EXIT|CONTINUE"
    r"|BREAK|NULL|GOTO|IF|WHILE|UNTIL|BEGIN\s+TRAN\w*|COMMIT|ROLLBACK|SAVE\s+TRAN\w*|LET|\w+\s*:=)(?:\b|\s|$)",
    re.IGNORECASE,
)
_PRINTS = re.compile(r"^\s*DBMS_OUTPUT\b", re.IGNORECASE)
_TABLE_VARIABLE = re.compile(r"^\s*DECLARE\s+@\w+\s+(?:AS\s+)?TABLE\s*\([^;]*\)\s*$", re.IGNORECASE)
_SELECTS = re.compile(r"\bSELECT\b", re.IGNORECASE)
_INTO_VARIABLE = re.compile(r"^\s*(?:WITH\b.*)?SELECT\b.*\bINTO\b", re.IGNORECASE | re.DOTALL)
_DEFINED = re.compile(r"\bBEGIN\b|\$\$|\bAS\s+'", re.IGNORECASE)
_TSQL_STARTS = frozenset(
    {"INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "DROP", "CREATE", "ALTER", "WITH", "DECLARE", "EXEC", "EXECUTE",
     "SELECT", "SET", "PRINT", "IF", "WHILE", "RETURN", "BEGIN", "END", "ELSE", "COMMIT", "ROLLBACK", "COPY", "BULK"}
)  # fmt: skip
_BRANCHES = _TSQL_STARTS - {"END", "ELSE"}
_JOINING = frozenset(
    {"AS", "ALL", "UNION", "EXCEPT", "INTERSECT", "THEN", "DISTINCT", ",", "FOR", "ON", "WHEN", "=", "OF", "AFTER"}
)
_SCRIPT_WORDS = frozenset(
    {"IF", "ELSEIF", "ELSE", "END", "LOOP", "WHILE", "FOR", "REPEAT", "UNTIL", "CASE", "WHEN", "LEAVE", "BREAK",
     "CONTINUE", "ITERATE", "DECLARE", "SET", "RETURN", "RAISE"}
)  # fmt: skip

VERBS = frozenset({"SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "MERGE", "EXEC", "EXECUTE"})
_WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"})
T_SQL = frozenset({"tsql", "fabric"})
_TRIED = frozenset({"TRY", "CATCH"})
"""What follows BEGIN and END: https://learn.microsoft.com/sql/t-sql/language-elements/try-catch-transact-sql."""
_RUNS = re.compile(r"^\s*PERFORM\b", re.IGNORECASE)
_UNTOLD_ROW = "a trigger changes rows of a table that its statement does not name"
VARIABLE = "values go through a variable or cursor of a procedure, which lineage does not follow"


@dataclass(frozen=True)
class Piece:
    """One statement of a body; without a text, and with a doubt, when it moves values in a way not followed."""

    text: str
    line: int
    doubt: str | None = None
    span: tuple[int, int] = (0, 0)
    """Where what holds it stands in the text."""


def is_block(sql: str, tokens: Sequence[Token], first: int) -> bool:
    """True when the statement that starts at a token holds statements of its own."""
    after = tokens[first + 1].text.upper() if first + 1 < len(tokens) else ""
    if tokens[first].text.upper() == "BEGIN":
        return after not in _NOT_A_BLOCK
    if _ANONYMOUS.match(sql, tokens[first].start) or _BLOCK_OF_JOB.match(sql, tokens[first].start):
        return True
    head = _HEAD.match(sql[tokens[first].start : tokens[first].start + 200])
    return head is not None and (head["kind"].upper() != "FUNCTION" or bool(_DEFINED.search(sql, tokens[first].start)))


def is_control(tokens: Sequence[Token], dialect: str) -> bool:
    """Whether a statement of a script outside of any block is, or begins with, a word of control flow
    (https://cloud.google.com/bigquery/docs/reference/standard-sql/procedural-language).
    """
    if dialect in T_SQL:
        return any(flow for _, _, flow in _with_flow(tokens))
    system = len(tokens) > 1 and tokens[1].text.startswith("@")  # SET @@dataset_id
    return dialect == "bigquery" and tokens[0].text.upper() in _SCRIPT_WORDS and not system


def control_pieces(sql: str, part: Sequence[Token], dialect: str) -> list[Piece]:
    """What such a statement holds beside control flow."""
    found: list[Piece] = []
    for one in cut(part) if dialect in T_SQL else [part]:
        if dialect in T_SQL and _HEAD.match(sql[one[0].start : one[-1].end + 1]):
            text = sql[one[0].start : one[-1].end + 1]
            found.append(
                Piece("", one[0].line, naming("lineage does not follow the body of a routine or trigger", text))
            )
        else:
            found += _placed(one, _cleaned(sql, one, dialect, None))
    return found


def branches(tokens: Sequence[Token]) -> bool:
    """Whether some statements of a text run in place of others, or not at all."""
    return any(flow for _, word, flow in _with_flow(tokens) if word in _TURNS)


def _with_flow(tokens: Sequence[Token]) -> Iterator[tuple[Token, str, bool]]:
    """Each token with its word, and whether that is control flow's: no part of a CASE, no `IF EXISTS` behind a name."""
    cases = 0
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        word, last = token.text.upper(), "" if before is None else before.text.upper()
        flow = False
        if word == "CASE" and last != "END":
            cases += 1
        elif word == "END" and cases:
            cases -= 1
        elif word in ("ELSE", "END", "ELSEIF", "ELSIF", "EXCEPTION", "CATCH", "HANDLER", ";"):
            flow = (word == ";") is bool(cases)  # a CASE that holds statements
        elif word == "BEGIN":
            flow = after is None or after.text.upper() not in _NOT_A_BLOCK
        elif word in ("IF", "WHILE"):
            flow = before is None or token.line > before.line or last in _BEFORE_FLOW
        yield token, word, flow


_BEFORE_ONE = frozenset({"IF", "WHILE", "ELSE"})
_TURNS = frozenset({"IF", "ELSE", "ELSEIF", "ELSIF", "EXCEPTION", "CATCH", "HANDLER", ";"})
_BEFORE_FLOW = frozenset({";", "BEGIN", "END", "THEN", "ELSE", "DO", "LOOP", "TRY", "CATCH", ")", "AS"})


def is_function(text: str) -> bool:
    """True for CREATE FUNCTION: what it returns is used by statements that do not show it."""
    head = _HEAD.match(text)
    return head is not None and head["kind"].upper() == "FUNCTION"


def is_trigger(text: str) -> bool:
    """True for CREATE TRIGGER."""
    head = _HEAD.match(text)
    return head is not None and head["kind"].upper() == "TRIGGER"


def block_end(tokens: Sequence[Token], first: int, dialect: str) -> int:
    """The token at which a block that starts at `first` is over: after its END, or at the text's end."""
    closed_apart = frozenset() if dialect in T_SQL else _CLOSED_APART
    depth, opened = 0, False
    position = first
    while position < len(tokens):
        word = tokens[position].text.upper()
        after = tokens[position + 1].text.upper() if position + 1 < len(tokens) else ""
        if word == "CASE" or (word == "BEGIN" and after not in ("TRAN", "TRANSACTION", "WORK")):
            depth, opened = depth + 1, opened or word == "BEGIN"
        elif word == "END" and after not in closed_apart:
            depth -= 1
            position += after == "CASE"
            if opened and depth <= 0:  # END TRY
                return position + 1 + (dialect in T_SQL and _next(tokens, position) in _TRIED)
        elif word == ";" and not opened and depth == 0 and not _is_heading(tokens, first, position):
            return position
        position += 1
    return len(tokens)


def _next(tokens: Sequence[Token], position: int) -> str:
    return tokens[position + 1].text.upper() if position + 1 < len(tokens) else ""


def _is_heading(tokens: Sequence[Token], first: int, position: int) -> bool:
    """Declarations before BEGIN end with semicolons as well."""
    return any(t.text.upper() in ("DECLARE", "IS", "AS") for t in tokens[first:position]) and any(
        t.text.upper() == "BEGIN" for t in tokens[position : position + 400]
    )


def pieces(sql: str, tokens: Sequence[Token], dialect: str, rows: Rows | None = None) -> Iterator[Piece]:
    """The statements in the body of a block, control flow taken off. rows: of the trigger whose body it is."""
    begin = next((n for n, t in enumerate(tokens) if t.text.upper() == "BEGIN"), None)
    if begin is not None and dialect in T_SQL and _next(tokens, begin) in _TRIED:
        begin += 1
    start = begin + 1 if begin is not None else _after_as(tokens) if rows is None else _after_head(tokens)
    if start == len(tokens) and rows is None:  # MySQL: one statement, with nothing before it
        start = next((n for n, t in enumerate(tokens) if t.text.upper() in _WRITES), start)
    for part in _parts(tokens[:begin]) if begin is not None and tokens[0].text.upper() == "DECLARE" else ():
        yield from _declared(sql[part[0].start : part[-1].end + 1], part[0].line, dialect)
    for chunk in _parts(tokens[start:]):
        for part in cut(chunk) if dialect in T_SQL else [chunk]:
            yield from _placed(part, _cleaned(sql, part, dialect, rows))


def _placed(part: Sequence[Token], found: Iterator[Piece]) -> Iterator[Piece]:
    return (replace(one, span=(part[0].start, part[-1].end + 1)) for one in found)


def _parts(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """What is between semicolons."""
    for is_end, part in groupby(tokens, lambda token: token.text == ";"):
        if not is_end:
            yield list(part)


def unit_pieces(sql: str, unit: plsql_units.Unit, dialect: str, rows: Rows | None = None) -> Iterator[Piece]:
    """The statements in the declarations and bodies of a unit. What a cursor reads goes through variables."""
    for chunk in unit.chunks:
        text = sql[chunk.tokens[0].start : chunk.tokens[-1].end + 1]
        if not chunk.declared:
            yield from _placed(chunk.tokens, _cleaned(sql, chunk.tokens, dialect, rows, unit.names))
        else:
            yield from _declared(text, chunk.tokens[0].line, dialect, unit.names)


def _declared(text: str, line: int, dialect: str, own: Collection[str] = ()) -> Iterator[Piece]:
    """Why a declaration is not followed."""
    unknown = naming(VARIABLE, text) if _SELECTS.search(text) else calls_of(text, dialect, own, declared=True)
    if unknown is not None:
        yield Piece("", line, unknown)


def _after_as(tokens: Sequence[Token]) -> int:
    return next((n + 1 for n, t in enumerate(tokens) if t.text.upper() in ("AS", "IS")), len(tokens))


def _after_head(tokens: Sequence[Token]) -> int:
    """Behind a trigger's FOR EACH ROW, or its last AS."""
    words = [t.text.upper() for t in tokens]
    runs = (
        n for n in range(len(words)) if words[n] == "EXECUTE" and words[n + 1 : n + 2] in (["FUNCTION"], ["PROCEDURE"])
    )
    if (run := next(runs, None)) is not None:
        return run
    each = next((n + 3 for n in range(len(words)) if words[n : n + 2] == ["FOR", "EACH"]), None)
    return _after_as(tokens) if each is None else each


def _cleaned(
    sql: str, part: Sequence[Token], dialect: str, rows: Rows | None, own: Collection[str] = ()
) -> Iterator[Piece]:
    """own: names of the unit that it is in (`calls_of`)."""
    part = _without_end(part)
    if not part:
        return
    start = part[0].start
    text = sql[start : part[-1].end + 1]
    looped = None
    while (found := _CONTROL.match(text)) is not None and found.end():
        looped = looped or (found[0] if dialect == "oracle" and _SELECTS.search(found[0]) else None)
        if (unknown := calls_of(found[0], dialect, own)) is not None:
            yield Piece("", part[0].line, unknown)
        text, start = text[found.end() :], start + found.end()
    if looped is not None:
        yield Piece("", part[0].line, naming(VARIABLE, looped))
    text = _COMMENTS.sub("", text, count=1) if _COMMENTS.match(text) else text
    text = text.strip()
    if dialect in T_SQL and (branch := _branch([t for t in part if t.start >= start])):
        yield from _cleaned(sql, branch, dialect, rows)
        return
    if not text or _HEAD.match(text):
        return
    change = assigned(text, rows)
    meant = plsql_units.meaning(text) if dialect in plsql_units.DIALECTS and change is None else None
    if meant is not None:
        doubt = naming(VARIABLE, text) if meant.variable else meant.doubt
        doubt = doubt or (None if meant.text else calls_of(text, dialect, own))
        if meant.text or doubt:
            yield Piece(meant.text, part[0].line, doubt)
    elif change is not None:
        yield Piece(change, part[0].line, None if change else _UNTOLD_ROW)
    elif _RUNS.match(text):
        yield Piece("", part[0].line, "lineage does not follow a called routine")
    elif _QUIET.match(text) and not _TABLE_VARIABLE.match(text):
        if dialect in T_SQL and (later := _behind([t for t in part if t.start >= start], _MOVES)):
            yield from _cleaned(sql, later, dialect, rows)
            text = sql[start : later[0].start]
        if _SELECTS.search(text) and not text.upper().startswith(("IF", "WHILE", "UNTIL")):
            yield Piece("", part[0].line, naming(VARIABLE, text))
        elif (unknown := calls_of(text, dialect, own, declared=text.upper().startswith("DECLARE"))) is not None:
            yield Piece("", part[0].line, unknown)
    elif dialect not in T_SQL and _INTO_VARIABLE.match(text):
        yield Piece("", part[0].line, naming(VARIABLE, text))
    else:
        called = plsql_units.call(text) if dialect == "oracle" else None
        printed = calls_of(text, dialect, own) if called is None and _PRINTS.match(text) else None
        yield Piece(called or text, part[0].line, printed)


def _branch(part: Sequence[Token]) -> Sequence[Token]:
    """What T-SQL's IF or WHILE runs, where it stands on the line of the condition; nothing for other statements."""
    return _behind(part, _BRANCHES) if part and part[0].text.upper() in ("IF", "WHILE") else ()


def _behind(part: Sequence[Token], begins: Collection[str]) -> Sequence[Token]:
    """From the first of these words on that begins a statement on the line of another, as `PRINT 'a' INSERT …` does."""
    depth = 0
    for n, (token, after) in enumerate(zip(part, [*part[1:], None], strict=False)):
        word, called = token.text.upper(), after is not None and after.text == "("
        if n and depth == 0 and word in begins and not (called and word == "UPDATE"):  # UPDATE(column) of a trigger
            return part[n:]
        depth += (word == "(") - (word == ")")
    return ()


def cut_on_line(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """T-SQL statements that stand on one line: reserved words that begin statements, outside of statements that name
    them.
    """
    result: list[Sequence[Token]] = []
    rest = tokens
    while rest and not _names_verbs(rest):
        main = _behind(rest, VERBS) if rest[0].text.upper() == "WITH" else rest  # what the common tables are for
        later = () if _names_verbs(main) else _behind(main, _BEGINS)
        if not later:
            break
        result.append(rest[: len(rest) - len(later)])
        rest = later
    return [*result, rest]


def _names_verbs(part: Sequence[Token]) -> bool:
    """Whether a statement names verbs that begin none."""
    return not part or (part[0].text.upper() in _NAMES_VERBS and _next(part, 0) not in _NOT_A_BLOCK)


_BEGINS = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "DECLARE", "COMMIT", "ROLLBACK"})
_NAMES_VERBS = frozenset({"MERGE", "CREATE", "ALTER", "GRANT", "REVOKE", "DENY", "IF", "WHILE", "BEGIN"})
_MOVES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "EXEC", "EXECUTE", "COPY", "BULK"})


def _without_end(part: Sequence[Token]) -> Sequence[Token]:
    """Without the END of the block around, where no semicolon stands before it."""
    words = [t.text.upper() for t in part]
    if len(words) > 2 and words[-2] == "END" and words[-1] in _TRIED:
        words.pop()
    while len(words) > 1 and words[-1] == "END" and words.count("END") > words.count("CASE") + words.count("BEGIN"):
        words.pop()
    return part[: len(words)]


def cut(tokens: Sequence[Token]) -> list[list[Token]]:
    """T-SQL needs no semicolons: statements begin where a line begins with a word that begins statements, and at ELSE
    and END.
    """
    result: list[list[Token]] = [[]]
    depth, needs_verb = 0, False
    for before, (token, word, flow) in zip([None, *tokens], _with_flow(tokens), strict=False):
        on_new_line = before is not None and token.line > before.line and before.text.upper() not in _JOINING
        begins = depth == 0 and on_new_line and word in _TSQL_STARTS
        verb = needs_verb and word in VERBS
        if (flow and word in ("ELSE", "END")) or (begins and not verb and not _inside(result[-1], word)):
            result.append([])
        if depth == 0 and (not result[-1] or (word == "INSERT" and result[-1][0].text.upper() in _BEFORE_ONE)):
            needs_verb = word in ("INSERT", "WITH")  # a query, or what the common table expressions are for
        elif depth == 0 and word in VERBS - {"INSERT"}:
            needs_verb = False
        depth += (word == "(") - (word == ")")
        result[-1].append(token)
    return [part for part in result if part]


def _inside(part: Sequence[Token], word: str) -> bool:
    """SET belongs to an UPDATE, and the clauses of a MERGE have verbs of their own."""
    words = [token.text.upper() for token in part]
    if words and (words[0] == "MERGE" or (words[0] in _BEFORE_ONE and "MERGE" in words)):
        return True
    if word != "SET" or not words:
        return False
    opened = next((one for one in reversed(words) if one in ("UPDATE", "SET")), "")
    return opened == "UPDATE" or words[0] in ("WITH", "ALTER")
