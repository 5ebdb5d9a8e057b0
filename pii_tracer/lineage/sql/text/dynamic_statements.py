"""Statements that run a text: EXECUTE IMMEDIATE, EXECUTE of PL/pgSQL, EXEC and sp_executesql of T-SQL.

A text that is one literal is a statement like any other. What is put together at run time is not followed.

Sources: https://spark.apache.org/docs/latest/sql-ref-syntax-aux-exec-imm.html,
https://docs.snowflake.com/en/sql-reference/sql/execute-immediate,
https://cloud.google.com/bigquery/docs/reference/standard-sql/procedural-language#execute_immediate,
https://www.postgresql.org/docs/current/plpgsql-statements.html#PLPGSQL-STATEMENTS-EXECUTING-DYN,
https://learn.microsoft.com/sql/t-sql/language-elements/execute-transact-sql.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_DOUBLE = frozenset({"spark", "databricks", "hive", "bigquery", "mysql", "clickhouse", ""})
"""Dialects in which a text can stand in double quotes."""
_IMMEDIATE = re.compile(r"^\s*EXECUTE\s+IMMEDIATE\b\s*(?P<rest>.*)$", re.IGNORECASE | re.DOTALL)
_PLPGSQL = re.compile(r"^\s*EXECUTE\s+(?P<rest>['$E(].*)$", re.IGNORECASE | re.DOTALL)
_EXEC = re.compile(r"^\s*EXEC(?:UTE)?\s*\(\s*(?P<rest>N?'.*)\)\s*$", re.IGNORECASE | re.DOTALL)
_PROCEDURE = re.compile(
    r"^\s*EXEC(?:UTE)?\s+(?:sys\.)?sp_executesql\s+(?:@(?:stmt|statement)\s*=\s*)?(?P<rest>N?'.*)$",
    re.IGNORECASE | re.DOTALL,
)
_LITERAL = re.compile(
    r"N?'(?P<single>(?:[^'\\]|'')*)'(?!')|\$(?P<tag>\w*)\$(?P<dollar>.*?)\$(?P=tag)\$"
    r'|"""(?P<triple>[^\\]*?)"""|"(?P<double>(?:[^"\\]|"")*)"(?!")',
    re.DOTALL,
)
_AFTER = re.compile(
    r"\s*(?P<into>(?:BULK\s+COLLECT\s+)?INTO\b[^;]*?)?(?P<using>\bUSING\b.*|,.*)?\s*;?\s*$", re.I | re.S
)
_GIVEN = re.compile(r"\?|(?<![:\w]):\w+|\$\d+|@\w+")
"""What stands in a text for values that are given with it."""
_CONSTANT = re.compile(
    r"(?:USING|,)?\s*\(?\s*(?:N?'(?:[^']|'')*'|[-+\d.]+|NULL|TRUE|FALSE)(?:\s+AS\s+\w+)?\s*\)?", re.I
)


_STARTS = r"(?=(?:INSERT|UPDATE|DELETE|MERGE|CALL|CREATE|TRUNCATE|DROP|ALTER|COPY|EXECUTE|WITH|SELECT)\b)"
_TASK = re.compile(
    r"^\s*(?:CREATE\s+(?:OR\s+REPLACE\s+)?(?:TASK\b.*?\bAS\s+|FLOW\b.*?\bAS\s+(?=INSERT\b)|PIPE\b.*?\bAS\s+(?=COPY\b)"
    r"|(?:DEFINER\s*=\s*\S+\s+)?EVENT\b.*?\bDO\s+(?=INSERT\b|UPDATE\b|DELETE\b|REPLACE\b|CALL\b)"
    rf"|ALERT\b.*?\)\s*THEN\s+{_STARTS})"
    r"|ALTER\s+TASK\s+\S+\s+MODIFY\s+AS\s+"
    rf"|ALTER\s+ALERT\s+\S+\s+MODIFY\s+ACTION\s+{_STARTS})",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = re.compile(r"'(?:[^'\\]|''|\\.)*'|\"[^\"]*\"|\$\$.*?\$\$", re.DOTALL)


@dataclass(frozen=True)
class Dynamic:
    """A statement that runs a text. text: what it runs, or None where nobody can read it off. doubt: why its outcome is
    not the whole truth.
    """

    text: str | None
    doubt: str | None = None


_UNREAD = "a statement is built at run time, which lineage does not follow"
_TO_VARIABLE = "values go through a variable or cursor of a procedure, which lineage does not follow"
_FROM_VARIABLE = "values are passed to a statement at run time, which lineage does not follow"


def dynamic_of(statement: str, dialect: str) -> Dynamic | None:
    """The text that a statement runs; None for a statement of another kind."""
    found = _IMMEDIATE.match(statement)
    if found is None and dialect in ("postgres", "redshift"):
        found = _PLPGSQL.match(statement)
    if found is None and dialect in ("tsql", "fabric"):
        found = _EXEC.match(statement) or _PROCEDURE.match(statement)
    if found is None:
        return None
    literal = _LITERAL.match(found["rest"])
    if literal is None or (literal["double"] is not None and dialect not in _DOUBLE):
        return Dynamic(None, _UNREAD)
    after = _AFTER.fullmatch(found["rest"], literal.end())
    if after is None:
        return Dynamic(None, _UNREAD)
    text = _content(literal)
    if after["into"]:
        return Dynamic(text, _TO_VARIABLE)
    using = after["using"] or ""
    variable = using and _GIVEN.search(text) and _CONSTANT.sub("", using).strip()
    return Dynamic(text, _FROM_VARIABLE if variable else None)


def _content(literal: re.Match[str]) -> str:
    if literal["single"] is not None:
        return literal["single"].replace("''", "'")
    if literal["double"] is not None:
        return literal["double"].replace('""', '"')
    return literal["dollar"] if literal["dollar"] is not None else literal["triple"]


def task_of(text: str) -> str | None:
    """The statement that a task, pipe, event or alert runs. Words in quotes start none."""
    found = _TASK.match(_QUOTED.sub(lambda m: f"'{'x' * (len(m[0]) - 2)}'", text))
    return text[found.end() :] if found else None
