"""Statements with several INSERTs: Hive's and Spark's FROM … INSERT … SELECT …, and INSERT ALL and FIRST.

The first has one FROM, and each INSERT a SELECT of its own without one: its columns, its WHERE, its GROUP BY
(https://spark.apache.org/docs/3.5.6/sql-ref-syntax-dml-insert-table.html). The second has one query, and each INSERT
names columns of it (https://docs.snowflake.com/en/sql-reference/sql/insert-multi-table).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from sqlglot import exp


def inserts(node: exp.MultitableInserts) -> Iterator[tuple[exp.Insert, str | None]]:
    """Each INSERT as a statement of its own, and why it may not mean the same, where that is so."""
    source = cast(exp.Expression, node.args["source"])
    before: list[exp.Expression] = []
    for item in node.expressions:
        insert = cast(exp.Insert, (item.this if isinstance(item, exp.ConditionalInsert) else item).copy())
        doubt = None
        if isinstance(item, exp.ConditionalInsert):
            body = _values(insert, source)
            if item.expression is not None:
                before.append(item.expression)
            first = str(node.args.get("kind") or "").upper() == "FIRST"
            decides = before if first or item.args.get("else_") else [item.expression]
            for condition in decides:
                body = body if condition is None else body.where(condition.copy(), copy=False)
            insert.set("expression", body)
        else:
            doubt = _from(insert, source)
        if node.args.get("with_") is not None:
            insert.set("with_", node.args["with_"].copy())
        yield insert, doubt


def _values(insert: exp.Insert, source: exp.Expression) -> exp.Select:
    """The rows of the one query, as VALUES names them; all columns where it does not."""
    body = insert.expression
    values = body.expressions[0].expressions if isinstance(body, exp.Values) else [exp.Star()]
    query = source.copy() if isinstance(source, exp.Subquery) else exp.Subquery(this=source.copy())
    return exp.Select(expressions=values).from_(query, copy=False)


def _from(insert: exp.Insert, source: exp.Expression) -> str | None:
    """Give the INSERT's SELECT the one FROM."""
    body = insert.expression
    if not isinstance(body, exp.Select):
        return "an INSERT after FROM that has no SELECT of its own is not followed"
    if body.args.get("from_") is not None:
        return "an INSERT after FROM has a second FROM, so its reads are not known"
    body.set("from_", exp.From(this=source.copy()))
    return None
