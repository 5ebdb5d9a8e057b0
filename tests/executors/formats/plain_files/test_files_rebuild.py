"""A folder of totals without a key: made again from its erased source, nothing half-written, nothing else lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from executors.engine.rebuild_from_query import query_of
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from tests.executors.world import EMAIL, Steps, context, frame, residue, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Died(BaseException):
    """The process dies here."""


def make(spark: SparkSession, world: SparkEstate, name: str, fmt: Format) -> tuple[Steps, dict[str, Any], Path]:
    """A Delta source, and totals of it that name the person in one cell; the source is erased already."""
    source, folder = world.folder(f"rebuild/{name}_source"), world.folder(f"rebuild/{name}")
    frame(spark, rows(0, 20, (3, 4))).write.format("delta").save(str(source))
    sql = (
        f"INSERT OVERWRITE DIRECTORY '{folder}' USING {fmt.value} "
        f"SELECT max(email) AS best, count(*) AS n, id % 2 AS side FROM delta.`{source}` GROUP BY id % 2"
    )
    spark.sql(query_of(sql)).withColumn("best", _literal(EMAIL)).coalesce(1).write.format(fmt.value).partitionBy(
        "side"
    ).save(str(folder))
    spark.sql(f"DELETE FROM delta.`{source}` WHERE email = '{EMAIL}'")
    steps = Steps(context(world), "files", None, folder, fmt, None)
    parameters = {"sql": sql, "format": fmt.value, "codec": None, "partition_columns": ["side"]}
    return steps, parameters, folder


def _literal(text: str) -> Any:
    from pyspark.sql.functions import lit

    return lit(text)


@pytest.mark.parametrize("fmt", [Format.PARQUET, pytest.param(Format.ORC, marks=pytest.mark.slow)])
def test_totals_are_made_again(spark: SparkSession, spark_estate: SparkEstate, fmt: Format) -> None:
    steps, parameters, folder = make(spark, spark_estate, f"totals_{fmt}", fmt)
    assert steps.probe(Action.FILES_REBUILD, **parameters) is Progress.PARTIAL
    facts = steps.once(Action.FILES_REBUILD, **parameters)
    assert (facts["rows_before"], facts["rows_after"]) == (2, 2)
    assert steps.probe(Action.FILES_REBUILD, **parameters) is Progress.DONE
    assert residue(folder) == []
    assert sorted(p.name for p in folder.glob("side=*")) == ["side=0", "side=1"]
    made = {(r.side, r.n) for r in spark.read.format(fmt.value).load(str(folder)).collect()}
    assert made == {(0, 9), (1, 9)}


def test_killed_between_the_two_renames(
    spark: SparkSession, spark_estate: SparkEstate, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, parameters, folder = make(spark, spark_estate, "killed", Format.PARQUET)
    real = Path.rename

    def dies(self: Path, target: Path) -> Path:
        if self.name.endswith("-new"):
            raise Died
        return real(self, target)

    monkeypatch.setattr(Path, "rename", dies)
    with pytest.raises(Died):
        steps.once(Action.FILES_REBUILD, **parameters)
    monkeypatch.undo()
    assert not folder.exists()
    assert steps.probe(Action.FILES_REBUILD, **parameters) is Progress.PARTIAL
    steps.once(Action.FILES_REBUILD, **parameters)
    assert residue(folder.parent / folder.name) == []
    assert not list(folder.parent.glob(f".{folder.name}.*"))


def test_what_would_be_lost_or_does_not_fit_is_refused(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps, parameters, folder = make(spark, spark_estate, "refused", Format.PARQUET)
    note = folder / "README.txt"
    note.write_text("somebody else's")
    with pytest.raises(RunError, match="with a different format than parquet"):
        steps.once(Action.FILES_REBUILD, **parameters)
    note.unlink()
    other = {**parameters, "sql": parameters["sql"].replace(" AS n", " AS number")}
    with pytest.raises(RunError, match="columns"):
        steps.once(Action.FILES_REBUILD, **other)
    assert residue(folder), "nothing was touched"
