"""How requests go from state to state. Each change is one transaction, and stands in the request's history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pii_tracer.intake.kept_scopes import (
    all_in_force,
    holds_of,
    keeping,
    unlike_a_plan,
)
from pii_tracer.intake.request_databases.base import Connection
from pii_tracer.intake.request_store import RequestStore, of_plan, one, request_of
from pii_tracer.intake.requests import OPEN, PLANNED_BY, PROGRAM, RequestState, Stored
from pii_tracer.intake.row_rules import tells
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.errors import Refused, UsageError

PersonsOf = Callable[[str], Collection[str]]
"""The person of a request that the store does not know, as the store would know them (keyed references of values)."""


def _nobody(request: str) -> Collection[str]:
    return ()


@dataclass(frozen=True)
class Said:
    """Who changes a state, why, and when."""

    by: str
    reason: str
    at: datetime


def end(store: RequestStore, name: str, state: RequestState, said: Said) -> tuple[Stored, tuple[str, ...]]:
    """Withdraw or refuse a request: its value goes. A plan that it is in is no longer to be applied, so that the others
    of that plan are as they came in again; their ids are given, too.

    Raises:
        UsageError: there is none, it has ended, its erasure has begun, or the text holds the person's key.
    """
    refuse_telling(store, name, said)
    with store.writing() as connection:
        found = open_one(connection, name)
        if found.plan is not None and found.begun is not None:
            raise UsageError(
                f"the erasure of the request {found.id} has begun, and cannot be taken back",
                where=str(found.plan),
                todo="wait until the run has ended; or give the run up with `pii-tracer requests release PLAN`, "
                "then try again",
            )
        change_state(connection, [found.id], state, said)
        connection.execute("UPDATE requests SET sealed = NULL WHERE id = ?", (found.id,))
        if found.state is not RequestState.PLANNED:
            return found, ()
        others = of_plan(connection, str(found.plan))
        why = Said(PROGRAM, f"{found.id} of the same plan is {state}: the plan is not to be applied", said.at)
        for other in others:
            _set_free(connection, other, why)
        return found, tuple(other.id for other in others)


def open_one(connection: Connection, name: str) -> Stored:
    """A request whose person is still to be erased, by its id or that of a receipt.

    Raises:
        UsageError: there is none, or it has ended.
    """
    found = one(connection, name)
    if found.state not in OPEN:
        raise UsageError(
            f"the request {found.id} is {found.state} already", todo="run `pii-tracer requests show` to see its state"
        )
    return found


def refuse_telling(store: RequestStore, name: str, said: Said) -> None:
    """Raise `UsageError` where a text that everybody can see holds the key of the person whom it is about."""
    request = store.find(name)
    if request.state in OPEN:
        key = store.key_of(request.id)
        if any(tells(text, key) for text in (said.by, said.reason)):
            raise UsageError(
                "the text contains the person's key, and everybody can see this text",
                where="--by, --reason",
                todo="write it without",
            )


def plan_them(
    store: RequestStore,
    requests: Sequence[str],
    plan: str,
    at: datetime,
    asked: frozenset[str] = frozenset(),
    kept: frozenset[str] = frozenset(),
) -> None:
    """A plan was made for requests. asked: ids of the holds by which their persons asked to keep data. kept: of these,
    those that keep copies.

    Raises:
        UsageError: one of them is in another state by now, or is to keep something else; none is changed.
    """
    with store.writing() as connection:
        query = "SELECT id FROM requests WHERE state IN ('received', 'carried_over')"
        waiting = {str(name) for (name,) in connection.execute(query)}
        narrowed = all_in_force(connection)
        for name in requests:
            if name not in waiting:  # nor is one that is told twice
                raise UsageError(
                    f"the request {name} was planned, or has ended, while this plan was made",
                    where=plan,
                    todo="do not use this plan; plan again",
                )
            waiting.remove(name)
            if asked != holds_of(narrowed.get(name, ())):
                raise UsageError(
                    f"the request {name} was narrowed, or widened again, while this plan was made",
                    where=plan,
                    todo="do not use this plan; plan again",
                )
        change_state(connection, requests, RequestState.PLANNED, Said(PROGRAM, f"{PLANNED_BY}{plan}", at))
        query = "UPDATE requests SET plan = ?, begun = NULL, holds = '', kept = ? WHERE id = ?"
        connection.execute_each(query, [(plan, ",".join(sorted(kept)), name) for name in requests])


def release(store: RequestStore, plan: str, said: Said) -> tuple[Stored, ...]:
    """Give a plan up: its requests wait for another one. One whose run has begun is never gone on with after that.

    Raises:
        UsageError: no request is planned by it, or the text holds a key of theirs.
    """
    with store.connected() as connection:
        found = _given_up(connection, plan)
    for request in found:
        refuse_telling(store, request.id, said)
    with store.writing() as connection:
        found = _given_up(connection, plan)
        if not found:
            raise UsageError(
                "no request is planned by this plan", where=plan, todo="run `pii-tracer requests list` to see the plans"
            )
        for request in found:
            _set_free(connection, request, said)
    return tuple(found)


def _given_up(connection: Connection, plan: str) -> list[Stored]:
    """What waits for a plan, or was carried over by its run, which could still go on."""
    found = (one(connection, name) for name in of_run(connection, plan))
    return [request for request in found if request.state is RequestState.PLANNED or request.begun is not None]


def refuse_gone(
    store: RequestStore,
    requests: Sequence[str],
    plan: str,
    keeps: frozenset[str],
    persons: PersonsOf = _nobody,
) -> None:
    """Raise `Refused` where the store knows a request of a plan that this plan is not, or no longer, to erase, or whose
    person asks to keep other data by now. keeps: ids of the holds by which persons asked to keep data, as the plan was
    made. persons: is asked about requests of files: who keeps something by the store is not erased by them."""
    with store.connected() as connection:
        _refuse_gone(connection, requests, plan, keeps, persons)


def keeping_meanwhile(store: RequestStore, requests: Sequence[str], plan: str, persons: PersonsOf) -> list[str]:
    """Requests of a plan that the store does not know, and whose persons keep something by the store."""
    with store.connected() as connection:
        return [name for name, _ in _keeping(connection, requests, plan, persons)]


def begin(
    store: RequestStore,
    requests: Sequence[str],
    plan: str,
    at: datetime,
    keeps: frozenset[str] = frozenset(),
    persons: PersonsOf = _nobody,
) -> None:
    """A run of a plan is about to touch data: from here on none of its requests can be withdrawn, or planned again.
    Those, too, that were carried over when it failed wait for it. keeps, persons, Raises: as `refuse_gone`."""
    with store.writing() as connection:
        _refuse_gone(connection, requests, plan, keeps, persons)
        query = "SELECT id FROM requests WHERE plan = ? AND state = 'carried_over' ORDER BY id"
        for (name,) in connection.execute(query, (plan,)).fetchall():
            go_on(connection, name, plan, at)
        query = "UPDATE requests SET begun = ?, first_begun = coalesce(first_begun, ?) WHERE plan = ? AND begun IS NULL"
        connection.execute(query, (iso(at), iso(at), plan))


def gone_of(store: RequestStore, requests: Iterable[str], plan: str) -> dict[str, RequestState]:
    """Those of a plan's requests that it is not, or no longer, to erase, each with its state: another plan has it, or
    somebody ended it. The store need not know them all."""
    with store.connected() as connection:
        return {name: request.state for name, request in _gone(connection, requests, plan)}


def _refuse_gone(
    connection: Connection, requests: Sequence[str], plan: str, keeps: frozenset[str], persons: PersonsOf
) -> None:
    for name, request in _gone(connection, requests, plan):
        raise Refused(
            f"this plan must not erase the request {name}, because its state in the request store is {request.state}"
            + (f" ({request.reason})" if request.reason else ""),
            where=plan,
            todo="run `pii-tracer plan --requests` to make a new plan: it contains all open requests, and only these",
        )
    for name in unlike_a_plan(connection, plan, keeps):
        raise Refused(
            f"the request {name} was narrowed, or widened again, since this plan was made",
            where=plan,
            todo=f"run `pii-tracer requests release {plan}`, then plan again",
        )
    for name, by in _keeping(connection, requests, plan, persons):
        raise Refused(
            f"the person of the request {name} keeps data by the request {by} of the request store",
            where=plan,
            todo="do not use this plan. Run `pii-tracer plan --requests`; if the person now asks for everything, "
            "first add that request with `pii-tracer requests add`",
        )


def _keeping(
    connection: Connection, requests: Sequence[str], plan: str, persons: PersonsOf
) -> Iterator[tuple[str, str]]:
    """Requests that the store does not know, each with the one by which its person keeps something."""
    query = "SELECT id FROM requests WHERE plan = ?"
    mine = {name for (name,) in connection.execute(query, (plan,)).fetchall()}
    for name in requests:
        if name not in mine and request_of(connection, name) is None:
            found = (keeping(connection, person) for person in sorted(persons(name)))
            yield from ((name, by) for by in found if by is not None)


def _gone(connection: Connection, requests: Iterable[str], plan: str) -> Iterator[tuple[str, Stored]]:
    """Each that is not, or no longer, the plan's, as it is in the store; those that the store does not know are left
    out. One query tells most of them, which are the plan's."""
    query = (
        "SELECT id FROM requests WHERE plan = ?"
        " AND (state = 'planned' OR (begun IS NOT NULL AND state IN ('carried_over', 'erased')))"
    )
    mine = {name for (name,) in connection.execute(query, (plan,))}
    for name in requests:
        if name not in mine and request_of(connection, name) is not None:
            yield name, one(connection, name)


