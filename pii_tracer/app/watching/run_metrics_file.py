"""The metrics file of a run, for a collector that reads text files: written again while the run goes on."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from pii_tracer.app.execution.run_outputs import rows_deleted
from pii_tracer.common.atomic_files import system_reason, write_atomic
from pii_tracer.common.work_facts import counts_in
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.run.journal import Kind, Record
from pii_tracer.run.step_progress import FRESH, StepTrack, track
from reports.run.run_metrics import LAST_SUCCESS, PREFIX, RunNumbers, render_run_metrics

AGAIN = 1.0
"""Seconds between two writes at least: a plan may have ten thousand steps."""
_SUCCEEDED = re.compile(rf"^{PREFIX}_{LAST_SUCCESS}\{{[^\n]*\}} (\S+)$", re.MULTILINE)
_STATES = {Kind.STEP_VERIFIED: "done", Kind.STEP_FAILED: "failed", Kind.STEP_WAITING: "waiting"}
_ENDS = frozenset(_STATES)


class RunMetricsFile:
    """Follows a run's journal. A file that cannot be written is one warning, and stops no erasure.

    The file may be read by everybody: there is no person's value in it, and collectors run as a user of their own.
    """

    def __init__(self, file: Path, plan: ErasurePlan, now: Callable[[], datetime], warn: Callable[[str], None]) -> None:
        self._file, self._plan, self._now, self._warn = file, plan, now, warn
        self._warned = False
        self._written: float | None = None
        self._records: Sequence[Record] = ()
        self._succeeded = _last_success(file)

    def follow(self, records: Sequence[Record]) -> None:
        """Write the numbers again, if a step came to an end."""
        self._records = records
        ended = bool(records) and records[-1].kind in _ENDS
        if self._written is None or (ended and time.monotonic() - self._written >= AGAIN):
            self._write(None, None)

    def end(self, exit_code: ExitCode, residue: int | None = None) -> None:
        """Write the last numbers. residue: places found in the end, of the copies and elsewhere."""
        if exit_code is ExitCode.DONE:
            self._succeeded = self._now().timestamp()
        self._write(exit_code, residue)

    def _write(self, exit_code: ExitCode | None, residue: int | None) -> None:
        self._written = time.monotonic()
        numbers = numbers_of(self._plan, self._records, self._now(), self._succeeded, exit_code, residue)
        try:
            write_atomic(self._file, render_run_metrics(numbers).encode(), mode=0o644)
        except OSError as error:
            if not self._warned:
                self._warn(f"metrics cannot be written: {system_reason(error) or type(error).__name__}")
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
    answers = _last_answers(records)
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
        files_removed=sum(answer.get("files_removed", 0) for answer in answers.values()),
        files_rewritten=sum(answer.get("files_rewritten", 0) for answer in answers.values()),
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
    """How long each step worked that is done, by action: from its last begin on, without waits before."""
    actions = {step.id: step.action.value for step in plan.steps}
    begun: dict[str, datetime] = {}
    took: dict[str, list[float]] = defaultdict(list)
    for record in records:
        step = str(record.facts.get("step", ""))
        if record.kind is Kind.STEP_INTENT:
            begun[step] = record.time
        elif record.kind in _ENDS and (since := begun.pop(step, None)) and record.kind is Kind.STEP_VERIFIED:
            took[actions.get(step, "")].append((record.time - since).total_seconds())
    return {action: tuple(seconds) for action, seconds in took.items()}


def _last_success(file: Path) -> float | None:
    """What the file of an earlier run says; a run that fails does not take it away."""
    with suppress(OSError, ValueError):
        found = _SUCCEEDED.search(file.read_text(encoding="utf-8"))
        return float(found[1]) if found else None
    return None
