"""A table that holds what its recorded statement cannot give is seen before anything is touched."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from executors.engine.rebuild_check import Difference, compared, refuse_losses
from executors.engine.rebuild_from_query import unlike
from pii_tracer.config.catalogs import Catalog, CatalogType, DeclaredTable
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import Refused
from pii_tracer.model.plan import Step
from tests.executors.world import Steps, context
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCE = {"day": ["1", "1", "2"], "paid": [0.1, 0.2, 5.0]}
DAYS = [("1", 2, 0.1 + 0.2), ("2", 1, 5.0)]


def step(world: SparkEstate, name: str, days: list[tuple[str, int, float]], query: str = "") -> tuple[Steps, Step]:
    """A folder of payments, and a folder of totals of them, in which `days` stands."""
    source, folder = world.folder(f"before/{name}_source"), world.folder(f"before/{name}")
    for place, rows in ((source, pa.table(SOURCE)), (folder, _table(days))):
        place.mkdir(parents=True)
        pq.write_table(rows, place / "part-0.parquet")
    given = query or "day, count(*) AS n, sum(paid) AS paid FROM {source} GROUP BY day"
    sql = f"INSERT OVERWRITE DIRECTORY '{folder}' USING parquet SELECT " + given.format(source=f"parquet.`{source}`")
    steps = Steps(context(world), "files", None, folder, Format.PARQUET, None)
    return steps, steps.step(Action.FILES_REBUILD, sql=sql, format=Format.PARQUET, partition_columns=[])


def _table(days: list[tuple[str, int, float]]) -> pa.Table:
    names = ("day", "n", "paid")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in days])


@pytest.mark.parametrize(
    ("name", "days", "standing", "given"),
    [
        ("same", list(reversed(DAYS)), 0, 0),
        ("last_digit", [("1", 2, 0.3), DAYS[1]], 0, 0),
        ("third_digit", [("1", 2, 0.301), DAYS[1]], 1, 1),
        ("lost_by_the_source", [("0", 7, 1.0), *DAYS], 1, 0),
        ("twice", [*DAYS, DAYS[1]], 1, 0),
        ("out_of_date", DAYS[:1], 0, 1),
    ],
)
def test_rows_are_compared_both_ways_and_as_often_as_they_stand(
    spark: SparkSession, spark_estate: SparkEstate, name: str, days: Any, standing: int, given: int
) -> None:
    steps, made = step(spark_estate, name, days)
    assert compared(steps.ctx, made) == Difference(standing, given)


def test_a_run_is_refused_with_numbers_and_ways_out(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps, lost = step(spark_estate, "refused_lost", [("0", 7, 1.0), *DAYS])
    _, good = step(spark_estate, "refused_good", DAYS)
    _, other = step(
        spark_estate, "refused_columns", DAYS, "day, count(*) AS number, 1D AS paid FROM {source} GROUP BY day"
    )
    _, broken = step(spark_estate, "refused_broken", DAYS, "day, n, paid FROM nowhere.at_all")
    said: list[str] = []
    with pytest.raises(Refused) as refused:
        refuse_losses(steps.ctx, [lost, good, other, broken], said.append)
    assert len(said) == 5
    told = refused.value.what
    assert "refused_lost contains 1 row that its recorded statement does not return" in told
    assert "refused_columns: the recorded query returns the columns" in told
    assert "refused_broken: its recorded statement failed: AnalysisException" in told
    assert "refused_good" not in told
    assert "hold" in (refused.value.todo or "")
    refuse_losses(steps.ctx, [good], said.append)


def test_what_was_listed_before_the_erasure_is_listed_again_after_it(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    """Spark keeps the listing of a named table of bare files: its files are others after the erasure."""
    folder = spark_estate.folder("before/kept_apart")
    folder.mkdir(parents=True)
    pq.write_table(pa.table(SOURCE), folder / "part-0.parquet")
    spark.sql("CREATE DATABASE IF NOT EXISTS before")
    spark.sql(f"CREATE TABLE before.listed USING parquet LOCATION '{folder}'")
    query = "day, count(*) AS n, sum(paid) AS paid FROM before.listed GROUP BY day"
    steps, made = step(spark_estate, "listed", DAYS, query)
    refuse_losses(steps.ctx, [made], lambda told: None)
    Path(folder / "part-0.parquet").unlink()
    pq.write_table(pa.table({"day": ["2"], "paid": [5.0]}), folder / "part-1.parquet")
    assert compared(steps.ctx, made) == Difference(1, 0)
    spark.sql("DROP DATABASE before CASCADE")


def test_a_query_over_a_declared_folder_of_partitions_is_not_refused_and_its_table_made_again(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    """A partition of one person goes with her: the rebuild after that sees the others."""
    source = spark_estate.folder("before/paid_by_day")
    for day, paid in (("1", [0.1, 0.2]), ("2", [5.0])):
        (source / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"paid": paid}), source / f"day={day}" / "part-0.parquet")
    tables = (DeclaredTable(name="before_parts.paid", format=Format.PARQUET, location=str(source)),)
    catalogs = {"spark_catalog": Catalog(type=CatalogType.DECLARED, tables=tables)}
    estate = spark_estate.estate.model_copy(update={"catalogs": spark_estate.estate.catalogs | catalogs})
    world = SparkEstate(estate, spark_estate.base)
    query = "CAST(day AS STRING) AS day, count(*) AS n, sum(paid) AS paid FROM before_parts.paid GROUP BY day"
    steps, made = step(world, "parts", DAYS, query)
    refuse_losses(steps.ctx, [made], lambda told: None)
    shutil.rmtree(source / "day=1")
    facts = steps.once(Action.FILES_REBUILD, **made.parameters)
    assert (facts["rows_before"], facts["rows_after"]) == (2, 1)
    folder = spark_estate.folder("before/parts")
    assert [row.asDict() for row in spark.read.parquet(str(folder)).collect()] == [{"day": "2", "n": 1, "paid": 5.0}]
    spark.sql("DROP DATABASE before_parts CASCADE")


MAPS = "map('b', struct(map(1, day) AS m, array(map(2, 'x')) AS l), 'a', NULL) AS held"
SORTED = "map('a', NULL, 'b', struct(map(1, day) AS m, array(map(2, 'x')) AS l)) AS held"
OTHER = MAPS.replace("'x'", "'y'")


@pytest.mark.parametrize(("made", "differs"), [(SORTED, 0), (OTHER, 2)])
def test_maps_are_compared_by_their_entries(spark: SparkSession, made: str, differs: int) -> None:
    """Wherever they stand; their order says nothing. Spark itself refuses them."""
    days = "(VALUES ('1'), ('2'), ('2')) AS days(day)"
    have, query = spark.sql(f"SELECT day, {MAPS} FROM {days}"), spark.sql(f"SELECT day, {made} FROM {days}")
    standing, given = unlike(query.where("day = '2'"), have.where("day = '2'"))
    assert (standing.count(), given.count()) == (differs, differs)
