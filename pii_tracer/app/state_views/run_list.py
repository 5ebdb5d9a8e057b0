"""The runs of a state folder, from their journals: how far each step is, what failed, what waits, who runs.

Nothing is asked of a lease in a store: a page that is read every two seconds makes no request to other machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.state_views.untrusted_files import Broken, Remembered, key_of
from pii_tracer.common.atomic_files import real_path
from pii_tracer.model.errors import JournalError, PiiTracerError, ReviewError, UsageError
from pii_tracer.model.plan import Step
from pii_tracer.run.journal import Kind, Record, parse, read_journal
from pii_tracer.run.lease import who_runs
from pii_tracer.run.step_progress import StepTrack, track
from reports.run.run_views import RunState

_ORDER = {"failed": 0, "waiting": 1, "started": 2, "done": 4, "not started": 3}


@dataclass(frozen=True)
class StepLine:
    """One step. state: failed, waiting, started, not started or done. note: why it failed, or what it waits for."""

    id: str
    action: str
    state: str
    irreversible: bool
    at: datetime | None
    note: str


@dataclass(frozen=True)
class RunProgress:
    """How far a run is. steps: None where its plan is not there any more. residue: places where the person was found.

    headline, tone: the verdict. live: somebody runs it now, as far as this machine can tell.
    """

    key: str
    plan_id: str
    headline: str
    tone: str
    live: bool
    blocked: bool
    steps: int | None
    lines: tuple[StepLine, ...]
    last: datetime | None
    run_by: str | None
    problem: str | None
    closed: str | None
    residue: tuple[str, ...]
    attested: bool

    def counted(self, state: str) -> int:
        """How many steps are in a state."""
        return sum(line.state == state for line in self.lines)


class RunList:
    """Runs of a state folder; a journal is read again only when it has grown."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._plans: Remembered[tuple[Step, ...]] = Remembered(64)
        self._journals: Remembered[tuple[tuple[Record, ...], str | None]] = Remembered(64)

    def all(self) -> tuple[tuple[RunProgress, ...], tuple[Broken, ...]]:
        """Every run: first where a person was found again, then what else is blocked, what runs, and the newest of the
        others; and folders that are no run."""
        runs, broken = [], []
        for folder in self._folders():
            found = self._read(folder)
            broken.append(found) if isinstance(found, Broken) else runs.append(found)
        runs.sort(
            key=lambda r: (not r.residue, not r.blocked, not r.live, -(r.last.timestamp() if r.last else 0), r.plan_id)
        )
        return tuple(runs), tuple(broken)

    def one(self, key: str) -> RunProgress | Broken | None:
        """The run of a key; None where there is none."""
        return next((self._read(f) for f in self._folders() if key_of(f.path.name) == key), None)

    def _folders(self) -> list[RunFolder]:
        try:
            found = [p for p in (real_path(self._state) / "runs").iterdir() if p.is_dir()]
        except OSError:
            return []
        return [RunFolder(p) for p in sorted(found)]

    def _read(self, folder: RunFolder) -> RunProgress | Broken:
        try:
            info = folder.recorded()
            problem = folder.displaced(info)
            run_by = who_runs(folder.path)  # before the journal: what ends meanwhile was not killed
            records, torn = self._journal(folder)
            steps = self._steps(folder)
        except (PiiTracerError, OSError, ValueError):
            what = "This folder is not a run, or its description cannot be read"
            return Broken(key_of(folder.path.name), folder.path.name, what, "put `run.json` back from a backup")
        lines = _lines(steps, track(records))
        result, unknown = folder.result_known()
        made = RunProgress(
            key=key_of(folder.path.name),
            plan_id=folder.path.name,
            headline="",
            tone="warn",
            live=run_by is not None,
            blocked=False,
            steps=None if steps is None else len(steps),
            lines=lines,
            last=records[-1].time if records else None,
            run_by=run_by,
            problem=problem or torn or unknown,
            closed=folder.closed_at(),
            residue=_residue(result),
            attested=folder.attestation.is_file(),
        )
        headline, tone, blocked = _verdict(made, records, result)
        return replace(made, headline=headline, tone=tone, blocked=blocked)

    def _journal(self, folder: RunFolder) -> tuple[tuple[Record, ...], str | None]:
        def read() -> tuple[tuple[Record, ...], str | None]:
            try:
                return read_journal(folder.journal)[0], None
            except JournalError as error:
                try:
                    return parse(folder.journal.read_bytes())[0], error.what
                except (JournalError, OSError):
                    return (), error.what

        try:
            return self._journals.get(folder.journal, read)
        except OSError:
            return (), "the journal is missing"

    def _steps(self, folder: RunFolder) -> tuple[Step, ...] | None:
        try:
            return self._plans.get(folder.info_file, lambda: folder.approved().plan.steps)
        except (UsageError, ReviewError):
            return None  # the file is gone, holds another plan, or cannot be read: its steps are not known


def _lines(steps: tuple[Step, ...] | None, tracks: Mapping[str, StepTrack]) -> tuple[StepLine, ...]:
    """Steps, those that stop the run first."""
    known = {step.id: step for step in steps or ()}
    found = []
    for name in dict.fromkeys((*known, *tracks)):
        step, last = known.get(name), tracks[name].last if name in tracks else None
        found.append(
            StepLine(
                id=name,
                action=str(step.action) if step else "",
                state=_state(last),
                irreversible=bool(step and step.irreversible),
                at=last.time if last else None,
                note=_note(last),
            )
        )
    return tuple(sorted(found, key=lambda line: _ORDER[line.state]))


def _state(last: Record | None) -> str:
    if last is None:
        return "not started"
    states = {Kind.STEP_FAILED: "failed", Kind.STEP_WAITING: "waiting", Kind.STEP_VERIFIED: "done"}
    return states.get(last.kind, "started")


def _note(last: Record | None) -> str:
    if last is None or last.kind not in (Kind.STEP_FAILED, Kind.STEP_WAITING):
        return ""
    reason, until = last.facts.get("reason"), last.facts.get("until")
    parts = [str(reason)] if reason else []
    if last.kind is Kind.STEP_WAITING and until:
        parts.append(f"waits until {until}")
    return "; ".join(parts)


def _residue(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Copy and file of each place; the form that was found there stays out."""
    found = result.get("residue")
    if not isinstance(found, list):
        return ()
    places = [item for item in found if isinstance(item, dict)]
    return tuple(dict.fromkeys(f"{item.get('copy', '?')}: {item.get('file', '?')}" for item in places))


def _verdict(made: RunProgress, records: tuple[Record, ...], result: Mapping[str, Any]) -> tuple[str, str, bool]:
    """Headline, tone, and whether somebody has to do something. The worst that holds."""
    failed, waiting = made.counted("failed"), made.counted("waiting")
    if made.problem:
        return f"Cannot go on: {made.problem}", "bad", True
    if made.live:
        return "Running now", "warn", False
    if records and records[-1].kind is not Kind.RUN_FINISHED:
        return "Stopped in the middle: nobody runs it", "bad", True
    state = str(result.get("state", ""))
    if state == RunState.RESIDUE or made.residue:
        return "The person was found again after the erasure", "bad", True
    if failed or state == RunState.BLOCKED:
        return f"Stopped: {failed:,} {'step' if failed == 1 else 'steps'} failed", "bad", True
    if waiting or state == RunState.WAITING:
        return f"Waiting: {waiting:,} {'step waits' if waiting == 1 else 'steps wait'}", "warn", False
    if state == RunState.COMPLETE:
        return "Complete, as the run's own result says", "good", False
    return "Not complete", "warn", True
