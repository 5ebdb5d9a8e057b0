"""What the steps that write bare folders again would refuse: the plan says it, and not the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from executors.formats.plain_files.executor import rehearse
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.read_result import in_order
from pii_tracer.model.datasets import BY_ROWS, PLAIN, KeySet, Match, Strategy
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import is_remote
from pii_tracer.model.plan import ErasurePlan
from planners.build import PlanInputs
from planners.locate.subject_survey import title

_WITHOUT = "No step writes the folder again as it is"


@dataclass(frozen=True)
class _Known:
    """The key sets of the plan, as a step has them from the sealed manifest."""

    key_sets: Mapping[str, KeySet]

    def key_set(self, name: str) -> KeySet:
        return self.key_sets[name]


def with_refused(plan: ErasurePlan, inputs: PlanInputs, say: Callable[[str], None]) -> PlanInputs | None:
    """Read each bare folder on this machine that a step writes again as the step will.

    Returns the inputs with a gap for each that it refuses; None where it refuses none.
    """
    inventory, readings = inputs.world.inventory, Readings()
    known = _Known({name: keys for survey in inputs.surveys for name, keys in survey.key_sets.items()})
    unread = {gap.dataset for gap in inventory.gaps if gap.kind == GapKind.UNREADABLE}
    states = {state.location: state for state in inventory.tables}
    for copy in plan.copies:
        state = states.get(copy.location)
        if state is None or state.format not in PLAIN or is_remote(state.location) or state.dataset in unread:
            continue
        if copy.match is not None and copy.strategy in (*BY_ROWS, Strategy.MASK_COLUMNS):
            say(f"trying what the step for {title(state)} would read")
            readings.table(state, partial(_tried, state, copy.match, known), None, _WITHOUT)
    if not readings.gaps:
        return None
    gaps = in_order({*inventory.gaps, *readings.gaps})
    return replace(inputs, world=replace(inputs.world, inventory=inventory.model_copy(update={"gaps": gaps})))


def _tried(state: TableState, match: Match, known: _Known) -> None:
    try:
        rehearse(state, match, known)
    except RunError as error:
        raise EstateError(error.what, where=error.where, todo=error.todo) from None
