"""Rows in a form that Spark compares as a whole: it refuses to compare maps, whose entries have no order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from executors.engine.sql_names import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def comparable(rows: DataFrame) -> DataFrame:
    """The rows, with each map, wherever it stands, as its entries in order."""
    fields = rows.schema.fields
    if not any(_holds_map(field.dataType) for field in fields):
        return rows
    return rows.select(*[_plain(rows[quote(field.name)], field.dataType).alias(field.name) for field in fields])


def _holds_map(kind: Any) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        return any(_holds_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType) or (isinstance(kind, ArrayType) and _holds_map(kind.elementType))


def _plain(value: Column, kind: Any) -> Column:
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, MapType

    if not _holds_map(kind):
        return value
    if isinstance(kind, ArrayType):
        return f.transform(value, lambda item: _plain(item, kind.elementType))
    if not isinstance(kind, MapType):
        inside = [_plain(value.getField(field.name), field.dataType).alias(field.name) for field in kind.fields]
        return f.when(value.isNotNull(), f.struct(*inside))

    def entry(item: Column) -> Column:
        key, held = item.getField("key"), item.getField("value")
        return f.struct(_plain(key, kind.keyType).alias("key"), _plain(held, kind.valueType).alias("value"))

    return f.sort_array(f.transform(f.map_entries(value), entry))
