"""Parsed statements in the form that rules read: names that the parser leaves in pieces, or in one."""

from __future__ import annotations

import re

from sqlglot import exp

_DECORATOR = re.compile(r"(?P<table>.+)\$(?:\d{4,10}|__NULL__|__UNPARTITIONED__)")


def plain(node: exp.Expression, dialect: str) -> exp.Expression:
    """The same statement, changed in place."""
    for part in list(node.find_all(exp.Dot, exp.Table)):
        if isinstance(part, exp.Dot):
            if not names_table(part):
                _column(part)
        elif dialect == "bigquery" and isinstance(part.this, exp.Identifier):
            # https://cloud.google.com/bigquery/docs/partitioned-tables: a partition of the table
            found = _DECORATOR.fullmatch(part.name)
            if found:
                part.this.set("this", found["table"])
    return node


def names_table(dot: exp.Dot) -> bool:
    """Whether a dotted name is a table's that has many parts."""
    outer: object = dot
    while isinstance(outer, exp.Dot):
        outer = outer.parent
    return isinstance(outer, exp.Table)


def _column(dot: exp.Dot) -> None:
    """`n.c.value(…)`: the name before a method is a column."""
    if not isinstance(dot.this, exp.Identifier) or not isinstance(dot.expression, exp.Identifier):
        if isinstance(dot.this, exp.Identifier) and not isinstance(dot.parent, exp.Dot):
            dot.set("this", exp.Column(this=dot.this.copy()))
        return
    dot.replace(exp.Column(this=dot.expression.copy(), table=dot.this.copy()))
