"""Expressions in which nobody takes a function of another dialect for Spark's of the same name.

Planners compute recorded expressions as Spark does. Of another text a hash is just another hash, which nobody finds;
a part of a text can be somebody else's. So a function around or inside a hash stays only where it means the same in
its dialect, and elsewhere so does one that changes texts. Any other stands in a call of `in_DIALECT`, which no planner
computes. So does a cast to CHAR, which fills a text with blanks. One to VARCHAR(n) cuts longer texts off: `text_within`
is computed for texts that it leaves as they are.

Sources: https://duckdb.org/docs/stable/sql/functions/text, https://trino.io/docs/current/functions/string.html,
https://docs.cloud.google.com/bigquery/docs/reference/standard-sql/string_functions,
https://clickhouse.com/docs/sql-reference/functions/string-functions,
https://www.postgresql.org/docs/current/functions-string.html,
https://dev.mysql.com/doc/refman/8.4/en/string-functions.html and
https://docs.snowflake.com/en/sql-reference/functions-string.
"""

from __future__ import annotations

from typing import cast

from sqlglot import exp

_OF_SPARK = frozenset({"spark", "spark2", "databricks", "hive"})
_DIGESTS = (exp.SHA2, exp.SHA, exp.MD5)
_SHARED_NAMES = frozenset({"hash", "xxhash64", "crc32"})
"""Functions that are other ones, or begin at another number, in each engine."""
_UNICODE_LOWER = frozenset({"presto", "trino", "athena", "dune", "bigquery", "duckdb"})
"""Dialects whose `lower` knows all letters and no locale."""
_COUNT_LETTERS = _UNICODE_LOWER | {"postgres", "mysql", "snowflake", "redshift"}
"""Dialects whose `substr` counts letters, and whose `replace` compares them one by one."""
_TRIM_BLANKS = frozenset({"postgres", "mysql", "snowflake", "redshift", "oracle", "tsql"})
_TEXT = (exp.DType.TEXT, exp.DType.VARCHAR)
_OPERATORS = (exp.Func, exp.Unary, exp.Binary)
_OF_TEXTS = (
    exp.Lower, exp.Upper, exp.Trim, exp.Left, exp.Right, exp.Substring, exp.Replace, exp.RegexpReplace, exp.Pad,
    exp.Translate, exp.Reverse,
)  # fmt: skip
_STANDARD = (exp.Paren, exp.Dot, exp.DPipe, exp.Case, exp.If, exp.Predicate, exp.Connector)
"""Operators that mean the same everywhere; what planners make of conditions is not computed."""


_LENGTHLESS = frozenset({"spark", "spark2", "databricks", "duckdb", "sqlite", "clickhouse"})
"""Dialects in which a cast to a text of some length leaves the text as it is."""
_MYSQL = frozenset({"mysql", "singlestore", "doris", "starrocks"})
_UNFILLED = _MYSQL | {"snowflake", "bigquery"}
"""Dialects in which a CHAR is not filled with blanks, or loses them when it is read."""
_CASTS = (exp.Cast, exp.Convert)
_CHARS = frozenset({exp.DType.CHAR, exp.DType.NCHAR})
_TEXTS = _CHARS | {exp.DType.VARCHAR, exp.DType.NVARCHAR, exp.DType.TEXT}


def with_own_functions(expression: exp.Expression, dialect: str) -> exp.Expression:
    """The expression as planners may read it; a copy where it differs."""
    expression = _with_lengths(expression, dialect)
    if dialect in _OF_SPARK:
        return expression
    kinds = _OPERATORS if any(map(_hashes, expression.walk())) else _OF_TEXTS
    if expression.find(*kinds) is None:
        return expression
    root = exp.Paren(this=expression.copy())
    _mark(cast("exp.Expression", root.this), dialect, kinds)
    return cast("exp.Expression", root.this)


def _with_lengths(expression: exp.Expression, dialect: str) -> exp.Expression:
    """With a call of its own for each cast that may change a text by its length."""
    if not any(_length(node, dialect) for node in expression.find_all(*_CASTS)):
        return expression
    root = exp.Paren(this=expression.copy())
    for node in list(root.find_all(*_CASTS)):
        if (length := _length(node, dialect)) is not None:
            if _type(node).this in _CHARS and dialect not in _UNFILLED:
                node.replace(exp.Anonymous(this=f"in_{dialect or 'sql'}", expressions=[node.copy()]))
                continue
            inner = node.expression if isinstance(node, exp.Convert) else node.this
            text = exp.Cast(this=inner, to=exp.DataType.build("text"))
            node.replace(exp.Anonymous(this="text_within", expressions=[text, exp.Literal.number(length)]))
    return cast("exp.Expression", root.this)


