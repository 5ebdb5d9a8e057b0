"""The tasks over a real estate, without a scheduler and without Spark: what they return, wait for, and refuse."""

from __future__ import annotations

import asyncio
import re
import time
import traceback
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferred,
)

from pii_tracer.app import Settings, add_requests
from pii_tracer.model.errors import EstateError, JournalError, Refused
from pii_tracer_airflow.failures import translated
from pii_tracer_airflow.operators import (
    LONGEST_WAIT,
    SHORTEST_WAIT,
    ApplyOperator,
    PlanDueOperator,
    PlanOperator,
    ReadinessOperator,
)
from pii_tracer_airflow.progress import TaskProgress
from pii_tracer_airflow.sensors import ApprovalSensor
from pii_tracer_airflow.stopping import Stopped
from pii_tracer_airflow.triggers import ApprovalTrigger
from tests.estate import KEY, add_copy, add_request, sign, write_estate

NOW = datetime.now(timezone.utc).replace(microsecond=0)
CLUB = """
laws:
  - version: 1
    name: CLUB
    title: Statutes of a club
    checked: 2026-11-27
    rules:
      - since: 2020-01-01
        deadline: {days: 30, article: s. 4, url: 'https://club.example/statutes'}
        notice: {hours: 48, grounds: [inactivity], text: the end, article: s. 4, url: 'https://club.example/statutes'}
"""
LATER, BEFORE = (NOW + timedelta(hours=1)).isoformat(), (NOW - timedelta(hours=1)).isoformat()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return write_estate(tmp_path)


def context(run: str = "run-1") -> Any:
    return {"ti": SimpleNamespace(dag_id="d", run_id=run, task_id="plan", map_index=-1)}


def base(settings: Settings) -> dict[str, str]:
    return {"estate_file": str(settings.estate_file), "state": str(settings.state)}


def due(settings: Settings, **more: Any) -> PlanDueOperator:
    return PlanDueOperator(task_id="plan", planner="Erasure pipeline", **base(settings), **more)


def asked(settings: Settings, plan_file: str, **more: Any) -> dict[str, str]:
    return {**base(settings), "plan_file": plan_file, "trusted": str(settings.base / "trusted.yaml"), **more}


def sensor(settings: Settings, plan_file: str) -> ApprovalSensor:
    return ApprovalSensor(task_id="approved", **asked(settings, plan_file))


def apply(settings: Settings, plan_file: str) -> ApplyOperator:
    return ApplyOperator(task_id="apply", **asked(settings, plan_file))


def planned(settings: Settings) -> str:
    add_request(settings)
    return str(due(settings).perform(context())["plan_file"])


def test_what_is_due_is_planned_once_and_a_second_try_takes_that_plan(settings: Settings) -> None:
    add_request(settings)
    made = due(settings).perform(context())
    assert made["requests"] == ["R-1"]
    assert Path(made["plan_file"]).parent == settings.state / "plans"
    assert KEY not in str(made)
    before = Path(made["plan_file"]).read_bytes()
    assert due(settings).perform(context()) == made
    assert Path(made["plan_file"]).read_bytes() == before
    with pytest.raises(AirflowSkipException, match="no request is to be planned"):
        due(settings).perform(context("run-2"))


def test_a_plan_that_was_given_back_is_planned_anew_into_another_file(settings: Settings) -> None:
    """The approvals of the old plan lie beside it, and are for other bytes."""
    from pii_tracer.cli.main import run

    add_request(settings)
    made = due(settings).perform(context())
    sign(settings, made["plan_file"], "meera")
    places = ["--estate", str(settings.estate_file), "--state", str(settings.state)]
    assert run(["requests", "release", made["plan_id"], "--by", "Ben", "--reason", "drift", *places]) == 0
    again = due(settings).perform(context())
    assert again["requests"] == ["R-1"]
    assert again["plan_file"] != made["plan_file"]
    assert due(settings).perform(context()) == again


