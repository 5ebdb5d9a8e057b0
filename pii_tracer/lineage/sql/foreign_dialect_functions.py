"""Expressions in which nobody takes a function of another dialect for Spark's of the same name.

Planners compute recorded expressions as Spark does. Of another text a hash is just another hash, which nobody finds;
a part of a text can be somebody else's. So a function around or inside a hash stays only where it means the same in
its dialect, and elsewhere so does one that changes texts. Any other stands in a call of `in_DIALECT`, which no planner
computes.

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
_KEEPS_TEXTS_WHOLE = frozenset({"spark", "spark2", "databricks", "duckdb", "clickhouse", "sqlite"})
"""Dialects in which the size of a type says nothing (https://duckdb.org/docs/stable/sql/data_types/text)."""
_T_SQL = frozenset({"tsql", "fabric"})
"""Dialects whose casts to texts without a size leave 30 letters
(https://learn.microsoft.com/sql/t-sql/data-types/char-and-varchar-transact-sql).
"""
_NO_BLANKS = frozenset({"mysql", "singlestore", "doris", "starrocks", "snowflake", "bigquery"})
"""Dialects whose cast to CHAR adds no blanks."""
_SIZED_TEXTS = (
    exp.DType.TEXT,
    exp.DType.VARCHAR,
    exp.DType.NVARCHAR,
    exp.DType.CHAR,
    exp.DType.NCHAR,
    exp.DType.BPCHAR,
)
_OF_A_SIZE = ("uncut", "unpadded")
_OPERATORS = (exp.Func, exp.Unary, exp.Binary)
_OF_TEXTS = (
    exp.Lower, exp.Upper, exp.Trim, exp.Left, exp.Right, exp.Substring, exp.Replace, exp.RegexpReplace, exp.Pad,
    exp.Translate, exp.Reverse,
)  # fmt: skip
_STANDARD = (exp.Paren, exp.Dot, exp.DPipe, exp.Case, exp.If, exp.Predicate, exp.Connector)
"""Operators that mean the same everywhere; what planners make of conditions is not computed."""


def with_own_functions(expression: exp.Expression, dialect: str) -> exp.Expression:
    """The expression as planners may read it; a copy where it differs."""
    if dialect not in _KEEPS_TEXTS_WHOLE and expression.find(exp.Cast, exp.Convert) is not None:
        expression = expression.transform(_of_size, dialect)
    if dialect in _OF_SPARK:
        return expression
    kinds = _OPERATORS if any(map(_hashes, expression.walk())) else _OF_TEXTS
    if expression.find(*kinds) is None:
        return expression
    root = exp.Paren(this=expression.copy())
    _mark(cast("exp.Expression", root.this), dialect, kinds)
    return cast("exp.Expression", root.this)


def _of_size(node: exp.Expression, dialect: str) -> exp.Expression:
    """A cast to a text of a size, as planners compute it: `uncut(left(x, 9))`, or `unpadded(left(x, 9))`.

    Engines cut what is longer, refuse it, or write `*`; and some add blanks to what is shorter.
    """
    if isinstance(node, exp.Convert) and node.args.get("style") is None:
        kind = exp.TryCast if node.args.get("safe") else exp.Cast
        node = kind(this=node.expression.copy(), to=node.this.copy())
    if not isinstance(node, exp.Cast):
        own = isinstance(node, exp.Convert)
        return exp.Anonymous(this=f"in_{dialect or 'sql'}", expressions=[node.copy()]) if own else node
    if node.to.this is exp.DType.USERDEFINED or node.args.get("default") is not None:  # `"char"` has one letter
        return exp.Anonymous(this=f"in_{dialect or 'sql'}", expressions=[node.copy()])
    inner = node.this.transform(_of_size, dialect)  # what is put in a node's place is not looked into
    size = _size(node.to, dialect)
    if not size:
        return type(node)(**{**node.args, "this": inner})
    pads = node.to.this not in (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.NVARCHAR) and dialect not in _NO_BLANKS
    text = exp.cast(inner, "STRING")
    left = exp.Left(this=text, expression=exp.Literal.number(size))
    return exp.Anonymous(this=_OF_A_SIZE[pads], expressions=[left])


def _size(kind: exp.DataType, dialect: str) -> str:
    """How many letters, or bytes, a cast to a text leaves; empty for all, or another type."""
    if kind.this not in _SIZED_TEXTS:
        return ""
    if kind.expressions:
        size = str(kind.expressions[0].name)
        return size if size.isdigit() else ""
    if dialect in _T_SQL:
        return "30"
    if dialect == "mysql" or kind.this not in (exp.DType.CHAR, exp.DType.NCHAR):
        return ""
    return "1"


def _hashes(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _SHARED_NAMES
    return isinstance(node, _DIGESTS) or (isinstance(node, exp.Hex) and node.args.get("case") is not None)


def _mark(node: exp.Expression, dialect: str, kinds: tuple[type[exp.Expr], ...]) -> None:
    if isinstance(node, exp.Anonymous) and node.name in _OF_A_SIZE:
        node = cast("exp.Expression", node.expressions[0].this)
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