def _type(node: exp.Expr) -> exp.DataType:
    """The type that a cast makes a value of."""
    return cast("exp.DataType", node.this if isinstance(node, exp.Convert) else node.args["to"])


def _length(node: exp.Expr, dialect: str) -> int | None:
    """How many letters a text may have after a cast; None where any number of them, or where it is no cast to text.

    Without a length, CHAR is one letter by the standard, and in T-SQL each type has 30
    (https://learn.microsoft.com/sql/t-sql/data-types/char-and-varchar-transact-sql,
    https://docs.aws.amazon.com/redshift/latest/dg/r_Character_types.html).
    """
    to = _type(node)
    kind = to.this
    if dialect in _LENGTHLESS or kind not in _TEXTS:
        return None
    if to.expressions:
        size = to.expressions[0].name
        return int(size) if size.isdecimal() else None
    if dialect in ("tsql", "fabric"):
        return None if kind is exp.DType.TEXT else 30
    if kind in _CHARS:
        return None if dialect in _MYSQL else 1
    return 256 if dialect == "redshift" and kind is not exp.DType.TEXT else None


def _hashes(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _SHARED_NAMES
    return isinstance(node, _DIGESTS) or (isinstance(node, exp.Hex) and node.args.get("case") is not None)


def _mark(node: exp.Expression, dialect: str, kinds: tuple[type[exp.Expr], ...]) -> None:
    parts = list(node.iter_expressions())
    if type(node) in (exp.Lower, exp.Upper) and not _same(node, dialect):
        node.replace(exp.Anonymous(this=f"{node.key}_of_ascii", expressions=[node.this]))
    elif type(node) is exp.Trim and node.expression is None and not _same(node, dialect):
        node.replace(exp.Anonymous(this="trim_of_letters", expressions=[node.this]))
    elif isinstance(node, kinds) and not _same(node, dialect):
        node.replace(exp.Anonymous(this=f"in_{dialect or 'sql'}", expressions=[node.copy()]))
        return
    for part in parts:
        _mark(part, dialect, kinds)


def _same(node: exp.Expression, dialect: str) -> bool:
    """Whether a function means in a dialect what it means in Spark, for every text."""
    kind = type(node)
    if kind in (*_DIGESTS, exp.Concat, exp.Coalesce, exp.Unhex) or isinstance(node, _STANDARD):
        return dialect != "oracle" or kind in _DIGESTS  # https://docs.oracle.com: an empty text is NULL
    if kind is exp.Lower or kind is exp.Upper:
        return _is_hexadecimal(node.this) or (kind is exp.Lower and dialect in _UNICODE_LOWER)
    if isinstance(node, exp.Cast):
        return node.to.this in _TEXT and not node.to.expressions and node.args.get("format") is None
    if kind is exp.Substring:
        start, length = node.args.get("start"), node.args.get("length")
        return dialect in _COUNT_LETTERS and _counts(start) and (length is None or _counts(length))
    if kind is exp.Left or kind is exp.Right:
        return dialect in _COUNT_LETTERS and _counts(node.expression)
    if kind is exp.Pad:
        fill = node.args.get("fill_pattern")
        return dialect in _COUNT_LETTERS and _counts(node.expression) and (fill is None or bool(fill.name))
    if kind is exp.Trim:
        return dialect in _TRIM_BLANKS and node.expression is None
    if kind is exp.Replace:
        return dialect in _COUNT_LETTERS and isinstance(node.expression, exp.Literal) and bool(node.expression.name)
    return False


def _counts(node: object) -> bool:
    """A written number from 1."""
    return isinstance(node, exp.Literal) and node.is_int and int(node.name) > 0


def _is_hexadecimal(node: exp.Expression) -> bool:
    """Whether a text has only letters whose case is the same everywhere."""
    while isinstance(node, exp.Paren | exp.Lower | exp.Upper):
        node = cast("exp.Expression", node.this)
    return isinstance(node, _DIGESTS)
