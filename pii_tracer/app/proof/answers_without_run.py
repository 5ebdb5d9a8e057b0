"""Answers to requests that no run is about: what the request store says of them, and nothing of any data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pii_tracer.app.execution.run_folder import folder_of
from pii_tracer.app.intake.request_store import existing_store
from pii_tracer.app.settings import Settings
from pii_tracer.intake.kept_scopes import Narrowing
from pii_tracer.intake.request_store import RequestStore
from pii_tracer.intake.requests import RequestState, Stored
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.errors import UsageError
from pii_tracer.model.legal_holds import Hold
from pii_tracer.proof.request_answers.answer import AnswerItem, Outcome, RequestAnswer, Standing
from pii_tracer.proof.request_answers.answer_rules import HOLD_ENDED, as_of

_ALL, _SOME = "all of your data", "some of your data"
_NOT_BEGUN = {
    RequestState.RECEIVED: "the erasure has not begun",
    RequestState.PLANNED: "the erasure is planned, and has not begun",
    RequestState.CARRIED_OVER: "the erasure could not be done yet",
    RequestState.ERASED: "what proves the erasure is not there",
}
_DECIDED = {RequestState.REFUSED: "refused", RequestState.WITHDRAWN: "taken back"}
_NOTHING_SEARCHED = "where data of the person is, and whether there is any: nothing was searched for this answer"


@dataclass(frozen=True)
class Asked:
    """A request of the store, and what answers it: the run that it was last in (a plan's id), or the file of a plan
    that was not begun. run: None where the store alone does."""

    request: Stored
    run: str | None


def asked_for(settings: Settings, request: str) -> Asked | None:
    """A request by its id, or by that of a further receipt. None where the store does not have it.

    Once a run has begun, no plan that was not begun answers: what the run erased is not in it.

    Raises:
        RequestError: the store cannot be used.
    """
    store = existing_store(settings)
    if store is None or not store.known((request,)):
        return None
    found = store.find(request)
    if found.state in _DECIDED:
        return Asked(found, None)
    runs = [found.plan] if found.first_begun is None else [found.plan, *store.plans_of(found.id)]
    run = next((plan for plan in runs if plan and folder_of(settings.state, plan).info_file.exists()), None)
    if run is None and found.plan and found.first_begun is None:
        file = settings.state / "plans" / f"{found.plan}.plan.json"
        run = str(file) if file.exists() else None
    return Asked(found, run)


def answer_of(settings: Settings, request: Stored, at: datetime) -> RequestAnswer:
    """The answer that the store gives alone.

    Raises:
        UsageError: there is no such request any more.
        RequestError: the store cannot be used.
        PlanError: the person's value does not open with this estate key.
    """
    store = existing_store(settings)
    if store is None:
        raise UsageError("there is no request store", where=str(settings.state))
    return RequestAnswer(
        request=request.id,
        subject=store.reference_of(request.id),
        law=request.law,
        received=request.received,
        deadline=request.due,
        at=at,
        outcome=Outcome.NOT_ERASED,
        items=tuple(_items(store, request, settings.estate().holds, at)),
        not_proved=(_NOTHING_SEARCHED,),
    )


def _items(store: RequestStore, request: Stored, holds: Sequence[Hold], at: datetime) -> Iterator[AnswerItem]:
    begun = request.first_begun or request.begun
    if begun is not None:
        why = f"an erasure began on {iso(begun)[:10]}; what it did is not in this answer"
        yield AnswerItem(standing=Standing.UNCONFIRMED, what="your data", why=why)
    if request.state in _DECIDED:
        last = store.changes(request.id)[-1]
        why = f"the request was {_DECIDED[request.state]} on {iso(last.at)[:10]}: {last.reason}"
        what = _ALL if begun is None else "what may be left of your data"
        yield AnswerItem(standing=Standing.NOT_ERASED, what=what, why=why, who=last.by)
    elif request.holds:
        names = {request.id, *(receipt.id for receipt in store.receipts(request.id) if receipt.id)}
        known = {hold.id: hold for hold in holds if hold.concerns(names)}
        own = {one.hold: one for one in store.narrowings(request.id)}
        for name in request.holds:
            yield as_of(_kept(own[name]) if name in own else _held(name, known.get(name)), at, approved=True)
    elif begun is None:
        erased = request.state is RequestState.ERASED
        standing = Standing.UNCONFIRMED if erased else Standing.NOT_ERASED
        yield AnswerItem(standing=standing, what=_ALL, why=_NOT_BEGUN[request.state])


def _kept(wish: Narrowing) -> AnswerItem:
    if not wish.in_force:
        return AnswerItem(standing=Standing.NOT_ERASED, what=_SOME, why=HOLD_ENDED)
    return AnswerItem(standing=Standing.KEPT, what=wish.dataset, why=f"as you asked on {iso(wish.asked)[:10]}")


def _held(name: str, hold: Hold | None) -> AnswerItem:
    """As the estate file has the hold now. One that it has no more keeps nothing."""
    if hold is None:
        return AnswerItem(standing=Standing.NOT_ERASED, what=_SOME, why=HOLD_ENDED)
    why = f"by {name}: {hold.basis}, {hold.citation}"
    return AnswerItem(standing=Standing.HELD, what=_SOME, why=why, who=hold.approver, until=hold.ends)