def test_a_plan_with_a_gap_fails_the_task(settings: Settings) -> None:
    add_copy(settings.base)
    request = {"id": "R-9", "law": "GDPR", "received": BEFORE, "subject": {"type": "user", "key": KEY}}
    (settings.base / "request.yaml").write_text(yaml.safe_dump(request))
    operator = PlanOperator(
        task_id="plan", planner="p", requests=[str(settings.base / "request.yaml")], **base(settings)
    )
    with pytest.raises(AirflowFailException, match=r"is incomplete: gaps gap-\S+") as failed:
        operator.perform(context())
    assert KEY not in str(failed.value)


def test_the_sensor_waits_for_every_approver(settings: Settings) -> None:
    plan_file = planned(settings)
    with pytest.raises(TaskDeferred) as waits:
        sensor(settings, plan_file).look_again({}, {}, LATER)
    assert isinstance(waits.value.trigger, ApprovalTrigger)
    sign(settings, plan_file, "meera")
    with pytest.raises(TaskDeferred):
        sensor(settings, plan_file).look_again({}, {"plan_id": "an event alone opens nothing"}, LATER)
    with pytest.raises(AirflowSensorTimeout, match="1 of 2 approvers"):
        sensor(settings, plan_file).look_again({}, {}, BEFORE)
    sign(settings, plan_file, "ben")
    assert sensor(settings, plan_file).look_again({}, {}, BEFORE)["approved"] is True


def test_an_approval_that_does_not_hold_counts_for_nothing(settings: Settings) -> None:
    plan_file = planned(settings)
    sign(settings, plan_file, "meera")
    forged = sign(settings, plan_file, "ben")
    kept = forged.read_bytes()
    forged.write_bytes(re.sub(rb'"sig": ?"....', b'"sig":"AAAA', kept))
    with pytest.raises(AirflowSensorTimeout, match="signature was not made with a trusted key"):
        sensor(settings, plan_file).look_again({}, {}, BEFORE)
    forged.write_bytes(kept)
    assert sensor(settings, plan_file).look_again({}, {}, BEFORE)["approved"] is True


def test_a_plan_that_the_policy_refuses_is_not_waited_for(settings: Settings) -> None:
    plan_file = planned(settings)
    (settings.base / "policy.yaml").write_text("version: 1\nmin_slack_days: 5000\n")
    with pytest.raises(AirflowFailException, match="whoever approves it"):
        sensor(settings, plan_file).look_again({}, {}, LATER)


def test_the_trigger_goes_on_after_a_restart_and_holds_nobody_up(settings: Settings) -> None:
    from airflow.sdk.serde import deserialize, serialize

    plan_file = planned(settings)
    sign(settings, plan_file, "meera")
    first = ApprovalTrigger(**asked(settings, plan_file), policy=None, seconds=0.2, until=LATER)
    path, arguments = first.serialize()
    assert path == "pii_tracer_airflow.triggers.ApprovalTrigger"
    again = ApprovalTrigger(**deserialize(serialize(arguments)))
    assert KEY not in str(arguments)

    async def waited() -> tuple[Any, float]:
        longest, last = 0.0, time.monotonic()

        async def ticks() -> None:
            nonlocal longest, last
            while True:
                await asyncio.sleep(0.01)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()

        async def signs() -> None:
            await asyncio.sleep(1)
            await asyncio.to_thread(sign, settings, plan_file, "ben")

        beside = [asyncio.create_task(ticks()), asyncio.create_task(signs())]
        event = await asyncio.wait_for(anext(again.run()), 60)
        for task in beside:
            task.cancel()
        return event.payload, longest

    payload, longest = asyncio.run(waited())
    assert payload["plan_id"].startswith("plan-")
    assert longest < 2


