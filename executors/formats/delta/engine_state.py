"""A Delta table's current version and its number of live files, as the engine reads the log.

The engine's Java interface gives both from its picture of the log, which it brings up to date first. The statements
DESCRIBE HISTORY and DESCRIBE DETAIL say the same; each starts Spark jobs. Spark Connect has the statements alone.
"""

from __future__ import annotations

from typing import Any

from executors.context import ExecutionContext
from executors.formats.table_executor import no_table
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.locations import engine_path


def newest_version(ctx: ExecutionContext, table: str, folder: AnyPlace) -> int:
    """The table's current version. table: quoted; folder: where it lies.

    Raises:
        RunError: there is no table.
    """
    if ctx.estate.spark.remote is None:
        return int(_snapshot(ctx, folder).version())
    return int(_row(ctx, f"DESCRIBE HISTORY {table} LIMIT 1", folder)["version"])


def live_files(ctx: ExecutionContext, table: str, folder: AnyPlace) -> int:
    """How many data files the current version has. Arguments and errors as for `newest_version`."""
    if ctx.estate.spark.remote is None:
        return int(_snapshot(ctx, folder).numOfFiles())
    return int(_row(ctx, f"DESCRIBE DETAIL {table}", folder)["numFiles"])


def delta_log(ctx: ExecutionContext) -> Any:
    """The engine's class `DeltaLog`. Spark Connect has none."""
    return getattr(ctx.spark, "_jvm").org.apache.spark.sql.delta.DeltaLog  # noqa: B009 (not in Spark Connect)


def session_of(ctx: ExecutionContext) -> Any:
    """The engine's own session. Spark Connect has none."""
    return getattr(ctx.spark, "_jsparkSession")  # noqa: B009 (not in Spark Connect)


def _snapshot(ctx: ExecutionContext, folder: AnyPlace) -> Any:
    """The newest one: `forTableWithSnapshot` lists the log again.

    https://github.com/delta-io/delta/blob/v3.3.3/spark/src/main/scala/org/apache/spark/sql/delta/DeltaLog.scala
    """
    found = delta_log(ctx).forTableWithSnapshot(session_of(ctx), engine_path(str(folder)))._2()
    if found.version() < 0:  # the engine reads a folder without a log as a table before its first version
        raise no_table("Delta", folder)
    return found


def _row(ctx: ExecutionContext, statement: str, folder: AnyPlace) -> Any:
    row = ctx.spark.sql(statement).first()
    if row is None:
        raise no_table("Delta", folder)
    return row
