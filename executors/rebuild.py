"""Writing a derived table again from its erased source, through the statement that lineage recorded."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from executors.context import ExecutionContext
from executors.spark import quote
from pii_tracer.errors import RunError

_MODE = "spark.sql.sources.partitionOverwriteMode"


def query_of(sql: str) -> str:
    """The query inside a recorded CREATE TABLE AS or INSERT statement, as Spark SQL, its CTEs included.

    Raises:
        RunError: it does not parse, holds no query or several statements, or writes one partition only, so that
            overwriting the table with it would lose the others.
    """
    try:
        trees = [tree for tree in sqlglot.parse(sql, dialect="spark") if tree is not None]
    except SqlglotError:
        trees = []
    tree = trees[0] if len(trees) == 1 else None
    query = tree.args.get("expression") if isinstance(tree, exp.Insert | exp.Create) else tree
    if isinstance(query, exp.Subquery):
        query = query.unnest()
    if isinstance(tree, exp.Insert) and tree.args.get("partition"):
        query = None
    if not isinstance(query, exp.Query):
        raise RunError("the recorded statement holds no query to rebuild from", todo="rebuild the table by its job")
    ctes = None if tree is query or tree is None else tree.args.get("with_")
    if ctes is not None:
        query.set("with_", ctes)
    text = str(query.sql(dialect="spark"))
    if isinstance(tree, exp.Insert) and isinstance(tree.this, exp.Schema):
        names = ", ".join(quote(column.name) for column in tree.this.expressions)
        text = f"SELECT * FROM ({text}) AS named({names})"
    return text


def overwrite(ctx: ExecutionContext, table: str, sql: str) -> dict[str, Any]:
    """Overwrite a table (a quoted name) with what its recorded query gives now.

    Raises:
        RunError: the query's columns are not the table's.
    """
    query = query_of(sql)
    _same_columns(ctx, table, query)
    before = ctx.spark.table(table).count()
    mode = ctx.spark.conf.get(_MODE, "static")
    # in dynamic mode, partitions that the query no longer makes would stay, and the person with them
    ctx.spark.conf.set(_MODE, "static")
    try:
        ctx.spark.sql(f"INSERT OVERWRITE {table} SELECT * FROM ({query})")
    finally:
        ctx.spark.conf.set(_MODE, str(mode))
    return {"rows_before": before, "rows_after": ctx.spark.table(table).count()}


def _same_columns(ctx: ExecutionContext, table: str, query: str) -> None:
    have = [name.lower() for name in ctx.spark.table(table).columns if not name.startswith("_hoodie_")]
    made = [name.lower() for name in ctx.spark.sql(query).columns]
    if have != made:
        raise RunError(
            f"the recorded query gives the columns {', '.join(made)}, the table has {', '.join(have)}",
            where=table,
            todo="harvest the job's newest statement, then plan again",
        )


def difference(ctx: ExecutionContext, table: str, sql: str) -> list[str]:
    """How the table differs from its recorded query, both ways, as findings."""
    made = ctx.spark.sql(query_of(sql))
    have = ctx.spark.table(table)
    have = have.select(*[c for c in have.columns if not c.startswith("_hoodie_")])
    typed = made.select(
        *[made[a].cast(have.schema[b].dataType).alias(b) for a, b in zip(made.columns, have.columns, strict=True)]
    )
    extra, missing = have.exceptAll(typed).count(), typed.exceptAll(have).count()
    return [f"{extra} rows too many and {missing} missing against the recorded query"] if extra or missing else []
