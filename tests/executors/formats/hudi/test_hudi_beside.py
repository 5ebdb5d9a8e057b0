"""Hudi writers beside the steps that remove files: nothing that they have written goes, and the table stays whole."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from executors.formats.hudi.executor import HudiExecutor
from executors.registry import build
from pii_tracer.lake.formats.hudi.vocabulary import HUDI_REBUILD_METADATA
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.errors import RunError
from tests.executors.formats.hudi.test_hudi import (
    CLEAN,
    DELETE,
    METADATA,
    SAVEPOINTS,
    make,
)
from tests.executors.world import EMAIL, UID, Steps, bystanders, residue
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LATE = (777, 1777, "b777@example.net", 1)


@contextmanager
def in_flight(spark: SparkSession, table: str, folder: Path) -> Iterator[list[BaseException]]:
    """An INSERT that has begun before the block and commits only after it; gives what it failed with."""
    from pyspark.sql.functions import udf

    folder.mkdir()
    begun, go = folder / "begun", folder / "go"
    names = str(begun), str(go)

    @udf("string", useArrow=False)  # type: ignore[misc,unused-ignore]
    def wait(text: str) -> str:
        Path(names[0]).touch()
        end = time.monotonic() + 240
        while not Path(names[1]).exists():
            if time.monotonic() > end:
                raise TimeoutError("nobody let the writer go on")
            time.sleep(0.02)
        return text

    row = frame_of_rows(spark, [LATE], "id BIGINT, uid BIGINT, email STRING, amount INT").coalesce(1)
    row.withColumn("email", wait("email")).createOrReplaceTempView("in_flight")
    failures: list[BaseException] = []

    def write() -> None:
        try:
            spark.sql(f"INSERT INTO {table} SELECT * FROM in_flight")
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while not begun.exists():
            assert thread.is_alive(), failures
            time.sleep(0.02)
        yield failures
    finally:
        go.touch()
        thread.join()


def rows_of(spark: SparkSession, steps: Steps) -> list[tuple[Any, ...]]:
    spark.catalog.refreshTable(str(steps.table))
    return bystanders(spark.table(str(steps.table)))


@pytest.mark.nightly
def test_a_commit_in_flight_outlives_the_clean_and_the_rebuilding_of_the_metadata_table(
    spark: SparkSession, spark_estate: SparkEstate, tmp_path: Path
) -> None:
    steps = make(spark, spark_estate, "in_flight", "cow")
    others = bystanders(spark.table(str(steps.table)))
    steps.all(SAVEPOINTS, DELETE)
    with in_flight(spark, str(steps.table), tmp_path / "writer") as failures:
        steps.once(*CLEAN[:1])
        steps.once(*METADATA[:1])
    assert failures == []
    assert rows_of(spark, steps) == sorted([*others, LATE])
    steps.all(CLEAN, METADATA)
    assert residue(steps.location) == []
    assert rows_of(spark, steps) == sorted([*others, LATE])


def test_a_commit_while_there_is_no_metadata_table_stays_and_is_told(
    spark: SparkSession, spark_estate: SparkEstate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer makes a metadata table of its own between the two statements of the step."""
    steps = make(spark, spark_estate, "between", "cow")
    others = bystanders(spark.table(str(steps.table)))
    steps.all(SAVEPOINTS, DELETE, CLEAN)
    call = HudiExecutor._call

    def then_a_writer_commits(self: Any, step: Any, procedure: str, arguments: str = "") -> list[Any]:
        answer = call(self, step, procedure, arguments)
        if procedure == "delete_metadata_table":
            spark.sql(f"INSERT INTO {steps.table} VALUES {LATE}")
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(HudiExecutor, "_call", then_a_writer_commits)
        step = steps.step(HUDI_REBUILD_METADATA)
        with pytest.raises(RunError, match="a different writer recreated the metadata table"):
            build(steps.ctx)["hudi"].run(step, steps.copy)
    assert rows_of(spark, steps) == sorted([*others, LATE])
    steps.all(CLEAN, METADATA)
    assert residue(steps.location) == []
    assert rows_of(spark, steps) == sorted([*others, LATE])


def dies_before_it_commits(spark: SparkSession, table: str, values: str) -> None:
    """A writer whose files are written, and which ends before it could say so; its instant is left in flight."""
    prefix = "hoodie.precommit.validators"
    settings = {
        prefix: "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
        f"{prefix}.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        with pytest.raises(Exception, match=r"(?i)validation"):
            spark.sql(f"INSERT INTO {table} VALUES {values}")
    finally:
        for key in settings:
            spark.conf.unset(key)


def test_what_a_dead_writer_left_in_flight_is_rolled_back_or_told(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    """Hudi rolls it back with the next commit. Where the person is in none of the rows, the steps commit nothing."""
    late = f"(888, {UID}, '{EMAIL}', 1), (889, 1889, 'b889@example.net', 1)"
    steps = make(spark, spark_estate, "dead", "cow")
    others = bystanders(spark.table(str(steps.table)))
    dies_before_it_commits(spark, str(steps.table), late)
    assert rows_of(spark, steps) == others
    steps.all(SAVEPOINTS, DELETE, CLEAN, METADATA)
    assert residue(steps.location) == []

    dies_before_it_commits(spark, str(steps.table), late)
    assert residue(steps.location)
    clean, executor = steps.step(CLEAN[0]), build(steps.ctx)["hudi"]
    executor.run(clean, steps.copy)
    slices, told = executor.verify(clean, steps.copy).findings
    assert slices == "the table still has 1 older file slices"
    assert told.startswith("1 instant is in flight, first ")
    instant = told.partition("first ")[2][:17]
    spark.sql(f"CALL rollback_to_instant(table => '{steps.table}', instant_time => '{instant}')")
    steps.all(CLEAN, METADATA)
    assert residue(steps.location) == []
    assert rows_of(spark, steps) == others
