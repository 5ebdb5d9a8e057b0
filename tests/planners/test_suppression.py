"""The plan ends with an entry on the suppression list, after every verification and before the keys are gone."""

from __future__ import annotations

from datetime import datetime

from pii_tracer.model.actions import Action
from pii_tracer.model.plan import ErasurePlan, Step
from planners.build import RECHECK_AFTER
from tests.planners.smalllake import FAR, Lake, hold


def entry(plan: ErasurePlan) -> Step:
    (found,) = [s for s in plan.steps if s.action is Action.SUPPRESS]
    return found


def test_it_comes_after_every_verification_and_before_the_keys_go() -> None:
    plan = Lake().plan()
    verified = {s.id for s in plan.steps if s.action is Action.VERIFY_COPY}
    assert len(verified) == 3
    assert set(entry(plan).depends_on) == verified
    (drop,) = [s for s in plan.steps if s.action is Action.DROP_KEYS]
    assert entry(plan).id in drop.depends_on
    assert plan.steps[-1] == drop


def test_it_names_key_sets_and_a_day_and_no_person() -> None:
    plan = Lake().plan()
    step = entry(plan)
    assert step.parameters["key_sets"] == ["user.uid"]
    assert datetime.fromisoformat(step.parameters["recheck_on"]) == step.earliest_finish + RECHECK_AFTER
    day = f"{step.earliest_finish + RECHECK_AFTER:%Y-%m-%d}"
    assert f"run `pii-tracer recheck` on {day}" in plan.schedules[0].notes[-1]
    assert b"1234567890" not in plan.to_bytes()


def test_a_plan_that_erases_nothing_suppresses_nobody() -> None:
    held = Lake(copies={}).plan(hold("prod.users", until=FAR))
    assert not [s for s in held.steps if s.action is Action.SUPPRESS]