def test_the_trigger_ends_at_its_time(settings: Settings) -> None:
    trigger = ApprovalTrigger(**asked(settings, planned(settings)), policy=None, seconds=60, until=BEFORE)
    assert asyncio.run(asyncio.wait_for(anext(trigger.run()), 30)).payload


def test_apply_begins_nothing_without_approvals(settings: Settings) -> None:
    plan_file = planned(settings)
    sign(settings, plan_file, "meera")
    with pytest.raises(AirflowFailException, match=r"(?s)1 of 2 approvers.*next:.*exit code: 5"):
        apply(settings, plan_file).perform(context())
    assert not (settings.state / "runs").exists()


def test_apply_fails_at_once_where_the_world_is_another_one(settings: Settings) -> None:
    plan_file = planned(settings)
    for name in ("meera", "ben"):
        sign(settings, plan_file, name)
    settings.estate_file.write_text(settings.estate_file.read_text() + "\n# edited\n")
    with pytest.raises(AirflowFailException, match=r"(?s)changed since the plan.*exit code: 6"):
        apply(settings, plan_file).perform(context())


def test_apply_waits_for_the_time_that_the_run_names(settings: Settings) -> None:
    operator = apply(settings, "p.plan.json")
    for wait, expected in ((3, timedelta(hours=3)), (90 * 24, LONGEST_WAIT), (-3, SHORTEST_WAIT)):
        now = datetime.now(timezone.utc)
        with pytest.raises(TaskDeferred) as waits:
            operator._wait(now + timedelta(hours=wait))
        assert abs(waits.value.trigger.moment - now - expected) < timedelta(seconds=30)
        assert waits.value.method_name == "go_on"


def test_apply_waits_until_a_notice_has_run(settings: Settings) -> None:
    with settings.estate_file.open("a") as file:
        file.write(CLUB)
    rows = settings.base / "idle.csv"
    noticed = (NOW - timedelta(hours=46)).isoformat()
    rows.write_text(f"id,key,ground,noticed\nR-1,{KEY},inactivity,{noticed}\n")
    received = (NOW - timedelta(days=3)).isoformat()
    given = {"subject": "user", "law": "CLUB", "received": received}
    assert add_requests(settings, rows, given=given).added == 1
    plan_file = str(due(settings).perform(context())["plan_file"])
    for name in ("meera", "ben"):
        sign(settings, plan_file, name)
    with pytest.raises(TaskDeferred) as waits:
        apply(settings, plan_file).perform(context())
    assert waits.value.trigger.moment == NOW + timedelta(hours=2)
    assert not (settings.state / "runs").exists()


def test_readiness_says_no_by_failing(settings: Settings) -> None:
    operator = ReadinessOperator(task_id="readiness", **base(settings))
    assert operator.perform(context())["ready"] is True
    (settings.base / "jobs.sql").write_text("INSERT OVERWRITE app.mails SELECT broken(( FROM app.users;\n")
    with pytest.raises(AirflowFailException, match="not ready"):
        operator.perform(context())


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (Refused("another runner holds the plan"), True),
        (EstateError("a store does not answer"), True),
        (ConnectionError(f"no row {KEY}"), True),
        (JournalError("the journal is broken"), False),
    ],
)
def test_which_errors_are_tried_again(error: Exception, again: bool) -> None:
    def work() -> None:
        raise error

    with pytest.raises(AirflowException) as failed:
        translated(work)
    assert isinstance(failed.value, AirflowFailException) is not again
    assert KEY not in "".join(traceback.format_exception(failed.value))


def test_who_was_told_to_stop_takes_no_further_step(settings: Settings) -> None:
    operator = apply(settings, "p.plan.json")
    operator.on_kill()  # nothing is at work: a timeout has ended it already
    progress = operator._progress = TaskProgress(operator.log)
    with pytest.raises(Stopped):
        operator.on_kill()
    for report in (progress.stage, progress.step, progress.warn):
        with pytest.raises(Stopped):
            report("the next step")
    assert not isinstance(Stopped(), Exception)
