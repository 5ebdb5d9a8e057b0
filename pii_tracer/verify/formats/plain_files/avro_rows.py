"""Avro folders for the verifier: fastavro decodes in Spark's workers, because Spark itself reads no Avro without a
package of its own.

Columns keep what tells rows apart. Numbers and texts keep their type; logical types (dates, decimals, …) and unions of
several types are text, which is the same before and after.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.rows.spark_frames import Place, frame_of_files
from pii_tracer.model.errors import ScanError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_Kind = tuple["DataType", Callable[[Any], Any]]


def avro_frame(spark: SparkSession, folder: Path, files: list[Path]) -> DataFrame:
    """The rows of Avro files (at least one), with their partition folders as text columns.

    Raises:
        ScanError: a file does not hold records, or its schema has a type that is not read.
    """
    return frame_of_files(spark, folder, files, lambda path, _: columns(_schema(path)).fields, rows)


def columns(schema: Any) -> StructType:
    """Spark's schema of a file by its Avro schema."""
    kind: Any = _kind(schema, {})[0]
    return kind  # type: ignore[no-any-return]


def rows(place: Place) -> Iterator[tuple[Any, ...]]:
    """The rows of one file as tuples for Spark. Runs in a worker."""
    import fastavro

    path, parts, names = place
    with Path(path).open("rb") as stream:
        reader = fastavro.reader(stream)
        schema: Any = reader.writer_schema
        named: dict[str, Any] = {}
        fields = {f["name"]: _kind(f["type"], named)[1] for f in schema["fields"]}
        for record in reader:
            row: Any = record
            yield (*(fields[name](row[name]) for name in names), *parts)


def _schema(path: Path) -> Any:
    import fastavro

    with path.open("rb") as stream:
        schema: Any = fastavro.reader(stream).writer_schema
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ScanError(
            "the schema of an Avro file is not a record", where=path.name, todo="let the folder's job rewrite it"
        )
    return schema


def _kind(node: Any, named: dict[str, Any]) -> _Kind:
    """Spark's type of an Avro type, and how a decoded value becomes one of it.

    https://avro.apache.org/docs/1.11.1/specification/#schema-declaration; named: types by name, as they are declared.
    """
    from pyspark.sql import types as t

    if isinstance(node, list):
        kinds = [kind for kind in node if kind != "null"]
        return _kind(kinds[0], named) if len(kinds) == 1 else (t.StringType(), _text)
    if isinstance(node, str):
        if node in named:
            return _kind_named(node, named)
        plain: dict[str, _Kind] = {
            "null": (t.StringType(), _text),
            "boolean": (t.BooleanType(), _maybe(bool)),
            "int": (t.LongType(), _maybe(int)),
            "long": (t.LongType(), _maybe(int)),
            "float": (t.FloatType(), _maybe(float)),
            "double": (t.DoubleType(), _maybe(float)),
            "bytes": (t.BinaryType(), _maybe(bytearray)),
            "string": (t.StringType(), _maybe(str)),
        }
        if node not in plain:
            raise ScanError("an Avro schema has an unsupported type", where=node, todo="check the file's rows by hand")
        return plain[node]
    if "logicalType" in node:
        return t.StringType(), _text
    return _complex(node, named)


def _complex(node: dict[str, Any], named: dict[str, Any]) -> _Kind:
    from pyspark.sql import types as t

    kind = node["type"]
    if kind in ("record", "error"):
        named[node["name"]] = None  # while it is being read: a type inside itself has no end
        fields = [(f["name"], _kind(f["type"], named)) for f in node["fields"]]
        named[node["name"]] = node
        struct = t.StructType([t.StructField(name, inner[0]) for name, inner in fields])
        return struct, _maybe(lambda value: tuple(turn(value[name]) for name, (_, turn) in fields))
    if kind == "array":
        inner, turn = _kind(node["items"], named)
        return t.ArrayType(inner), _maybe(lambda value: [turn(item) for item in value])
    if kind == "map":
        inner, turn = _kind(node["values"], named)
        return t.MapType(t.StringType(), inner), _maybe(lambda value: {key: turn(item) for key, item in value.items()})
    if kind in ("enum", "fixed"):
        named[node["name"]] = node
        return (t.StringType(), _maybe(str)) if kind == "enum" else (t.BinaryType(), _maybe(bytearray))
    return _kind(kind, named)


def _kind_named(name: str, named: dict[str, Any]) -> _Kind:
    if named[name] is None:
        raise ScanError(
            "an Avro type contains itself",
            where=name,
            todo="check the file's rows by hand: Spark does not support such a type",
        )
    return _kind(named[name], named)


def _maybe(turn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else turn(value)


def _text(value: Any) -> str | None:
    """Any decoded value as text; the same value always gives the same text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, (dict, list)):
        return json.dumps(value, sort_keys=True, default=_text)
    return value.hex() if isinstance(value, bytes) else str(value)
