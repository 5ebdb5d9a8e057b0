"""How far a run is, and what happened to its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.plan import Step
from pii_tracer.review.drift import DriftItem
from pii_tracer.run.journal import Kind


class State(StrEnum):
    """How a run ended (a stable interface)."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    WAITING = "waiting"
    BLOCKED = "blocked"


@dataclass(frozen=True)
class StepEvent:
    """Something happened to a step; for progress displays. position counts from 1 in running order.

    facts: what the step counted, as the journal has it.
    """

    kind: Kind
    step: Step
    position: int
    total: int
    time: datetime
    detail: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StepFailure:
    """A step that failed, and why; never a value of a person."""

    step: str
    reason: str
    todo: str | None = None


@dataclass(frozen=True)
class RunState:
    """How far a run is. Each step of the plan is in exactly one of done, failed, waiting, never_started.

    waiting: step -> earliest time it can go on. waiting_until: the earliest of those.
    """

    plan_id: str
    state: State
    done: tuple[str, ...]
    failed: tuple[StepFailure, ...]
    waiting: tuple[tuple[str, datetime], ...]
    never_started: tuple[str, ...]
    waiting_until: datetime | None
    drift: tuple[DriftItem, ...]
    journal_head: str
