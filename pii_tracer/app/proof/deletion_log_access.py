"""The estate's deletion log: opened, selected from, pruned."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pii_tracer.app.settings import Settings, moment
from pii_tracer.config.laws import Law, laws_of, longest_log
from pii_tracer.model.errors import PiiTracerError, UsageError

if TYPE_CHECKING:
    from pii_tracer.model.actions import Action
    from pii_tracer.proof.deletions.deletion_log import DeletionLog
    from pii_tracer.proof.deletions.entries import Pruning, Selection


def open_log(settings: Settings) -> DeletionLog:
    """The log of the estate, checked; not made where there is none.

    Raises:
        UsageError: there is none.
        ProofError: it lacks rows, or a row was changed.
    """
    from pii_tracer.proof.deletions.deletion_log import FILE, log_in

    log = log_in(settings.state, settings.estate().estate)
    if log is None:
        file = str(settings.state / FILE)
        raise UsageError("there is no deletion log yet", where=file, todo="a run writes it: `pii-tracer apply`")
    log.check()
    return log


def selection(
    *,
    request: str | None,
    subject: str | None,
    plan: str | None,
    copy: str | None,
    dataset: str | None,
    action: str | None,
    standing: str | None,
    since: str | None,
    until: str | None,
    newest: bool,
) -> Selection:
    """Which rows are asked for. standing: their state; since, until: times as they are written on the command line.

    Raises:
        UsageError: no such action, or a time that is none.
    """
    from pii_tracer.proof.deletions.entries import EntryState, Selection

    return Selection(
        request=request,
        subject=subject,
        plan=plan,
        copy=copy,
        dataset=dataset,
        action=_action(action) if action else None,
        state=EntryState(standing) if standing else None,
        since=moment(since) if since else None,
        until=moment(until) if until else None,
        newest=newest,
    )


def _action(name: str) -> Action:
    """An action that some installed adapter or the tool itself knows."""
    from pii_tracer.lake.formats.registry import known_actions
    from pii_tracer.model.actions import Action

    if name not in known_actions():
        raise UsageError(f"there is no action `{name}`", todo="run `pii-tracer log show` to see the actions")
    return Action(name)


def prune_log(settings: Settings, now: datetime) -> Pruning | None:
    """Remove the rows that are older than the estate file says, and than the law of their request asks for; None where
    none is old enough. Those of a person of whom something is kept stay: only they know what the source has lost.

    Raises:
        UsageError: there is no log, or the estate file does not say how long it is kept.
        RequestError: the request store cannot be used.
    """
    from pii_tracer.app.intake.request_store import existing_store
    from pii_tracer.proof.deletions.deletion_log_table import fill_table

    estate = settings.estate()
    if estate.deletion_log.keep_days is None:
        raise UsageError(
            "the estate file does not say how long the deletion log is kept",
            where=str(settings.estate_file),
            todo="add `deletion_log: {keep_days: 1095}` to the estate file",
        )
    deletions = open_log(settings)
    before = now - timedelta(days=estate.deletion_log.keep_days)
    held, store = deletions.still_held(), existing_store(settings)
    held -= store.followed_by_a_whole_erasure(held) if held and store else frozenset()
    done = deletions.prune(before, now, held | _kept_by_law(settings, deletions, before, now))
    fill_table(deletions, estate.estate, estate.deletion_log.kind)
    return done


def stops_pruning(settings: Settings, now: datetime) -> str | None:
    """The request whose rows are old enough to be removed and stay, so that all later ones do; None where none does."""
    days = settings.estate().deletion_log.keep_days
    first = next(open_log(settings).numbered(), None) if days is not None else None
    return first[1].request_id if days and first and first[1].run_at < now - timedelta(days=days) else None


def _kept_by_law(settings: Settings, deletions: DeletionLog, before: datetime, now: datetime) -> frozenset[str]:
    """Requests whose law wants what was done for them on record for longer. Where the plan is not there any more, so
    that nobody knows the law, it counts as the strictest one."""
    laws = laws_of(settings.estate().laws)
    terms: dict[str, dict[str, timedelta]] = {}
    kept = set()
    for request, plan, ran_at in deletions.last_ran(before):
        if plan not in terms:
            terms[plan] = _terms(settings, plan, laws)
        if ran_at + terms[plan].get(request, longest_log(laws)) > now:
            kept.add(request)
    return frozenset(kept)


def _terms(settings: Settings, plan_id: str, laws: Mapping[str, Law]) -> dict[str, timedelta]:
    from pii_tracer.app.execution.run_folder import folder_of

    try:
        plan = folder_of(settings.state, plan_id).approved().plan
    except PiiTracerError:
        return {}
    found = {}
    for request in plan.requests:
        if request.law in laws:
            kept = laws[request.law].at(request.received).keep_log
            found[request.id] = timedelta(days=kept.days if kept else 0)
    return found
