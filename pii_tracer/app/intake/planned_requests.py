"""What a run asks the request store before it touches data, and tells it when it has come to an end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.intake.request_store import due_by, existing_store
from pii_tracer.app.settings import Settings
from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import file_digest
from pii_tracer.config.laws import laws_of
from pii_tracer.intake.requests import RequestState
from pii_tracer.intake.state_changes import CameTo, begin, gone_of, refuse_gone, settle
from pii_tracer.model.errors import UsageError
from pii_tracer.model.legal_holds import HoldKind, kept_unasked, own_holds_in
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.requests_tree.request_leaves import REQUESTS, read_leaves
from pii_tracer.run.run_state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_tracer.config.estate_file import Request


_LEFT_OF_HER = "the run is done, and something of this person is left: `pii-tracer verify` shows where"
_NOT_ATTESTED = "the run is done, and its attestation is not about this request"


def refuse_stored(settings: Settings, requests: Sequence[Request]) -> None:
    """Raise `UsageError` where a request file has the id of a request in the store, whose plan would go unseen there;
    or the person of one that keeps something, which the plan would erase."""
    store = existing_store(settings) if requests else None
    if store is None:
        return
    if known := store.known(tuple(request.id for request in requests)):
        raise UsageError(
            f"the request {known[0]} is in the request store",
            where=store.where,
            todo="plan it by `pii-tracer plan --requests`",
        )
    subjects = {subject.name: subject for subject in settings.estate().subjects if not subject.several_columns}
    for request in requests:
        if mine := subjects.get(request.subject.type):
            person = store.key.requester(mine.name, request.subject.of(mine, request.id))
            if (keeps := store.keeping(person)) is not None:
                raise UsageError(
                    f"the person of the request {request.id} keeps data by the request {keeps} of the request store",
                    where=store.where,
                    todo="plan by `pii-tracer plan --requests`; if the person asks for everything now, first"
                    " `pii-tracer requests add` that",
                )


def refuse_withdrawn(settings: Settings, plan: ErasurePlan) -> None:
    """Raise `Refused` where a request of the plan was withdrawn, refused, given back, narrowed or widened since it was
    planned."""
    store = existing_store(settings)
    if store:
        refuse_gone(store, (request.id for request in plan.requests), plan.plan_id, own_holds_in(plan))


def other_wishes(settings: Settings, plan: ErasurePlan) -> tuple[str, ...]:
    """Requests of a plan whose persons ask to keep other data now; none without the estate key, and once a run of the
    plan has begun. Who reviews need not have the store: the run has, and refuses such a plan."""
    store = existing_store(settings) if settings.key_file().exists() else None
    return tuple(store.unlike(plan.plan_id, own_holds_in(plan))) if store else ()


def gone_from(settings: Settings, plan: ErasurePlan) -> dict[str, RequestState]:
    """The requests of a plan that are another plan's by now, or that somebody ended, each with its state. While there
    is one, no run of the plan goes on."""
    store = existing_store(settings)
    return gone_of(store, (request.id for request in plan.requests), plan.plan_id) if store else {}


def begin_requests(settings: Settings, plan: ErasurePlan, at: datetime) -> None:
    """From here on data is touched, and no request of the plan can be withdrawn. Raises as `refuse_withdrawn`."""
    store = existing_store(settings)
    if store:
        begin(store, (request.id for request in plan.requests), plan.plan_id, at, own_holds_in(plan))


def settle_requests(
    folder: RunFolder, plan: ErasurePlan, result: Mapping[str, Any], *, done: bool, at: datetime
) -> None:
    """What the run came to, for each request of its plan: erased with the proof, or carried over with the reason. While
    the run waits, its requests wait for it.

    result: the final object. done: whether every step is.
    """
    store = existing_store(folder.settings())
    if store is None:
        return

    def came_to(mine: Sequence[str]) -> CameTo:
        still = frozenset(result["open_requests"])
        left = {name: _LEFT_OF_HER for name in mine if name in still}
        rest = [name for name in mine if name not in still]
        if result["attestation"] is None:
            if not done and result["state"] == State.WAITING:
                return CameTo(left, waiting=dict.fromkeys(rest, f"its run is {result['state']}"))
            return CameTo({**left, **dict.fromkeys(rest, _left(result) if done else _stopped(result))})
        attested = {leaf.id for leaf in read_leaves((folder.evidence / REQUESTS).read_bytes())}
        left |= {name: _NOT_ATTESTED for name in rest if name not in attested}
        answered = [name for name in rest if name in attested]
        # just what a person asked to keep answers her: she gets the rest erased by a request for that
        holds = [hold.id for hold in plan.holds if hold.kind != HoldKind.OWN_REQUEST]
        more = kept_unasked(plan)
        if holds or more:
            holds += sorted(own_holds_in(plan, of_copies=True)) if more else []
            along = f", {counted(len(more), 'copy', 'copies')} of it without being asked for" if more else ""
            kept = f"data is kept by the hold {', '.join(holds)}{along}; all else is erased"
            return CameTo({**left, **dict.fromkeys(answered, kept)}, dict.fromkeys(answered, holds))
        proofs = dict.fromkeys(answered, _proof(folder))
        return CameTo(left, proofs=proofs, due=due_by(laws_of(folder.settings().estate().laws)))

    settle(store, plan.plan_id, came_to, at)


def _stopped(result: Mapping[str, Any]) -> str:
    """Why a run does not go on by itself."""
    failed = result.get("failed") or ()
    if failed and result["state"] != State.BLOCKED:
        return f"{counted(len(failed), 'step')} of its run failed, first {failed[0]['step']}"
    return "its run stopped: data or settings changed after planning"


def _left(result: Mapping[str, Any]) -> str:
    """Why a run whose steps are all done proves nothing."""
    if result["residue"]:
        return f"the run is done, and something of the persons is left in {counted(len(result['residue']), 'place')}"
    if result["unverified"]:
        return f"the run is done, and {counted(len(result['unverified']), 'place')} could not be verified"
    return "the run is done, and could not be attested"


def _proof(folder: RunFolder) -> str:
    """The attestation of the run, which answers for each request by its tree: its place in the state folder, and its
    digest."""
    return f"{folder.attestation.relative_to(folder.state).as_posix()} {file_digest(folder.attestation)}"
