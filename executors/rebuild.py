"""The query of a recorded job's statement, as a frame that fits the table it rebuilds."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from executors.base import Target
from executors.spark import quote
from pii_tracer.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlglot import exp


def recorded_query(sql: str) -> tuple[str, tuple[str, ...] | None]:
    """(query, target columns or None) of one INSERT, CREATE TABLE AS or SELECT statement in Spark SQL.

    Raises:
        RunError: it does not parse, holds several statements, or has no query (MERGE, UPDATE, VALUES).
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        statements = [s for s in sqlglot.parse(sql, dialect="spark") if s is not None]
    except SqlglotError:
        raise RunError("the recorded statement does not parse", todo="plan the copy's erasure by key") from None
    statement = statements[0] if len(statements) == 1 else None
    query: exp.Expression | None = None
    columns: tuple[str, ...] | None = None
    if isinstance(statement, exp.Query):
        query = statement
    elif isinstance(statement, exp.Insert | exp.Create):
        query = cast("exp.Expression | None", statement.expression)
        query = query.unnest() if isinstance(query, exp.Subquery) else query
        if isinstance(query, exp.Query) and statement.args.get("with_"):
            query.set("with_", statement.args["with_"])
        schema = statement.this
        if isinstance(statement, exp.Insert) and isinstance(schema, exp.Schema):
            columns = tuple(column.name for column in schema.expressions)
        if isinstance(statement, exp.Insert) and statement.args.get("partition"):
            query = None  # one partition of the table: overwriting all of it would lose the others
    if not isinstance(query, exp.Query):
        raise RunError(
            "the recorded statement is not one whole-table query, so the table cannot be rebuilt from it",
            todo="plan the copy's erasure by key",
        )
    return query.sql(dialect="spark"), columns


def query_frame(at: Target, columns: list[str]) -> DataFrame:
    """The recorded job's result with the table's columns in the table's order.

    A statement's result is positional for INSERT, as Spark writes it; nothing is dropped or filled in.

    Raises:
        RunError: no statement, or its columns are not the table's.
    """
    sql = at.parameter("sql")
    if not sql:
        raise RunError(f"step {at.step.id} rebuilds and has no recorded statement", todo="plan again")
    query, named = recorded_query(str(sql))
    frame = at.sql(query)
    lower = [column.lower() for column in columns]
    names = [name.lower() for name in named] if named else [name.lower() for name in frame.columns]
    if sorted(names) != sorted(lower):
        raise RunError(
            f"the recorded statement makes {len(names)} column(s) that are not the table's {len(columns)}",
            where=at.table or at.location,
            todo="the schema changed since the job was recorded: plan again",
        )
    return frame.toDF(*names).select(*(quote(column) for column in columns))
