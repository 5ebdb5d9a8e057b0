"""A number for each row, by which the row verifier sums up rows: unlike rows have unlike numbers, whatever is NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_tracer.verify.key_texts import named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

WAY = 2
"""The number of the way in which rows are hashed. That of 1 did not tell which elements and fields in lists, maps and
structs were NULL; rows without these are hashed alike."""


def is_same_way(frame: DataFrame, loose: bool, way: int) -> bool:
    """Whether a frame's rows would have been hashed alike in another way."""
    return way == WAY or loose or not any(_is_nested(field.dataType) for field in frame.schema.fields)


def row_hash(frame: DataFrame, columns: list[str], loose: bool) -> Column:
    """64 bits over all columns and over which of them are NULL (the hash itself steps over NULLs).

    Numbers go in as the widest of their kind: a reference that is written again has the types of today's schema, with
    the same values. loose: over what the row has, by name: a column, or a field of a struct, that only the persons'
    rows had may be gone.
    """
    from pyspark.sql import functions as f

    if loose:
        row = f.to_json(f.struct(*(named(name) for name in columns)), {"ignoreNullFields": "true"})
        return f.xxhash64(row if columns else f.lit("{}"))
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    parts, nulls = [], []
    for name in columns:
        kind, column = _widest(kinds[name]), named(name)
        column = column if kind == kinds[name] else column.cast(kind)
        parts.append(_hash(column, kinds[name]) if _is_nested(kind) else column)
        nulls.append(f.when(column.isNull(), f.lit("1")).otherwise(f.lit("0")))
    return f.xxhash64(*parts, f.concat(*nulls))


def _hash(value: Column, kind: DataType) -> Column:
    """64 bits of a value of some type, which it has but for `_widest`; never NULL.

    Of structs, fields go in by name, so that a field which is NULL may come or go with the schema. Of lists and maps,
    every element counts, NULL or not, in its place.
    """
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        fields = [(field.name, field.dataType, value.getField(_name(n))) for n, field in enumerate(kind.fields)]
        told = [f.when(at.isNotNull(), f.xxhash64(f.lit(name), _hash(at, inner))) for name, inner, at in fields]
        found = f.xxhash64(f.lit("struct"), *told)
    elif isinstance(kind, t.ArrayType):
        items = kind.elementType
        found = f.xxhash64(f.size(value), f.transform(value, lambda item: _hash(item, items)))
    elif isinstance(kind, t.MapType):
        keys, values = kind.keyType, kind.valueType

        def entry(item: Column) -> Column:
            return f.xxhash64(_hash(item.getField("key"), keys), _hash(item.getField("value"), values))

        found = f.xxhash64(f.size(value), f.transform(f.map_entries(value), entry))
    else:
        found = f.xxhash64(value)
    return f.when(value.isNotNull(), found).otherwise(f.lit(0).cast("bigint"))


def _is_nested(kind: DataType) -> bool:
    from pyspark.sql import types as t

    return isinstance(kind, (t.StructType, t.ArrayType, t.MapType))


def _widest(kind: DataType) -> DataType:
    """The type in which every value of one is the same and in which it would be after Iceberg widened it.

    Fields of structs are called by their number: Spark would find two that are told apart by their case alone.
    """
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        fields = enumerate(kind.fields)
        return t.StructType([t.StructField(_name(n), _widest(field.dataType), field.nullable) for n, field in fields])
    if isinstance(kind, t.ArrayType):
        return t.ArrayType(_widest(kind.elementType), kind.containsNull)
    if isinstance(kind, t.MapType):
        return t.MapType(_widest(kind.keyType), _widest(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, t.DecimalType):
        return t.DecimalType(38, kind.scale)
    if isinstance(kind, (t.ByteType, t.ShortType, t.IntegerType)):
        return t.LongType()
    return t.DoubleType() if isinstance(kind, t.FloatType) else kind


def _name(number: int) -> str:
    return f"f{number}"
