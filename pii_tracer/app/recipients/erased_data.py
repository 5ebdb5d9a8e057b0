"""What recipients have to erase: the data that a run erases here, once it has begun to, and nothing that is kept."""

from __future__ import annotations

from collections.abc import Iterable

from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.config.passing_on.recipients import Recipient
from pii_tracer.model.actions import CONFIRMED, Action
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import UsageError
from pii_tracer.model.plan import HELD, Copy, ErasurePlan
from pii_tracer.review.plan_file import LoadedPlan
from pii_tracer.run.journal import Kind, read_journal
from pii_tracer.run.run_state import State

_KEPT = HELD | {Strategy.BLOCKED}


def gets(recipient: Recipient, plan: ErasurePlan) -> bool:
    """Whether a recipient gets a dataset in which the plan found the persons."""
    return not recipient.of or any(_is_in(name, plan.copies) for name in recipient.of)


def data_of(recipient: Recipient, plan: ErasurePlan) -> tuple[str, ...] | None:
    """What of its `of` a recipient has to erase; empty for all that it got. None where it has to erase nothing.

    What a hold keeps here, wholly or in some columns, is nobody asked to erase. Of a recipient without `of` nobody
    knows what it has: it is asked for nothing while something is kept.
    """
    kept = [copy for copy in plan.copies if copy.strategy in _KEPT]
    if not recipient.of:
        return None if kept else ()
    going = [copy for copy in plan.copies if copy.strategy not in _KEPT]
    return tuple(name for name in recipient.of if _is_in(name, going) and not _is_in(name, kept)) or None


def _is_in(wanted: str, copies: Iterable[Copy]) -> bool:
    wanted = wanted.rstrip("/").lower()
    names = (name for copy in copies for name in (copy.table, copy.location, copy.dataset.name) if name)
    return any(_is(name.rstrip("/").lower(), wanted) for name in names)


def _is(name: str, wanted: str) -> bool:
    return name == wanted or ("/" in wanted and name.endswith("/" + wanted.lstrip("/")))


def refuse_too_early(folder: RunFolder, loaded: LoadedPlan) -> None:
    """Nobody is asked to erase what nobody erases here.

    Raises:
        UsageError: by its journal, the run has erased nothing yet, or it stopped since something changed.
        JournalError: the journal was changed.
    """
    records, _ = read_journal(folder.journal)
    erasing = {s.id for s in loaded.plan.steps if s.copy_ and s.action not in {Action.VERIFY_COPY, *CONFIRMED}}
    done = any(r.kind in (Kind.STEP_RESULT, Kind.STEP_VERIFIED) and r.facts.get("step") in erasing for r in records)
    if not done or {r.facts.get("plan_digest") for r in records if r.kind is Kind.RUN_STARTED} != {loaded.digest}:
        raise UsageError(
            "the run has erased nothing yet, so that nobody else is asked to",
            where=loaded.plan.plan_id,
            todo="go on with `pii-tracer apply` or `resume`, then inform the recipients",
        )
    if records[-1].facts.get("state") == State.BLOCKED:
        raise UsageError(
            "the run stopped, since data or settings changed after planning",
            where=loaded.plan.plan_id,
            todo="go on with `pii-tracer resume`, or plan again; then inform the recipients",
        )
