"""How long the steps of a run still take: by the sizes of the plan's steps, and the pace of the steps so far."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from fractions import Fraction

from pii_tracer.model.actions import Action
from pii_tracer.model.plan import Step
from planners.formats.registry import spark_executors
from planners.schedule.step_dates import BYTES_PER_SECOND, least_seconds

FEW = 3
"""Steps after which there is an estimate: of the first alone, chance says too much."""
_BY_SPARK, _OTHERWISE = 1 / 20, 1 / 200
"""The share of the plan's floor that a step without data takes: the plan allows for a cold engine and a slow store."""
_Kind = tuple[str, str]


class TimeLeft:
    """Hears when each step begins, is over, or is held. steps: the plan's, each behind those that it depends on. done,
    held: ids of those that are over already, and of those that the plan lets begin later.

    Each step has a size: seconds for its action, and more with its bytes. Steps are of one kind if they have the same
    action and executor; a verification is of the kind of what was done to its copy. The time that the steps of a kind
    took, divided by their sizes, is its pace. A kind of which no step is over has the pace of all steps by Spark, or
    of all others, and one of which few are over has a pace between. Steps that wait or failed, and those behind them,
    are not in the estimate. What is left is kept as sums of each kind: a plan may have ten thousand steps.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        done: Collection[str] = (),
        held: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._acts = {s.copy_: s.executor for s in reversed(steps) if s.action is not Action.VERIFY_COPY}
        self._left = {step.id: step for step in steps if step.id not in done}
        self._behind: dict[str, list[str]] = defaultdict(list)
        for step in self._left.values():
            for before in set(step.depends_on) & self._left.keys():
                self._behind[before].append(step.id)
        self._held: set[str] = set()
        self._stops: Counter[str] = Counter()  # of each step: itself, if it is held, and what is stopped before it
        self._count: Counter[_Kind] = Counter()
        self._sum: dict[_Kind, Fraction] = defaultdict(Fraction)  # exact, however often it goes up and down
        for step in self._left.values():
            self._add(step, 1)
        self._clock = clock
        self._begun: dict[str, float] = {}
        self._took: dict[_Kind, float] = defaultdict(float)
        self._sizes: dict[_Kind, float] = defaultdict(float)
        self._over = 0
        for step_id in held:
            self._hold(step_id)

    def begin(self, step: Step) -> None:
        """A step begins to work."""
        self._release(step.id)
        self._begun[step.id] = self._clock()

    def over(self, step: Step) -> None:
        """A step is done: its time says something of the others of its kind."""
        begun = self._begun.pop(step.id, None)
        self._release(step.id)
        if step.id in self._left:
            if self._stops[step.id]:
                self._go_on(self._behind[step.id])
            else:
                self._add(step, -1)
            del self._left[step.id]
        if begun is not None:
            kind = self._kind(step)
            self._took[kind] += self._clock() - begun
            self._sizes[kind] += self.size_of(step)
            self._over += 1

    def hold(self, step: Step) -> None:
        """A step waits, or failed: nothing more is done now for it and for what is behind it."""
        self._begun.pop(step.id, None)
        self._hold(step.id)

    def seconds(self) -> float | None:
        """What is left of all steps that are done now, with that which works; None as long as too little is known."""
        if self._over < FEW:
            return None
        paces = {by_spark: self._pace(by_spark) for by_spark in (True, False)}
        left, own = 0.0, dict[_Kind, float]()
        for kind, count in self._count.items():
            if count:
                size = float(self._sum[kind])
                mean, pace = size / count, paces[_by_spark(kind)]
                own[kind] = (self._took.get(kind, 0.0) + pace * mean) / (self._sizes.get(kind, 0.0) + mean)
                left += own[kind] * size
        now = self._clock()
        for step_id, begun in self._begun.items():
            if step_id in self._left and not self._stops[step_id]:
                step = self._left[step_id]
                left -= min(now - begun, own[self._kind(step)] * self.size_of(step))
        return max(0.0, left)

    def _hold(self, step_id: str) -> None:
        if step_id in self._left and step_id not in self._held:
            self._held.add(step_id)
            stopped = [step_id]
            while stopped:
                one = stopped.pop()
                self._stops[one] += 1
                if self._stops[one] == 1:
                    self._add(self._left[one], -1)
                    stopped += (later for later in self._behind[one] if later in self._left)

    def _release(self, step_id: str) -> None:
        if step_id in self._held:
            self._held.remove(step_id)
            self._go_on([step_id])

    def _go_on(self, steps: Iterable[str]) -> None:
        """One thing less stops these steps."""
        going = [step_id for step_id in steps if step_id in self._left]
        while going:
            one = going.pop()
            self._stops[one] -= 1
            if self._stops[one] == 0:
                self._add(self._left[one], 1)
                going += (later for later in self._behind[one] if later in self._left)

    def _add(self, step: Step, times: int) -> None:
        kind = self._kind(step)
        self._count[kind] += times
        self._sum[kind] += times * Fraction(self.size_of(step))

    def _pace(self, by_spark: bool) -> float:
        """Of the steps that Spark does, or of the others; of all where none of these is over."""
        kinds = [kind for kind in self._sizes if _by_spark(kind) is by_spark] or list(self._sizes)
        return sum(self._took[kind] for kind in kinds) / sum(self._sizes[kind] for kind in kinds)

    def size_of(self, step: Step) -> float:
        """A step's size, in seconds of some machine."""
        share = _BY_SPARK if _by_spark(self._kind(step)) else _OTHERWISE
        return least_seconds(step.action) * share + step.estimate.bytes / BYTES_PER_SECOND

    def _kind(self, step: Step) -> _Kind:
        looks = step.action is Action.VERIFY_COPY
        return step.action.value, self._acts.get(step.copy_, step.executor) if looks else step.executor


def _by_spark(kind: _Kind) -> bool:
    return kind[1] in spark_executors()
