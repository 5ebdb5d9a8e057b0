"""Types of Spark's schemas, Arrow and Avro as Spark SQL's DDL writes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any

from pii_tracer.model.datasets import Column
from pii_tracer.model.errors import EstateError

if TYPE_CHECKING:
    import pyarrow as pa

_SPARK = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_ARROW = {
    "int64": "bigint",
    "int32": "int",
    "int16": "smallint",
    "int8": "tinyint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "double": "double",
    "float": "float",
    "bool": "boolean",
    "string": "string",
    "large_string": "string",
    "string_view": "string",
    "binary": "binary",
    "large_binary": "binary",
    "binary_view": "binary",
    "date32[day]": "date",
}


def spark_type(node: Any) -> str:
    """A type of Spark's schema JSON (Delta protocol, "Schema Serialization Format"; Parquet's Spark metadata)."""
    if isinstance(node, str):
        return _SPARK.get(node, node)
    kind = node["type"]
    if kind == "struct":
        return "struct<" + ",".join(f"{f['name']}:{spark_type(f['type'])}" for f in node["fields"]) + ">"
    if kind == "array":
        return f"array<{spark_type(node['elementType'])}>"
    if kind == "map":
        return f"map<{spark_type(node['keyType'])},{spark_type(node['valueType'])}>"
    if kind == "udt":
        return spark_type(node["sqlType"])
    raise EstateError(f"the schema contains an unknown type: {kind}", todo="install a newer pii-tracer")


def spark_columns(schema: dict[str, Any]) -> tuple[Column, ...]:
    """Top-level columns of a schema in Spark's JSON."""
    return tuple(Column(name=f["name"], type=spark_type(f["type"])) for f in schema["fields"])


_CHAR = re.compile(r"(?<!var)char\(")


def padded_columns(schema: dict[str, Any]) -> tuple[str, ...]:
    """Columns of CHAR(n), or with a field of it: Spark's schema has them as strings, and a note of what they are.

    https://spark.apache.org/docs/latest/sql-ref-datatypes.html: blanks are added to what is written to them.
    """
    kinds = {str(f["name"]): (f.get("metadata") or {}).get("__CHAR_VARCHAR_TYPE_STRING") for f in schema["fields"]}
    return tuple(name for name, kind in kinds.items() if _CHAR.search(str(kind)))


def arrow_type(kind: pa.DataType) -> str:
    """An Arrow type as Spark reads it from a file without Spark's own schema; the Arrow name where Spark has none."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return arrow_type(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType) and kind != pa.uuid():  # of a UUID Spark has no type
        return arrow_type(kind.storage_type)
    if pa.types.is_struct(kind):
        return "struct<" + ",".join(f"{f.name}:{arrow_type(f.type)}" for f in kind) + ">"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"array<{arrow_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{arrow_type(kind.key_type)},{arrow_type(kind.item_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        # Spark wrote INT96 (nanoseconds in Arrow) for instants; other timestamps without a zone are local ones
        return "timestamp" if kind.tz or kind.unit == "ns" else "timestamp_ntz"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    return _ARROW.get(str(kind), str(kind))


def without_views(kind: pa.DataType) -> pa.DataType:
    """The type with text and bytes end to end: rows of views, as delta-rs writes them, cannot be taken out.

    Dictionaries, pandas' categories, are what their values are.
    """
    import pyarrow as pa

    def end_to_end(leaf: pa.DataType) -> pa.DataType:
        if pa.types.is_dictionary(leaf):
            return end_to_end(leaf.value_type)
        if pa.types.is_string_view(leaf):
            return pa.large_string()
        return pa.large_binary() if pa.types.is_binary_view(leaf) else leaf

    return with_leaves(kind, end_to_end)


def with_leaves(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with others in place of those that have no type inside; structs, maps and lists stay what they are."""
    import pyarrow as pa

    def inner(field: pa.Field) -> pa.Field:
        return field.with_type(with_leaves(field.type, change))

    if pa.types.is_struct(kind):
        return pa.struct([inner(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(with_leaves(kind.key_type, change), with_leaves(kind.item_type, change))
    if pa.types.is_list(kind):
        return pa.list_(inner(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(inner(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(inner(kind.value_field), kind.list_size)
    return change(kind)


_AVRO = {"long": "bigint", "int": "int", "bytes": "binary", "enum": "string"}
_AVRO_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}


def avro_type(node: Any) -> str:
    """An Avro type as Spark reads it (Spark's Avro guide, "Supported types for Avro -> Spark SQL conversion")."""
    if isinstance(node, list):
        kinds = [kind for kind in node if kind != "null"]
        return _of_union([avro_type(kind) for kind in kinds])
    if isinstance(node, str):
        return _AVRO.get(node, node)
    logical = node.get("logicalType")
    if logical == "decimal":
        return f"decimal({node['precision']},{node.get('scale', 0)})"
    if logical in _AVRO_LOGICAL:
        return _AVRO_LOGICAL[logical]
    kind = node["type"]
    if kind == "record":
        return "struct<" + ",".join(f"{f['name']}:{avro_type(f['type'])}" for f in node["fields"]) + ">"
    if kind == "array":
        return f"array<{avro_type(node['items'])}>"
    if kind == "map":
        return f"map<string,{avro_type(node['values'])}>"
    return "binary" if kind == "fixed" else avro_type(kind)


def _of_union(kinds: list[str]) -> str:
    """Spark widens unions of whole numbers and of floats, and reads a struct from any other union of several types.

    A union of null alone has no kinds.
    """
    if not kinds:
        return "null"
    if len(set(kinds)) == 1:
        return kinds[0]
    for wide in ({"int", "bigint"}, {"float", "double"}):
        if set(kinds) == wide:
            return "bigint" if "bigint" in wide else "double"
    return "struct<" + ",".join(f"member{number}:{kind}" for number, kind in enumerate(kinds)) + ">"


def partition_type(values: list[str]) -> str:
    """Spark's partition type inference for the types it meets most: int, bigint, date, else string."""
    if values and all(re.fullmatch(r"-?\d{1,18}", v) for v in values):
        return "int" if all(-(2**31) <= int(v) < 2**31 for v in values) else "bigint"
    if values and all(_is_date(v) for v in values):
        return "date"
    return "string"


def _is_date(text: str) -> bool:
    try:
        return re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False
