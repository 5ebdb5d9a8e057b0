"""Which values a query gives in every row: MySQL and others count a number of their own where NULL or 0 is written.

What is not known to give a value may be NULL. Columns of tables count as filled here; whether statements leave them
empty is asked where all statements are known (`filled_by_tables`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from pii_tracer.lineage.sql.relations import Alt
from pii_tracer.lineage.sql.scopes import Source

_LEFT_AS_IT_IS = (exp.Paren, exp.Alias, exp.Max, exp.Min, exp.AnyValue)
_NUMBERS = (*exp.DataType.INTEGER_TYPES, *exp.DataType.NUMERIC_TYPES, *exp.DataType.TEXT_TYPES)
_FAR_FROM_0 = re.compile(r"-?0*[1-9]\d*(\.\d*)?")
"""A constant, text or number, that no column makes 0 of: '', 'x' and 0.4 become 0 in MySQL, '' is NULL in Oracle."""
_SUBTOTALS = (exp.GroupingSets, exp.Cube, exp.Rollup)


def has_value(node: exp.Expression, chosen: Mapping[int, Alt]) -> bool:
    """Whether an expression gives a value that is neither NULL nor 0. chosen: what the columns in it stand for."""
    alt = chosen.get(id(node))
    if alt is not None:  # a query in the place of a value may have no row
        return alt.sure and not isinstance(node, exp.Subquery | exp.Query)
    if isinstance(node, exp.Literal):
        return _FAR_FROM_0.fullmatch(node.name) is not None
    if isinstance(node, exp.Neg):
        return has_value(node.this, chosen)
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        cut = node.to.this in exp.DataType.TEXT_TYPES and bool(node.to.expressions)  # '01' may become '0'
        return node.to.this in _NUMBERS and not cut and has_value(node.this, chosen)
    if isinstance(node, exp.AggFunc) and not _in_group(node):
        return False
    if isinstance(node, _LEFT_AS_IT_IS):
        return not node.expressions and has_value(node.this, chosen)
    if isinstance(node, exp.Coalesce):
        values = [node.this, *node.expressions]
        plain = all(isinstance(value, exp.Column) or has_value(value, chosen) for value in values)
        return plain and any(has_value(value, chosen) for value in values)
    if isinstance(node, exp.Case | exp.If):
        branches = [*(one.args["true"] for one in node.args.get("ifs") or ()), node.args.get("true")]
        branches = [one for one in branches if one is not None]
        other = node.args.get("default") or node.args.get("false")
        return other is not None and all(has_value(branch, chosen) for branch in (*branches, other))
    return False


def _in_group(node: exp.Expression) -> bool:
    """Whether an aggregate is one of a group, which has a row at least; not of a window, nor of some of the rows."""
    if isinstance(node.parent, exp.Window | exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        return False
    select = node.find_ancestor(exp.Select)
    group = select.args.get("group") if select is not None else None
    return group is not None and bool(group.expressions)


def makes_nulls(node: exp.Select) -> bool:
    """Whether a query has rows with NULL in columns that have values: subtotals, and Oracle's joins by `(+)`."""
    group = node.args.get("group")
    if group is not None:
        if any(group.args.get(kind) for kind in ("grouping_sets", "cube", "rollup", "totals")):
            return True
        if any(isinstance(key, _SUBTOTALS) for key in group.expressions):
            return True
    where = node.args.get("where")
    return where is not None and any(column.args.get("join_mark") for column in where.find_all(exp.Column))


def padded(join: exp.Expression, left: Sequence[Source], right: Sequence[Source]) -> None:
    """Mark the sides of a join that may have no row for one of the other side."""
    side, method = (str(join.args.get(key) or "").upper() for key in ("side", "method"))
    item = join.this if isinstance(join, exp.Join) else join
    strange = method not in ("", "NATURAL", "ASOF", "HASH", "LOOP", "MERGE")
    outer = isinstance(item, exp.Lateral) and (item.args.get("cross_apply") is False or bool(item.args.get("outer")))
    for source in left if side in ("RIGHT", "FULL") or strange else ():
        source.relation = source.relation.or_none()
    for source in right if side in ("LEFT", "FULL") or strange or outer else ():
        source.relation = source.relation.or_none()
