"""What a run shows of its steps while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pii_tracer.app.progress import Shows
from pii_tracer.model.plan import ErasurePlan, Step
from pii_tracer.run.journal import Kind
from pii_tracer.run.runner import StepEvent


def _title(step: Step, names: Mapping[str, str]) -> str:
    act = step.action.value.replace("_", " ")
    return f"{act} · {names[step.copy_]}" if step.copy_ else act


def teller(show: Shows, plan: ErasurePlan) -> Callable[[StepEvent], None]:
    """Tells each step's begin, wait and failure."""
    from reports.wording import copy_name

    names = {copy.id: copy_name(copy) for copy in plan.copies}
    begun = False

    def tell(event: StepEvent) -> None:
        nonlocal begun
        if not begun:
            begun = True
            show.stage(f"apply: {event.total} steps")
        if event.kind is Kind.STEP_INTENT:
            show.step(f"{event.position}/{event.total} {_title(event.step, names)}")
        elif event.kind in (Kind.STEP_FAILED, Kind.STEP_WAITING):
            show.stop(f"{event.kind.value.removeprefix('step_')} {event.detail}".rstrip())

    return tell
