"""Jobs that may write while old data is removed at once."""

from __future__ import annotations

from pii_tracer.config.estate_file import Estate
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap, Precondition
from planners.schedule.step_dates import Retention
from planners.step_drafts import slug


def writers_stopped(estate: Estate, retention: Retention) -> tuple[Precondition, ...]:
    """Log clean-up and sweeps at once are safe only without writers; the estate file says whether they are stopped."""
    if retention is Retention.RETAIN:
        return ()
    return tuple(Precondition(kind="writers_stopped", target=writer.job, expected="true") for writer in estate.writers)


def running_writers(estate: Estate, retention: Retention) -> tuple[Gap, ...]:
    """A gap for each writer that nobody stopped, where old data is removed at once."""
    if retention is Retention.RETAIN:
        return ()
    return tuple(
        Gap(
            id=f"gap-writer_running-{slug(writer.job)}",
            dataset=None,
            kind=GapKind.WRITER_RUNNING,
            reason=(
                f"the job {writer.job} may write while the run removes old files without a waiting time, and may "
                "write the persons' rows again"
            ),
            evidence="the estate file, `writers`: this job is not declared as stopped",
        )
        for writer in estate.writers
        if not writer.stopped
    )
