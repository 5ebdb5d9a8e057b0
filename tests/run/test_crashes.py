"""Kill the run at every dangerous moment, resume, and compare with a plain model."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pii_tracer.model.errors import Refused
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.run.executor_protocol import Outcome
from pii_tracer.run.journal import Journal, Kind, write_and_sync
from pii_tracer.run.run_state import RunState, State
from pii_tracer.run.runner import run
from tests.review.plans import NOW, plan, step
from tests.run.fakes import (
    FakeExecutor,
    FakeLease,
    Fuse,
    Killed,
    Ticking,
    World,
)
from tests.run.history import violations


@st.composite
def plans(draw: st.DrawFn) -> ErasurePlan:
    """A random DAG of up to six steps."""
    count = draw(st.integers(1, 6))
    steps = [
        step(f"s{i}", None, after=[f"s{j}" for j in sorted(draw(st.sets(st.integers(0, i - 1))))] if i else [])
        for i in range(count)
    ]
    return plan(draw(st.permutations(steps)), [])


def attempt(
    path: Path, a_plan: ErasurePlan, executor: FakeExecutor, clock: Ticking, lease: FakeLease | None = None
) -> RunState | None:
    """One process: None when it was killed or overtaken. The journal's writes are dangerous moments, torn halves too."""
    executor.clock = clock

    def write(fd: int, data: bytes) -> None:
        executor.fuse.tick()
        if executor.fuse.left == 0:
            os.write(fd, data[: len(data) // 2])
            raise Killed
        write_and_sync(fd, data)
        executor.fuse.tick()

    try:
        journal = Journal.open(path, clock, write=write)
        return run(a_plan, {"fake": executor}, journal, clock=clock, lease=lease or FakeLease())
    except Killed:
        return None
    except Refused:
        assert lease is not None
        assert lease.lost
        return None


def assert_order(a_plan: ErasurePlan, world: World) -> None:
    """Nothing before what it depends on, and nothing that was finished is done again."""
    assert len(set(world.done)) == len(world.done), "an act that was done has been repeated"
    for a_step in a_plan.steps:
        if a_step.id in world.done:
            for before in a_step.depends_on:
                assert world.done.index(before) < world.done.index(a_step.id)


@settings(max_examples=25, deadline=None)
@given(a_plan=plans())
def test_killed_at_every_moment_once(a_plan: ErasurePlan) -> None:
    for moment in range(10_000):
        with TemporaryDirectory() as folder:
            path, world, clock = Path(folder) / "j", World(), Ticking()
            killed = attempt(path, a_plan, FakeExecutor(world, Fuse(moment)), clock) is None
            state = attempt(path, a_plan, FakeExecutor(world), clock)
            assert state is not None
            assert state.state is State.COMPLETE
            assert sorted(world.done) == sorted(s.id for s in a_plan.steps)
            assert_order(a_plan, world)
        if not killed:
            return
    raise AssertionError("the run never came to its end")


@dataclass
class Frozen(FakeExecutor):
    """Its machine stops in the middle of an act; when it wakes up, another runner has gone on."""

    which: str = ""
    meanwhile: Callable[[], None] = lambda: None

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        outcome = super().run(step, copy)
        if step.id == self.which:
            self.meanwhile()
        return outcome


class Crashes(RuleBasedStateMachine):
    """Any sequence of kills, failures, waits, takeovers, torn tails and resumes.

    The model is the set of acts that must have happened, each once and after what it depends on; the journal is read as
    a history that keeps every promise of the runner.
    """

    @initialize(a_plan=plans())
    def start(self, a_plan: ErasurePlan) -> None:
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "j"
        self.plan, self.world, self.clock = a_plan, World(), Ticking()
        self.complete, self.token = False, 0

    def _attempt(self, executor: FakeExecutor, lease: FakeLease | None = None) -> None:
        before, was_complete = self.world.side_effects, self.complete
        self.token += 1
        state = attempt(self.path, self.plan, executor, self.clock, lease or FakeLease(self.token))
        if was_complete:  # at most it dies while it notes that a torn line was cut
            assert state is not None or executor.fuse.left == 0
            assert executor.calls == []
            assert self.world.side_effects == before
        if state is not None:
            ids = [*state.done, *(f.step for f in state.failed), *dict(state.waiting), *state.never_started]
            assert sorted(ids) == sorted(s.id for s in self.plan.steps)
            assert set(state.done) <= set(self.world.done)
            self.complete = state.state is State.COMPLETE
            assert self.complete == (len(state.done) == len(self.plan.steps))

    @rule(moment=st.integers(0, 60))
    def killed(self, moment: int) -> None:
        self._attempt(FakeExecutor(self.world, Fuse(moment)))

    @rule(which=st.integers(0, 5), moment=st.none() | st.integers(0, 60))
    def failing(self, which: int, moment: int | None) -> None:
        self._attempt(FakeExecutor(self.world, Fuse(moment), broken={f"s{which}"}))

    @rule(which=st.integers(0, 5), moment=st.none() | st.integers(0, 60))
    def waiting(self, which: int, moment: int | None) -> None:
        waits = {f"s{which}": self.clock() + timedelta(minutes=10)}
        self._attempt(FakeExecutor(self.world, Fuse(moment), waits=waits))
        self.clock.now += timedelta(minutes=5)

    @rule(which=st.integers(0, 5), moment=st.none() | st.integers(0, 60))
    def overtaken(self, which: int, moment: int | None) -> None:
        lease = FakeLease(self.token + 1)

        def meanwhile() -> None:
            lease.lost = True
            self._attempt(FakeExecutor(self.world, Fuse(moment)))

        self._attempt(Frozen(self.world, which=f"s{which}", meanwhile=meanwhile), lease)

    @rule(size=st.integers(1, 40))
    def torn(self, size: int) -> None:
        """Part of a line that was being written when the machine went down."""
        if self.path.exists():
            with self.path.open("ab") as stream:
                stream.write(b'{"facts":{"copy":"c1","step":"s0"},"kind":"step_intent"'[:size])

    @rule()
    def time_passes(self) -> None:
        self.clock.now += timedelta(hours=1)

    @invariant()
    def in_order_and_once(self) -> None:
        if hasattr(self, "plan"):
            assert_order(self.plan, self.world)

    @invariant()
    def no_act_without_its_intent(self) -> None:
        if hasattr(self, "path") and self.path.exists():
            records, _ = _parsed(self.path)
            intents = {r.facts["step"] for r in records if r.kind is Kind.STEP_INTENT}
            assert set(self.world.done) | self.world.half <= intents
            assert violations(records, self.plan) == []

    def teardown(self) -> None:
        if not hasattr(self, "plan"):
            return
        self.clock.now = NOW + timedelta(days=400)
        state = attempt(self.path, self.plan, FakeExecutor(self.world), self.clock, FakeLease(self.token + 1))
        assert state is not None
        assert state.state is State.COMPLETE
        assert set(self.world.done) == {s.id for s in self.plan.steps}
        self.folder.cleanup()


def _parsed(path: Path):  # type: ignore[no-untyped-def]
    from pii_tracer.run.journal import parse

    return parse(path.read_bytes())


Crashes.TestCase.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)
TestCrashes = Crashes.TestCase
