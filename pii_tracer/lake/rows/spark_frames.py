"""Frames that Python code makes on Spark's workers, alike in classic sessions and in those of Spark Connect.

The workers need this package: the functions are sent to them by their names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from pii_tracer.lake.formats.plain_files.data_file import partition_values
from pii_tracer.model.errors import ScanError

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.serializers import Serializer
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

Place = tuple[str, tuple[str | None, ...], tuple[str, ...]]
"""A file, the values of its partition folders, and the columns that are read from it."""

Reader = Callable[[Place], Iterator[tuple[Any, ...]]]
Fields = Callable[["Path", Collection[str]], Sequence["StructField"]]
"""The columns of a file and their types; those of some names, which are of its folders, need not be among them."""
Work = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
_ROWS = 4096


def map_in_arrow(frame: DataFrame, work: Work, schema: StructType) -> DataFrame:
    """`DataFrame.mapInArrow`, in classic sessions without pandas: PySpark demands it, and this path never uses it.

    Spark Connect needs pandas anyway.
    """
    from pyspark.rdd import PythonEvalType
    from pyspark.sql import DataFrame as Classic
    from pyspark.sql.udf import UserDefinedFunction

    if not isinstance(frame, Classic):
        return frame.mapInArrow(work, schema)
    function = UserDefinedFunction(work, returnType=schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = function(*[frame["`" + name.replace("`", "``") + "`"] for name in frame.columns])
    if frame.sparkSession.version.startswith("3."):
        mapped = frame._jdf.pythonMapInArrow(column._jc.expr(), False)
    else:  # a column of Spark 4 has no expression of its own (pyspark/sql/pandas/map_ops.py there)
        mapped = frame._jdf.mapInArrow(column._jc, False, None)
    return Classic(mapped, frame.sparkSession)


def frame_of_rows(spark: SparkSession, rows: Sequence[Sequence[Any]], columns: str) -> DataFrame:
    """Few rows as a frame that no Python worker has to give again at each use: Spark holds them itself.

    `createDataFrame` of Spark 3 sends rows of Python through a worker whenever the frame is computed; with Arrow it
    needs pandas. As there, no plan and no event log shows a value, and the optimizer does not look into the rows: it
    would drop conditions on them, and then no longer prune partitions by what they leave.

    columns: the columns and their types in Spark's words. Times without a zone are of this machine's zone.

    Raises:
        ScanError: a value does not fit its column's type; it is not told.
    """
    from pyspark.sql import DataFrame as Classic
    from pyspark.sql import SparkSession as ClassicSession

    if not isinstance(spark, ClassicSession) or not spark.version.startswith("3."):
        return spark.createDataFrame(list(rows), columns)
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import _parse_datatype_string

    kind = cast("StructType", _parse_datatype_string(columns))
    schema = to_arrow_schema(kind)
    try:
        arrays = [pa.array([_moment(row[n]) for row in rows], field.type) for n, field in enumerate(schema)]
    except (pa.ArrowException, TypeError, ValueError):  # their messages quote the value
        raise ScanError(
            "a value does not fit its column's type", todo="correct the values, or the column's type"
        ) from None
    table = pa.Table.from_arrays(arrays, schema=schema)
    jvm: Any = spark._jvm
    held = spark.sparkContext._serialize_to_jvm(
        table, cast("Serializer", _ArrowStream()), jvm.PythonSQLUtils.readArrowStreamFromFile, jvm.ArrowIteratorServer
    )
    relation = jvm.PythonSQLUtils.toDataFrame(held, kind.json(), spark._jsparkSession)
    opaque = spark._jsparkSession.internalCreateDataFrame(relation.queryExecution().toRdd(), relation.schema(), False)
    return Classic(opaque, spark)


class _ArrowStream:
    """Writes a table in Arrow's stream format, called as PySpark calls its serializers."""

    def dump_stream(self, table: pa.Table, stream: Any) -> None:
        import pyarrow as pa

        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table, max_chunksize=_ROWS)


