"""What the steps that write bare folders again would refuse: the plan says it, and not the run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from executors.context import ExecutionContext
from executors.formats.plain_files.executor import rehearse
from executors.stores.hdfs.executor import HdfsExecutor
from executors.stores.object_places.executor import ObjectsExecutor
from pii_tracer.app.execution.executor_value_search import finds
from pii_tracer.app.planning.unmatched_rows.shared_row_keys import refuse_shared_keys
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.read_result import in_order
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import BY_ROWS, PLAIN, KeySet, Strategy
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import is_remote
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from planners.build import PlanInputs
from planners.copies.scan_evidence import HdfsEvidence
from planners.locate.subject_survey import title

_WITHOUT = "No step writes the folder again as it is"


@dataclass(frozen=True)
class _Known:
    """The key sets of the plan, as a step has them from the sealed manifest."""

    key_sets: Mapping[str, KeySet]

    def key_set(self, name: str) -> KeySet:
        return self.key_sets[name]


def with_refused(plan: ErasurePlan, inputs: PlanInputs, base: Path, say: Callable[[str], None]) -> PlanInputs | None:
    """Read each bare folder that a step writes again as the step will. base: folder of the estate file.

    Returns the inputs with a gap for each that it refuses; None where it refuses none.
    """
    inventory, readings = inputs.world.inventory, Readings()
    known = _Known({name: keys for survey in inputs.surveys for name, keys in survey.key_sets.items()})
    _in_stores(plan, inputs, known, base, readings, say)
    unread = {gap.dataset for gap in inventory.gaps if gap.kind == GapKind.UNREADABLE}
    states = {state.location: state for state in inventory.tables}
    paths = EstatePaths(inputs.estate, base)
    for copy in plan.copies:
        state = states.get(copy.location)
        if state is not None and copy.match is not None and copy.strategy in (*BY_ROWS, Strategy.MASK_COLUMNS):
            kept = copy.strategy is Strategy.MASK_COLUMNS
            alone = partial(refuse_shared_keys, state, copy.match, known.key_sets, paths, kept=kept)
            readings.table(state, alone, None)
        if state is None or state.format not in PLAIN or is_remote(state.location) or state.dataset in unread:
            continue
        if copy.places is not None and copy.strategy in (*BY_ROWS, Strategy.MASK_COLUMNS):
            say(f"trying what the step for {title(state)} would read")
            readings.table(state, partial(_tried, state, copy, known), None, _WITHOUT)
    if not readings.gaps:
        return None
    gaps = in_order({*inventory.gaps, *readings.gaps})
    return replace(inputs, world=replace(inputs.world, inventory=inventory.model_copy(update={"gaps": gaps})))


def _in_stores(
    plan: ErasurePlan, inputs: PlanInputs, known: _Known, base: Path, readings: Readings, say: Callable[[str], None]
) -> None:
    """Try the steps that write files in HDFS and objects of `object_stores` again. Files in which the search saw
    nothing are read only for keys of several columns, which no bytes show.
    """
    world, copies = inputs.world, {copy.id: copy for copy in plan.copies}
    everything = tuple(known.key_sets.values())
    ctx = ExecutionContext(
        inputs.estate,
        base,
        known,
        lambda: inputs.as_of,
        everything=everything,
        finds=finds(inputs.estate, base),
        not_keys=plan.not_keys,
        marks=inputs.marks,
    )
    trying: dict[Action, HdfsExecutor | ObjectsExecutor] = {
        Action.HDFS_REWRITE: HdfsExecutor(ctx),
        Action.OBJECT_REWRITE: ObjectsExecutor(ctx),
    }
    for step in plan.steps:
        copy = copies.get(step.copy_ or "")
        seen = world.hdfs.get(copy.location) or world.stored.get(copy.location) if copy else None
        if copy is None or seen is None or seen.state is None or step.action not in trying:
            continue
        hidden = any(known.key_sets[term.key_set].columns for term in (copy.match.terms if copy.match else ()))
        if isinstance(seen, HdfsEvidence):
            names = {read.path for read in seen.touched if hidden or read.holds}
        else:
            names = {read.version.key for read in seen.read if hidden or read.holds}
        say(f"trying what the step for {title(seen.state)} would read")
        act = partial(_tried_there, trying[step.action], step, copy, names)
        readings.table(seen.state, act, None, _WITHOUT)


def _tried_there(executor: HdfsExecutor | ObjectsExecutor, step: Step, copy: Copy, names: Collection[str]) -> None:
    try:
        executor.rehearse(step, copy, names)
    except RunError as error:
        raise EstateError(error.what, where=error.where, todo=error.todo) from None


def _tried(state: TableState, copy: Copy, known: _Known) -> None:
    """Each step: for the persons' rows, and for each column that names them in rows of others."""
    try:
        if copy.match is not None:
            rehearse(state, copy.match, known)
        for mention in copy.mentions:
            rehearse(state, mention.match, known, mention.mask)
    except RunError as error:
        raise EstateError(error.what, where=error.where, todo=error.todo) from None
