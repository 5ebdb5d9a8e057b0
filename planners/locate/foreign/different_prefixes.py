"""Expressions that never give the same text: `'u-' || id` and `'s-' || id`, or `id || '-u'` and `id || '-s'`."""

from __future__ import annotations

from sqlglot import exp

from planners.locate.sql.spark_functions import parse
from planners.locate.sql.whole_numbers import NotComputable

_DIGESTS = (exp.MD5, exp.SHA, exp.SHA2)


def never_equal(one: str, other: str) -> bool:
    """Whether no two values have the same result: the texts begin or end differently, also inside the same digest."""
    try:
        left, right = parse(one), parse(other)
    except NotComputable:
        return False
    while isinstance(left, _DIGESTS) and type(left) is type(right) and _length(left) == _length(right):
        left, right = left.this, right.this
    one, other = _ends(left, 0), _ends(right, 0)
    if one and other and not one.startswith(other) and not other.startswith(one):
        return True
    one, other = _ends(left, -1), _ends(right, -1)
    return bool(one and other) and not one.endswith(other) and not other.endswith(one)


def _length(digest: exp.Expression) -> object:
    return digest.args.get("length")


def _ends(node: exp.Expression, side: int) -> str:
    """The constant text that a text begins with (0), or ends with (-1), in one case; empty where it has none."""
    while isinstance(node, exp.Paren | exp.Concat | exp.DPipe):
        parts = node.expressions if isinstance(node, exp.Concat) else list(node.iter_expressions())
        node = parts[side]
    return str(node.this).casefold() if isinstance(node, exp.Literal) and node.is_string else ""