def _moment(value: Any) -> Any:
    return value.astimezone() if isinstance(value, datetime) and value.tzinfo is None else value


def frame_of_places(spark: SparkSession, places: Sequence[Place], read: Reader, kind: StructType) -> DataFrame:
    """The rows that workers read from files. read: has to be a function of a module; gives cells of the schema's types.

    Structs are tuples there, maps are dicts.

    Raises (when the frame is computed):
        ScanError: a cell does not fit the schema; its value is not told.
    """
    texts = frame_of_rows(spark, [(json.dumps(place),) for place in places], "place string")

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column(0).to_pylist():
                path, parts, names = json.loads(text)
                yield from batches_of(read((path, tuple(parts), tuple(names))), kind)

    return map_in_arrow(texts.repartition(len(places)), work, kind)


def frame_of_files(spark: SparkSession, folder: Path, files: Sequence[Path], fields: Fields, read: Reader) -> DataFrame:
    """The rows of files (at least one), with their partition folders as text columns. read: as of `frame_of_places`."""
    from pyspark.sql.types import StringType, StructField, StructType

    groups: dict[str, tuple[StructType, list[Place]]] = {}
    for path in files:
        parts = partition_values(folder, path)
        own = [field for field in fields(path, parts) if field.name not in parts]
        kind = StructType([*own, *(StructField(name, StringType()) for name in parts)])
        places = groups.setdefault(kind.json(), (kind, []))[1]
        places.append((str(path), tuple(parts.values()), tuple(field.name for field in own)))
    frames = [frame_of_places(spark, places, read, kind) for kind, places in groups.values()]
    return reduce(lambda whole, frame: whole.unionByName(frame, allowMissingColumns=True), frames)


def versions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """This package's version on the workers, a row for each batch of theirs."""
    import pyarrow as pa

    from pii_tracer import __version__

    for _ in batches:
        yield pa.RecordBatch.from_arrays([pa.array([__version__])], names=["version"])


def batches_of(rows: Iterator[tuple[Any, ...]], kind: StructType) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow's batches.

    Raises:
        ScanError: a cell does not fit the schema.
    """
    import pyarrow as pa

    columns = [_column(field.dataType) for field in kind.fields]
    while some := list(islice(rows, _ROWS)):
        try:
            arrays = [
                pa.array([turn(row[index]) for row in some], arrow) for index, (arrow, turn) in enumerate(columns)
            ]
        except (pa.ArrowException, TypeError, ValueError):  # their messages quote the value
            raise ScanError("a cell does not fit its file's schema", todo="repair or rewrite the file") from None
        yield pa.RecordBatch.from_arrays(arrays, names=kind.names)


def _column(kind: DataType) -> tuple[pa.DataType, Callable[[Any], Any]]:
    """Arrow's type of Spark's, and how a cell is given to Arrow."""
    import pyarrow as pa
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        inner = [_column(field.dataType) for field in kind.fields]
        struct = pa.struct([pa.field(field.name, one[0]) for field, one in zip(kind.fields, inner, strict=True)])
        return struct, _unless_none(lambda v: tuple(one[1](cell) for cell, one in zip(v, inner, strict=True)))
    if isinstance(kind, t.ArrayType):
        arrow, turn = _column(kind.elementType)
        return pa.list_(arrow), _unless_none(lambda v: [turn(item) for item in v])
    if isinstance(kind, t.MapType):
        (keys, key), (values, value) = _column(kind.keyType), _column(kind.valueType)
        return pa.map_(keys, values), _unless_none(lambda v: [(key(k), value(i)) for k, i in v.items()])
    if isinstance(kind, t.DecimalType):
        return pa.decimal128(kind.precision, kind.scale), lambda v: v
    plain: dict[type[DataType], pa.DataType] = {
        t.StringType: pa.string(),
        t.BooleanType: pa.bool_(),
        t.LongType: pa.int64(),
        t.FloatType: pa.float32(),
        t.DoubleType: pa.float64(),
        t.BinaryType: pa.binary(),
    }
    return plain[type(kind)], lambda v: v


def _unless_none(turn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else turn(value)
