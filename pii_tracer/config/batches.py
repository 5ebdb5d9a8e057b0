"""The policy's part about batches: how often requests of the store become a plan, when, and how long that takes."""

from __future__ import annotations

from pydantic import Field

from pii_tracer.config.time_windows import WindowText
from pii_tracer.model.datasets import Frozen


class Batches(Frozen):
    """every_hours: one batch in each of these spans, which count from midnight UTC of 1970. windows: plans are made in
    them alone. takes_days: from the begin of a batch to the proof, as its plans say (`totals.finish`).
    """

    every_hours: int = Field(ge=1, le=24 * 31)
    takes_days: float = Field(ge=0, le=365, allow_inf_nan=False)
    windows: tuple[WindowText, ...] = ()
