"""Jobs that may write while old files are removed at once."""

from __future__ import annotations

from pii_tracer.config.estate_file import Estate
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap, Precondition
from planners.step_drafts import slug


def writers_stopped(estate: Estate) -> tuple[Precondition, ...]:
    """What an immediate plan needs first: log clean-up and sweeps at once are safe only without writers,
    and the estate file says whether they are stopped."""
    return tuple(Precondition(kind="writers_stopped", target=writer.job, expected="true") for writer in estate.writers)


def running_writers(estate: Estate) -> tuple[Gap, ...]:
    """A gap of an immediate plan for each writer that nobody said to have stopped."""
    return tuple(
        Gap(
            id=f"gap-writer_running-{slug(writer.job)}",
            dataset=None,
            kind=GapKind.WRITER_RUNNING,
            reason=f"the job {writer.job} may write while old files are removed at once, and fill copies again",
            evidence="the estate file, `writers`: not stopped",
        )
        for writer in estate.writers
        if not writer.stopped
    )
