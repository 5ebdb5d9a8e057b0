"""Sets the retention of live tables: properties through Spark SQL, branches and tags as their format does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from executors.engine.sql_names import quote_table, string_literal
from executors.formats.registry import support_of
from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import RunError
from pii_tracer.retention.setting_changes import Change

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def set_retention(
    spark: SparkSession, changes: Sequence[Change], sql_names: dict[str, str | None], say: Callable[[str], None]
) -> tuple[tuple[Change, str], ...]:
    """Make the changes, table by table; returns those that the engine refused, with the kind of its error.

    sql_names: the table's name in Spark by location, None for tables that only have a path.

    Raises:
        RunError: a table that needs a name has none in a catalog, or the session cannot set what branches and tags
            keep.
    """
    _refuse_refs(spark, changes)
    refused: list[tuple[Change, str]] = []
    for location, group in groupby(sorted(changes, key=lambda c: c.location), key=lambda c: c.location):
        mine = list(group)
        name = sql_names.get(location)
        say(f"setting {counted(len(mine), 'value')} of {mine[0].table}")
        properties = [c for c in mine if c.ref is None]
        if properties:
            pairs = ", ".join(f"{string_literal(c.setting)} = {string_literal(c.new)}" for c in properties)
            statement = f"ALTER TABLE {_sql_name(mine[0], name)} SET TBLPROPERTIES ({pairs})"
            refused += _tried(properties, partial(spark.sql, statement))
        for change in (c for c in mine if c.ref is not None):
            refused += _tried([change], partial(_set_ref, spark, change, name))
    return tuple(refused)


def _refuse_refs(spark: SparkSession, changes: Sequence[Change]) -> None:
    from pyspark.sql import SparkSession as Classic

    refs = sorted({change.table for change in changes if change.ref is not None})
    if refs and not isinstance(spark, Classic):
        raise RunError(
            "retention of branches and tags cannot be set over Spark Connect; no setting was changed",
            where=", ".join(refs),
            todo="remove `remote` from the estate file, and set a `master`",
        )


def _tried(changes: Sequence[Change], act: Callable[[], Any]) -> list[tuple[Change, str]]:
    try:
        act()
    except RunError:
        raise
    except Exception as error:  # engines refuse in many classes, and their words can be long and quote data
        return [(change, type(error).__name__) for change in changes]
    return []


def _sql_name(change: Change, name: str | None) -> str:
    support = support_of(change.format)
    called = (quote_table(name) if name else None) if support is None else support.sql_name(name, change.location)
    if called is not None:
        return called
    raise RunError(
        "no catalog of the estate file has a name for this table",
        where=change.location,
        todo="declare the table in the estate file",
    )


def _set_ref(spark: SparkSession, change: Change, name: str | None) -> None:
    """Set one field of a reference."""
    assert change.ref is not None
    support = support_of(change.format)
    if not name or support is None:
        raise RunError(
            "no catalog of the estate file has a name for this table",
            where=change.location,
            todo="declare the table in the estate file",
        )
    support.set_reference(spark, name, change.ref.name, change.ref.field, int(change.new))
