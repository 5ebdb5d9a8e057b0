"""What a run shows of its steps while it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from pii_tracer.app.progress import Shows, with_facts
from pii_tracer.app.watching.time_left import TimeLeft
from pii_tracer.app.work_pace import PLACE, Pace, left_in_words
from pii_tracer.common.plurals import counted
from pii_tracer.common.work_facts import Facts, counts_in
from pii_tracer.model.actions import Action
from pii_tracer.model.plan import ErasurePlan, Step
from pii_tracer.run.journal import Kind, Record
from pii_tracer.run.run_state import StepEvent
from pii_tracer.run.step_progress import planned_waits, running_order, track

_LONG = timedelta(seconds=30)
"""Planned working time from which on it is told: a step that is over sooner needs no estimate."""


class Teller:
    """Tells each step's begin, end, wait and failure, and which copy is looked at again at the end.

    records: of the run so far, where it is resumed. at: when it begins or goes on.
    """

    def __init__(
        self, show: Shows, plan: ErasurePlan, records: Sequence[Record] = (), at: datetime | None = None
    ) -> None:
        from reports.wording import copy_name

        self._show = with_facts(show)
        done = {step for step, of in track(records).items() if of.verified}
        later = {step for step, until in planned_waits(plan).items() if until > (at or plan.created_at)}
        self._time = TimeLeft(running_order(plan.steps), done, later)
        self._names = {copy.id: copy_name(copy) for copy in plan.copies}
        self._begun = False
        self._current: str | None = None
        self._counts: Facts = {}
        sizes = {copy.id: copy.found.bytes for copy in plan.copies if copy.found}
        looks = [s for s in plan.steps if s.action is Action.VERIFY_COPY]
        self._look = [sizes.get(s.copy_ or "", 0) for s in looks]
        self._back: Pace | None = None

    def __call__(self, event: StepEvent) -> None:
        """Tell of an event."""
        if not self._begun:
            self._begun = True
            self._show.stage(f"apply: {counted(event.total, 'step')}")
        if event.kind is Kind.STEP_INTENT:
            self._time.begin(event.step)
            self._step(event, begins=True)
        elif event.kind is Kind.STEP_RESULT:
            self._settled(event)
            self._counts = {**self._counts, **counts_in(event.facts)}
        elif event.kind is Kind.STEP_VERIFIED:
            self._time.over(event.step)
            self._settled(event)
            self._show.over({**self._counts, **counts_in(event.facts)})
        elif event.kind in (Kind.STEP_FAILED, Kind.STEP_WAITING):
            state = event.kind.value.removeprefix("step_")
            self._time.hold(event.step)
            if self._current != event.step.id:  # another one is shown, and that is over
                self._step(event, begins=False)
            facts = {"state": state, **self._counts, **counts_in(event.facts)}
            self._show.stop(f"{state} {event.detail}".rstrip(), facts)
            self._current = None

    def looks_back(self, step: Step) -> None:
        """Tell which copy is looked at again, when all steps are over."""
        if self._back is None:
            self._show.stage("verifying again every copy that changed since its verdict")
            self._back = Pace(self._look, each=PLACE)
        name = self._names[step.copy_ or ""]
        self._show.step(f"looking again · {name}", self._back.next(), {"copy": name})
        self._current = None

    def _settled(self, event: StepEvent) -> None:
        """A step whose process was killed, and which is found done, did not begin in this one."""
        if self._current != event.step.id:
            self._step(event, begins=False)

    def _step(self, event: StepEvent, *, begins: bool) -> None:
        step = event.step
        act = step.action.value.replace("_", " ")
        name = self._names[step.copy_] if step.copy_ else ""
        facts: dict[str, str | int | float] = {
            "step_id": step.id,
            "number": event.position,
            "of": event.total,
            "action": step.action.value,
            "executor": step.executor,
            **({"copy": name} if name else {}),
            "planned_bytes": step.estimate.bytes,
            "planned_files": step.estimate.files,
        }
        detail = ""
        if begins:
            left = self._time.seconds()
            detail = _reckoned(step) if left is None else left_in_words(left)
            facts |= {} if left is None else {"left_seconds": round(left, 1)}
        title = f"{act} · {name}" if name else act
        self._show.step(f"{event.position}/{event.total} {title}", detail, facts)
        self._current, self._counts = step.id, {}


def _reckoned(step: Step) -> str:
    from reports.wording import span

    took = step.earliest_finish - step.earliest_start
    return f"the plan reckons with {span(took)}" if took >= _LONG else ""
