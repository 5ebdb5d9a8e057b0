"""Walks the DAG of a plan, step by step, so that a crash between any two lines loses nothing.

For each step: check, intent to the journal, run, result, verify, verified. The journal alone says how far a run came:

- verified: not touched again;
- an intent without a result: the executor probes the system before anything is repeated;
- a result without a verification, or one that did not hold: the system is looked at before anything is repeated;
- a wait that is over: probed, too;
- verified, and the verification of the copy failed since: looked at, and repeated where it holds no longer.

A step that fails or waits holds back what depends on it and nothing else. Steps that decide object by object
(`plan.BY_OBJECT`) begin behind one of their kind that is done in part, and stay open as long as that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Protocol, TypeVar

from pii_tracer.common.atomic_files import system_reason
from pii_tracer.common.unexpected_errors import how_to_see, place_of, show_trace, was_interrupted
from pii_tracer.model.actions import ASKED_AGAIN, BY_OBJECT, Action
from pii_tracer.model.errors import PiiTracerError, Refused
from pii_tracer.model.plan import Copy, ErasurePlan, Step, digest_of
from pii_tracer.review.drift import DriftItem, hard
from pii_tracer.run.executor_protocol import (
    Check,
    Executor,
    Outcome,
    PartlyDone,
    Progress,
)
from pii_tracer.run.journal import Clock, Journal, Kind
from pii_tracer.run.masked_place_names import shown_place
from pii_tracer.run.run_state import RunState, State, StepEvent, StepFailure
from pii_tracer.run.step_progress import (
    FRESH,
    StepTrack,
    came_to_its_end,
    came_to_nothing,
    planned_waits,
    running_order,
    track,
    waits_until,
)


class Fence(Protocol):
    """What the runner needs of a lease."""

    @property
    def token(self) -> int:
        """Grows with each taking."""

    def check(self) -> None:
        """Raise `Refused` when the lease was lost."""


def run(
    plan: ErasurePlan,
    executors: Mapping[str, Executor],
    journal: Journal,
    *,
    clock: Clock,
    lease: Fence,
    on_event: Callable[[StepEvent], None] = lambda event: None,
    drift: Callable[[Step], Sequence[DriftItem]] = lambda step: (),
    undone: Callable[[Step], str | None] = lambda step: None,
    plan_digest: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> RunState:
    """Run or resume a plan. A finished plan run again does nothing at all.

    Args:
        executors: by the name that steps call them.
        drift: differences between a step's preconditions and the world; asked for all steps before anything has
            begun, and again before the first step of each copy.
        undone: why a verified step holds no longer, or None; asked of every step when all are verified, because the
            run may have taken long and somebody may have brought back what it took away.
        plan_digest: digest of the approved bytes; of `plan.to_bytes()` where not given.
        facts: goes into the journal's first record, e.g. digests of the approvals.

    Raises:
        Refused: nothing was started: plan not applyable, executor missing, journal of another plan, lease lost.
        JournalError: the journal cannot be written; the run can be resumed.
    """
    digest = plan_digest or digest_of(plan.to_bytes())
    _refuse_unfit(plan, executors, journal, digest)
    return _Run(plan, executors, journal, clock, lease, on_event, drift, undone, digest, dict(facts or {})).go()


def _refuse_unfit(plan: ErasurePlan, executors: Mapping[str, Executor], journal: Journal, digest: str) -> None:
    if not plan.applyable:
        raise Refused("the plan cannot be applied", where=plan.plan_id, todo="close or waive each gap, then plan again")
    missing = sorted({s.executor for s in plan.steps} - set(executors))
    if missing:
        raise Refused(f"no executor for: {', '.join(missing)}", where=plan.plan_id, todo="run `pii-tracer doctor`")
    for record in journal.records:
        if record.kind is Kind.RUN_STARTED and record.facts.get("plan_digest") != digest:
            raise Refused(
                "this journal belongs to another plan",
                where=str(journal.path),
                todo="use a separate run folder for each plan",
            )


class _Run:
    """One pass over the plan. Holds the state that grows while it goes."""

    def __init__(
        self,
        plan: ErasurePlan,
        executors: Mapping[str, Executor],
        journal: Journal,
        clock: Clock,
        lease: Fence,
        on_event: Callable[[StepEvent], None],
        drift: Callable[[Step], Sequence[DriftItem]],
        undone: Callable[[Step], str | None],
        digest: str,
        facts: dict[str, Any],
    ) -> None:
        self.plan, self.executors, self.journal, self.clock = plan, executors, journal, clock
        self.lease, self.on_event, self.drift, self.undone = lease, on_event, drift, undone
        self.digest, self.facts = digest, facts
        self.order, self.waits = running_order(plan.steps), planned_waits(plan)
        self.copies = {copy.id: copy for copy in plan.copies}
        self.tracks = track(journal.records)
        self.done = {step_id for step_id, t in self.tracks.items() if t.verified}
        self.failed: dict[str, StepFailure] = {}
        self.partly: set[str] = set()
        self.waiting: dict[str, datetime] = {}
        self.drifted: list[DriftItem] = []
        begun = [s for s in self.order if self.tracks.get(s.id, FRESH).begun]
        self.begun_copies = {s.copy_ for s in begun if s.copy_}
        self.suspects = self._suspects()

    def go(self) -> RunState:
        if len(self.done) == len(self.order) and came_to_its_end(self.journal.records):
            return self._state(State.COMPLETE)
        self.lease.check()
        self.journal.append(
            Kind.RUN_STARTED,
            **{**self.facts, "plan_id": self.plan.plan_id, "plan_digest": self.digest, "steps": len(self.order)},
        )
        self.journal.append(Kind.LEASE, token=self.lease.token)
        if not self._drifts(self.order if not self.tracks else ()):
            self._walk()
        if self.failed or len(self.done) == len(self.order):
            self._look_back()
        state = self._verdict()
        self.journal.append(
            Kind.RUN_FINISHED,
            state=state,
            done=len(self.done),
            failed=sorted(self.failed),
            waiting=sorted(self.waiting),
            waiting_until=min(self.waiting.values(), default=None),
        )
        return self._state(state)

    def _walk(self) -> None:
        for position, step in enumerate(self.order, 1):
            if step.id in self.done and not self._reopened(step, position):
                continue
            if not self._may_begin(step):
                continue
            self.lease.check()
            if self._drifts((step,)):
                return
            self._step(step, position)

    def _may_begin(self, step: Step) -> bool:
        behind = self._unfinished(step)
        return not behind or (step.action in BY_OBJECT and self.partly.issuperset(behind))

    def _unfinished(self, step: Step) -> list[str]:
        return [d for d in step.depends_on if d not in self.done]

    def _look_back(self) -> None:
        """A step that holds no longer is open again: it failed, and the next run looks at it anew.

        Where another one failed, too: what a result calls erased was looked at when the run ended.
        """
        for position, step in enumerate(self.order, 1):
            if step.id not in self.done:
                continue
            try:
                reason = _guard(lambda step=step: self.undone(step))  # type: ignore[misc]
            except _Failed as failed:
                reason = failed.reason
            if reason is not None:
                self.done.discard(step.id)
                again = "then `pii-tracer resume`" if self.plan.retention == "immediate" else "then plan again"
                self._fail(step, position, reason, f"stop what brings the person back, {again}")

    # -- the person came back --------------------------------------------------------------------------------------

    def _suspects(self) -> set[str]:
        """Copies whose verification found the person: somebody wrote, restored or compacted since they were erased.

        Only where time travel ends at once: to repeat an expiry without its wait would cut a window that others keep.
        """
        if self.plan.retention != "immediate":
            return set()
        looks = (s for s in self.order if s.copy_ and s.action is Action.VERIFY_COPY)
        lasts = ((s, self.tracks.get(s.id, FRESH).last) for s in looks)
        return {self._root(str(s.copy_)) for s, last in lasts if last is not None and last.kind is Kind.STEP_FAILED}

    def _root(self, copy_id: str) -> str:
        """The copy that a branch, a history or a replica hangs from; a copy that counts by itself is its own."""
        copy = self.copies.get(copy_id)
        above = [c for c in self._ancestors(copy) if c in self.copies and not self.copies[c].origin] if copy else []
        return above[0] if above else copy_id

    def _reopened(self, step: Step, position: int) -> bool:
        """Look at a verified step of a suspect copy anew: what was approved and holds no longer is done once more."""
        if step.copy_ is None or self._root(step.copy_) not in self.suspects:
            return False
        try:
            check = _guard(lambda: self.executors[step.executor].verify(step, self.copies.get(str(step.copy_))))
        except _Failed as failed:
            check = Check(False, (failed.reason,))
        if check.ok:
            return False
        self.done.discard(step.id)
        self._fail(step, position, "holds no longer: " + "; ".join(check.findings), None)
        return True

    # -- drift ---------------------------------------------------------------------------------------------------

    def _drifts(self, steps: Iterable[Step]) -> bool:
        """Whether the world drifted under steps whose copies have not begun. Soft differences are recorded only."""
        found = [item for step in steps if step.copy_ not in self.begun_copies for item in self._foreign(step)]
        for item in found:
            if item not in self.drifted:
                self.journal.append(Kind.DRIFT, **asdict(item))
                self.drifted.append(item)
        return bool(hard(found))

    def _foreign(self, step: Step) -> list[DriftItem]:
        """The differences that this run did not make itself: not on a place it has begun to work on."""
        if step.copy_ in self.copies and self._ancestors(self.copies[step.copy_]) & self.begun_copies:
            return []
        ours = {self.copies[c].location for c in self.begun_copies if c in self.copies}
        return [item for item in self.drift(step) if item.target not in ours]

    def _ancestors(self, copy: Copy) -> set[str]:
        found: set[str] = set()
        origin = copy.origin
        while origin and origin not in found:
            found.add(origin)
            origin = self.copies[origin].origin if origin in self.copies else None
        return found

    # -- one step ------------------------------------------------------------------------------------------------

    def _step(self, step: Step, position: int) -> None:
        was = self.tracks.get(step.id, FRESH)
        until = self._held(step, was)
        if until is not None:
            self._wait(step, position, until, new=not was.begun and waits_until(was.last) != until)
            return
        copy = self.copies.get(step.copy_) if step.copy_ else None
        executor = self.executors[step.executor]
        try:
            settled = was.begun and self._settled(step, position, copy, executor, was)
            outcome = None if settled else self._act(step, position, copy, executor)
            if outcome is not None and outcome.waiting_until is not None:
                self._wait(step, position, outcome.waiting_until, new=True, outcome=outcome)
                return
            check = _guard(lambda: executor.verify(step, copy))
        except _Failed as failed:
            if failed.partly and step.action in BY_OBJECT:
                self.partly.add(step.id)
            self._fail(step, position, failed.reason, failed.todo, failed.facts)
            return
        if not check.ok:
            self._fail(step, position, "the verification does not hold: " + "; ".join(check.findings), None)
            return
        if behind := self._unfinished(step):
            self.partly.add(step.id)
            self._fail(step, position, f"done as far as it can be before {', '.join(behind)}", None)
            return
        self._note(Kind.STEP_VERIFIED, step, position, facts=check.facts)
        self.done.add(step.id)
        self.failed.pop(step.id, None)

    def _held(self, step: Step, was: StepTrack) -> datetime | None:
        """Until when a step must wait, by the plan or by what it said itself when it began."""
        if was.begun and step.action in ASKED_AGAIN:
            return None
        until = waits_until(was.last) if was.begun else self.waits.get(step.id)
        return until if until is not None and self.clock() < until else None

    def _settled(self, step: Step, position: int, copy: Copy | None, executor: Executor, was: StepTrack) -> bool:
        """Whether a step that has begun needs no further act, seen in the system itself."""
        last = was.last
        if last is not None and last.kind is Kind.STEP_RESULT:
            return True
        if came_to_nothing(last):
            return _guard(lambda: executor.verify(step, copy)).ok
        progress = _guard(lambda: executor.probe(step, copy))
        self._note(Kind.STEP_PROBED, step, position, detail=progress.value, facts={"progress": progress})
        if progress is Progress.DONE:
            self._note(Kind.STEP_RESULT, step, position, facts={"probed": True})
            return True
        return False

    def _act(self, step: Step, position: int, copy: Copy | None, executor: Executor) -> Outcome:
        _guard(lambda: executor.check(step, copy))
        self._note(Kind.STEP_INTENT, step, position, copy=step.copy_, action=step.action, token=self.lease.token)
        if step.copy_:
            self.begun_copies.add(step.copy_)
        outcome = _guard(lambda: executor.run(step, copy))
        if outcome.waiting_until is None:
            self._note(Kind.STEP_RESULT, step, position, facts=outcome.facts)
        return outcome

    def _wait(self, step: Step, position: int, until: datetime, *, new: bool, outcome: Outcome | None = None) -> None:
        self.waiting[step.id] = until
        if not new:
            return
        told = outcome or Outcome()
        detail, why = until.isoformat(), {}
        if told.waits_for:
            detail, why = f"{detail}: {told.waits_for}", {"reason": told.waits_for}
        self._note(Kind.STEP_WAITING, step, position, detail=detail, until=until, facts=told.facts, **why)

    def _fail(
        self, step: Step, position: int, reason: str, todo: str | None, facts: Mapping[str, Any] | None = None
    ) -> None:
        self.failed[step.id] = StepFailure(step.id, reason, todo)
        last = self.tracks.get(step.id, FRESH).last
        seen = last is not None and (last.kind is Kind.STEP_RESULT or came_to_nothing(last))
        self._note(Kind.STEP_FAILED, step, position, detail=reason, reason=reason, after_result=seen, facts=facts or {})

    def _note(self, kind: Kind, step: Step, position: int, *, detail: str = "", **facts: Any) -> None:
        self.lease.check()  # a runner that was frozen in an act must not write behind the one that took over
        record = self.journal.append(kind, step=step.id, **facts)
        if kind is not Kind.STEP_PROBED:
            begun = kind is Kind.STEP_INTENT or self.tracks.get(step.id, FRESH).begun
            self.tracks[step.id] = StepTrack(begun, record)
        told = record.facts.get("facts") or {}
        self.on_event(StepEvent(kind, step, position, len(self.order), record.time, detail, told))

    # -- the end -------------------------------------------------------------------------------------------------

    def _verdict(self) -> State:
        if hard(self.drifted):
            return State.BLOCKED
        if self.failed:
            return State.PARTIAL
        return State.WAITING if self.waiting else State.COMPLETE

    def _state(self, state: State) -> RunState:
        started = self.done | set(self.failed) | set(self.waiting)
        return RunState(
            plan_id=self.plan.plan_id,
            state=state,
            done=tuple(s.id for s in self.order if s.id in self.done),
            failed=tuple(self.failed.values()),
            waiting=tuple(self.waiting.items()),
            never_started=tuple(s.id for s in self.order if s.id not in started),
            waiting_until=min(self.waiting.values(), default=None),
            drift=tuple(self.drifted),
            journal_head=self.journal.head,
        )


T = TypeVar("T")


class _Failed(Exception):
    """An executor failed; carries words and facts that are safe to write down. partly: what it could do is done."""

    def __init__(self, reason: str, todo: str | None, facts: Mapping[str, Any], *, partly: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.todo, self.facts, self.partly = reason, todo, facts, partly


def _guard(call: Callable[[], T]) -> T:
    """Call an executor. Our own errors promise to hold no value of a person but in the name of a place, of which only
    `shown_place` is told; of others only type and line are."""
    try:
        return call()
    except Exception as error:
        if was_interrupted(error):  # the step did not fail: somebody stops the run, and cleaning up failed
            raise KeyboardInterrupt from error
        if not isinstance(error, PiiTracerError):
            show_trace(error)
            what = ": ".join(filter(None, (f"unexpected {type(error).__name__} in the executor", system_reason(error))))
            raise _Failed(f"{what} ({place_of(error)})", how_to_see("pii-tracer resume"), {}) from error
        where = f" ({shown_place(error.where)})" if error.where else ""
        partly = isinstance(error, PartlyDone)
        facts = error.facts if isinstance(error, PartlyDone) else {}
        raise _Failed(error.what + where, error.todo, facts, partly=partly) from None
