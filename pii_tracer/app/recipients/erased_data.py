"""What recipients have to erase: the data that a run erases here, once it has begun to, and nothing that is kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.passing_on.recipients import Recipient
from pii_tracer.lake.formats.base import Role
from pii_tracer.lake.formats.registry import actions_with
from pii_tracer.model.actions import READS_ONLY, Action
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import UsageError
from pii_tracer.model.plan import HELD, Copy, ErasurePlan
from pii_tracer.review.plan_file import LoadedPlan
from pii_tracer.run.journal import Kind, read_journal
from pii_tracer.run.run_state import State

_KEPT = HELD | {Strategy.BLOCKED}


class Withheld(StrEnum):
    """Why a recipient is not asked to erase anything."""

    NO_COPY = "the plan has no copy of what it gets"
    HOLD = "a hold keeps data that it gets"
    LATER = "no step can erase part of it yet; inform after the next plan"


def gets(recipient: Recipient, plan: ErasurePlan) -> bool:
    """Whether a recipient gets a dataset in which the plan found the persons."""
    return not recipient.of or any(_is_in(name, plan.copies) for name in recipient.of)


def data_of(recipient: Recipient, plan: ErasurePlan, erased: Collection[str] | None = None) -> tuple[str, ...] | None:
    """What of its `of` a recipient has to erase; empty for all that it got. None where it has to erase nothing.

    What a hold keeps here, wholly or in some columns, is nobody asked to erase. Of a recipient without `of` nobody
    knows what it has: it is asked for nothing while something is kept. erased: as of `erased_by`.
    """
    kept = [copy for copy in plan.copies if copy.strategy in _KEPT]
    if not recipient.of:
        return None if kept or any(_stays(copy, erased) for copy in plan.copies) else ()
    going = [copy for copy in plan.copies if not _stays(copy, erased)]
    return tuple(name for name in recipient.of if _is_in(name, going) and not _is_in(name, kept)) or None


def why_nothing(recipient: Recipient, plan: ErasurePlan, erased: Collection[str] | None) -> Withheld:
    """Why `data_of` is None."""
    if not gets(recipient, plan):
        return Withheld.NO_COPY
    mine = [c for c in plan.copies if not recipient.of or any(_is_in(name, (c,)) for name in recipient.of)]
    later = any(copy.strategy not in HELD and _stays(copy, erased) for copy in mine)
    return Withheld.LATER if later else Withheld.HOLD


def _stays(copy: Copy, erased: Collection[str] | None) -> bool:
    return copy.strategy in _KEPT or (erased is not None and copy.id not in erased)


def _is_in(wanted: str, copies: Iterable[Copy]) -> bool:
    wanted = wanted.rstrip("/").lower()
    names = (name for copy in copies for name in (copy.table, copy.location, copy.dataset.name) if name)
    return any(_is(name.rstrip("/").lower(), wanted) for name in names)


def _is(name: str, wanted: str) -> bool:
    return name == wanted or ("/" in wanted and name.endswith("/" + wanted.lstrip("/")))


def erased_by(folder: RunFolder, loaded: LoadedPlan, *, goes_on: bool) -> frozenset[str] | None:
    """Ids of the copies that a run has erased, where it never erases the others; None where all of its plan can be
    passed on. Nobody is asked to erase what nobody erases here.

    goes_on: whether it can still go on. If not, what it has erased is in no later plan: nobody else tells of it.

    Raises:
        UsageError: by its journal, the run has erased nothing yet, or it stopped since something changed.
        JournalError: the journal was changed.
    """
    records, _ = read_journal(folder.journal)
    changing = [step for step in loaded.plan.steps if step.copy_ and step.action not in _erasing_nothing()]
    verified = {r.facts.get("step") for r in records if r.kind is Kind.STEP_VERIFIED}
    state = records[-1].facts.get("state") if records and records[-1].kind is Kind.RUN_FINISHED else None
    done = state == State.COMPLETE or any(step.id in verified for step in changing)
    if not done or {r.facts.get("plan_digest") for r in records if r.kind is Kind.RUN_STARTED} != {loaded.digest}:
        raise UsageError(
            "the run has erased nothing yet, so that nobody else is asked to",
            where=loaded.plan.plan_id,
            todo="go on with `pii-tracer apply` or `resume`, then inform the recipients",
        )
    if state == State.BLOCKED and goes_on:
        raise UsageError(
            "the run stopped, since data or settings changed after planning",
            where=loaded.plan.plan_id,
            todo="go on with `pii-tracer resume`, or plan again; then inform the recipients",
        )
    if goes_on or state == State.COMPLETE:
        return None
    changed = {step.copy_ for step in changing}
    needed = [*changing, *(step for step in loaded.plan.steps if step.copy_ not in changed)]
    left = {step.copy_ for step in needed if step.id not in verified}
    return frozenset(step.copy_ for step in needed if step.copy_ and step.copy_ not in left)


def _erasing_nothing() -> frozenset[Action]:
    waits = {Action.KAFKA_AWAIT_RETENTION, Action.OBJECT_AWAIT_PURGE}
    return READS_ONLY | waits | actions_with(Role.WAITS)
