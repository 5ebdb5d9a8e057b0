"""Answers to requests that no run is about: what the request store says of them, and nothing of any data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pii_tracer.app.execution.run_folder import folder_of
from pii_tracer.app.intake.request_store import existing_store
from pii_tracer.app.settings import Settings
from pii_tracer.intake.request_store import RequestStore
from pii_tracer.intake.requests import RequestState, Stored
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.errors import UsageError
from pii_tracer.proof.request_answers.answer import AnswerItem, Outcome, RequestAnswer, Standing

_ALL = "all of your data"
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

    Raises:
        RequestError: the store cannot be used.
    """
    store = existing_store(settings)
    if store is None or not store.known((request,)):
        return None
    found = store.find(request)
    if found.plan is None or (found.state in _DECIDED and found.first_begun is None):
        return Asked(found, None)
    if folder_of(settings.state, found.plan).info_file.exists():
        return Asked(found, found.plan)
    file = settings.state / "plans" / f"{found.plan}.plan.json"
    return Asked(found, str(file) if file.exists() else None)


def answer_of(settings: Settings, request: Stored, at: datetime) -> RequestAnswer:
    """The answer that the store gives alone.

    Raises:
        UsageError: the request ended meanwhile.
        RequestError: the store cannot be used.
    """
    store = existing_store(settings)
    if store is None:
        raise UsageError("there is no request store", where=str(settings.state))
    return RequestAnswer(
        request=request.id,
        subject=store.person_of(request.id),
        law=request.law,
        received=request.received,
        deadline=request.due,
        at=at,
        outcome=Outcome.NOT_ERASED,
        items=(_item(store, request),),
        not_proved=(_NOTHING_SEARCHED,),
    )


def _item(store: RequestStore, request: Stored) -> AnswerItem:
    if request.state in _DECIDED:
        last = store.changes(request.id)[-1]
        why = f"the request was {_DECIDED[request.state]} on {iso(last.at)[:10]}: {last.reason}"
        return AnswerItem(standing=Standing.NOT_ERASED, what=_ALL, why=why, who=last.by)
    if request.holds:
        return AnswerItem(standing=Standing.HELD, what="some of your data", why=f"by {', '.join(request.holds)}")
    return AnswerItem(standing=Standing.NOT_ERASED, what=_ALL, why=_NOT_BEGUN[request.state])
