"""How far runs have come, from their journals alone."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pii_tracer.app.execution.run_folder import RunFolder, all_runs, choose_run
from pii_tracer.model.errors import JournalError, ReviewError, UsageError


@dataclass(frozen=True)
class RunStatus:
    """As `status --format json` tells it.

    steps: of the plan; None where the plan is not there any more. waiting: until when, by step. problem: why it cannot
    be gone on with in this folder; what its journal still tells is told all the same. killed: its runner came to no
    end, and nobody runs it.
    """

    plan_id: str
    steps: int | None
    done: int
    failed: tuple[str, ...]
    waiting: Mapping[str, str]
    last: str | None
    torn_bytes: int
    run_by: str | None
    killed: bool
    problem: str | None
    state: str
    closed: str | None


def status(state: Path, run: str | None = None) -> tuple[RunStatus, ...]:
    """How far a run (a plan id) below a state folder has come, from its journal alone; without one, all runs.

    Raises:
        UsageError: there is no such run.
    """
    folders = (choose_run(state, run, unfinished=False),) if run else all_runs(state)
    return tuple(_how_far(folder) for folder in folders)


def _how_far(folder: RunFolder) -> RunStatus:
    from pii_tracer.app.execution.run_lock import held_by
    from pii_tracer.run.journal import (
        Kind,
        Record,
        parse,
        read_journal,
    )
    from pii_tracer.run.lease import who_runs
    from pii_tracer.run.step_progress import track

    info = folder.recorded()
    problem = folder.displaced(info)
    # before the journal: what ends meanwhile was not killed
    run_by = who_runs(folder.path) if problem else held_by(folder.settings(), folder)
    records: tuple[Record, ...] = ()
    torn = 0
    try:
        records, torn = read_journal(folder.journal)
    except JournalError as error:
        problem = problem or error.what
        with contextlib.suppress(JournalError, OSError):
            records, torn = parse(folder.journal.read_bytes())
    try:
        steps: int | None = len(folder.approved().plan.steps)
    except (UsageError, ReviewError):
        steps = (
            None  # the plan was made again into the same file, is gone, or cannot be read: nobody knows their number
        )
    tracks = track(records)
    lasts = {step: found.last for step, found in tracks.items() if found.last}
    result, unknown = folder.result_known()
    return RunStatus(
        plan_id=info.plan_id,
        steps=steps,
        done=sum(t.verified for t in tracks.values()),
        failed=tuple(sorted(step for step, last in lasts.items() if last.kind is Kind.STEP_FAILED)),
        waiting={s: str(last.facts["until"]) for s, last in lasts.items() if last.kind is Kind.STEP_WAITING},
        last=records[-1].time.isoformat() if records else None,
        torn_bytes=torn,
        run_by=run_by,
        killed=bool(records) and records[-1].kind is not Kind.RUN_FINISHED and run_by is None,
        problem=problem or unknown,
        state=str(result.get("state", "not finished")),
        closed=folder.closed_at(),
    )
