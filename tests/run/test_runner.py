"""The runner: order, failure, waits, drift, and that a finished run is left alone."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from executors.stores.s3.step_base import server_time
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG_DELETE_ROWS
from pii_tracer.model.actions import ASKED_AGAIN, Action
from pii_tracer.model.errors import Refused, RunError
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.review.drift import DriftItem
from pii_tracer.run.executor_protocol import Outcome
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.run_state import RunState, State, StepEvent
from pii_tracer.run.runner import run
from pii_tracer.run.step_progress import BY_VERIFY, running_order
from tests.review.plans import NOW, copy, plan, snapshot, step
from tests.run.fakes import (
    FakeExecutor,
    FakeLease,
    Killed,
    Ticking,
    World,
)
from tests.run.history import violations


def go(
    path: Path, a_plan: ErasurePlan, executor: FakeExecutor, clock: Ticking | None = None, **more: object
) -> RunState:
    clock = clock or Ticking()
    executor.clock = clock
    journal = Journal.open(path / "journal.jsonl", clock)
    return run(a_plan, {"fake": executor}, journal, clock=clock, **{"lease": FakeLease(), **more})  # type: ignore[arg-type]


def test_runs_in_the_plans_order_and_twice_does_nothing(tmp_path: Path) -> None:
    a_plan = plan([step("b", after=["a"]), step("a"), step("c")])
    executor = FakeExecutor(World())
    events: list[StepEvent] = []
    state = go(tmp_path, a_plan, executor, on_event=events.append)
    assert state.state is State.COMPLETE
    assert executor.world.done == ["a", "b", "c"]
    assert [e.kind for e in events if e.step.id == "a"] == [Kind.STEP_INTENT, Kind.STEP_RESULT, Kind.STEP_VERIFIED]
    before = (tmp_path / "journal.jsonl").read_bytes()
    again = FakeExecutor(World())
    assert go(tmp_path, a_plan, again).state is State.COMPLETE
    assert again.calls == []
    assert (tmp_path / "journal.jsonl").read_bytes() == before


def test_a_failure_holds_back_only_what_depends_on_it_and_is_tried_again(tmp_path: Path) -> None:
    a_plan = plan([step("a"), step("b", after=["a"]), step("c")])
    world = World()
    state = go(tmp_path, a_plan, FakeExecutor(world, broken={"a"}))
    assert (state.state, state.done, state.never_started) == (State.PARTIAL, ("c",), ("b",))
    assert [f.step for f in state.failed] == ["a"]
    state = go(tmp_path, a_plan, FakeExecutor(world))
    assert state.state is State.COMPLETE
    assert sorted(world.done) == ["a", "b", "c"]


REWRITE, REMOVE, LOOK = Action.S3_REWRITE_ARCHIVE, Action.S3_DELETE_VERSIONS, Action.VERIFY_COPY


def archived() -> ErasurePlan:
    return plan(
        [
            step("rewrite", action=REWRITE),
            step("arrive", action=Action.S3_AWAIT_REPLICA, after=["rewrite"]),
            step("delete", action=REMOVE, after=["arrive"]),
            step("look", action=LOOK, after=["delete"]),
        ]
    )


def test_one_object_that_fails_does_not_hold_up_what_decides_by_object(tmp_path: Path) -> None:
    """The steps behind it are taken and stay open; nothing is called verified before the object is mended."""
    world = World()
    for _ in range(2):
        state = go(tmp_path, archived(), FakeExecutor(world, partly={"rewrite"}))
        assert (state.state, state.done, state.never_started) == (State.PARTIAL, (), ("look",))
        assert [f.step for f in state.failed] == ["rewrite", "arrive", "delete"]
        assert "before rewrite" in state.failed[1].reason
        assert world.done == ["arrive", "delete"]
    state = go(tmp_path, archived(), FakeExecutor(world))
    assert state.state is State.COMPLETE
    assert sorted(world.done) == ["arrive", "delete", "look", "rewrite"]
    assert violations(Journal.open(tmp_path / "journal.jsonl", Ticking()).records, archived()) == []


def test_what_was_open_because_of_an_object_is_done_for_it_once_that_is_mended(tmp_path: Path) -> None:
    world = World()
    go(tmp_path, archived(), FakeExecutor(world, partly={"rewrite"}))
    world.done.remove("delete")  # the mended object's old version is there, to be deleted
    executor = FakeExecutor(world)
    assert go(tmp_path, archived(), executor).state is State.COMPLETE
    assert ("run", "delete") in executor.calls


@pytest.mark.parametrize("how", ["whole", "other"])
def test_nothing_goes_on_behind_a_step_that_failed_as_a_whole_or_is_of_another_kind(tmp_path: Path, how: str) -> None:
    first = step("a", action=REWRITE if how == "whole" else ICEBERG_DELETE_ROWS)
    second = step("b", action=REMOVE, after=["a"])
    fails = {"broken": {"a"}} if how == "whole" else {"partly": {"a"}}
    state = go(tmp_path, plan([first, second]), FakeExecutor(World(), **fails))  # type: ignore[arg-type]
    assert (state.state, state.never_started) == (State.PARTIAL, ("b",))


def test_what_is_done_in_part_and_waits_for_another_step_too_waits(tmp_path: Path) -> None:
    steps = [step("a", action=REWRITE), step("c"), step("b", action=REMOVE, after=["a", "c"])]
    state = go(tmp_path, plan(steps), FakeExecutor(World(), partly={"a"}, broken={"c"}))
    assert state.never_started == ("b",)


def test_a_verification_that_does_not_hold_is_a_failure(tmp_path: Path) -> None:
    a_plan = plan([step("a"), step("b", after=["a"])])
    world = World()
    state = go(tmp_path, a_plan, FakeExecutor(world, unverifiable={"a"}))
    assert state.state is State.PARTIAL
    assert "still there" in state.failed[0].reason
    # the next run looks first; what holds by then is not done again
    healed = FakeExecutor(world)
    assert go(tmp_path, a_plan, healed).state is State.COMPLETE
    assert ("run", "a") not in healed.calls


def test_a_failed_verification_that_still_fails_is_run_again(tmp_path: Path) -> None:
    a_plan = plan([step("a")])
    world = World()
    go(tmp_path, a_plan, FakeExecutor(world, unverifiable={"a"}))
    again = FakeExecutor(world, unverifiable={"a"})
    assert go(tmp_path, a_plan, again).state is State.PARTIAL
    assert [c for c, _ in again.calls] == ["verify", "check", "run", "verify"]


@pytest.mark.parametrize("debug", [False, True])
def test_an_unexpected_error_tells_its_type_and_line_and_never_its_message(
    tmp_path: Path, debug: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Leaky(FakeExecutor):
        def run(self, step: Step, copy: object) -> object:  # type: ignore[override]
            return server_time("9876543210", NOW)  # type: ignore[arg-type]

    monkeypatch.setenv("PII_TRACER_DEBUG", "1" if debug else "")
    state = go(tmp_path, plan([step("a")]), Leaky(World()))
    failed = state.failed[0]
    assert re.fullmatch(
        r"unexpected AttributeError in the executor \(executors/stores/s3/step_base\.py, line \d+\)", failed.reason
    )
    assert failed.todo == (
        "`pii-tracer doctor`; `PII_TRACER_DEBUG=1 pii-tracer resume` shows the engine's words (they can hold data)"
    )
    assert b"9876543210" not in (tmp_path / "journal.jsonl").read_bytes()
    assert ("Traceback" in capsys.readouterr().err) is debug


@pytest.mark.parametrize("action", sorted(ASKED_AGAIN))
def test_a_wait_that_a_person_can_end_is_looked_at_before_its_date(tmp_path: Path, action: Action) -> None:
    until = NOW + timedelta(days=14)
    a_plan = plan([step("a", action=action), step("b", after=["a"])])
    world = World()
    assert go(tmp_path, a_plan, FakeExecutor(world, waits={"a": until})).waiting_until == until
    still = FakeExecutor(world, waits={"a": until})
    assert go(tmp_path, a_plan, still).state is State.WAITING
    assert ("run", "a") in still.calls
    assert go(tmp_path, a_plan, FakeExecutor(world)).state is State.COMPLETE  # somebody did it
    assert world.done == ["a", "b"]
    assert violations(Journal.open(tmp_path / "journal.jsonl", Ticking()).records, a_plan) == []


def test_an_asynchronous_step_waits_and_the_rest_goes_on(tmp_path: Path) -> None:
    a_plan = plan([step("a"), step("b", after=["a"]), step("c")])
    until = NOW + timedelta(hours=12)
    world = World()
    waiting = {"a": until}
    state = go(tmp_path, a_plan, FakeExecutor(world, waits=waiting))
    assert (state.state, state.waiting_until, state.done, state.never_started) == (State.WAITING, until, ("c",), ("b",))
    early = FakeExecutor(world, waits=waiting)
    assert go(tmp_path, a_plan, early, Ticking(NOW + timedelta(hours=1))).state is State.WAITING
    assert early.calls == []
    state = go(tmp_path, a_plan, FakeExecutor(world, waits=waiting), Ticking(until))
    assert state.state is State.COMPLETE


def test_what_a_step_waits_for_is_told_and_written_down(tmp_path: Path) -> None:
    class Hindered(FakeExecutor):
        def run(self, step: Step, copy: object) -> Outcome:
            return Outcome({}, NOW + timedelta(minutes=10), "not read by billing")

    told: list[str] = []
    go(tmp_path, plan([step("a")]), Hindered(World()), on_event=lambda event: told.append(event.detail))
    assert told[-1] == f"{(NOW + timedelta(minutes=10)).isoformat()}: not read by billing"
    (waiting,) = [r for r in Journal.open(tmp_path / "journal.jsonl", Ticking()).records if r.kind is Kind.STEP_WAITING]
    assert waiting.facts["reason"] == "not read by billing"


def test_a_planned_wait_holds_and_an_estimate_does_not(tmp_path: Path) -> None:
    estimate = step("b", after=["a"], earliest_start=NOW + timedelta(hours=2))
    a_plan = plan([step("a", earliest_finish=NOW + timedelta(hours=2)), estimate])
    assert go(tmp_path / "1", _mk(tmp_path / "1", a_plan), FakeExecutor(World())).state is State.COMPLETE
    retained = step("b", after=["a"], earliest_start=NOW + timedelta(days=7))
    a_plan = plan([step("a"), retained])
    world = World()
    state = go(tmp_path / "2", _mk(tmp_path / "2", a_plan), FakeExecutor(world))
    assert (state.state, state.waiting_until) == (State.WAITING, NOW + timedelta(days=7))
    assert world.done == ["a"]
    state = go(tmp_path / "2", a_plan, FakeExecutor(world), Ticking(NOW + timedelta(days=7)))
    assert state.state is State.COMPLETE


def _mk(path: Path, a_plan: ErasurePlan) -> ErasurePlan:
    path.mkdir()
    return a_plan


def drifting(*targets: str, hard: bool = True):  # type: ignore[no-untyped-def]
    def drift(a_step: Step) -> list[DriftItem]:
        return [
            DriftItem(a_step.copy_, p.kind, p.target, p.expected, "s2", hard)
            for p in a_step.preconditions
            if p.target in targets
        ]

    return drift


def test_drift_stops_the_run_before_anything_is_done(tmp_path: Path) -> None:
    steps = [step("a", "c1"), step("b", "c2", preconditions=(snapshot("/lake/c2"),))]
    a_plan = plan(steps, [copy("c1"), copy("c2")])
    world = World()
    state = go(tmp_path, a_plan, FakeExecutor(world), drift=drifting("/lake/c2"))
    assert (state.state, world.side_effects, state.drift[0].found) == (State.BLOCKED, 0, "s2")
    assert go(tmp_path, a_plan, FakeExecutor(world)).state is State.COMPLETE


def test_soft_drift_is_told_and_stops_nothing(tmp_path: Path) -> None:
    a_plan = plan([step("a", preconditions=(snapshot("/lake/c1"),))])
    state = go(tmp_path, a_plan, FakeExecutor(World()), drift=drifting("/lake/c1", hard=False))
    assert state.state is State.COMPLETE
    assert state.drift


def test_what_this_run_changed_itself_is_no_drift(tmp_path: Path) -> None:
    history = copy("c2", location="/lake/c1", origin="c1")
    a_plan = plan(
        [step("a", "c1"), step("b", "c2", after=["a"], preconditions=(snapshot("/lake/c1"),))], [copy("c1"), history]
    )
    world = World()

    def drift(a_step: Step) -> list[DriftItem]:
        return drifting("/lake/c1")(a_step) if "a" in world.done else []

    assert go(tmp_path, a_plan, FakeExecutor(world), drift=drift).state is State.COMPLETE


def test_refusals_before_anything_starts(tmp_path: Path) -> None:
    world = World()
    with pytest.raises(Refused, match="plan cannot be applied"):
        go(tmp_path, plan(applyable=False), FakeExecutor(world))
    with pytest.raises(Refused, match="no executor"):
        go(tmp_path, plan([step("a", executor="kafka")]), FakeExecutor(world))
    with pytest.raises(Refused, match="circle"):
        go(tmp_path, plan([step("a", after=["b"]), step("b", after=["a"])]), FakeExecutor(world))
    with pytest.raises(Refused, match="unknown"):
        running_order([step("a", after=["zz"])])
    with pytest.raises(Refused, match="twice"):
        running_order([step("a"), step("a")])
    go(tmp_path, plan([step("a")]), FakeExecutor(world))
    with pytest.raises(Refused, match="another plan"):
        go(tmp_path, plan([step("b")]), FakeExecutor(world))
    assert world.done == ["a"]


def test_a_runner_that_lost_its_lease_stops(tmp_path: Path) -> None:
    lease = FakeLease()
    world = World()
    losing = FakeExecutor(world)

    def on_event(event: StepEvent) -> None:
        lease.lost = lease.lost or event.kind is Kind.STEP_VERIFIED

    with pytest.raises(Refused, match="lost"):
        go(tmp_path, plan(), losing, lease=lease, on_event=on_event)
    assert world.done == ["c1/1"]


def test_a_runner_that_was_frozen_in_an_act_writes_nothing_when_it_wakes(tmp_path: Path) -> None:
    """Its lease was taken over while its act was going on; its answer must not get into the other's journal."""
    a_plan, world, clock, lease = plan(), World(), Ticking(), FakeLease()

    class Frozen(FakeExecutor):
        def run(self, step: Step, copy: object) -> Outcome:  # type: ignore[override]
            outcome = super().run(step, None)
            lease.lost = True
            go(tmp_path, a_plan, FakeExecutor(world), clock, lease=FakeLease(2))
            return outcome

    with pytest.raises(Refused, match="lost"):
        go(tmp_path, a_plan, Frozen(world), clock, lease=lease)
    records = Journal.open(tmp_path / "journal.jsonl", clock).records  # whole: one chain, of the second runner
    assert records[-1].facts["state"] == "complete"
    assert world.done == ["c1/1", "c1/2"]
    assert violations(records, a_plan) == []


