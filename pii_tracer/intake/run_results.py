"""What the run of a plan came to, written down for its requests: who is answered, carried over, or waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pii_tracer.config.laws import Ground
from pii_tracer.intake.kept_scopes import FOR_EVERYTHING, keep_on, narrowings_of
from pii_tracer.intake.request_databases.base import Connection
from pii_tracer.intake.request_intake import Due, request_name
from pii_tracer.intake.request_store import RequestStore, one
from pii_tracer.intake.requests import PROGRAM, RequestState, Stored
from pii_tracer.intake.state_changes import Said, carry, change_state, go_on, of_run
from pii_tracer.model.canonical_json import iso, parse_time


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
        mine = of_run(connection, plan)
        if not mine:
            return
        found = came_to(mine)
        if not {*found.carried, *found.waiting, *found.proofs} <= {*mine}:
            raise ValueError("a run can settle only requests of its own plan")
        carry(connection, found.carried, at, found.holds)
        for name, reason in found.waiting.items():
            if one(connection, name).state is RequestState.CARRIED_OVER:
                go_on(connection, name, plan, at)
            connection.execute("UPDATE requests SET reason = ? WHERE id = ?", (reason, name))
        _answer_all(store, connection, plan, found, at)


def _answer_all(store: RequestStore, connection: Connection, plan: str, found: CameTo, at: datetime) -> None:
    """Requests are answered with their proofs. Those to which a receipt may have come late are looked at one by one."""
    query = (
        "SELECT DISTINCT e.request FROM receipts e JOIN requests r ON r.id = e.request"
        " WHERE r.plan = ? AND (e.received > r.begun OR r.kept <> '')"
    )
    perhaps = {str(name) for (name,) in connection.execute(query, (plan,))}
    for name in sorted(perhaps & found.proofs.keys()):
        _answer(store, connection, name, found.proofs[name], found.due, at)
    rest = [name for name in found.proofs if name not in perhaps]
    change_state(connection, rest, RequestState.ERASED, Said(PROGRAM, "", at))
    query = "UPDATE requests SET proof = ?, holds = '', sealed = NULL WHERE id = ?"
    connection.execute_each(query, [(found.proofs[name], name) for name in rest])


def _answer(store: RequestStore, connection: Connection, name: str, proof: str, due: Due, at: datetime) -> None:
    """A request is answered with its proof, and its value goes.

    A receipt of after the run began was not answered by it, nor the person's own one for everything of after she
    narrowed it: it becomes a request of its own, which repeats this one.
    """
    request = one(connection, name)
    change_state(connection, [name], RequestState.ERASED, Said(PROGRAM, "", at))
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
