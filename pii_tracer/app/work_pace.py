"""How long a list of places still takes, from their sizes and the time that those before took."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

PLACE = 50_000_000
"""Bytes that could be read in the time that a place takes at least."""


class Pace:
    """Tells of each place, when it begins, which of how many it is, and what is left with it.

    sizes: of the places in their order, in any unit; one of no known size counts as the smallest known. each: what
    every place counts besides, because it takes some time however small it is (`PLACE` where sizes are bytes).
    """

    def __init__(self, sizes: Sequence[int], clock: Callable[[], float] = time.monotonic, *, each: int = 0) -> None:
        known = min((size for size in sizes if size > 0), default=1)
        self._sizes = [(size if size > 0 else known) + each for size in sizes]
        self._clock, self._begun, self._at = clock, 0.0, 0

    def next(self) -> str:
        """Of the place that begins now: `3 of 12, about 40 s left`; of the first only its number."""
        now = self._clock()
        if not self._at:
            self._begun = now
        done, self._at = sum(self._sizes[: self._at]), self._at + 1
        where = f"{self._at} of {len(self._sizes)}"
        if not done:
            return where
        return f"{where}, {left_in_words((now - self._begun) / done * (sum(self._sizes) - done))}"


def left_in_words(seconds: float) -> str:
    """`about 3 min left`."""
    from reports.wording import about

    return f"{about(timedelta(seconds=seconds))} left"
