"""What a run asks the request store before it touches data, and tells it when it has come to an end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pii_tracer.app.execution.run_folder import RunFolder, folder_of
from pii_tracer.app.intake.request_store import due_by, existing_store
from pii_tracer.app.settings import Settings
from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import file_digest
from pii_tracer.config.laws import laws_of
from pii_tracer.intake.requests import RequestState
from pii_tracer.intake.run_results import CameTo, settle
from pii_tracer.intake.state_changes import begin, gone_of, keeping_meanwhile, refuse_gone
from pii_tracer.model.errors import UsageError
from pii_tracer.model.legal_holds import HoldKind, kept_unasked, own_holds_in
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.requests_tree.request_leaves import REQUESTS, read_leaves
from pii_tracer.run.run_state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_tracer.config.estate_file import Request
    from pii_tracer.intake.request_store import RequestStore
    from pii_tracer.model.datasets import KeySet

    Values = Callable[[], Iterable[KeySet]]


def no_values() -> Iterable[KeySet]:
    """What nobody is known by."""
    return ()


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
            todo="plan the request with `pii-tracer plan --requests`",
        )
    subjects = {subject.name: subject for subject in settings.estate().subjects if not subject.several_columns}
    for request in requests:
        if mine := subjects.get(request.subject.type):
            person = store.key.requester(mine.name, request.subject.of(mine, request.id))
            if (keeps := store.keeping(person)) is not None:
                raise UsageError(
                    f"the person of the request {request.id} keeps data by the request {keeps} of the request store",
                    where=store.where,
                    todo="run `pii-tracer plan --requests`; if the person now asks for everything, first add that "
                    "request with `pii-tracer requests add`",
                )


def refuse_withdrawn(settings: Settings, plan: ErasurePlan, values: Values = no_values) -> None:
    """Raise `Refused` where a request of the plan was withdrawn, refused, given back, narrowed or widened since it was
    planned; or where it came from a file, and its person keeps something by the store. values: the plan's key sets, by
    which the store knows such persons. Not asked for once a run of the plan has begun."""
    store = existing_store(settings)
    if store:
        asked = no_values if folder_of(settings.state, plan.plan_id).journal.exists() else values
        persons = _Persons(settings, store, plan, asked).of
        refuse_gone(store, _names(plan), plan.plan_id, own_holds_in(plan), persons)


def other_wishes(settings: Settings, plan: ErasurePlan, values: Values = no_values) -> tuple[str, ...]:
    """Requests of a plan whose persons ask to keep other data now; none without the estate key, and once a run of the
    plan has begun. Who reviews need not have the store: the run has, and refuses such a plan. values: as of
    `refuse_withdrawn`."""
    store = existing_store(settings) if settings.key_file().exists() else None
    if store is None:
        return ()
    asked = no_values if folder_of(settings.state, plan.plan_id).journal.exists() else values
    by_file = keeping_meanwhile(store, _names(plan), plan.plan_id, _Persons(settings, store, plan, asked).of)
    return (*store.unlike(plan.plan_id, own_holds_in(plan)), *by_file)


def gone_from(settings: Settings, plan: ErasurePlan) -> dict[str, RequestState]:
    """The requests of a plan that are another plan's by now, or that somebody ended, each with its state. While there
    is one, no run of the plan goes on."""
    store = existing_store(settings)
    return gone_of(store, (request.id for request in plan.requests), plan.plan_id) if store else {}


def begin_requests(settings: Settings, plan: ErasurePlan, at: datetime, values: Values = no_values) -> None:
    """From here on data is touched, and no request of the plan can be withdrawn. values: as of `refuse_withdrawn`; none
    where a run of the plan has touched data already. Raises as that."""
    store = existing_store(settings)
    if store:
        persons = _Persons(settings, store, plan, values).of
        begin(store, _names(plan), plan.plan_id, at, own_holds_in(plan), persons)


def _names(plan: ErasurePlan) -> list[str]:
    return [request.id for request in plan.requests]


class _Persons:
    """The persons of a plan's requests as the store knows persons: by what is sealed of them beside the plan."""

    def __init__(self, settings: Settings, store: RequestStore, plan: ErasurePlan, values: Values) -> None:
        self._settings, self._store, self._values = settings, store, values
        self._subjects = {request.id: request.subject for request in plan.requests}

    def of(self, request: str) -> Collection[str]:
        """Each value of the person's key, also in another case, as a reference of the store."""
        return self._known.get(self._subjects[request], ())

    @cached_property
    def _known(self) -> dict[str, set[str]]:
        kinds = {f"{s.name}.{s.key}": s.name for s in self._settings.estate().subjects if not s.several_columns}
        known: dict[str, set[str]] = {}
        for key_set in self._values():
            if kind := kinds.get(key_set.name):
                for reference, value in key_set.values:
                    known.setdefault(reference, set()).add(self._store.key.requester(kind, value))
        return known


def settle_requests(
    folder: RunFolder, plan: ErasurePlan, result: Mapping[str, Any], *, done: bool, at: datetime
) -> None:
    """What the run came to, for each request of its plan: erased with the proof, or carried over with the reason. While
    the run waits, its requests wait for it.

    result: the final object. done: whether every step is. Residue that may be anybody's, found after the run was
    attested, leaves nobody erased.
    """
    store = existing_store(folder.settings())
    if store is None:
        return

    def came_to(mine: Sequence[str]) -> CameTo:
        still = frozenset(result["open_requests"])
        left = {name: _LEFT_OF_HER for name in mine if name in still}
        rest = [name for name in mine if name not in still]
        anybodys = bool(result["residue"]) and not still
        if result["attestation"] is None or anybodys:
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
