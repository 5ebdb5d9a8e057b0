"""What a run shows of its steps while it goes on."""

from __future__ import annotations

from datetime import timedelta

from pii_tracer.app.progress import Shows
from pii_tracer.app.work_pace import Pace
from pii_tracer.common.plurals import counted
from pii_tracer.model.actions import Action
from pii_tracer.model.plan import ErasurePlan, Step
from pii_tracer.run.journal import Kind
from pii_tracer.run.run_state import StepEvent

_LONG = timedelta(seconds=30)
"""Planned working time from which on it is told: a step that is over sooner needs no estimate."""


class Teller:
    """Tells each step's begin, wait and failure, and which copy is looked at again at the end."""

    def __init__(self, show: Shows, plan: ErasurePlan) -> None:
        from reports.wording import copy_name

        self._show = show
        self._names = {copy.id: copy_name(copy) for copy in plan.copies}
        self._begun = False
        self._current: str | None = None
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
            self._step(event, _reckoned(event.step))
        elif event.kind in (Kind.STEP_FAILED, Kind.STEP_WAITING):
            if self._current != event.step.id:  # another one is shown, and that is over
                self._step(event, "")
            self._show.stop(f"{event.kind.value.removeprefix('step_')} {event.detail}".rstrip())
            self._current = None

    def looks_back(self, step: Step) -> None:
        """Tell which copy is looked at again, when all steps are over."""
        if self._back is None:
            self._show.stage("verifying again every copy that changed since its verdict")
            self._back = Pace(self._look)
        self._show.step(f"looking again · {self._names[step.copy_ or '']}", self._back.next())
        self._current = None

    def _step(self, event: StepEvent, detail: str) -> None:
        step = event.step
        act = step.action.value.replace("_", " ")
        title = f"{act} · {self._names[step.copy_]}" if step.copy_ else act
        self._show.step(f"{event.position}/{event.total} {title}", detail)
        self._current = step.id


def _reckoned(step: Step) -> str:
    from reports.wording import span

    took = step.earliest_finish - step.earliest_start
    return f"the plan reckons with {span(took)}" if took >= _LONG else ""
