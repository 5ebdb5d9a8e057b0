"""Whole numbers as Spark SQL casts, reads and combines them, where the result tells the value still; sizes of texts.

Of `-x`, `x + 1000000` and `x * 10` the value can be told again. Spark computes in the wider of both types, and what
does not fit wraps around or fails, by the ANSI mode (https://spark.apache.org/docs/3.5.9/sql-ref-ansi-compliance.html).
The column's type is not known here: a result that could depend on it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from pii_tracer.model.errors import PlanError

_WRITTEN = re.compile(r"0|-?[1-9][0-9]*")
"""As Spark writes a whole number: `007`, `+7` and `7.0` are texts, or of other types."""
_INT, _BIGINT = 2**31, 2**63
_EDGES = (2**7, 2**15, 2**31, 2**63)
"""The least number of a type has no negative in it."""


class NotComputable(PlanError):
    """The expression's result is not certain for this value. The message never holds the value."""


def to_whole(text: str, bits: int) -> str | None:
    """A text cast to a number of so many bits, as UTF8String.toLong and toInt: blanks and control characters around it
    do not count; NULL for what is no number.

    Raises:
        NotComputable: the result depends on the column's type, or on the ANSI mode.
    """
    number = text.strip("".join(map(chr, range(0x21))))
    if not re.fullmatch(r"[+-]?[0-9]+", number):
        if re.fullmatch(r"[+-]?[0-9]*\.[0-9]*", number):
            raise NotComputable("a cast of a fraction to a whole number depends on the ANSI mode")
        return None
    whole = int(number)
    if not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
        raise NotComputable("a cast of a number that does not fit depends on the column's type and the ANSI mode")
    return str(whole)


def to_decimal(text: str, type_: exp.DataType) -> str:
    """A whole number cast to a DECIMAL without fractions: the same number, where it has room for it.

    Raises:
        NotComputable: the type has fractions, or the value is none of its numbers.
    """
    sizes = [size.name for size in type_.expressions] or ["10"]
    if not all(size.isdigit() for size in sizes) or any(int(size) for size in sizes[1:]):
        raise NotComputable("a cast to a type whose text form is not certain")
    if not _WRITTEN.fullmatch(text) or len(text.lstrip("-")) > int(sizes[0]):
        raise NotComputable("a cast to DECIMAL of a fraction, or of a number that does not fit")
    return text


def written_number(node: exp.Expression | None) -> int:
    """A whole number written into the expression.

    Raises:
        NotComputable: it is something else.
    """
    sign, inner = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.is_int:
        return sign * int(inner.this)
    raise NotComputable("an argument must be a whole number")


def arithmetic(node: exp.Expression, value: Callable[[exp.Expression], str | None]) -> str | None:
    """A negative, or a sum, difference or product of the value with a number written beside it; NULL for NULL.

    value: the text of the side that is no written number. A column of texts adds up to a double (`8.0`), so that a text
    is made of the result only where a cast says that the value is a whole number.

    Raises:
        NotComputable: the other side is no such number, the value is none, or the result depends on its type.
    """
    if not _stays_number(node) and not _cast_to_whole(node):
        raise NotComputable("a text of a sum, whose form depends on the column's type")
    if isinstance(node, exp.Neg):
        number = _told(node.this, value)
        if number is not None and (abs(number) in _EDGES or abs(number) > _BIGINT):
            raise NotComputable("the negative of the smallest number of its type")
        return None if number is None else str(-number)
    left, right = node.this, node.expression
    first = isinstance(left, exp.Literal | exp.Neg) and not left.find(exp.Column)
    number = _told(right if first else left, value)
    given = written_number(left if first else right)
    if number is None:
        return None
    a, b = (given, number) if first else (number, given)
    made = a + b if isinstance(node, exp.Add) else a - b if isinstance(node, exp.Sub) else a * b
    limit = _INT if all(-_INT <= side < _INT for side in (a, b)) else _BIGINT
    if not -limit <= made < limit or (isinstance(node, exp.Mul) and given == 0):
        raise NotComputable("arithmetic whose result depends on the column's type, or does not identify the value")
    return str(made)


def _cast_to_whole(node: exp.Expression) -> bool:
    return any(cast.to.this in exp.DataType.INTEGER_TYPES for cast in node.find_all(exp.Cast))


def _stays_number(node: exp.Expression) -> bool:
    """Whether nothing around it reads the result as a text."""
    around = node.parent
    while isinstance(around, exp.Neg | exp.Add | exp.Sub | exp.Mul | exp.Paren):
        around = around.parent
    return around is None or (isinstance(around, exp.Cast) and around.to.this in exp.DataType.INTEGER_TYPES)


def _told(side: exp.Expression, value: Callable[[exp.Expression], str | None]) -> int | None:
    text = value(side)
    if text is not None and not _WRITTEN.fullmatch(text):
        raise NotComputable("arithmetic with a value that is not a whole number as Spark writes it")
    return None if text is None else int(text)


def uncut(whole: str | None, size: int) -> str | None:
    """A text in a type with room for so many letters, or bytes.

    Raises:
        NotComputable: it has no room: engines cut it, refuse it, or write `*`.
    """
    if whole is not None and len(whole.encode()) > size:
        raise NotComputable("a cast of a text to a type that has no room for it")
    return whole


def unpadded(whole: str | None, size: int) -> str | None:
    """A text in a type of exactly so many letters.

    Raises:
        NotComputable: it has more, or fewer: engines add blanks.
    """
    if whole is not None and not len(whole) == len(whole.encode()) == size:
        raise NotComputable("a cast of a text to a type of CHAR of another length")
    return whole