def carry_each_over(store: RequestStore, reasons: Mapping[str, str], at: datetime, holds: Sequence[str] = ()) -> None:
    """Requests that a plan does not erase, or did not erase wholly, with the reason. reasons: by request. holds: ids of
    those that keep data of theirs."""
    with store.writing() as connection:
        carry(connection, reasons, at, dict.fromkeys(reasons, holds))


def carry(connection: Connection, reasons: Mapping[str, str], at: datetime, holds: Mapping[str, Sequence[str]]) -> None:
    """Requests that are open are carried over, each with its reason, and with the holds that keep data of it."""
    for name, reason in reasons.items():
        found, kept = one(connection, name), tuple(sorted(holds.get(name, ())))
        told = (found.state, found.reason, found.holds) == (RequestState.CARRIED_OVER, reason, kept)
        if found.state in OPEN and not told:
            change_state(connection, [name], RequestState.CARRIED_OVER, Said(PROGRAM, reason, at))
            connection.execute("UPDATE requests SET holds = ? WHERE id = ?", (",".join(kept), name))


def of_run(connection: Connection, plan: str) -> list[str]:
    """Requests whose last plan it is, and that its run has still to erase."""
    query = "SELECT id FROM requests WHERE plan = ? AND state IN ('planned', 'carried_over') ORDER BY id"
    return [str(name) for (name,) in connection.execute(query, (plan,)).fetchall()]


def go_on(connection: Connection, name: str, plan: str, at: datetime) -> None:
    """A request that was carried over waits for the run of its plan again."""
    change_state(connection, [name], RequestState.PLANNED, Said(PROGRAM, f"the run of {plan} goes on", at))


def _set_free(connection: Connection, request: Stored, said: Said) -> None:
    """A request waits again. One whose run had begun is carried over: its source may know the person no more."""
    state = RequestState.RECEIVED if request.begun is None else RequestState.CARRIED_OVER
    change_state(connection, [request.id], state, said)
    connection.execute("UPDATE requests SET plan = NULL, kept = '' WHERE id = ?", (request.id,))


def change_state(connection: Connection, requests: Sequence[str], state: RequestState, said: Said) -> None:
    """Requests are in another state, and their histories say who changed it."""
    told = "" if state is RequestState.PLANNED else said.reason
    connection.execute_each(
        "UPDATE requests SET state = ?, reason = ? WHERE id = ?", [(state, told, name) for name in requests]
    )
    query = "INSERT INTO changes (request, at, state, who, reason) VALUES (?, ?, ?, ?, ?)"
    connection.execute_each(query, [(name, iso(said.at), state, said.by, said.reason) for name in requests])
