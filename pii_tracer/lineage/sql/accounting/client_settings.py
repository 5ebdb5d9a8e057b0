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
from collections.abc import Iterator

_MODE = re.compile(
    r"\bSET\b[^;]*?\bsql_mode\s*:?=\s*(?P<value>'[^']*'|\"[^\"]*\"|@\w+|DEFAULT\b|@@[\w.]+\s*(?=[;,]|$)|.)",
    re.IGNORECASE | re.DOTALL,
)
_OTHER_MODES = re.compile(r"ANSI|NO_BACKSLASH_ESCAPES|DB2|MAXDB|MSSQL|ORACLE|POSTGRESQL", re.IGNORECASE)
_KNOWN_MODE = re.compile(r"'[^']*'|\"[^\"]*\"|@\w+|DEFAULT|@@.*", re.IGNORECASE | re.DOTALL)
_SETTINGS = {
    "postgres": r"standard_conforming_strings\s*(?:=|\bTO\b)\s*'?(?:off|false|no|0)\b",
    "spark": r"spark\.sql\.(?:ansi\.doubleQuotedIdentifiers|parser\.escapedStringLiterals)`?\s*=\s*['\"]?true\b",
    "tsql": r"(?:QUOTED_IDENTIFIER|ANSI_DEFAULTS)\s+OFF\b",
}
_DIALECTS = {"redshift": "postgres", "databricks": "spark", "fabric": "tsql"}
_SET = {of: re.compile(rf"\bSET\b[^;]*?\b{setting}", re.IGNORECASE) for of, setting in _SETTINGS.items()}
_MEANT = re.compile(r"[\"\\]")
"""What such a setting reads in another way."""
_VARIABLE = re.compile(
    r"'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/|(?P<name>(?<![:\w]):\"[^\"]+\")", re.DOTALL
)
_TEMPORARY = re.compile(
    r"\bCREATE\s+(?:LOCAL\s+|GLOBAL\s+)?TEMP(?:ORARY)?\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?\"?(?P<name>\w+)\"?(?P<rest>[^;]*)",
    re.I,
)
_DROPPED = re.compile(r"\bON\s+COMMIT\s+DROP\b", re.IGNORECASE)
_GOES = re.compile(r"\bDISCARD\s+(?:ALL|TEMP|TEMPORARY)\b", re.IGNORECASE)
_COMMITS = re.compile(r";\s*(?:COMMIT|END|ROLLBACK|ABORT)\b[^;]*;|\bDISCARD\s+(?:ALL|TEMP|TEMPORARY)\b", re.IGNORECASE)
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


def read_otherwise(sql: str, dialect: str) -> str | None:
    """Why a text is not read as its session reads it."""
    dialect = _DIALECTS.get(dialect, dialect)
    if any(_MEANT.search(sql, end) for end in _changes(sql, dialect)):
        return "a setting of the session says what quotes and backslashes mean: lineage reads them as without it"
    if dialect == "postgres" and ':"' in sql and any(found["name"] for found in _VARIABLE.finditer(sql)):
        return "a variable of the client is a name, which is filled in later"
    if dialect == "postgres" and _outlived(sql):
        return "a temporary table goes before its name is used again: which table that means is not known"
    return None


def _outlived(sql: str) -> bool:
    """Whether a text names a temporary table after it went without DROP
    (https://www.postgresql.org/docs/current/sql-createtable.html, https://www.postgresql.org/docs/current/sql-discard.html).
    """
    for made in _TEMPORARY.finditer(sql):
        gone = (_COMMITS if _DROPPED.search(made["rest"]) else _GOES).search(sql, made.end())
        if gone is not None and re.search(rf"\b{re.escape(made['name'])}\b", sql[gone.end() :], re.IGNORECASE):
            return True
    return False


def _changes(sql: str, dialect: str) -> Iterator[int]:
    """Where the settings end that change how texts are read."""
    if dialect in _MYSQL and "sql_mode" in sql.lower():
        for found in _MODE.finditer(sql):
            if _OTHER_MODES.search(found["value"]) or not _KNOWN_MODE.fullmatch(found["value"]):
                yield found.end()
    elif (setting := _SET.get(dialect)) is not None:
        yield from (found.end() for found in setting.finditer(sql))
