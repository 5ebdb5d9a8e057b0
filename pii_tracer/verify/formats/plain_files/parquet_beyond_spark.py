"""Parquet folders with types that Spark refuses to read: nanoseconds (the default of pandas), UUIDs, times of a day, …

Arrow decodes them in Spark's workers. Columns keep what tells rows apart: what Spark has no type for is text, which is
the same before and after; a UUID is written as the standard writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.rows.spark_frames import Place, frame_of_files
from pii_tracer.model.errors import ScanError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

_Turn = Callable[[Any], Any]
_Kind = tuple["DataType", "pa.DataType", _Turn]
"""Spark's type, the Arrow type that is decoded to, and what becomes of a decoded value."""


_REFUSED = frozenset({"UUID", "TIME", "FLOAT16", "INTERVAL", "UNKNOWN", "NULL", "VARIANT"})
"""https://github.com/apache/spark/blob/v3.5.3/sql/core/src/main/scala/org/apache/spark/sql/execution/datasources/parquet/
ParquetSchemaConverter.scala: all else is an `Illegal Parquet type`."""

_MOST_DIGITS = 38
_ROWS = 4096


_NUMBERS = frozenset({"INT32", "INT64", "FLOAT", "DOUBLE"})
_CODEC = "BROTLI"
"""Spark knows its name, and has no library for it."""


def beyond_spark(files: list[Path]) -> bool:
    """Whether a file has a type or codec that Spark refuses, or numbers that another file has in another width.

    Days in which nobody lacks a number are whole numbers for pandas, the others floating ones; Spark merges no two
    such schemas. Encrypted files count as read: Spark has the keys.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    widths: dict[str, set[str]] = {}
    for path in files:
        try:
            with pq.ParquetFile(path) as file:
                if _refused(file):
                    return True
                for name, width in _numbers(file):
                    widths.setdefault(name, set()).add(width)
        except (pa.ArrowException, OSError):
            continue
    return any(len(met) > 1 for met in widths.values())


def _refused(file: pq.ParquetFile) -> bool:
    meta = file.metadata
    if any(_is_refused(file.schema.column(index)) for index in range(len(file.schema))):
        return True
    groups = (meta.row_group(index) for index in range(meta.num_row_groups))
    return any(group.column(index).compression == _CODEC for group in groups for index in range(group.num_columns))


def _numbers(file: pq.ParquetFile) -> Iterator[tuple[str, str]]:
    """Columns of plain numbers by their paths, and their types."""
    for column in (file.schema.column(index) for index in range(len(file.schema))):
        if column.physical_type in _NUMBERS and column.logical_type.type in ("NONE", "INT"):
            whole = {"INT32": (32, True), "INT64": (64, True)}.get(column.physical_type)
            told = json.loads(column.logical_type.to_json()) if column.logical_type.type == "INT" else {}
            width = (told["bitWidth"], told["isSigned"]) if told else whole  # some writers note what is so anyway
            yield column.path.lower(), f"{column.physical_type} {width}"


def _is_refused(column: Any) -> bool:
    kind = column.logical_type
    if kind.type == "DECIMAL":
        return int(column.precision) > _MOST_DIGITS
    return kind.type in _REFUSED or (kind.type == "TIMESTAMP" and "nanoseconds" in str(kind))


def parquet_frame(spark: SparkSession, folder: Path, files: list[Path]) -> DataFrame:
    """The rows of Parquet files (at least one), with their partition folders as text columns.

    Raises:
        ScanError: a type that is not read.
    """
    import pyarrow.parquet as pq
    from pyspark.sql.types import StructField

    def fields(path: Path, without: Collection[str]) -> list[StructField]:
        own = (field for field in pq.read_schema(path) if field.name not in without)
        return [StructField(field.name, _kind(field.type)[0]) for field in own]

    return frame_of_files(spark, folder, files, fields, rows)


def rows(place: Place) -> Iterator[tuple[Any, ...]]:
    """The rows of one file as tuples for Spark. Runs in a worker."""
    import pyarrow.parquet as pq

    path, parts, names = place
    with pq.ParquetFile(path) as file:
        kinds = [_kind(file.schema_arrow.field(name).type) for name in names]
        for batch in file.iter_batches(_ROWS, columns=list(names)):
            columns = [batch.column(name).cast(kind[1]).to_pylist() for name, kind in zip(names, kinds, strict=True)]
            for index in range(batch.num_rows):
                yield (*(kind[2](column[index]) for column, kind in zip(columns, kinds, strict=True)), *parts)


def _kind(kind: pa.DataType) -> _Kind:
    import pyarrow as pa
    from pyspark.sql import types as t

    is_ = pa.types
    if is_.is_dictionary(kind):
        return _kind(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType) and kind != pa.uuid():
        return _kind(kind.storage_type)
    if is_.is_struct(kind):
        inner = [(field, _kind(field.type)) for field in kind]
        struct = t.StructType([t.StructField(field.name, one[0]) for field, one in inner])
        names, turns = [field.name for field, _ in inner], [one[2] for _, one in inner]
        target = pa.struct([field.with_type(one[1]) for field, one in inner])
        return struct, target, _maybe(lambda v: tuple(turn(v[name]) for name, turn in zip(names, turns, strict=True)))
    if is_.is_map(kind):
        key, value = _kind(kind.key_type), _kind(kind.item_type)
        target = pa.map_(key[1], value[1])
        return t.MapType(key[0], value[0]), target, _maybe(lambda v: {key[2](k): value[2](i) for k, i in v})
    if is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind):
        one = _kind(kind.value_type)
        target = pa.list_(kind.value_field.with_type(one[1]))
        return t.ArrayType(one[0]), target, _maybe(lambda v: [one[2](item) for item in v])
    return _leaf(kind)


def _leaf(kind: pa.DataType) -> _Kind:
    import pyarrow as pa
    from pyspark.sql import types as t

    is_ = pa.types
    if is_.is_boolean(kind):
        return t.BooleanType(), kind, _maybe(bool)
    if is_.is_integer(kind) and kind != pa.uint64():
        return t.LongType(), pa.int64(), _maybe(int)
    if is_.is_floating(kind):
        return (t.DoubleType() if kind == pa.float64() else t.FloatType()), kind, _maybe(float)
    if is_.is_decimal(kind) and kind.precision <= _MOST_DIGITS:
        return t.DecimalType(kind.precision, kind.scale), kind, _maybe(Decimal)
    if any(test(kind) for test in (is_.is_binary, is_.is_large_binary, is_.is_fixed_size_binary, is_.is_binary_view)):
        return t.BinaryType(), kind, _maybe(bytearray)
    # instants, times and lengths of time as the number that is stored: it says all that the file says
    if is_.is_timestamp(kind) or is_.is_time64(kind) or is_.is_duration(kind):
        return t.StringType(), pa.int64(), _maybe(str)
    if is_.is_time32(kind):
        return t.StringType(), pa.int32(), _maybe(str)
    if any(test(kind) for test in (is_.is_string, is_.is_large_string, is_.is_string_view, is_.is_null)):
        return t.StringType(), pa.string(), _maybe(str)
    if is_.is_date(kind) or is_.is_decimal(kind) or kind in (pa.uint64(), pa.uuid()):
        return t.StringType(), kind, _maybe(str)
    raise ScanError(
        "a Parquet file has an unsupported column type", where=str(kind), todo="let the folder's job rewrite it"
    )


def _maybe(turn: _Turn) -> _Turn:
    return lambda value: None if value is None else turn(value)
