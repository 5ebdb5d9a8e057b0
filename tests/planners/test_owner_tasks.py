"""What people do by hand about waived gaps: steps of the plan that wait for a signed word."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pii_tracer.model.errors import PlanError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.model.waivers import OwnerTask
from pii_tracer.review.plan_consistency import contradiction
from reports.plan.plan_view import PlanView
from tests.planners.smalllake import Lake
from tests.waivers import waivers_of

ACT = "remove the mention from the ticket"
BACKUP: dict[str, Any] = {
    "name": "nightly",
    "of": ["prod.nowhere"],
    "owner": "database team",
    "location": "vault/nightly",
    "due_days": 14,
}
GAP = "gap-backup_unmatched-nightly-prod.nowhere"
OTHER = "gap-backup_unmatched-nightly-prod.elsewhere"


def planned(*gaps: str, **task: Any) -> ErasurePlan:
    said = {"owner": "support team", "act": ACT, "due_days": 3, **task}
    of = [gap.rpartition("-")[2] for gap in gaps or (GAP,)]
    lake = Lake(backups=({**BACKUP, "of": of},))
    until = datetime(2031, 1, 1, tzinfo=timezone.utc)
    return lake.plan(waivers=waivers_of(lake.plan().gaps, until, task=OwnerTask.model_validate(said)))


def test_a_task_is_a_step_that_the_run_waits_for() -> None:
    plan = planned()
    (step,) = [s for s in plan.steps if s.action == "owner_task"]
    assert (step.copy_, step.executor, step.irreversible) == (None, "people", False)
    assert step.parameters == {"owner": "support team", "act": ACT, "due_days": 3, "gaps": [GAP]}
    assert step.depends_on == ("keys/01-stage",)
    assert step.estimate.wait == timedelta(days=3).total_seconds()
    assert plan.complete
    assert plan.applyable
    assert contradiction(plan) is None


def test_one_task_of_several_gaps_is_one_step() -> None:
    plan = planned(GAP, OTHER)
    (step,) = [s for s in plan.steps if s.action == "owner_task"]
    assert sorted(step.parameters["gaps"]) == sorted([GAP, OTHER])


def test_a_task_comes_after_one_copy_and_before_another() -> None:
    plan = planned(after=["prod.users"], before=["prod.a"])
    steps = {s.id: s for s in plan.steps}
    (task,) = [s for s in plan.steps if s.action == "owner_task"]
    assert task.depends_on == ("c-prod.users/99-verify",)
    (first,) = [s for s in plan.steps if s.copy_ == "c-prod.a" and task.id in s.depends_on]
    mine = [s.id for s in plan.steps if s.copy_ == "c-prod.a"]
    assert first.id == mine[0]
    assert not set(steps[mine[0]].depends_on) & set(mine)
    (shown,) = PlanView(plan).tasks
    assert "after prod.users; before prod.a" in shown.when


def test_a_copy_is_named_by_its_id_too() -> None:
    (task,) = [s for s in planned(after=["c-prod.users"]).steps if s.action == "owner_task"]
    assert task.depends_on == ("c-prod.users/99-verify",)


@pytest.mark.parametrize("word", ["before", "after"])
def test_a_copy_that_the_plan_does_not_change_is_refused(word: str) -> None:
    with pytest.raises(PlanError, match="the plan has no step for"):
        planned(**{word: ["prod.nowhere"]})


def test_a_task_before_and_after_the_same_copy_is_refused() -> None:
    with pytest.raises(PlanError, match="a task waits for a step that waits for it") as refused:
        planned(after=["prod.a"], before=["prod.a"])
    assert "`before`" in (refused.value.todo or "")


def test_a_file_in_which_task_and_step_do_not_agree_is_a_contradiction() -> None:
    plan = planned()
    (gap,) = plan.gaps
    assert gap.waiver is not None
    bare = gap.model_copy(update={"waiver": gap.waiver.model_copy(update={"task": None})})
    softer = tuple(
        s.model_copy(update={"parameters": {**s.parameters, "act": "nothing"}}) if s.action == "owner_task" else s
        for s in plan.steps
    )
    for changes in ({"gaps": (bare,)}, {"steps": softer}):
        said = contradiction(plan.model_copy(update=changes))
        assert said is not None
        assert "task" in said
