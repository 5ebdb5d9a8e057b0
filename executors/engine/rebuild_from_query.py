"""Writing a derived table again from its erased source, through the statement that lineage recorded."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from executors.context import ExecutionContext
from executors.engine.comparable_rows import comparable
from executors.engine.sql_names import quote
from executors.engine.table_registration import left_out
from executors.formats.registry import spark_supports
from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lineage.sql.text.script_splitting import prepared
from pii_tracer.model.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MODE = "spark.sql.sources.partitionOverwriteMode"


def query_of(sql: str) -> str:
    """The query inside a recorded CREATE TABLE AS or INSERT statement, as Spark SQL, its CTEs included.

    Raises:
        RunError: it does not parse, holds no query or several statements, or writes one partition only, so that
            overwriting the table with it would lose the others.
    """
    try:
        trees = [tree for tree in sqlglot.parse(prepared(sql), dialect="spark") if tree is not None]
    except SqlglotError:
        trees = []
    tree = trees[0] if len(trees) == 1 else None
    query = tree.args.get("expression") if isinstance(tree, exp.Insert | exp.Create) else tree
    if isinstance(query, exp.Subquery):
        query = query.unnest()
    if isinstance(tree, exp.Insert) and (tree.find(exp.Partition) or tree.args.get("where")):
        query = None
    if not isinstance(query, exp.Query):
        raise RunError("the recorded statement contains no query for a rebuild", todo="rebuild the table by its job")
    ctes = None if tree is query or tree is None else tree.args.get("with_")
    if ctes is not None:
        query.set("with_", ctes)
    text = str(query.sql(dialect="spark"))
    if isinstance(tree, exp.Insert) and isinstance(tree.this, exp.Schema):
        names = ", ".join(quote(column.name) for column in tree.this.expressions)
        text = f"SELECT * FROM ({text}) AS named({names})"
    return text


def answer(ctx: ExecutionContext, sql: str) -> DataFrame:
    """What a recorded statement's query gives now.

    Raises:
        RunError: as `query_of`, or it reads a declared table that Spark cannot read.
    """
    spark, query = ctx.spark, query_of(sql)
    for table in sqlglot.parse_one(query, dialect="spark").find_all(exp.Table):
        name = ".".join(part.name for part in table.parts).removeprefix("spark_catalog.")
        why = left_out(spark, name)
        if why is not None:
            raise RunError(
                f"the recorded statement reads {name}, which Spark cannot read here ({why})",
                todo=(
                    "add the reader's package to `spark.conf` of the estate file, or rebuild the table by its job, "
                    "and leave the table out of the plan (`--only`)"
                ),
            )
        _list_anew(spark, [part.name for part in table.parts])
    return spark.sql(query)


def _list_anew(spark: SparkSession, parts: list[str]) -> None:
    """Spark keeps what it has listed of a named table of bare files; after an erasure its files are others."""
    if (len(parts) > 2 and parts[0] != "spark_catalog") or "/" in parts[-1]:
        return  # tables of other catalogs list their files themselves, and places (delta.`/lake/t`) are no named tables
    table = ".".join(map(quote, parts))
    if spark.catalog.tableExists(table):
        spark.catalog.refreshTable(table)


def by_position(sql: str) -> bool:
    """Whether a recorded statement fills its table's columns in their order, whatever its query's are called: INSERT
    without a list of columns (https://spark.apache.org/docs/3.5.6/sql-ref-syntax-dml-insert-table.html)."""
    tree = sqlglot.parse_one(prepared(sql), dialect="spark")
    return isinstance(tree, exp.Insert) and not isinstance(tree.this, exp.Schema) and not tree.args.get("by_name")


def overwrite(ctx: ExecutionContext, table: str, sql: str, *, apart: bool = False) -> dict[str, Any]:
    """Overwrite a table (a quoted name) with what its recorded query gives now.

    apart: run the query before the write, not as part of it: a format may refuse to be read in one plan with the write
    of another's table (`SparkSupport.pinned_scans`). Spark Connect 3.5 cannot, and what would need it is refused by
    `refuse_one_plan`.

    Raises:
        RunError: the query's columns are not the table's.
    """
    spark = ctx.spark  # asked for once: a session that is asked for again takes on the estate's settings again
    have, made = both(ctx, table, sql)
    before = rows_in(have)
    mode = spark.conf.get(_MODE, "static")
    view = f"pii_rebuild_{secrets.token_hex(6)}"
    (made.localCheckpoint() if apart and ctx.estate.spark.remote is None else made).createTempView(view)
    # in dynamic mode, partitions that the query no longer makes would stay, and the person with them
    spark.conf.set(_MODE, "static")
    try:
        spark.sql(f"INSERT OVERWRITE {table} SELECT * FROM {view}")
    finally:
        spark.catalog.dropTempView(view)
        spark.conf.set(_MODE, str(mode))
    return {"rows_before": before, "rows_after": rows_in(spark.table(table))}


def refuse_one_plan(ctx: ExecutionContext, sql: str, into: str) -> None:
    """Over Spark Connect, a recorded query cannot be run apart from the write of a table of another format.

    into: what is written, for people.

    Raises:
        RunError: this one reads a format that refuses to be read in one plan with that write.
    """
    if ctx.estate.spark.remote is None:
        return
    plan = ctx.spark.sql(f"EXPLAIN {query_of(sql)}").first()
    pinned = [support for support in spark_supports() if support.pinned_scans]
    read = pinned if plan is None else [s for s in pinned if any(scan in str(plan[0]) for scan in s.pinned_scans)]
    if read:
        titles = ", ".join(sorted(format_of(kind).title for support in read for kind in support.formats))
        raise RunError(
            f"its recorded statement reads {titles}, which Spark Connect cannot write into {into}",
            todo="remove `remote` from the estate file, set a `master`, then plan again",
        )


def both(ctx: ExecutionContext, table: str, sql: str) -> tuple[DataFrame, DataFrame]:
    """A table (a quoted name) and what its recorded query gives now.

    Raises:
        RunError: the query's columns are not the table's.
    """
    have, query = ctx.spark.table(table), answer(ctx, sql)
    columns = _own(have)
    names, made = [name.lower() for name in columns], [name.lower() for name in query.columns]
    if len(names) == len(made) and sorted(names) != sorted(made) and by_position(sql):
        return have, query.toDF(*columns)
    if names != made:
        raise RunError(
            f"the recorded query returns the columns {', '.join(made)}, but the table has {', '.join(names)}",
            where=table,
            todo="harvest the job's newest statement, then plan again",
        )
    return have, query


def _own(table: DataFrame) -> list[str]:
    """A table's columns without those that its engine keeps in it."""
    engines = tuple(start for support in spark_supports() for start in support.own_columns)
    return [name for name in table.columns if not name.startswith(engines)]


def difference(ctx: ExecutionContext, table: str, sql: str) -> list[str]:
    """How the table differs from its recorded query, both ways, as findings."""
    have, made = both(ctx, table, sql)
    return differences(made, have)


def rows_in(frame: DataFrame) -> int:
    """How many; Spark Connect answers with a number of NumPy's, which no journal takes."""
    return int(frame.count())


def differences(made: DataFrame, have: DataFrame) -> list[str]:
    """How rows that are there differ from rows as a query makes them, both ways, as findings."""
    extra, missing = (rows_in(rows) for rows in unlike(made, have))
    return (
        [f"{counted(extra, 'row')} too many, and {missing} missing, compared with the recorded query"]
        if extra or missing
        else []
    )


def unlike(made: DataFrame, have: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Rows that are there and a query does not make, and the other way; columns are matched by name.

    Maps come as their entries in order (`comparable`).
    """
    have = have.select(*[quote(name) for name in _own(have)])
    typed = made.select(*[made[quote(f.name)].cast(f.dataType).alias(f.name) for f in have.schema.fields])
    have, typed = comparable(have), comparable(typed)
    return have.exceptAll(typed), typed.exceptAll(have)