def test_a_step_that_holds_no_longer_at_the_end_keeps_the_plan_open(tmp_path: Path) -> None:
    a_plan, world = plan(), World()
    state = go(tmp_path, a_plan, FakeExecutor(world), undone=lambda s: "the person is back" if s.id == "c1/1" else None)
    assert (state.state, state.done, [f.step for f in state.failed]) == (State.PARTIAL, ("c1/2",), ["c1/1"])
    state = go(tmp_path, a_plan, FakeExecutor(world, unverifiable={"c1/1"}))
    assert state.state is State.PARTIAL, "it is looked at again, and not taken for done"

    def unreadable(a_step: Step) -> str | None:
        raise RunError("the bucket does not answer")

    assert go(tmp_path, a_plan, FakeExecutor(world), undone=unreadable).state is State.PARTIAL
    assert go(tmp_path, a_plan, FakeExecutor(world)).state is State.COMPLETE
    assert violations(Journal.open(tmp_path / "journal.jsonl", Ticking()).records, a_plan) == []


def test_what_verify_found_is_searched_again_after_a_crash_in_that_search(tmp_path: Path) -> None:
    a_plan, world = plan(), World()
    assert go(tmp_path, a_plan, FakeExecutor(world)).state is State.COMPLETE
    noted = {**BY_VERIFY, "left_of": ["l"]}
    Journal.open(tmp_path / "journal.jsonl", Ticking()).append(Kind.STEP_NOTED, step="c1/2", facts=noted)

    def killed(a_step: Step) -> str | None:
        raise Killed

    with pytest.raises(Killed):
        go(tmp_path, a_plan, FakeExecutor(world), undone=killed)
    asked: list[str] = []
    assert go(tmp_path, a_plan, FakeExecutor(world), undone=lambda s: asked.append(s.id)).state is State.COMPLETE
    assert asked == ["c1/1", "c1/2"]
    assert go(tmp_path, a_plan, FakeExecutor(world), undone=killed).state is State.COMPLETE, "and it is over then"


