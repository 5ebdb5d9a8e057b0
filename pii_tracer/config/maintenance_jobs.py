"""Jobs of the estate that remove what tables no longer keep. They are declared, and looked at; this tool runs none."""

from __future__ import annotations

from pydantic import Field

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import Frozen


class Upkeep(StrEnum):
    """What a job does to its tables."""

    EXPIRE_SNAPSHOTS = "expire_snapshots"


class MaintenanceJob(Frozen):
    """A job that runs by itself. every_days: at most so many days from one run to the next."""

    job: str = Field(min_length=1)
    does: Upkeep
    tables: tuple[str, ...] = Field(min_length=1)
    every_days: int = Field(ge=1)
