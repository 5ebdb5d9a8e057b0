"""How requests go from state to state. Each change is one transaction, and stands in the request's history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pii_tracer.config.laws import Ground
from pii_tracer.intake.kept_scopes import FOR_EVERYTHING, holds_of, keep_on, keeping, narrowings_of, unlike_a_plan
from pii_tracer.intake.request_databases.base import Connection
from pii_tracer.intake.request_intake import Due, request_name
from pii_tracer.intake.request_store import RequestStore, of_plan, one, request_of
from pii_tracer.intake.requests import OPEN, RequestState, Stored
from pii_tracer.intake.row_rules import tells
from pii_tracer.model.canonical_json import iso, parse_time
from pii_tracer.model.errors import Refused, UsageError

_PROGRAM = "pii-tracer"
"""Who changes a state that no person changes."""


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
                todo="let the run end; or give it up by `pii-tracer requests release PLAN`, then try again",
            )
        _change(connection, found.id, state, said)
        connection.execute("UPDATE requests SET sealed = NULL WHERE id = ?", (found.id,))
        if found.state is not RequestState.PLANNED:
            return found, ()
        others = of_plan(connection, str(found.plan))
        why = Said(_PROGRAM, f"{found.id} of the same plan is {state}: the plan is not to be applied", said.at)
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
            f"the request {found.id} is {found.state} already", todo="`pii-tracer requests show` says more"
        )
    return found


def refuse_telling(store: RequestStore, name: str, said: Said) -> None:
    """Raise `UsageError` where a text that everybody can see holds the key of the person whom it is about."""
    request = store.find(name)
    if request.state in OPEN:
        key = store.key_of(request.id)
        if any(tells(text, key) for text in (said.by, said.reason)):
            raise UsageError(
                "the text holds the person's key, and everybody can see it",
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
        for name in requests:
            if one(connection, name).state not in (RequestState.RECEIVED, RequestState.CARRIED_OVER):
                raise UsageError(
                    f"the request {name} was planned, or has ended, while this plan was made",
                    where=plan,
                    todo="do not use this plan; make it again",
                )
            if asked != holds_of(narrowings_of(connection, name)):
                raise UsageError(
                    f"the request {name} was narrowed, or widened again, while this plan was made",
                    where=plan,
                    todo="do not use this plan; make it again",
                )
            _change(connection, name, RequestState.PLANNED, Said(_PROGRAM, f"planned by {plan}", at))
            query = "UPDATE requests SET plan = ?, begun = NULL, holds = '', kept = ? WHERE id = ?"
            connection.execute(query, (plan, ",".join(sorted(kept)), name))


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
                "no request is planned by this plan", where=plan, todo="`pii-tracer requests list` shows plans"
            )
        for request in found:
            _set_free(connection, request, said)
    return tuple(found)


def _given_up(connection: Connection, plan: str) -> list[Stored]:
    """What waits for a plan, or was carried over by its run, which could still go on."""
    found = (one(connection, name) for name in _of_run(connection, plan))
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
            _go_on(connection, name, plan, at)
        change = (
            "UPDATE requests SET begun = ?, first_begun = coalesce(first_begun, ?) WHERE plan = ? AND begun IS NULL"
        )
        connection.execute(change, (iso(at), iso(at), plan))


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
            f"the request {name} is not to be erased by this plan: in the request store it is {request.state}"
            + (f" ({request.reason})" if request.reason else ""),
            where=plan,
            todo="make a new plan by `pii-tracer plan --requests`: it has all requests that are open, and no other",
        )
    for name in unlike_a_plan(connection, plan, keeps):
        raise Refused(
            f"the request {name} was narrowed, or widened again, since this plan was made",
            where=plan,
            todo=f"`pii-tracer requests release {plan}`, then plan again",
        )
    for name, by in _keeping(connection, requests, plan, persons):
        raise Refused(
            f"the person of the request {name} keeps data by the request {by} of the request store",
            where=plan,
            todo="do not use this plan. Plan by `pii-tracer plan --requests`; if the person asks for everything now,"
            " first `pii-tracer requests add` that",
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
        _carry(connection, reasons, at, dict.fromkeys(reasons, holds))


def _carry(
    connection: Connection, reasons: Mapping[str, str], at: datetime, holds: Mapping[str, Sequence[str]]
) -> None:
    for name, reason in reasons.items():
        found, kept = one(connection, name), tuple(sorted(holds.get(name, ())))
        told = (found.state, found.reason, found.holds) == (RequestState.CARRIED_OVER, reason, kept)
        if found.state in OPEN and not told:
            _change(connection, name, RequestState.CARRIED_OVER, Said(_PROGRAM, reason, at))
            connection.execute("UPDATE requests SET holds = ? WHERE id = ?", (",".join(kept), name))


def _undated(law: str, received: datetime, extended: datetime | None = None, /) -> datetime:
    raise ValueError("proofs need the deadlines of later receipts")


@dataclass(frozen=True)
class CameTo:
    """What a run came to. carried: requests that it did not erase wholly, with the reason; holds: what keeps data, of
    each of these of which a hold does. waiting: those that wait for it to go on, with the reason. proofs: of those that
    it answered. due: says the deadline of a receipt of after the run began; needed with proofs."""

    carried: Mapping[str, str] = field(default_factory=dict)
    holds: Mapping[str, Sequence[str]] = field(default_factory=dict)
    waiting: Mapping[str, str] = field(default_factory=dict)
    proofs: Mapping[str, str] = field(default_factory=dict)
    due: Due = _undated


def settle(store: RequestStore, plan: str, came_to: Callable[[Sequence[str]], CameTo], at: datetime) -> None:
    """Write down what the run of a plan came to, for the requests whose last plan it is, and that it has still to
    erase. Nobody binds them to another plan meanwhile. came_to: is asked about these, if there are any."""
    with store.writing() as connection:
        mine = _of_run(connection, plan)
        if not mine:
            return
        found = came_to(mine)
        if not {*found.carried, *found.waiting, *found.proofs} <= {*mine}:
            raise ValueError("a run settles requests of its own plan alone")
        _carry(connection, found.carried, at, found.holds)
        for name, reason in found.waiting.items():
            if one(connection, name).state is RequestState.CARRIED_OVER:
                _go_on(connection, name, plan, at)
            connection.execute("UPDATE requests SET reason = ? WHERE id = ?", (reason, name))
        for name, proof in found.proofs.items():
            _answer(store, connection, name, proof, found.due, at)


def _of_run(connection: Connection, plan: str) -> list[str]:
    query = "SELECT id FROM requests WHERE plan = ? AND state IN ('planned', 'carried_over') ORDER BY id"
    return [str(name) for (name,) in connection.execute(query, (plan,)).fetchall()]


def _go_on(connection: Connection, name: str, plan: str, at: datetime) -> None:
    _change(connection, name, RequestState.PLANNED, Said(_PROGRAM, f"the run of {plan} goes on", at))


def _answer(store: RequestStore, connection: Connection, name: str, proof: str, due: Due, at: datetime) -> None:
    """A request is answered with its proof, and its value goes.

    A receipt of after the run began was not answered by it, nor the person's own one for everything of after she
    narrowed it: it becomes a request of its own, which repeats this one.
    """
    request = one(connection, name)
    _change(connection, name, RequestState.ERASED, Said(_PROGRAM, "", at))
    connection.execute("UPDATE requests SET proof = ?, holds = '' WHERE id = ?", (proof, name))
    late = [r for r in _late(connection, request) if request_name(*r[:3]) != name]
    if late:
        _again(store, connection, request, late, due)
    connection.execute("UPDATE requests SET sealed = NULL WHERE id = ?", (name,))


_Late = tuple[str | None, str, int, str, datetime, str, str, str | None]


def _late(connection: Connection, request: Stored) -> list[_Late]:
    if request.begun is None:
        return []
    # a plan that keeps something does not answer who asked for everything after that
    kept = {n.hold: n.asked for n in narrowings_of(connection, request.id) if n.keeps and n.hold in request.kept}
    query = (
        "SELECT e.id, e.file, e.line, e.law, e.received, e.verified, e.ground, e.noticed"  # noqa: S608 (own words)
        " FROM receipts e"
        f" WHERE e.request = ? AND (e.received > ? OR ({FOR_EVERYTHING} AND e.received > ?))"
        " AND NOT EXISTS (SELECT 1 FROM work_items w WHERE w.id = e.id AND w.outcome = 'removed')"
        " ORDER BY e.received, e.file, e.line"
    )
    begun = iso(request.begun)
    rows = connection.execute(query, (request.id, begun, min([begun, *map(iso, kept.values())])))
    return [(*row[:4], parse_time(row[4]), *row[5:]) for row in rows]


def _again(store: RequestStore, connection: Connection, request: Stored, late: Sequence[_Late], due: Due) -> None:
    name = request_name(*late[0][:3])
    dated = min(late, key=lambda r: due(r[3], r[4]))
    asked = next((r for r in late if r[6] == Ground.REQUEST), dated)
    person, sealed = connection.execute("SELECT person, sealed FROM requests WHERE id = ?", (request.id,)).fetchone()
    sealed = store.key.seal_value(store.key.open_value(sealed, request.id), name)
    connection.execute(
        "INSERT INTO requests (id, person, kind, sealed, law, received, due, verified, state, repeats,"
        " ground, noticed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'received', ?, ?, ?)",
        (
            name,
            person,
            request.kind,
            sealed,
            dated[3],
            iso(dated[4]),
            iso(due(dated[3], dated[4])),
            dated[5],
            request.id,
            *asked[6:],
        ),
    )
    for _, file, line, *_rest in late:
        connection.execute("UPDATE receipts SET request = ? WHERE file = ? AND line = ?", (name, file, line))
    keep_on(connection, person, name)


def _set_free(connection: Connection, request: Stored, said: Said) -> None:
    """A request waits again. One whose run had begun is carried over: its source may know the person no more."""
    state = RequestState.RECEIVED if request.begun is None else RequestState.CARRIED_OVER
    _change(connection, request.id, state, said)
    connection.execute("UPDATE requests SET plan = NULL, kept = '' WHERE id = ?", (request.id,))


def _change(connection: Connection, request: str, state: RequestState, said: Said) -> None:
    told = "" if state is RequestState.PLANNED else said.reason
    connection.execute("UPDATE requests SET state = ?, reason = ? WHERE id = ?", (state, told, request))
    query = "INSERT INTO changes (request, at, state, who, reason) VALUES (?, ?, ?, ?, ?)"
    connection.execute(query, (request, iso(said.at), state, said.by, said.reason))
