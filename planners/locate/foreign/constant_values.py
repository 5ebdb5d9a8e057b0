"""Constants of a statement as its engine stores them: `-(-1)` is 1, and so is `CAST(257 AS TINYINT)`.

Also those that a table's own schema has as defaults.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal, InvalidOperation

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pii_tracer.lineage.graph.edges import BY_USER
from pii_tracer.lineage.sql.statements.filled_columns import default_of
from pii_tracer.model.number_keys import can_be_one
from planners.locate.sql.column_expressions import choices

_BITS = {exp.DType.TINYINT: 8, exp.DType.SMALLINT: 16, exp.DType.INT: 32, exp.DType.BIGINT: 64}
_NO_NUMBERS = frozenset(
    {
        exp.DType.BOOLEAN, exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ,
        exp.DType.TIMESTAMPNTZ, exp.DType.BINARY,
    }
)  # fmt: skip


_COMPUTING = (exp.Binary, exp.Concat, exp.DPipe, exp.Anonymous)
"""What makes another number of constants, or a text that is one."""
_WITH_NUMBERS: Mapping[type[exp.Expr], Callable[..., int]] = {
    exp.Add: operator.add, exp.Sub: operator.sub, exp.Mul: operator.mul, exp.Neg: operator.neg,
}  # fmt: skip
TIMES = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentDatetime, exp.CurrentTime)
"""When a statement runs: nobody's value, but as a number it can be."""


def text_of(value: exp.Expression) -> str | None:
    """The text of a constant with all its signs; None for everything else."""
    negative = False
    while isinstance(value, exp.Neg | exp.Paren):
        negative ^= isinstance(value, exp.Neg)
        value = value.this
    if not isinstance(value, exp.Literal | exp.Boolean):
        return None
    text = value.name or str(value.this)
    return (text.strip()[1:] if text.strip().startswith("-") else f"-{text}") if negative else text


def becomes_one(cast: exp.Cast, keys: Collection[str]) -> bool:
    """Whether a cast of constants can make one of some keys of what is none."""
    inner, to = cast.this, cast.to.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Null):
        return False
    if to is exp.DType.BOOLEAN:
        return any(can_be_one(text, keys) for text in ("true", "false"))
    if to in exp.DataType.NUMERIC_TYPES and cast.find(*TIMES) is not None:
        return True
    if to not in _BITS:
        return False
    if isinstance(inner, exp.Cast) and inner.to.this in _NO_NUMBERS:
        return not isinstance(inner.this, exp.Null)
    return any(_may_become_one(part, _BITS[to], keys) for part in _branches(inner))


def _branches(value: exp.Expression) -> Iterator[exp.Expression]:
    """What an expression can be, of conditionals each of their values."""
    if isinstance(value, exp.Paren):
        yield from _branches(value.this)
    elif isinstance(value, exp.Coalesce | exp.Nullif | exp.If | exp.Case):
        for part in choices(value):
            yield from _branches(part) if part is not None else ()
    else:
        yield value


def _may_become_one(value: exp.Expression, bits: int, keys: Collection[str]) -> bool:
    """Whether what a narrow type leaves of a value can be a key: of a sum that does not fit, it is another number."""
    if value.find(*_COMPUTING) is not None:
        number = _whole(value)
        return number is None or _is_beyond(str(number), bits) or can_be_one(str(number), keys)
    return any(_is_beyond(literal.name, bits) for literal in value.find_all(exp.Literal))


def _whole(value: exp.Expression) -> int | None:
    """A sum, difference or product of whole numbers; None where it is not certain, as where it may wrap around."""
    if isinstance(value, exp.Paren):
        return _whole(value.this)
    if isinstance(value, exp.Literal):
        found = int(value.name) if not value.is_string and value.is_int else None
    else:
        parts = [_whole(part) for part in value.iter_expressions()] if type(value) in _WITH_NUMBERS else []
        numbers = [number for number in parts if number is not None]
        found = _WITH_NUMBERS[type(value)](*numbers) if parts and len(numbers) == len(parts) else None
    return found if found is not None and abs(found) < 2**31 else None


def fills_with(default: str, keys: Collection[str]) -> bool:
    """Whether the SQL of a column's default can put one of some keys there, or what nobody knows beforehand."""
    try:
        value = sqlglot.parse_one(default, dialect="spark")
    except (SqlglotError, RecursionError):
        return True
    return any(constant in ("", BY_USER) or can_be_one(constant, keys) for _, constant in default_of("", value))


def is_by_user(default: str) -> bool:
    """Whether the SQL of a column's default can put the name of whoever is logged in there."""
    try:
        value = sqlglot.parse_one(default, dialect="spark")
    except (SqlglotError, RecursionError):
        return False
    return any(constant == BY_USER for _, constant in default_of("", value))


def _is_beyond(text: str, bits: int) -> bool:
    """Whether a number does not fit a type: what engines leave of it is another one."""
    try:
        return abs(Decimal(text.strip())) >= Decimal(2) ** (bits - 1)
    except InvalidOperation:
        return False
