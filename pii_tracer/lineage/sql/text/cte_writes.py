"""Writes inside WITH clauses (PostgreSQL) as statements of their own.

https://www.postgresql.org/docs/current/queries-with.html#QUERIES-WITH-MODIFYING
"""

from __future__ import annotations

from typing import cast

from sqlglot import exp

_WRITES = (exp.Insert, exp.Update, exp.Delete, exp.Merge)


def hoisted(node: exp.Expression) -> list[exp.Expression]:
    """The writes of the WITH clause, in order, and the statement itself, which reads what they return as a query."""
    clause = node.args.get("with_")
    if clause is None or not any(isinstance(cte.this, _WRITES) for cte in clause.expressions):
        return [node]
    result: list[exp.Expression] = []
    before: list[exp.Expression] = []
    for cte in clause.expressions:
        if isinstance(cte.this, _WRITES):
            write = cast(exp.Expression, cte.this.copy())
            if before:
                write.set("with_", exp.With(expressions=[c.copy() for c in before]))
            result.append(write)
            cte.set("this", _returned(cte.this))
        before.append(cte)
    return [*result, node]


def _returned(write: exp.Expression) -> exp.Select:
    """What a write returns: rows of its table, as they are after it (of a DELETE, as they were before)."""
    clause = write.args.get("returning")
    table = write.this.this if isinstance(write.this, exp.Schema) else write.this
    items = [e.copy() for e in clause.expressions] if clause is not None else [exp.Null()]
    query = exp.Select(expressions=items).from_(table.copy())
    for other in [*(write.args.get("using") or []), *_from(write)]:
        query = query.join(other.copy(), join_type="cross")
    where = write.args.get("where")
    return query.where(where.this.copy()) if where is not None else query


def _from(write: exp.Expression) -> list[exp.Expression]:
    clause = write.args.get("from_")
    return [clause.this] if clause is not None else []
