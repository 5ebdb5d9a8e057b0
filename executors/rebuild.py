"""Writing a derived table again from its erased source, through the statement that lineage recorded."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from executors.context import ExecutionContext
from pii_tracer.errors import RunError


def query_of(sql: str) -> str:
    """The query inside a recorded CREATE TABLE AS or INSERT statement, as Spark SQL.

    Raises:
        RunError: it does not parse, or holds no query.
    """
    try:
        tree = sqlglot.parse_one(sql, dialect="spark")
    except SqlglotError:
        tree = None
    query = tree.args.get("expression") if isinstance(tree, exp.Insert | exp.Create) else tree
    if not isinstance(query, exp.Query):
        raise RunError("the recorded statement holds no query to rebuild from", todo="rebuild the table by its job")
    return str(query.sql(dialect="spark"))


def overwrite(ctx: ExecutionContext, table: str, sql: str) -> dict[str, Any]:
    """Overwrite a table (a quoted name) with what its recorded query gives now.

    Raises:
        RunError: the query's columns are not the table's.
    """
    query = query_of(sql)
    _same_columns(ctx, table, query)
    before = ctx.spark.table(table).count()
    ctx.spark.sql(f"INSERT OVERWRITE {table} {query}")
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
