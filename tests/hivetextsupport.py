"""Hive's own serializers out of Spark's jars, by which tests read text as Hive reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
OPEN_CSV = "org.apache.hadoop.hive.serde2.OpenCSVSerde"


def read_by_hive(
    spark: Any, serde: str, properties: Mapping[str, str], columns: Mapping[str, str], lines: Sequence[bytes]
) -> list[tuple[str | None, ...]]:
    """The cells of lines as one of Hive's serializers gives them, as text; None where they are NULL."""
    jvm = spark._jvm
    settings = jvm.java.util.Properties()
    for name, value in {
        "columns": ",".join(columns),
        "columns.types": ":".join(columns.values()),
        **properties,
    }.items():
        settings.setProperty(name, value)
    made = jvm.java.lang.Class.forName(serde, True, jvm.Thread.currentThread().getContextClassLoader()).newInstance()
    made.initialize(spark._jsc.hadoopConfiguration(), settings)
    inspector = made.getObjectInspector()
    fields = list(inspector.getAllStructFieldRefs())
    found = []
    for line in lines:
        row = made.deserialize(jvm.org.apache.hadoop.io.Text(bytearray(line)))
        cells = []
        for field in fields:
            cell = inspector.getStructFieldData(row, field)
            value = None if cell is None else field.getFieldObjectInspector().getPrimitiveJavaObject(cell)
            cells.append(None if value is None else str(value))
        found.append(tuple(cells))
    return found
