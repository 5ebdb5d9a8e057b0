"""The metrics file of a run, for a collector that reads text files: written again while the run goes on."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pii_tracer.app.execution.run_outputs import rows_deleted
from pii_tracer.app.watching.file_counts import FileCounts
from pii_tracer.common.atomic_files import read_bounded, real_path, system_reason, write_atomic
from pii_tracer.common.work_facts import counts_in
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import ExitCode, UsageError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.run.journal import Kind, Record
from pii_tracer.run.step_progress import FRESH, StepTrack, track
from reports.run.run_metrics import PREFIX, RunNumbers, last_success_in, render_run_metrics

AGAIN = 1.0
"""Seconds between two writes at least: a plan may have ten thousand steps."""
_LARGEST = 1 << 20
_BEGIN = f"# HELP {PREFIX}_".encode()
_STATES = {Kind.STEP_VERIFIED: "done", Kind.STEP_FAILED: "failed", Kind.STEP_WAITING: "waiting"}
_ENDS = frozenset(_STATES)


class RunMetricsFile:
    """Follows a run's journal. A file that cannot be written is one warning, and stops no erasure.

    The file may be read by everybody: there is no person's value in it, and collectors run as a user of their own.

    elsewhere: whether another process runs the plan; then the file is that one's, until this one hears of its journal.

    Raises:
        UsageError: the file is there, and holds no metrics of runs.
    """

    def __init__(
        self,
        file: Path,
        plan: ErasurePlan,
        now: Callable[[], datetime],
        warn: Callable[[str], None],
        elsewhere: Callable[[], bool] = lambda: False,
    ) -> None:
        self._file, self._plan, self._now, self._warn = real_path(file), plan, now, warn
        self._elsewhere, self._ours = elsewhere, False
        self._warned = False
        self._written: float | None = None
        self._records: Sequence[Record] = ()
        self._succeeded: float | None = None
        _metrics_in(self._file)

    def begin(self, records: Sequence[Record]) -> None:
        """Write what is known before the run has the right to work."""
        self._records = records
        self._write(None, None)

    def follow(self, records: Sequence[Record]) -> None:
        """Hear the journal of the run that works now; write the numbers again, if a step came to an end."""
        self._records, self._ours = records, True
        ended = bool(records) and records[-1].kind in _ENDS
        if self._written is None or (ended and time.monotonic() - self._written >= AGAIN):
            self._write(None, None)

    def end(self, exit_code: ExitCode, residue: int | None = None) -> None:
        """Write the last numbers. residue: places found in the end, of the copies and elsewhere."""
        if exit_code is ExitCode.DONE:
            self._succeeded = self._now().timestamp()
        self._write(exit_code, residue)

    def _write(self, exit_code: ExitCode | None, residue: int | None) -> None:
        if not self._ours and self._elsewhere():
            return
        self._written = time.monotonic()
        try:
            told = last_success_in(_metrics_in(self._file), self._plan.estate)
        except UsageError as error:
            self._complain(error.what)
            return
        self._succeeded = max((at for at in (self._succeeded, told) if at is not None), default=None)
        numbers = numbers_of(self._plan, self._records, self._now(), self._succeeded, exit_code, residue)
        try:
            write_atomic(self._file, render_run_metrics(numbers).encode(), mode=0o644)
        except OSError as error:
            self._complain(system_reason(error) or type(error).__name__)

    def _complain(self, why: str) -> None:
        if not self._warned:
            self._warn(f"metrics cannot be written: {why}")
        self._warned = True


def numbers_of(
    plan: ErasurePlan,
    records: Sequence[Record],
    at: datetime,
    succeeded: float | None,
    exit_code: ExitCode | None,
    residue: int | None,
) -> RunNumbers:
    """What the journal says by now. residue: where it is known better than by the copies' verdicts."""
    tracks = track(records)
    state = {step.id: _state(tracks.get(step.id, FRESH)) for step in plan.steps}
    size: Counter[str] = Counter()
    for step in plan.steps:
        size[state[step.id]] += step.estimate.bytes
    answers, files = _last_answers(records), FileCounts(records)
    looks = [answers.get(step.id, {}) for step in plan.steps if step.action is Action.VERIFY_COPY]
    steps = Counter(dict.fromkeys((*_STATES.values(), "open"), 0))
    steps.update(state.values())
    return RunNumbers(
        estate=plan.estate,
        plan_id=plan.plan_id,
        deadline=min(request.deadline for request in plan.requests),
        at=at,
        begun=next((r.time for r in records if r.kind is Kind.RUN_STARTED), None),
        steps=steps,
        bytes={name: size[name] for name in steps},
        seconds=_seconds(plan, records),
        rows_deleted=sum(rows_deleted(records).values()),
        files_removed=files.removed,
        files_rewritten=files.rewritten,
        residue=sum(look.get("residue", 0) for look in looks) if residue is None else residue,
        succeeded=succeeded,
        exit_code=None if exit_code is None else int(exit_code),
    )


def _state(of: StepTrack) -> str:
    if of.last is None:
        return "open"
    return _STATES.get(of.last.kind, "open")


def _last_answers(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """What each step counted: the newest number of each name."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for record in records:
        facts = record.facts.get("facts")
        if isinstance(facts, dict) and record.kind in (Kind.STEP_RESULT, Kind.STEP_WAITING):
            found[str(record.facts["step"])].update(counts_in(facts))
    return found


def _seconds(plan: ErasurePlan, records: Sequence[Record]) -> dict[str, tuple[float, ...]]:
    """How long each step worked that is done, by action: from its last begin on, without waits before. Of one that was
    killed in its work, and then found done, nobody knows it."""
    actions = {step.id: step.action.value for step in plan.steps}
    begun: dict[str, datetime] = {}
    took: dict[str, list[float]] = defaultdict(list)
    for record in records:
        step = str(record.facts.get("step", ""))
        if record.kind is Kind.RUN_STARTED:
            begun.clear()
        elif record.kind is Kind.STEP_INTENT:
            begun[step] = record.time
        elif record.kind in _ENDS and (since := begun.pop(step, None)) and record.kind is Kind.STEP_VERIFIED:
            took[actions.get(step, "")].append((record.time - since).total_seconds())
    return {action: tuple(seconds) for action, seconds in took.items()}


def _metrics_in(file: Path) -> str:
    """The metrics of an earlier run, or nothing where there is no file yet.

    Raises:
        UsageError: it is something else, which must not be overwritten.
    """
    try:
        data = read_bounded(file, _LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise _foreign(f"the metrics file cannot be used: {system_reason(error) or 'not a file'}", file) from None
    if data and not data.startswith(_BEGIN):
        raise _foreign("the metrics file holds something else, which would be overwritten", file)
    return data.decode("utf-8", "replace")


def _foreign(what: str, file: Path) -> UsageError:
    todo = "name a file that is not there yet, is empty, or was written by `--metrics`"
    return UsageError(what, where=str(file), todo=todo)
