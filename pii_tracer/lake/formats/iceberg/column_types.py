"""Types of Iceberg as Spark SQL's DDL writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType

_NAMES = {"long": "bigint", "uuid": "string", "timestamptz": "timestamp", "timestamp": "timestamp_ntz"}


def iceberg_type(kind: IcebergType) -> str:
    """An Iceberg type (spec, "Primitive Types"; mapping of Iceberg's Spark documentation, "Type compatibility")."""
    from pyiceberg import types

    if isinstance(kind, types.StructType):
        return "struct<" + ",".join(f"{f.name}:{iceberg_type(f.field_type)}" for f in kind.fields) + ">"
    if isinstance(kind, types.ListType):
        return f"array<{iceberg_type(kind.element_type)}>"
    if isinstance(kind, types.MapType):
        return f"map<{iceberg_type(kind.key_type)},{iceberg_type(kind.value_type)}>"
    if isinstance(kind, types.DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    if isinstance(kind, types.FixedType):
        return "binary"
    text = str(kind)
    return _NAMES.get(text, text)
