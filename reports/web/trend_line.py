"""The score of readings over time, as a line to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pii_tracer.common.plurals import counted

MOST_READINGS = 90
"""The newest readings that are drawn: a quarter of a year of mornings."""
_WIDTH, _HEIGHT = 720, 90


@dataclass(frozen=True)
class TrendLine:
    """points: of a polyline, the oldest reading on the left, 100 on top. words: the same for who does not see it."""

    width: int
    height: int
    points: str
    words: str
    left_out: int


def trend_line(scores: Sequence[int]) -> TrendLine | None:
    """The line of the newest scores; None where there are fewer than two."""
    drawn = scores[-MOST_READINGS:]
    if len(drawn) < 2:
        return None
    step = _WIDTH / (len(drawn) - 1)
    points = " ".join(f"{n * step:.1f},{_HEIGHT * (1 - score / 100):.1f}" for n, score in enumerate(drawn))
    words = f"Score of {counted(len(drawn), 'reading')}: {drawn[0]} at first, {drawn[-1]} now, lowest {min(drawn)}"
    return TrendLine(_WIDTH, _HEIGHT, points, words, len(scores) - len(drawn))
