"""Routines that a statement calls for what they do. What these write is in no text, so the statement is partial.

In these dialects a function may write (https://www.postgresql.org/docs/current/xfunc-volatility.html,
https://dev.mysql.com/doc/refman/8.4/en/create-procedure.html,
https://docs.oracle.com/en/database/oracle/oracle-database/19/lnpls/plsql-subprograms.html). So a call is made for its
effects where no row is at hand: in an assignment, a condition, or a query without a table. Functions of values in a
query over tables are columns like others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from pii_tracer.lineage.sql.accounting.function_names import AGGREGATE_NAMES, MASK_NAMES, SCALAR_NAMES

_ONLY_READ = frozenset(
    {"tsql", "fabric", "bigquery", "snowflake", "redshift", "databricks", "spark", "spark2", "hive", "trino", "presto",
     "athena", "clickhouse", "duckdb", "starrocks", "doris", "drill", "druid", "teradata", "sqlite", "exasol"}
)  # fmt: skip
"""Dialects whose functions write nothing: they have procedures for that, or functions of values alone."""
_BUILT_IN = re.compile(r"(?:pg|json|jsonb|regexp|st)_\w+|xml\w+|has_\w+_privilege")
"""How names of whole families begin, which do not change rows."""
_ANY_CODE = frozenset({"java_method", "reflect", "try_reflect"})
"""https://spark.apache.org/docs/latest/api/sql/#reflect."""
_WORDS = frozenset(
    {"all", "and", "any", "array", "as", "begin", "between", "bigint", "binary", "bit", "blob", "by", "call",
     "case", "char", "character", "check", "clob", "close", "continue", "cursor", "date", "datetime", "dec",
     "decimal", "declare", "default", "deleting", "distinct", "do", "else", "elseif", "elsif", "end", "enum",
     "except", "execute", "exists", "exit", "fetch", "filter", "float", "for", "from", "having", "if", "immediate",
     "in", "inserting", "int", "integer", "intersect", "interval", "into", "is", "join", "key", "lateral", "leave",
     "let", "like", "limit", "loop", "mediumint", "nchar", "not", "null", "number", "numeric", "nvarchar",
     "nvarchar2", "of", "on", "open", "or", "order", "over", "partition", "perform", "print", "raise",
     "raise_application_error", "raw", "return", "returning", "row", "rows", "select", "set", "smallint", "table",
     "text", "then", "time", "timestamp", "tinyint", "type", "until", "update", "updating", "using", "values",
     "varbinary", "varchar", "varchar2", "varray", "varying", "when", "where", "while", "with", "within"}
)  # fmt: skip
"""Words of the language that stand before a parenthesis, and types."""
_TEXTS = re.compile(r"'(?:[^'\\]|''|\\.)*'|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/", re.DOTALL)
_QUOTED = re.compile(r"[\"`]([^\"`]+)[\"`]")
_CALL = re.compile(r"(?<![\w$#@:\".`])(?P<name>[^\W\d][\w$#]*(?:\s*\.\s*[^\W\d][\w$#]*)*)\s*\(")
_WHOLE = re.compile(
    r"(?::=|\bDEFAULT\b|\bRETURN\b)\s*(?P<name>[^\W\d][\w$#]*(?:\.[^\W\d][\w$#]*)+)\s*\Z", re.IGNORECASE
)
_SEQUENCE = re.compile(r"\.(?:nextval|currval|count|first|last|limit)\Z", re.IGNORECASE)
_CALLS = re.compile(r"\(\s*CALL\b", re.IGNORECASE)
"""Snowflake takes what a procedure returns."""
_GIVEN = re.compile(r":=|\bDEFAULT\b", re.IGNORECASE)
_OF_VALUES = (
    "dbms_output",
    "dbms_lob",
    "dbms_lock",
    "dbms_random",
    "dbms_crypto",
    "utl_raw",
    "utl_i18n",
    "pg_catalog",
)


_OF_SYSTEM = frozenset({"sys", "mdsys"})
"""Oracle's owners of functions and types that need no owner's name."""


def may_write(dialect: str) -> bool:
    """Whether a function of a dialect may write."""
    return dialect not in _ONLY_READ


def called_for_effect(node: exp.Expr, dialect: str) -> Iterator[str]:
    """Why a parsed statement is partial: it calls a routine with no row at hand, and that is none of the dialect."""
    if isinstance(node, exp.Create) and isinstance(node.expression, exp.Query | exp.Values):
        node = node.expression
    elif isinstance(node, exp.Merge):
        if not _of_no_table(node.args.get("using")):
            return
    elif not isinstance(node, exp.Insert | exp.Select | exp.Values | exp.Set | exp.SetOperation):
        return
    for call in node.find_all(exp.Anonymous):
        query = call.find_ancestor(exp.Select)
        if query is not None and not _of_no_table(query):
            continue
        package = call.parent.this.sql(dialect=dialect) if isinstance(call.parent, exp.Dot) else ""
        name = f"{package}.{call.name}" if package else call.name
        if name.lower() in _ANY_CODE or (may_write(dialect) and not _is_known(name, dialect)):
            yield _unknown(name)


def _of_no_table(source: object) -> bool:
    """Whether a query or a source has no rows but the one that it makes."""
    if isinstance(source, exp.Subquery):
        return _of_no_table(source.this)
    if isinstance(source, exp.Table):
        return source.name.lower() in _ONE_ROW and not source.args.get("joins")
    if not isinstance(source, exp.Select):
        return isinstance(source, exp.Values)
    clause = source.args.get("from_")
    return clause is None or (_of_no_table(clause.this) and not source.args.get("joins"))


_ONE_ROW = frozenset({"dual", "sysdummy1"})


def calls_of(text: str, dialect: str, own: Collection[str] = (), *, declared: bool = False) -> str | None:
    """Why a piece of a body that is no query is partial: a routine that its expression calls.

    own: lower-case names of the unit itself: variables, collections, and routines whose bodies are read with it.
    declared: the piece is a declaration, of which only the first value is an expression.
    """
    plain = _QUOTED.sub(lambda found: re.sub(r"\W", "_", found[1]), _TEXTS.sub(" ", text))
    if _CALLS.search(plain):
        return "lineage does not follow a called routine"
    if not may_write(dialect):
        return None
    if declared:
        given = _GIVEN.search(plain)
        if given is None:
            return None
        plain = plain[given.start() :]
    calls = [re.sub(r"\s", "", found["name"]) for found in _CALL.finditer(plain)]
    whole = _WHOLE.search(plain) if dialect == "oracle" else None
    if whole is not None and not _SEQUENCE.search(whole["name"]):
        calls.append(whole["name"])
    for name in calls:
        if name.lower().split(".")[0] not in own and name.lower() not in _WORDS and not _is_known(name, dialect):
            return _unknown(name)
    return None


def _is_known(name: str, dialect: str) -> bool:
    *package, last = name.lower().replace('"', "").split(".")
    if package and package[-1] not in _OF_SYSTEM:
        return package[-1] in _OF_VALUES
    functions = Dialect.get_or_raise(dialect).parser_class.FUNCTIONS
    known = last in SCALAR_NAMES or last in MASK_NAMES or last in AGGREGATE_NAMES or last.upper() in functions
    return known or _BUILT_IN.fullmatch(last) is not None


def _unknown(name: str) -> str:
    return f"the reads and writes of the function {name.lower()} are not known"
