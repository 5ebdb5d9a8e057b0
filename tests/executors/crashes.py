"""Dying in the middle of what executors do: the runner and the journal are the real ones, and so is what they work on.

An effect is something that outlives the process: a statement, a file put in place, a request that writes. A process may
die before each and after each: the act worked, and its answer was lost. Once dead it does nothing more: whatever stands
in a `finally` is not done either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.run.executor_protocol import (
    Check,
    Executor,
    Outcome,
    Progress,
)
from pii_tracer.run.journal import Journal
from pii_tracer.run.run_state import State
from pii_tracer.run.runner import run
from tests.executors.world import NOW
from tests.run.fakes import FakeLease, Killed, Ticking
from tests.run.history import violations


@dataclass
class Effects:
    """Lets a process die at every moment that no process has died at yet: each is once the last.

    mortal: whether anybody dies now. sweeps: how many files that are swept away count at all.
    done: what was done, in order. deaths: the moments at which processes died.
    """

    mortal: bool = False
    dead: bool = False
    sweeps: int = 3
    done: list[str] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)

    def refuse_the_dead(self) -> None:
        """The dead do nothing."""
        if self.dead:
            raise Killed

    def before(self, what: str) -> None:
        """In front of an effect."""
        self.refuse_the_dead()
        self._moment(f"before {what}")

    def after(self, what: str, *, sweep: bool = False) -> None:
        """Behind an effect."""
        self.done.append(what)
        if sweep and not self.sweeps:
            return
        self.sweeps -= sweep
        self._moment(f"after {what}")

    def _moment(self, what: str) -> None:
        if self.mortal and what not in self.deaths:
            self.dead = True
            self.deaths.append(what)
            raise Killed


@dataclass(frozen=True)
class Mortal:
    """An executor whose whole act is an effect, too."""

    inner: Executor
    effects: Effects

    @property
    def name(self) -> str:
        """As of the executor itself."""
        return self.inner.name

    def check(self, step: Step, copy: Copy | None) -> None:
        """As it is."""
        self.inner.check(step, copy)

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Dies in front of the act, in it, or behind it."""
        self.effects.before(f"the act {step.id}")
        outcome = self.inner.run(step, copy)
        self.effects.after(f"the act {step.id}")
        return outcome

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """As it is."""
        return self.inner.verify(step, copy)

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """As it is."""
        return self.inner.probe(step, copy)


def die_and_resume(
    a_plan: ErasurePlan,
    executors: Callable[[], Mapping[str, Executor]],
    path: Path,
    effects: Effects,
    wait: Callable[[], None] = lambda: None,
    *,
    acts: bool = True,
) -> int:
    """Sessions it took to come to the end, each with executors made anew.

    wait: real time passes for steps that wait. acts: it may die in front of a whole act and behind it, too.
    """
    clock, effects.mortal = Ticking(NOW), True
    for session in range(1, 200):
        effects.dead = False
        made = executors()
        if acts:
            made = {name: Mortal(executor, effects) for name, executor in made.items()}
        try:
            journal = Journal.open(path, clock)  # it keeps its end beside itself, and can die in that
            state = run(a_plan, made, journal, clock=clock, lease=FakeLease(session))
        except Killed:
            continue
        if state.state is State.WAITING and state.waiting_until is not None:
            clock.now = max(clock.now, state.waiting_until)
            wait()
            continue
        effects.mortal = False
        assert state.state is State.COMPLETE, state
        assert violations(journal.records, a_plan) == []
        return session
    raise AssertionError("it never came to the end")