def test_a_file_that_is_named_after_somebody_is_not_named_in_the_journal(tmp_path: Path) -> None:
    """The plan knows its own persons' values, and no others'."""

    class Unlucky(FakeExecutor):
        def run(self, step: Step, copy: Copy | None) -> Outcome:
            raise RunError("the file cannot be read", where="/lake/exports/bob.smith@example.org.parquet")

    state = go(tmp_path, plan([step("c1/1")]), Unlucky(World()))
    [failure] = state.failed
    assert re.fullmatch(r"the file cannot be read \(/lake/exports/…[0-9a-f]{4}\.parquet\)", failure.reason)
    assert "bob" not in (tmp_path / "journal.jsonl").read_text()


def test_what_holds_no_longer_is_said_where_another_step_failed(tmp_path: Path) -> None:
    """Such a run ended with the verdicts of the runs before it: a copy that changed since was called erased."""
    a_plan, world = plan([step("c1/1"), step("c2/1"), step("c3/1", after=["c2/1"])]), World()
    asked = []

    def back(a_step: Step) -> str | None:
        asked.append(a_step.id)
        return "the person is back" if a_step.id == "c1/1" else None

    state = go(tmp_path, a_plan, FakeExecutor(world, unverifiable={"c2/1"}), undone=back)
    assert (state.state, state.done, {f.step for f in state.failed}) == (State.PARTIAL, (), {"c1/1", "c2/1"})
    assert asked == ["c1/1"], "what is not done is not looked at"
    assert go(tmp_path, a_plan, FakeExecutor(world)).state is State.COMPLETE


@pytest.mark.parametrize("retention", ["immediate", "retain"])
def test_what_was_undone_is_done_again_when_the_run_goes_on(tmp_path: Path, retention: str) -> None:
    """A writer, a RESTORE or a compaction brings the person back: the approved steps that hold no longer are repeated.

    Not where a retention window was waited for: repeating the expiry would cut what others may still read.
    """
    look = step("c1/3", after=["c1/2"], action=Action.VERIFY_COPY)
    a_plan = plan([step("c1/1"), step("c1/2", after=["c1/1"]), look], retention=retention)
    world = World()
    assert go(tmp_path, a_plan, FakeExecutor(world, unverifiable={"c1/3"})).state is State.PARTIAL
    world.done.remove("c1/1")
    state = go(tmp_path, a_plan, FakeExecutor(world))
    assert world.done.count("c1/1") == (1 if retention == "immediate" else 0)
    assert world.done.count("c1/2") == 1, "what still holds is left alone"
    assert state.state is State.COMPLETE
    assert violations(Journal.open(tmp_path / "journal.jsonl", Ticking()).records, a_plan) == []
