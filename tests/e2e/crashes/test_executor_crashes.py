"""Every executor, killed after each single thing it does to a real table: the statement worked, its answer was lost.

The real runner and journal resume each time with executors made anew, and every statement is once the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from executors.registry import build
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG_REWRITE_REF
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format
from pii_tracer.model.plan import ErasurePlan
from tests.executors.crashes import Effects, die_and_resume
from tests.executors.formats.delta import test_delta as delta
from tests.executors.formats.hudi import test_hudi as hudi
from tests.executors.formats.iceberg import test_iceberg as iceberg
from tests.executors.formats.plain_files import test_files as files
from tests.executors.world import Steps, bystanders, frame, residue, rows
from tests.review.plans import plan
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

_WRITES = re.compile(r"\s*(DELETE|INSERT|UPDATE|MERGE|ALTER|CALL|CREATE|DROP|REORG|VACUUM)\b", re.IGNORECASE)
_SNAPSHOTS = re.compile(r"\d{9,}")
_SHOWS = re.compile(r"\s*CALL\s+show_", re.IGNORECASE)


@pytest.fixture
def effects(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Effects:
    counted = Effects()
    sql, unlink, replace = type(spark).sql, Path.unlink, Path.replace

    def watched_sql(self: Any, statement: str, *more: Any, **named: Any) -> Any:
        writes = _WRITES.match(statement) and not _SHOWS.match(statement)
        if writes:
            counted.refuse_the_dead()
        answer = sql(self, statement, *more, **named)
        if writes:
            # a snapshot made anew has another number, and the moment is the same
            counted.after(_SNAPSHOTS.sub("N", " ".join(statement.split())))
        return answer

    def watched_unlink(self: Path, missing_ok: bool = False) -> None:
        there = self.exists()
        if there:
            counted.refuse_the_dead()
        unlink(self, missing_ok)
        if there and "journal" not in self.name:
            counted.after(f"unlink {self}", sweep=True)

    def watched_replace(self: Path, target: Any) -> Path:
        counted.refuse_the_dead()
        answer = replace(self, target)
        counted.after(f"replace {target}")
        return answer

    monkeypatch.setattr(type(spark), "sql", watched_sql)
    monkeypatch.setattr(Path, "unlink", watched_unlink)
    monkeypatch.setattr(Path, "replace", watched_replace)
    return counted


def planned(steps: Steps, actions: Sequence[tuple[Action, dict[str, Any]]]) -> ErasurePlan:
    """The actions one after the other."""
    made = []
    for number, (action, parameters) in enumerate(actions):
        before = (made[-1].id,) if made else ()
        changes: dict[str, Any] = {"id": f"c1/{number:02}-{action.value}", "depends_on": before, "irreversible": True}
        if action in (Action.STAGE_KEYS, Action.DROP_KEYS):
            changes |= {"executor": "keys", "copy_": None}
        made.append(steps.step(action, **parameters).model_copy(update=changes))
    return plan(made, [steps.copy])


def make_iceberg(spark: SparkSession, world: SparkEstate) -> tuple[Steps, Any, Callable[[], Any]]:
    steps = iceberg.make(spark, world, "crashes", "merge-on-read")
    spark.sql(f"ALTER TABLE {steps.table} CREATE TAG v1 RETAIN 90 DAYS")
    tag = (ICEBERG_REWRITE_REF, {"ref": "v1", "kind": "tag"})
    order = (iceberg.DELETE, iceberg.REWRITE, tag, iceberg.MANIFESTS, iceberg.EXPIRE, iceberg.ORPHANS)
    return steps, order, lambda: spark.table(str(steps.table))


def make_delta(spark: SparkSession, world: SparkEstate) -> tuple[Steps, Any, Callable[[], Any]]:
    steps = delta.make(spark, world, "crashes", **{"delta.enableDeletionVectors": "true"})
    return steps, delta.SEQUENCE, lambda: delta.read(spark, steps)


def make_hudi(spark: SparkSession, world: SparkEstate) -> tuple[Steps, Any, Callable[[], Any]]:
    steps = hudi.make(spark, world, "crashes", "mor")
    order = (hudi.SAVEPOINTS, hudi.DELETE, hudi.COMPACT, hudi.CLEAN, hudi.METADATA)
    return steps, order, lambda: spark.table(str(steps.table))


def make_files(spark: SparkSession, world: SparkEstate) -> tuple[Steps, Any, Callable[[], Any]]:
    folder = world.folder("crashes")
    for number in range(3):
        frame(spark, rows(number * 20, 20, (number * 20 + 4,))).write.mode("append").parquet(str(folder))
    steps = files.steps_for(world, folder, Format.PARQUET)
    return steps, (files.rewrite(steps),), lambda: spark.read.parquet(str(folder))


def make_keys(spark: SparkSession, world: SparkEstate) -> tuple[Steps, Any, Callable[[], Any]]:
    """What a session holds of the keys dies with it, and a resumed one makes its own for the act in between."""
    folder = world.folder("crashes_keys")
    frame(spark, rows(0, 20, (4,))).write.parquet(str(folder))
    steps = files.steps_for(world, folder, Format.PARQUET)
    order = ((Action.STAGE_KEYS, {"key_sets": ["uid"]}), files.rewrite(steps), (Action.DROP_KEYS, {}))
    return steps, order, lambda: spark.read.parquet(str(folder))


SPARK_CASES = {"iceberg": (make_iceberg, 12), "delta": (make_delta, 5), "hudi": (make_hudi, 5), "keys": (make_keys, 2)}
"""Executor -> how its table is made, and how many sessions it takes at least."""


@pytest.mark.parametrize(
    ("make", "at_least"),
    [
        pytest.param(*SPARK_CASES["iceberg"], marks=pytest.mark.nightly),  # test_kill ends an Iceberg table's steps
        *(SPARK_CASES[kind] for kind in ("delta", "hudi", "keys")),
        (make_files, 3),
    ],
)
def test_killed_after_each_thing_it_does(
    spark: SparkSession, spark_estate: SparkEstate, tmp_path: Path, effects: Effects, make: Any, at_least: int
) -> None:
    steps, order, read = make(spark, spark_estate)
    others = bystanders(read())
    assert residue(steps.location)
    sessions = die_and_resume(
        planned(steps, order), lambda: build(steps.ctx), tmp_path / "journal", effects, acts=make is make_keys
    )
    assert sessions > at_least, "it was killed less often than the steps have statements"
    assert residue(steps.location) == []
    assert bystanders(read()) == others
