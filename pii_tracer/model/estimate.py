"""An estimate as it is written: frozen, with the schema `pii_tracer/schemas/estimate.schema.json`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pii_tracer.model.datasets import Frozen

TOUCHED = 0.01
"""Share of a place's files that one person is assumed to be in, where nobody says another."""


class Amounts(Frozen):
    """What work amounts to in one case.

    work_seconds: of one executor that does everything. wall_seconds: on all executors, as a lower bound.
    requests: to stores that charge for them.
    """

    files: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    requests: int = 0
    work_seconds: float = 0.0
    wall_seconds: float = 0.0
    cost: float = 0.0


class Cases(Frozen):
    """low: nobody is found, so that there is the search alone. expected: with the share of files that the caller
    assumes. high: the persons are in every file.
    """

    low: Amounts = Amounts()
    expected: Amounts = Amounts()
    high: Amounts = Amounts()


class StepEstimate(Frozen):
    """All steps of one kind. kind: `search`, or an action of plans. steps: how many."""

    kind: str
    steps: int
    cases: Cases


class PlaceEstimate(Frozen):
    """A place with all its steps. kind: as in `PlaceKind`. format: of a table."""

    name: str
    location: str
    kind: str
    format: str | None
    files: int
    bytes: int
    cases: Cases


class Wait(Frozen):
    """What is waited for and is no work. until: where the erasure began at the time of the estimate."""

    reason: str
    until: datetime


class Unknown(Frozen):
    """A place of which not everything could be estimated, and why."""

    where: str
    reason: str


class Estimate(Frozen):
    """at_least: something is not known (`not_known`), so that every figure is a lower bound.

    touched: share of a place's files that one person is assumed to be in; touched_by_all: that all of them are in.
    rate_mib_s: bytes of files that one executor searches in a second; measured: on this machine, or else as given.
    dearest: places by their expected cost, then by their work.
    """

    version: Literal[1] = 1
    estate: str
    at: datetime
    persons: int
    executors: int
    touched: float
    touched_by_all: float
    rate_mib_s: float
    measured: bool
    currency: str
    at_least: bool
    places: int
    files: int
    bytes: int
    total: Cases
    steps: tuple[StepEstimate, ...]
    dearest: tuple[PlaceEstimate, ...]
    waits: tuple[Wait, ...]
    not_known: tuple[Unknown, ...]
    assumptions: tuple[str, ...]
