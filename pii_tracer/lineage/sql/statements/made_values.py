"""Columns into which a statement puts values of its own making: a sequence's next number, a count, a parameter.

Of statements that Spark's parser reads the planner finds that out by itself, of the recorded text
(`planners.locate.foreign.generated_values`). Here the dialect is known, and what a query log's texts leave out.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

from sqlglot import exp

from pii_tracer.lineage.graph.edges import BY_USER, EdgeType
from pii_tracer.lineage.sql.relations import COUNTED, GENERATED, Alt, Field
from pii_tracer.lineage.sql.statements import session_users
from pii_tracer.lineage.sql.statements.filled_columns import DRAWN, EMPTY

_READ_BY_PLANNERS = frozenset({"spark", "spark2", "databricks", "hive"})
_LEFT_OUT = re.compile(r"piislot\d+[td]e|7700770077\d{4}")
"""What stands for a literal in a text that stands for many (`statement_shapes`): any value may have been there."""
_SAME = (exp.Paren, exp.Cast, exp.TryCast, exp.Alias)
"""What leaves a constant as it is."""
_NO_NUMBER = (
    exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentDatetime, exp.CurrentUser,
    exp.Uuid, exp.Localtimestamp, exp.TsOrDsToDate, exp.StrToDate, exp.StrToTime, exp.DateTrunc, exp.TimestampTrunc,
    exp.DateAdd, exp.DateSub, exp.TimestampAdd, exp.TimestampSub,
)  # fmt: skip
"""What is no number that a person has: times, the user who is logged in (`session_users`), and drawn UUIDs."""
_NO_NUMBER_NAMES = DRAWN | {
    "user", "current_user", "session_user", "system_user", "database", "current_database", "current_schema", "version",
    "now", "sysdate", "systimestamp", "getdate", "getutcdate", "sysdatetime", "sysutcdatetime", "today",
    "localtimestamp",
    "statement_timestamp", "clock_timestamp", "transaction_timestamp", "to_date", "to_timestamp", "str_to_date",
    "convert_timezone", "utc_timestamp",
}  # fmt: skip


def made_in(fields: Iterable[Field], dialect: str) -> tuple[tuple[str, str], ...]:
    """The columns with a value, in some rows at least, that comes from no column: with the constant where it is one."""
    known = dialect in _READ_BY_PLANNERS
    return tuple((f.name, text) for f in fields for alt in f.alts for text in _made(alt, known=known))


def _made(alt: Alt, *, known: bool) -> Iterator[str]:
    """The constants of one way, and an empty text for a value that is not known to be one."""
    if alt.expression is not None and session_users.goes_in(alt.expression):
        yield BY_USER
    if any(d.kind.type is EdgeType.DIRECT and d.kind != COUNTED for d in alt.deps):
        return
    if not known:
        yield from [""] if alt.expression is None else _values(alt.expression)
    elif alt.expression is not None:
        parts = alt.expression.find_all(exp.Literal, exp.Anonymous)
        left_out = (_LEFT_OUT.search(p.name) if isinstance(p, exp.Literal) else p.name == GENERATED for p in parts)
        yield from [""] if any(left_out) else ()


def _values(value: exp.Expression, *, number: bool = False) -> Iterator[str]:
    """number: the value is made a number, which a time then is, too."""
    if isinstance(value, exp.Literal | exp.Boolean):
        text = value.name if isinstance(value, exp.Literal) else str(value.this)
        yield "" if _LEFT_OUT.search(text) else text or EMPTY
    elif isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        yield from (f"-{text}" if text else "" for text in _values(value.this))
    elif isinstance(value, exp.Case | exp.If):
        branches = [*(i.args["true"] for i in value.args.get("ifs") or ()), value.args.get("true")]
        branches += [value.args.get("default"), value.args.get("false")]
        nodes = [branch for branch in branches if isinstance(branch, exp.Expression)]
        yield from (text for branch in nodes for text in _values(branch, number=number))
    elif isinstance(value, (exp.Coalesce, *_SAME)):
        number = number or (isinstance(value, exp.Cast) and value.to.this in exp.DataType.NUMERIC_TYPES)
        parts = (cast(exp.Expression, p) for p in value.iter_expressions() if not isinstance(p, exp.DataType))
        made = (text for part in parts for text in _values(part, number=number))
        yield from (fit for text in made for fit in _fitted(text, value)) if isinstance(value, exp.Cast) else made
    elif isinstance(value, exp.Null | exp.Var):
        return
    elif isinstance(value, _NO_NUMBER) or (isinstance(value, exp.Anonymous) and value.name.lower() in _NO_NUMBER_NAMES):
        yield from [""] if number else ()
    else:
        told = _computed(value)
        yield "" if told is None or _LEFT_OUT.search(told) else told or EMPTY


def _fitted(text: str, cast_: exp.Cast) -> Iterator[str]:
    """A constant and what a cast can leave of it: texts are cut off, a number that does not fit becomes another one."""
    to, room = cast_.to, _ROOM.get(cast_.to.this)
    yield text
    if to.this in exp.DataType.TEXT_TYPES:
        sizes = [size.name for size in to.expressions] or (["1"] if to.this is exp.DType.CHAR else [])
        if sizes and text != EMPTY:
            yield text[: int(sizes[0])] if sizes[0].isdigit() else ""
    elif to.this is exp.DType.BOOLEAN:
        yield from ("true", "false") if text else ()
    elif room is not None and re.fullmatch(r"\s*-?\d+(\.\d*)?\s*", text) and int(text.split(".")[0]) not in room:
        yield ""


_ROOM = {
    exp.DType.TINYINT: range(-(2**7), 2**7), exp.DType.UTINYINT: range(2**8),
    exp.DType.SMALLINT: range(-(2**15), 2**15), exp.DType.USMALLINT: range(2**16),
    exp.DType.INT: range(-(2**31), 2**31), exp.DType.UINT: range(2**32),
    exp.DType.BIGINT: range(-(2**63), 2**63), exp.DType.UBIGINT: range(2**64),
}  # fmt: skip
"""Numbers that types of whole ones have."""


def _computed(value: exp.Expression) -> str | None:
    """What functions that every engine knows make of constants; None for all else."""
    if isinstance(value, exp.Literal):
        return value.name
    if isinstance(value, exp.Paren):
        return _computed(value.this)
    if isinstance(value, exp.Neg | exp.Add | exp.Sub | exp.Mul):
        numbers = [_number(part) for part in value.iter_expressions()]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            return None
        return str(-known[0] if isinstance(value, exp.Neg) else _ARITHMETIC[type(value)](*known))
    parts = [_computed(part) for part in value.iter_expressions()]
    if any(part is None for part in parts):
        return None
    texts = [str(part) for part in parts]
    if isinstance(value, exp.Concat | exp.DPipe):
        return "".join(texts)
    change = _LETTERS.get(type(value))
    return change(texts[0]) if change is not None and len(texts) == 1 else None


_LETTERS: Mapping[type[exp.Expr], Callable[[str], str]] = {
    exp.Upper: str.upper, exp.Lower: str.lower, exp.Trim: str.strip,
}  # fmt: skip
_ARITHMETIC: Mapping[type[exp.Expr], Callable[[int, int], int]] = {
    exp.Add: operator.add, exp.Sub: operator.sub, exp.Mul: operator.mul,
}  # fmt: skip


def _number(value: exp.Expression) -> int | None:
    """A whole number, and no text that an engine may take for one."""
    if isinstance(value, exp.Literal) and value.is_string:
        return None
    text = _computed(value)
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,30}", text) else None
