"""Keys in lists and maps, as the row verifier compares them: which rows name a person there, and a row without her.

Its own code, as all of the verifier's: the executors find the same elements by SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.datasets import KeyPart
from pii_tracer.verify.key_texts import named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_KEYS = "__pii_tracer_keys"

Text = Callable[["Column"], "Column"]
"""What is compared of an element, as text."""


def flagged(
    spark: SparkSession, frame: DataFrame, term: KeyPart, text: Text, keys: Sequence[str], mark: str
) -> DataFrame:
    """The frame with one more column: true where an element of the list, or a key of the map, is one of some keys."""
    from pyspark.sql import functions as f

    elements = f.transform(_elements(frame, term), text)
    found = f.coalesce(f.arrays_overlap(elements, f.col(_KEYS)), f.lit(False))
    return _beside(spark, frame, keys).withColumn(mark, found).drop(_KEYS)


def without(spark: SparkSession, frame: DataFrame, term: KeyPart, text: Text, keys: Sequence[str]) -> DataFrame:
    """The frame in which the list or the map has none of some keys, and everything else in the same order."""
    from pyspark.sql import functions as f

    def stays(element: Column, value: Column | None = None) -> Column:
        return ~f.coalesce(f.array_contains(f.col(_KEYS), text(element)), f.lit(False))

    name = _name(frame, term)
    column = named(name)
    left = f.map_filter(column, stays) if _is_map(term) else f.filter(column, stays)
    return _beside(spark, frame, keys).withColumn(name, left).drop(_KEYS)


def _beside(spark: SparkSession, frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The frame with all keys in each row: they are rows of Spark, and stand in no text."""
    from pyspark.sql import functions as f

    return frame.crossJoin(f.broadcast(frame_of_rows(spark, [(list(keys),)], f"`{_KEYS}` array<string>")))


def _elements(frame: DataFrame, term: KeyPart) -> Column:
    from pyspark.sql import functions as f

    column = named(_name(frame, term))
    return f.map_keys(column) if _is_map(term) else column


def _is_map(term: KeyPart) -> bool:
    return term.within is not None and term.within.name == "key"


def _name(frame: DataFrame, term: KeyPart) -> str:
    return next(name for name in frame.columns if name.lower() == term.column.lower())
