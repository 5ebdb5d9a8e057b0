"""Few rows as a frame: the same as Spark's own, and nowhere a value."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.errors import ScanError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "n bigint, s string, b binary, d date, t timestamp, m decimal(9,2), f double, l array<int>, x boolean"
ROW = (1, "Ada", b"\x00\xff", date(2026, 2, 1), datetime(2026, 2, 1, 3, 4, 5), Decimal("1.20"), 0.5, [1, 2], True)

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("rows", [[], [ROW], [ROW, (None,) * 9]], ids=["none", "one", "nulls"])
def test_rows_and_types_are_those_of_spark(spark: SparkSession, rows: list[tuple[Any, ...]]) -> None:
    frame, theirs = frame_of_rows(spark, rows, COLUMNS), spark.createDataFrame(rows, COLUMNS)
    assert frame.schema == theirs.schema
    assert frame.collect() == theirs.collect()


def test_a_time_with_a_zone_is_that_moment(spark: SparkSession) -> None:
    moment = datetime(2026, 2, 1, 3, 4, 5, tzinfo=timezone.utc)
    (row,) = frame_of_rows(spark, [(moment,)], "t timestamp").collect()
    assert row.t.astimezone(timezone.utc) == moment


def test_a_plan_does_not_show_the_values(spark: SparkSession) -> None:
    shown = frame_of_rows(spark, [("siobhan",)], "name string").where("name > 'a'")._jdf.queryExecution().toString()
    assert "name" in shown
    assert "siobhan" not in shown
    assert "Filter" in shown.partition("== Physical Plan ==")[2], "the optimizer does not look into the rows"


@pytest.mark.parametrize("kind", ["int", "date", "array<int>"])
def test_an_error_does_not_show_the_value(spark: SparkSession, kind: str) -> None:
    with pytest.raises(ScanError) as caught:
        frame_of_rows(spark, [("siobhan",)], f"a {kind}")
    assert "siobhan" not in str(caught.value)
