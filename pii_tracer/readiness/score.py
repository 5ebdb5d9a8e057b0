"""The readiness score: the mean of four parts, each from 0 to 100. docs/readiness.md has the formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from pii_tracer.readiness.canaries import Arrival, CanaryAnswer
from pii_tracer.readiness.earliest_proof_day import LawAnswer
from pii_tracer.readiness.estate_snapshot import Coverage, TableFacts
from pii_tracer.readiness.findings import Finding, Level

_HAIR = 1e-9
"""A sum of floating-point numbers can be 28.999999999999996 and means 29."""


@dataclass(frozen=True)
class Part:
    """One part of the score. good of all: what it was computed from. What was not measured is 0 of 0, and counts 0."""

    name: str
    good: float
    all: int

    @property
    def points(self) -> float:
        """0 to 100."""
        return 100 * self.good / self.all if self.all else 0.0

    @property
    def whole(self) -> int:
        """The points rounded down, so that 100 means all of it."""
        return floor(self.points + _HAIR)


@dataclass(frozen=True)
class Score:
    """points: 0 to 100, rounded down, so that 100 means all of everything."""

    points: int
    parts: tuple[Part, ...]


def score(
    tables: Sequence[TableFacts],
    findings: Sequence[Finding],
    canaries: Sequence[CanaryAnswer],
    laws: Sequence[LawAnswer],
) -> Score:
    """Compute the parts and their mean."""
    counted = [table for table in tables if table.coverage is not Coverage.SOURCE]
    full = sum(table.coverage is Coverage.FULL for table in counted)
    half = sum(table.coverage is Coverage.PARTIAL for table in counted)
    # a table that is not counted as one (a file, a bucket) is a place of its own in both numbers
    blocked = {f.where for f in findings if f.level in (Level.BLOCKING, Level.UNKNOWN)}
    places = {table.name for table in tables} | blocked
    arrived = sum(c.count(Arrival.ARRIVED, Arrival.ABSENT) for c in canaries if c.in_source)
    asked = sum(c.count(*Arrival) for c in canaries) + sum(not c.in_source for c in canaries)
    parts = (
        # of an estate with nothing but sources, nothing is left to explain
        Part("lineage", full + half / 2, len(counted)) if counted else Part("lineage", len(tables), len(tables)),
        Part("unblocked", len(places) - len(blocked), len(places)),
        Part("canaries", arrived, asked),
        Part("deadlines", sum(law.met for law in laws), len(laws)),
    )
    return Score(floor(sum(part.points for part in parts) / len(parts) + _HAIR), parts)
