"""A table format that only this test knows, installed as a package would: its steps are planned like everybody's."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pii_tracer.common import plugins
from pii_tracer.lake.formats import registry as formats
from pii_tracer.lake.formats.base import Role, TableFormat
from pii_tracer.lake.inventory import Ref, RefKind
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Column, Format
from pii_tracer.model.errors import PlanError
from planners.formats import registry as planners
from planners.formats.base import BY_ITS_JOB, FormatPlanner
from planners.schedule.step_dates import writes
from planners.step_drafts import CopyDraft, Draft, StepWriter
from tests.planners.smalllake import Lake, copy, hold, strategies

BRICKS = Format("bricks")
BRICKS_DELETE = Action("bricks_delete")
BRICKS_SWEEP = Action("bricks_sweep")
STATE = {"format": BRICKS, "columns": (Column(name="uid", type="bigint"), Column(name="amount", type="bigint"))}


class BricksFormat(TableFormat):
    """What the rest of the tool knows of it."""

    name = BRICKS
    title = "Bricks"
    actions = {BRICKS_DELETE: frozenset({Role.ON_ROWS, Role.COUNTS_ROWS}), BRICKS_SWEEP: frozenset()}


@dataclass(frozen=True)
class BricksPlanner(FormatPlanner):
    """Deletes rows and sweeps, and relies on the base class for everything else."""

    executors = frozenset({"bricks"})

    def table_steps(self, item: CopyDraft) -> tuple[Draft, ...]:
        steps = StepWriter.of_table(item.copy, "bricks")
        steps.add(BRICKS_DELETE, "rows", verification="no row is left", irreversible=False)
        steps.add(BRICKS_SWEEP, "old bricks", verification="no old brick is left", retained=True)
        return tuple(steps.drafts)


def forget() -> None:
    """What was asked of installed packages before they changed."""
    importlib.invalidate_caches()
    asked = (
        *(plugins.registered, plugins.names, plugins.load),
        *(formats.table_formats, formats.format_of, formats.actions_with, formats.known_actions),
        *(planners.planner_of, planners.format_planners, planners.format_executors, planners.spark_executors),
    )
    for one in asked:
        one.cache_clear()


@pytest.fixture(autouse=True)
def installed(tmp_path: Path) -> Iterator[None]:
    """A distribution with the format and its planner, on the module search path while a test runs."""
    info = tmp_path / "bricks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bricks\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(
        f"[{formats.GROUP}]\nbricks = {__name__}:BricksFormat\n[{planners.GROUP}]\nbricks = {__name__}:BricksPlanner\n",
        encoding="utf-8",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        forget()
        yield
    forget()


def test_its_steps_stand_in_the_plan_in_their_order() -> None:
    plan = Lake(states={"a": STATE}).plan()
    assert strategies(plan)["c-prod.a"] == "delete_by_key"
    steps = [step for step in plan.steps if step.copy_ == "c-prod.a"]
    assert [(s.action, s.executor) for s in steps] == [
        (BRICKS_DELETE, "bricks"),
        (BRICKS_SWEEP, "bricks"),
        (Action.VERIFY_COPY, "verify"),
    ]
    source = next(step for step in plan.steps if step.copy_ == "c-prod.users")
    assert source.id in steps[0].depends_on  # its rows leave behind those that they were made of
    assert [p.kind for p in steps[0].preconditions] == ["sharing", "columns", "refs", "snapshot"]


def test_what_it_says_nothing_of_is_not_tried() -> None:
    sums, one = {"a": Subtype.AGGREGATION}, {"a": {"format": BRICKS}}
    lake = Lake(copies=sums, states=one, sql={"a": "CREATE TABLE a AS SELECT 1 amount"})
    blocked = lake.plan()
    assert strategies(blocked)["c-prod.a"] == "blocked"
    (gap,) = [gap for gap in blocked.gaps if gap.kind == "cannot_be_proved"]
    assert gap.reason == f"rebuilding a table of the format bricks is not supported yet: {BY_ITS_JOB}"

    held = Lake(states={"a": STATE}).plan(hold("prod.a", columns=["amount"]))
    assert copy(held, "a").strategy.value == "exempt"
    assert "single columns cannot be erased in the format bricks yet" in " ".join(gap.reason for gap in held.gaps)


def test_its_steps_wait_for_weekly_windows_and_cost_what_spark_costs() -> None:
    plan = Lake(states={"a": STATE}).plan()
    assert [step.executor for step in plan.steps if step.action is BRICKS_SWEEP] == ["bricks"]
    item = CopyDraft(copy=copy(plan, "a"))
    assert all(writes(draft) for draft in planners.planner_of(BRICKS).table_steps(item))
    assert "bricks" in planners.spark_executors()


def test_references_that_no_step_erases_stop_the_plan() -> None:
    refs = (Ref(name="dev", kind=RefKind.BRANCH, at="1"),)
    with pytest.raises(PlanError, match="no step erases a branch or tag of the table format `bricks`"):
        Lake(states={"a": {**STATE, "refs": refs}}).plan()


def test_a_format_that_nobody_plans_for_stops_the_plan_in_words() -> None:
    with pytest.raises(PlanError, match="no installed package plans for the table format `gravel`") as told:
        Lake(states={"a": {**STATE, "format": Format("gravel")}}).plan()
    assert "bricks" in str(told.value.todo)
