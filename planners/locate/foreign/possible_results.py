"""What a recorded expression may give for a value of somebody else, where engines differ.

A person's value that does not fit into a type is refused. Somebody else's may have become the person's there: `123` is
`12` in a VARCHAR(2) of some engines, and 4294967297 is 1 in an INT of others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import cast

from sqlglot import exp

from planners.locate.sql.spark_functions import TEXTS, compiled, is_sized, parse
from planners.locate.sql.whole_numbers import NotComputable

_WAYS = 8
"""At most so many numbers may stand for a text: of three roundings, and wrapped around or clamped."""
_NUMBERS = (exp.DataType.Type.BIGINT, exp.DataType.Type.INT, exp.DataType.Type.DECIMAL)


def possible(expression: str) -> Callable[[str], frozenset[str]]:
    """All that engines may give for a value: one text where it is certain; none for NULL, or where nobody knows.

    Raises:
        NotComputable: it does not parse.
    """
    sure = compiled(expression)

    @lru_cache(maxsize=1)
    def ways() -> tuple[Callable[[str], str | None], ...]:
        tree = parse(expression)
        texts = dict.fromkeys(tree.transform(_one_way, way).sql(dialect="spark") for way in range(_WAYS))
        return tuple(compiled(text) for text in texts if text != tree.sql(dialect="spark"))

    def results(value: str) -> frozenset[str]:
        made = _tried(sure, value)  # NULL of a text that begins with a number is that number in MySQL
        return frozenset((made,)) if made else frozenset(r for way in ways() if (r := _tried(way, value)))

    return results


def is_cut(expression: str) -> bool:
    """Whether a cast in it may make the same of several texts, by its size."""
    return any(map(is_sized, parse(expression).walk()))


def essence(expression: str) -> str:
    """The part of an expression that decides which values become equal: without one-to-one functions around it.

    Nobody knows two texts with one SHA-2 (FIPS 180-4), which is not so for MD5 and SHA-1. A cast to text changes none.
    """
    node = parse(expression)
    while True:
        text_cast = isinstance(node, exp.Cast) and node.to.this in TEXTS and not node.to.expressions
        if not text_cast and not isinstance(node, exp.SHA2 | exp.Paren):
            return node.sql(dialect="spark")
        node = node.this


def _one_way(node: exp.Expression, way: int) -> exp.Expression:
    if is_sized(node):
        return cast("exp.Expression", node.expressions[0] if way % 2 else node.expressions[0].this)
    if isinstance(node, exp.Cast) and node.to.this in _NUMBERS:
        kind = exp.Literal.string(node.to.sql(dialect="spark").lower())
        made = node.this.transform(_one_way, way)
        return exp.Anonymous(this="one_number", expressions=[made, kind, exp.Literal.number(way)])
    return node


def _tried(way: Callable[[str], str | None], value: str) -> str | None:
    try:
        return way(value)
    except NotComputable:
        return None
