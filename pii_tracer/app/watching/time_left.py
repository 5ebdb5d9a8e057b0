"""How long the steps of a run still take: by the sizes of the plan's steps, and the pace of the steps so far."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from pii_tracer.model.plan import Step
from planners.schedule.step_dates import BYTES_PER_SECOND, least_seconds

FEW = 3
"""Steps after which there is an estimate: of the first alone, chance says too much."""
_EACH = 1 / 20
"""A step without data takes about so much of the floor that the plan has for it, which plans for a cold engine."""


class TimeLeft:
    """Hears when each step begins, is over, or waits. steps: those that are still to be done.

    Each step has a size: seconds for its action, and more with its bytes. The time that the steps of an action took,
    divided by their sizes, is the pace of this action. An action of which no step is over has the pace of all steps,
    and one of which few are over has a pace between. Time in which a step only waits is in no pace, and in no estimate.
    """

    def __init__(self, steps: Sequence[Step], clock: Callable[[], float] = time.monotonic) -> None:
        self._left = {step.id: step for step in steps}
        self._clock = clock
        self._begun: dict[str, float] = {}
        self._took: dict[str, float] = defaultdict(float)
        self._sizes: dict[str, float] = defaultdict(float)
        self._over = 0

    def begin(self, step: Step) -> None:
        """A step begins to work."""
        self._begun[step.id] = self._clock()

    def over(self, step: Step) -> None:
        """A step is done: its time says something of the others of its action."""
        begun = self._begun.get(step.id)
        self.leave(step)
        if begun is not None:
            kind = step.action.value
            self._took[kind] += self._clock() - begun
            self._sizes[kind] += size_of(step)
            self._over += 1

    def wait(self, step: Step) -> None:
        """A step waits, and has work to do later."""
        self._begun.pop(step.id, None)

    def leave(self, step: Step) -> None:
        """A step is over, and nothing more is done for it."""
        self.wait(step)
        self._left.pop(step.id, None)

    def seconds(self) -> float | None:
        """What is left of all steps, those included that work now; None as long as too little is known."""
        if self._over < FEW:
            return None
        pace = sum(self._took.values()) / sum(self._sizes.values())
        now, left = self._clock(), 0.0
        for step in self._left.values():
            kind, size = step.action.value, size_of(step)
            own = (self._took[kind] + pace * size) / (self._sizes[kind] + size)
            worked = now - self._begun[step.id] if step.id in self._begun else 0.0
            left += max(0.0, own * size - worked)
        return left


def size_of(step: Step) -> float:
    """A step's size, in seconds of some machine."""
    return least_seconds(step.action) * _EACH + step.estimate.bytes / BYTES_PER_SECOND
