"""CSV tables of Spark (`USING csv`) with options, as a metastore describes them.

Spark keeps its schema as JSON among the table's properties, whole or in parts, because Hive has no column of such a
table: https://github.com/apache/spark/blob/v3.5.6/sql/hive/src/main/scala/org/apache/spark/sql/hive/HiveExternalCatalog.scala
(`spark.sql.sources.schema`). Partitions are read with the table's options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pii_tracer.lake.catalogs.hive.partition_folders import refuse_other_values
from pii_tracer.lake.spark_types import spark_columns
from pii_tracer.model.hive_text.columns import UnreadText, columns_of
from pii_tracer.model.hive_text.layout import Serde, TextLayout, TextTable

_SCHEMA = "spark.sql.sources.schema"
_MOST_PARTS = 10_000


def spark_text_table(table: Any, layout: TextLayout, partitions: Sequence[tuple[str | None, Any]]) -> TextTable:
    """A whole table. partitions: each with its folder below the table's.

    Raises:
        UnreadText: there is no schema, or a partition lies where its files are not read as the table's.
    """
    names = [str(key.name).lower() for key in table.partitionKeys or ()]
    for folder, partition in partitions:
        if folder is None:
            raise UnreadText("a partition is outside the table's folder")
        refuse_other_values(folder, names, [str(value) for value in partition.values or ()])
    fields = [(name, kind) for name, kind in _fields(table) if name.lower() not in names]
    if not all(kind for _, kind in fields):
        raise UnreadText("its columns have no types")
    return TextTable(columns=columns_of(fields, Serde.SPARK), layout=layout, keys=tuple(names))


def _fields(table: Any) -> list[tuple[str, str]]:
    told = {str(key).lower(): str(value) for key, value in (table.parameters or {}).items()}
    schema = told.get(_SCHEMA) or _joined(told)
    if schema is None:
        return [(str(field.name), str(field.type or "")) for field in table.sd.cols or ()]
    try:
        parsed = json.loads(schema)
        kinds = [(field.get("metadata") or {}).get("__CHAR_VARCHAR_TYPE_STRING") for field in parsed["fields"]]
        return [(c.name, kind or c.type) for c, kind in zip(spark_columns(parsed), kinds, strict=True)]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnreadText("its schema is not one of Spark's") from None


def _joined(told: Mapping[str, str]) -> str | None:
    number = told.get(f"{_SCHEMA}.numparts", "")
    if not re.fullmatch(r"\d{1,5}", number) or int(number) > _MOST_PARTS:
        return None
    parts = [told.get(f"{_SCHEMA}.part.{n}") for n in range(int(number))]
    if None in parts:
        raise UnreadText("its schema is not one of Spark's")
    return "".join(filter(None, parts))
