"""Executors in memory that keep the real protocol's promises, over a world that outlives a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pii_tracer.model.errors import Refused, RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import (
    Check,
    Outcome,
    PartlyDone,
    Progress,
)
from tests.review.plans import NOW


class Killed(BaseException):
    """The process dies here."""


@dataclass
class World:
    """What is on the disks: acts really done, in order, and acts half done."""

    done: list[str] = field(default_factory=list)
    half: set[str] = field(default_factory=set)
    side_effects: int = 0


@dataclass
class Fuse:
    """Kills at the n-th dangerous moment; None: never."""

    left: int | None = None

    def tick(self) -> None:
        """One dangerous moment passes."""
        if self.left is None:
            return
        if self.left == 0:
            raise Killed
        self.left -= 1


@dataclass
class FakeExecutor:
    """Does a step in two halves; a fuse may kill before, between and after them."""

    world: World
    fuse: Fuse = field(default_factory=Fuse)
    broken: set[str] = field(default_factory=set)
    partly: set[str] = field(default_factory=set)
    unverifiable: set[str] = field(default_factory=set)
    waits: dict[str, datetime] = field(default_factory=dict)
    clock: Callable[[], datetime] = lambda: NOW
    note: Callable[[str], None] = lambda step: None
    calls: list[tuple[str, str]] = field(default_factory=list)
    name: str = "fake"

    def check(self, step: Step, copy: Copy | None) -> None:
        self.calls.append(("check", step.id))
        self.fuse.tick()

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        self.calls.append(("run", step.id))
        self.note(step.id)
        self.fuse.tick()
        if step.id in self.broken:
            raise RunError("the engine said no", where=step.id)
        if step.id in self.partly:
            self.world.half.add(step.id)
            raise PartlyDone("1 of 3 objects were not treated", {"treated": 2}, where=step.id, todo="mend it")
        until = self.waits.get(step.id)
        if until and self.clock() < until:
            self.world.half.add(step.id)
            return Outcome(waiting_until=until)
        self.world.half.add(step.id)
        self.world.side_effects += 1
        self.fuse.tick()
        self.world.half.discard(step.id)
        self.world.done.append(step.id)
        self.fuse.tick()
        return Outcome({"snapshot": 2**60 + 1})

    def verify(self, step: Step, copy: Copy | None) -> Check:
        self.calls.append(("verify", step.id))
        self.fuse.tick()
        ok = step.id in self.world.done and step.id not in self.unverifiable
        return Check(ok, () if ok else ("the person is still there",), {"rows": 0})

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        self.calls.append(("probe", step.id))
        if step.id in self.world.done:
            return Progress.DONE
        return Progress.PARTIAL if step.id in self.world.half else Progress.NOT_STARTED


@dataclass
class FakeLease:
    """A lease that can be lost."""

    token: int = 1
    lost: bool = False

    def check(self) -> None:
        if self.lost:
            raise Refused("lost")


class Ticking:
    """A clock that goes on a second with each look."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now
