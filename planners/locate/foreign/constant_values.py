"""Constants of a statement as its engine stores them: `-(-1)` is 1, and so is `CAST(257 AS TINYINT)`.

Also those that a table's own schema has as defaults.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal, InvalidOperation

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pii_tracer.lineage.sql.statements.filled_columns import default_of
from pii_tracer.model.number_keys import can_be_one

_BITS = {exp.DType.TINYINT: 8, exp.DType.SMALLINT: 16, exp.DType.INT: 32, exp.DType.BIGINT: 64}
_NO_NUMBERS = frozenset(
    {
        exp.DType.BOOLEAN, exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ,
        exp.DType.TIMESTAMPNTZ, exp.DType.BINARY,
    }
)  # fmt: skip


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
    return any(_is_beyond(literal.name, _BITS[to]) for literal in cast.find_all(exp.Literal))


def fills_with(default: str, keys: Collection[str]) -> bool:
    """Whether the SQL of a column's default can put one of some keys there, or what nobody knows beforehand."""
    try:
        value = sqlglot.parse_one(default, dialect="spark")
    except (SqlglotError, RecursionError):
        return True
    return any(not constant or can_be_one(constant, keys) for _, constant in default_of("", value))


def _is_beyond(text: str, bits: int) -> bool:
    """Whether a number does not fit a type: what engines leave of it is another one."""
    try:
        return abs(Decimal(text.strip())) >= Decimal(2) ** (bits - 1)
    except InvalidOperation:
        return False
