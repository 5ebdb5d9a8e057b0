"""A reference that is written again has today's types: the same values in wider ones are the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_tracer.verify.row_checks import _row_hash

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

VALUES = {
    "n": ("-2147483648", "INT", "BIGINT"),
    "r": ("0.1", "FLOAT", "DOUBLE"),
    "d": ("1.10", "DECIMAL(10,2)", "DECIMAL(12,2)"),
    "s": (
        "named_struct('n', 7, 'l', array(0.3, NULL))",
        "STRUCT<n: INT, l: ARRAY<FLOAT>>",
        "STRUCT<n: BIGINT, l: ARRAY<DOUBLE>>",
    ),
    "m": ("map('x', 0.7)", "MAP<STRING, FLOAT>", "MAP<STRING, DOUBLE>"),
}


def _hash(frame: DataFrame) -> int:
    (row,) = frame.select(_row_hash(frame, sorted(frame.columns), False).alias("h")).collect()
    return int(row["h"])


def test_widened_types_hash_alike_and_other_values_do_not(spark: SparkSession) -> None:
    narrow = spark.sql("SELECT " + ", ".join(f"CAST({v} AS {kind}) AS {name}" for name, (v, kind, _) in VALUES.items()))
    wide = narrow.selectExpr(*(f"CAST({name} AS {kind}) AS {name}" for name, (_, _, kind) in VALUES.items()))
    assert narrow.schema != wide.schema
    assert _hash(narrow) == _hash(wide)
    assert _hash(wide.selectExpr("n + 1 AS n", "r", "d", "s", "m")) != _hash(wide)
