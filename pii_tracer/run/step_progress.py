"""How far each step of a plan has come, read off the journal, and in which order steps run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pii_tracer.common.topological_order import Circle, in_order
from pii_tracer.model.canonical_json import parse_time
from pii_tracer.model.errors import Refused
from pii_tracer.model.plan import ErasurePlan, Step
from pii_tracer.run.journal import Kind, Record
from pii_tracer.run.run_state import State

BY_VERIFY = {"found_by": "verify"}
"""In what is noted of a step: `verify` found something after the step was verified."""


def running_order(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Topological order; where the DAG leaves a choice, the plan's own order.

    Raises:
        Refused: a cycle, an unknown dependency, or one id twice.
    """
    by_id = {step.id: step for step in steps}
    unknown = sorted({d for step in steps for d in step.depends_on} - set(by_id))
    if len(by_id) != len(steps) or unknown:
        raise Refused(f"the plan's steps do not form a graph: unknown {unknown}" if unknown else "a step id is twice")
    try:
        return tuple(by_id[name] for name in in_order({step.id: step.depends_on for step in steps}))
    except Circle as circle:
        raise Refused(
            "the plan's steps depend on each other in a circle", where=circle.members[0], todo="plan again"
        ) from None


def planned_waits(plan: ErasurePlan) -> dict[str, datetime]:
    """The dates of planned waits (retention, window), by the step in front of which each is.

    `earliest_start` of other steps, which just follow what is before them, is an estimate from working times and holds
    nothing back.
    """
    finish = {step.id: step.earliest_finish for step in plan.steps}
    ready = {s.id: max((finish[d] for d in s.depends_on if d in finish), default=plan.created_at) for s in plan.steps}
    return {step.id: step.earliest_start for step in plan.steps if step.earliest_start > ready[step.id]}


@dataclass(frozen=True)
class StepTrack:
    """What the journal says of one step. last: its last record; begun: it has an intent."""

    begun: bool
    last: Record | None

    @property
    def verified(self) -> bool:
        """The step is finished."""
        return self.last is not None and self.last.kind is Kind.STEP_VERIFIED


FRESH = StepTrack(begun=False, last=None)
"""A step that the journal does not know."""


def came_to_its_end(records: Iterable[Record]) -> bool:
    """Whether a run was complete, and nothing that `verify` found was noted since it ended last: a run that went on for
    that, and was killed, has still to search again."""
    ended = noted = False
    for record in records:
        facts = record.facts.get("facts")
        if record.kind is Kind.RUN_FINISHED:
            ended, noted = ended or record.facts.get("state") == State.COMPLETE, False
        elif record.kind is Kind.STEP_NOTED and isinstance(facts, dict):
            noted = noted or facts.items() >= BY_VERIFY.items()
    return ended and not noted


def track(records: Iterable[Record]) -> dict[str, StepTrack]:
    """Step id -> how far it came. What a probe found, and what a step noted on its way, change nothing."""
    found: dict[str, StepTrack] = {}
    for record in records:
        step = record.facts.get("step")
        if not isinstance(step, str) or record.kind in (Kind.STEP_PROBED, Kind.STEP_NOTED):
            continue
        begun = record.kind is Kind.STEP_INTENT or (step in found and found[step].begun)
        found[step] = StepTrack(begun, record)
    return found


def came_to_nothing(last: Record | None) -> bool:
    """The step ran to its end, and its verification did not hold."""
    return last is not None and last.kind is Kind.STEP_FAILED and bool(last.facts.get("after_result"))


def waits_until(record: Record | None) -> datetime | None:
    """The time that a waiting step named; None where its last record is another."""
    if record is None or record.kind is not Kind.STEP_WAITING:
        return None
    return parse_time(str(record.facts["until"]))
