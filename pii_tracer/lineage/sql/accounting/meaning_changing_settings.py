"""Settings of a session, and variables of a client, that change which words of a text are names and which are values.

Lineage reads a text as its dialect does by default. Where the text itself says otherwise, the answer is partial.

Sources: https://dev.mysql.com/doc/refman/8.4/en/sql-mode.html,
https://www.postgresql.org/docs/current/runtime-config-compatible.html,
https://www.postgresql.org/docs/current/app-psql.html#APP-PSQL-INTERPOLATION,
https://learn.microsoft.com/sql/t-sql/statements/set-quoted-identifier-transact-sql,
https://spark.apache.org/docs/latest/sql-ref-ansi-compliance.html.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

_GAP = r"(?:\s|/\*(?:[^*]|\*(?!/))*\*/|(?:--|#)[^\n]*\n)*"
_MODE = re.compile(
    rf"(?<![\w$])sql_mode`?{_GAP}:?={_GAP}(?P<value>(?:'[^']*'|\"[^\"]*\")(?!{_GAP}(?:\|\||\+|['\"]))|@[\w$]+|DEFAULT\b"
    rf"|@@[\w.`]+(?={_GAP}(?:[;,]|\*/|$))|.)",
    re.IGNORECASE | re.DOTALL,
)
_OTHER_MODES = re.compile(
    r"(?<![a-z])(?:ANSI(?:_QUOTES)?|NO_BACKSLASH_ESCAPES|DB2|MAXDB|MSSQL|ORACLE|POSTGRESQL)(?![a-z])", re.IGNORECASE
)
_KNOWN_MODE = re.compile(r"'[^']*'|\"[^\"]*\"|@[\w$]+|DEFAULT|@@.*", re.IGNORECASE | re.DOTALL)
_SETTINGS = {
    "postgres": rf"standard_conforming_strings['\"]?{_GAP}(?:=|,|\bTO\b){_GAP}['\"]?"
    r"(?!(?:on|t|tr|tru|true|y|ye|yes|1|default)\b|[\s'\"]|/\*|--)",
    "spark": r"(?:doubleQuotedIdentifiers|escapedStringLiterals)`?"
    + rf"{_GAP}={_GAP}['\"`]?(?!false\b|[\s'\"`]|/\*|--)",
    "tsql": rf"(?:QUOTED_IDENTIFIER|ANSI_DEFAULTS)(?:{_GAP},{_GAP}\w+)*{_GAP}\bOFF\b",
}
_SET = {of: re.compile(setting, re.IGNORECASE) for of, setting in _SETTINGS.items()}
_NAMED = {
    "postgres": ("standard_conforming_strings",),
    "spark": ("doublequotedidentifiers", "escapedstringliterals"),
    "tsql": ("quoted_identifier", "ansi_defaults"),
}
"""Words of which a text with such a setting has one, in lower case."""
_DIALECTS = {"redshift": "postgres", "databricks": "spark", "fabric": "tsql"}
_MEANT = re.compile(r"[\"\\]")
"""What such a setting reads in another way."""
_VARIABLE = re.compile(
    r"\bE'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/|(?P<name>(?<![:\w]):\"[^\"]+\")"
    r"|\"[^\"]*\"",
    re.DOTALL | re.IGNORECASE,
)
_UNSAID = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = r"(?:\"?\w+\"?\s*\.\s*)*\"?(?P<name>\w+)"
_TEMPORARY = re.compile(
    rf"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:LOCAL\s+|GLOBAL\s+)?TEMP(?:ORARY)?\s+(?:RECURSIVE\s+)?(?:TABLE|VIEW)\s+"
    rf"(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}|\s*CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?pg_temp\s*\.\s*\"?(?P<own>\w+)"
    r"|.*?\bINTO\s+(?:LOCAL\s+|GLOBAL\s+)?TEMP(?:ORARY)?\s+(?:TABLE\s+)?\"?(?P<into>\w+)",
    re.IGNORECASE | re.DOTALL,
)
_MADE = re.compile(
    rf"\s*(?:CREATE\s+(?:OR\s+REPLACE\s+)?(?:TABLE|VIEW)|DROP\s+(?:TABLE|VIEW))\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?{_NAME}",
    re.I,
)
_DROPPED = re.compile(r"\bON\s+COMMIT\s+DROP\b", re.IGNORECASE)
_DISCARDS = re.compile(
    r"\s*(?:DISCARD\s+(?:ALL|TEMP|TEMPORARY)\b|DROP\s+SCHEMA\b.*\bpg_temp)", re.IGNORECASE | re.DOTALL
)
_BEGINS = re.compile(r"\s*(?:BEGIN|START)\b", re.IGNORECASE)
_COMMITS = re.compile(r"\s*(?:COMMIT|END)\b", re.IGNORECASE)
_UNDOES = re.compile(r"\s*(?:ROLLBACK|ABORT)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_MYSQL = frozenset({"mysql", "singlestore"})


_RUNS_COMMENTS = frozenset({"mysql", "singlestore", "doris", "starrocks"})
_COMMENTED = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|\#[^\n]*|/\*M?!\d*(?P<code>.*?)\*/|/\*.*?\*/""", re.DOTALL
)
"""Quoted texts and comments, and comments whose code runs (https://dev.mysql.com/doc/refman/8.4/en/comments.html)."""
_DELIMITER = re.compile(r"^[ \t]*DELIMITER[ \t]+(?P<mark>\S+)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)


def as_sent(sql: str, dialect: str) -> str:
    """A text as MySQL's client sends it: with semicolons at the ends of statements, and code of comments as code."""
    return _COMMENTED.sub(_shown_code, _with_semicolons(sql)) if dialect in _RUNS_COMMENTS else sql


def _with_semicolons(sql: str) -> str:
    """The text with semicolons where the client's DELIMITER says that others end statements
    (https://dev.mysql.com/doc/refman/8.4/en/mysql-commands.html).
    """
    made, mark, begin = [], ";", 0
    for command in [*_DELIMITER.finditer(sql), None]:
        part = sql[begin : len(sql) if command is None else command.start()]
        if mark != ";":
            ends = re.compile(rf"{_COMMENTED.pattern}|(?P<end>{re.escape(mark)})", re.DOTALL)
            part = ends.sub(lambda found: ";" if found["end"] else found[0], part)
        made.append(part)
        if command is not None:
            mark, begin = command["mark"], command.end()
    return "".join(made)


def _shown_code(found: re.Match[str]) -> str:
    """`/*!50000 code */` as the code, at its place."""
    if found["code"] is None:
        return found[0]
    return " " * (found.start("code") - found.start()) + found["code"] + "  "


_FILLED_IN = "a name contains a variable of the SQL client, which is replaced when the statement runs"


def read_otherwise(
    sql: str, dialect: str, statements: Sequence[str] = (), given: Callable[[str], bool] = lambda _: False
) -> str | None:
    """Why a text is not read as its session reads it. statements: of the text. given: whether a table's schema is."""
    dialect = _DIALECTS.get(dialect, dialect)
    changed = next(_changes(sql, dialect), None)
    if changed is not None and _MEANT.search(sql, changed):
        return (
            "a setting of the session changes the meaning of quotes and backslashes, but lineage uses the default "
            "meaning"
        )
    if dialect == "postgres" and ':"' in sql and any(found["name"] for found in _VARIABLE.finditer(sql)):
        return _FILLED_IN
    if dialect == "postgres" and "temp" in sql.lower() and _outlived(statements, given):
        return "the statement drops a temporary table and uses its name again, so the table of that name is not known"
    return None


def filled_in(node: exp.Expr, dialect: str) -> Iterator[str]:
    """Why a parsed statement is partial: psql puts the text of a variable in the place of a column."""
    for place in node.find_all(exp.Placeholder) if _DIALECTS.get(dialect, dialect) == "postgres" else ():
        column = place.parent if isinstance(place.parent, exp.Alias) else place
        query = column.parent
        if place.name and column.arg_key == "expressions" and isinstance(query, exp.Select) and query.args.get("from_"):
            yield _FILLED_IN


def _outlived(statements: Sequence[str], given: Callable[[str], bool]) -> bool:
    """Whether a text names a temporary table or view after it went without DROP
    (https://www.postgresql.org/docs/current/sql-createtable.html, https://www.postgresql.org/docs/current/sql-discard.html,
    https://www.postgresql.org/docs/current/sql-rollback.html).
    """
    lasting: set[str] = set()
    passing: dict[str, bool] = {}  # of the transaction at hand, and whether its end drops it
    gone: set[str] = set()
    inside = False
    for text in (_UNSAID.sub(" ", statement) for statement in statements):
        made = _TEMPORARY.match(text) if "temp" in text.lower() else None
        named = made or _MADE.match(text)
        name = named[named.lastgroup or 0].lower() if named is not None else ""
        words = _WORD.findall(text.lower()) if gone else []
        if any(word in gone and (word != name or words.count(word) > 1) for word in set(words)):
            return True
        gone.discard(name)
        lasting.discard(name)
        passing.pop(name, None)
        if made is not None:
            passing[name] = _DROPPED.search(text) is not None
            if passing[name] and not inside and given(name):
                gone.add(name)
        elif _COMMITS.match(text):
            gone.update(one for one, drops in passing.items() if drops)
            lasting.update(one for one, drops in passing.items() if not drops)
            passing, inside = {}, False
        elif _UNDOES.match(text):
            gone.update(passing)
            passing, inside = {}, False
        elif _DISCARDS.match(text):
            gone.update(passing, lasting)
            passing, lasting = {}, set()
        else:
            inside = inside or _BEGINS.match(text) is not None
    return False


def _changes(sql: str, dialect: str) -> Iterator[int]:
    """Where the settings end that change how texts are read."""
    plain = sql.lower()
    if dialect in _MYSQL and "sql_mode" in plain:
        named = _OTHER_MODES.search(sql) is not None  # a variable may hold it
        for found in _MODE.finditer(sql):
            value = found["value"]
            held = value.startswith("@") and not value.startswith("@@")
            if (named if held else _OTHER_MODES.search(value)) or not _KNOWN_MODE.fullmatch(value):
                yield found.end()
    elif any(word in plain for word in _NAMED.get(dialect, ())):
        yield from (found.end() for found in _SET[dialect].finditer(sql))
