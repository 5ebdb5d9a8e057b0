"""A reference that is written again has today's types: the same values in wider ones are the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_tracer.verify.row_hashes import row_hash

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
    (row,) = frame.select(row_hash(frame, sorted(frame.columns), False).alias("h")).collect()
    return int(row["h"])


def test_widened_types_hash_alike_and_other_values_do_not(spark: SparkSession) -> None:
    narrow = spark.sql("SELECT " + ", ".join(f"CAST({v} AS {kind}) AS {name}" for name, (v, kind, _) in VALUES.items()))
    wide = narrow.selectExpr(*(f"CAST({name} AS {kind}) AS {name}" for name, (_, _, kind) in VALUES.items()))
    assert narrow.schema != wide.schema
    assert _hash(narrow) == _hash(wide)
    assert _hash(wide.selectExpr("n + 1 AS n", "r", "d", "s", "m")) != _hash(wide)


UNLIKE = (
    ("array(1, NULL)", "array(1)", "array(NULL, 1)", "array(1, 0)", "array()"),
    ("array(array(1), array(2))", "array(array(1, 2))", "array(array(1, 2), array())", "array(array(1, 2), NULL)"),
    (
        "array(named_struct('a', CAST(NULL AS INT), 'b', 7))",
        "array(named_struct('a', 7, 'b', CAST(NULL AS INT)))",
        "array(named_struct('a', CAST(NULL AS INT), 'b', CAST(NULL AS INT)))",
        "array(CAST(NULL AS STRUCT<a: INT, b: INT>))",
    ),
    ("named_struct('a', CAST(NULL AS INT))", "CAST(NULL AS STRUCT<a: INT>)"),
    (
        "map(1, CAST(NULL AS STRUCT<a: INT, b: INT>))",
        "map(1, named_struct('a', CAST(NULL AS INT), 'b', CAST(NULL AS INT)))",
        "map(1, named_struct('a', 5, 'b', CAST(NULL AS INT)))",
        "map(1, named_struct('a', CAST(NULL AS INT), 'b', 5))",
    ),
)
"""Values of one type each: they differ in what is NULL, or in where it stands."""


def test_nested_values_that_differ_in_nulls_or_shape_hash_differently(spark: SparkSession) -> None:
    """Spark's hash steps over NULL inside of a column, and over how lists are divided."""
    for values in UNLIKE:
        frame = spark.sql(" UNION ALL ".join(f"SELECT {value} AS v" for value in values))
        hashes = [row["h"] for row in frame.select(row_hash(frame, ["v"], False).alias("h")).collect()]
        assert len(set(hashes)) == len(values), values


def test_fields_that_are_null_or_named_alike_but_for_case(spark: SparkSession) -> None:
    """A field that was added later is NULL in rows from before, and an engine may write it in another place."""
    before = spark.sql("SELECT array(named_struct('a', 1)) AS v")
    after = spark.sql("SELECT array(named_struct('new', CAST(NULL AS STRING), 'a', 1L)) AS v")
    assert _hash(before) == _hash(after)
    alike = [spark.sql(f"SELECT named_struct('a', {a}, 'A', {b}) AS v") for a, b in (("1", "2"), ("2", "1"))]
    assert _hash(alike[0]) != _hash(alike[1])
