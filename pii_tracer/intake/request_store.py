"""The request store: every request of an estate from its receipt to its proof, in a database (`request_databases/`).

What it holds of a person is a keyed reference, by which the same person is recognised again, and the sealed value of
the key, which goes when the request ends. Everything is written in transactions: whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any

from pii_tracer.config.laws import Ground
from pii_tracer.intake.kept_scopes import (
    WHOLLY_ERASED_SINCE,
    Narrowing,
    all_in_force,
    keeping,
    narrowings_of,
    unlike_a_plan,
)
from pii_tracer.intake.request_databases.base import Connection, Database
from pii_tracer.intake.requests import OPEN, PLANNED_BY, PROGRAM, Change, LongerTime, Receipt, RequestState, Stored
from pii_tracer.intake.schema import NewerSchema, migrate
from pii_tracer.model.canonical_json import iso, parse_time
from pii_tracer.model.errors import RequestError, UsageError
from pii_tracer.review.sealed_person_values import EstateKey

_COLUMNS = (
    "id, kind, law, received, due, verified, state, reason, plan, begun, holds, proof, repeats,"
    " ground, noticed, extended, kept, first_begun"
)
_STORED = f"SELECT {_COLUMNS}, (SELECT count(*) FROM receipts WHERE request = requests.id) FROM requests"  # noqa: S608


class RequestStore:
    """The requests of one estate."""

    def __init__(self, database: Database, key: EstateKey) -> None:
        """Open, and bring to the newest schema.

        Raises:
            RequestError: another estate key or a later version made it, or it is no store.
        """
        self._database, self.key, self.where = database, key, database.where
        with self.writing() as connection:
            try:
                migrate(connection, database.words)
            except NewerSchema:
                raise RequestError(
                    "the request store was made by a later version of pii-tracer",
                    where=self.where,
                    todo="use that version or a later one",
                ) from None
            connection.execute("INSERT INTO settings VALUES ('key_check', ?) ON CONFLICT DO NOTHING", (key.check,))
            (known,) = connection.execute("SELECT value FROM settings WHERE name = 'key_check'").fetchone()
            if known != key.check:
                raise RequestError(
                    "the request store was made with a different estate key, so no person in it can be recognised",
                    where=self.where,
                    todo="use the estate key with which the first request was added",
                )

    def __repr__(self) -> str:
        return f"RequestStore({self.where})"

    def connected(self) -> AbstractContextManager[Connection]:
        """A connection for reading. Raises `RequestError` where the database cannot be used."""
        return self._database.connected()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in one transaction: all of it or nothing."""
        with self.connected() as connection, connection.transaction():
            yield connection

    # -- reading -------------------------------------------------------------------------------------------------

    def requests(self, *states: RequestState, after: Stored | None = None) -> Iterator[Stored]:
        """Requests in some states (in any, if none is named), the one that is due first at the beginning; those behind
        one of them, if that is given."""
        chosen: tuple[str, ...] = states or tuple(RequestState)
        marks = ", ".join("?" for _ in chosen)
        query = f"{_STORED} WHERE state IN ({marks})"
        if after:
            query, chosen = f"{query} AND (due, id) > (?, ?)", (*chosen, iso(after.due), after.id)
        with self.connected() as connection:
            yield from map(_stored, connection.stream(f"{query} ORDER BY due, id", chosen))

    def counts(self) -> dict[RequestState, int]:
        """How many requests are in each state."""
        with self.connected() as connection:
            found = dict(connection.execute("SELECT state, count(*) FROM requests GROUP BY state").fetchall())
        return {state: found.get(state, 0) for state in RequestState}

    def planned_since(self, moment: datetime) -> int:
        """How many requests were put into a plan since a moment."""
        query = "SELECT count(DISTINCT request) FROM changes WHERE state = 'planned' AND at >= ?"
        with self.connected() as connection:
            return int(connection.execute(query, (iso(moment),)).fetchone()[0])

    def find(self, name: str) -> Stored:
        """A request by its id, or by the id that another receipt of it came with.

        Raises:
            UsageError: there is none.
        """
        with self.connected() as connection:
            return one(connection, name)

    def receipts(self, request: str) -> tuple[Receipt, ...]:
        """Each time that a request came in, the oldest first."""
        query = (
            "SELECT id, law, received, verified, file, line FROM receipts WHERE request = ?"
            " ORDER BY received, coalesce(id, '')"
        )
        with self.connected() as connection:
            rows = connection.execute(query, (request,)).fetchall()
        return tuple(Receipt(i, law, parse_time(at), how, file, line) for i, law, at, how, file, line in rows)

    def changes(self, request: str) -> tuple[Change, ...]:
        """The history of a request after its receipt, in the order in which it happened."""
        query = "SELECT at, state, who, reason FROM changes WHERE request = ? ORDER BY seq"
        with self.connected() as connection:
            rows = connection.execute(query, (request,)).fetchall()
        return tuple(Change(parse_time(at), RequestState(state), who, why) for at, state, who, why in rows)

    def extensions(self, request: str) -> tuple[LongerTime, ...]:
        """The deadlines of a request that were extended, in the order in which they were."""
        query = (
            "SELECT law, received, informed, at, who, reason FROM extensions WHERE request = ?"
            " ORDER BY at, received, law"
        )
        with self.connected() as connection:
            rows = connection.execute(query, (request,)).fetchall()
        return tuple(
            LongerTime(law, parse_time(received), parse_time(informed), parse_time(at), who, why)
            for law, received, informed, at, who, why in rows
        )

    def narrowings(self, request: str) -> tuple[Narrowing, ...]:
        """What a request was narrowed to, and what was taken back, in the order in which its person asked for it."""
        with self.connected() as connection:
            return narrowings_of(connection, request)

    def kept(self) -> dict[str, tuple[Narrowing, ...]]:
        """By open request, what a plan has to keep, as its person asked."""
        with self.connected() as connection:
            return all_in_force(connection)

    def open_of(self, person: str) -> Stored | None:
        """The open request of a person (keyed reference); None where there is none."""
        marks = ", ".join("?" for _ in OPEN)
        with self.connected() as connection:
            row = connection.execute(f"{_STORED} WHERE person = ? AND state IN ({marks})", (person, *OPEN)).fetchone()
        return None if row is None else _stored(row)

    def keeping(self, person: str) -> str | None:
        """The request by which a person (keyed reference) keeps something still, or None."""
        with self.connected() as connection:
            return keeping(connection, person)

    def erased_but_for_kept(self) -> frozenset[str]:
        """Requests whose persons a run erased, except for what they asked to keep, or what a hold keeps; or may have,
        where it failed. Those that repeat such a one, too."""
        query = (
            "WITH rest AS (SELECT id FROM requests WHERE (state = 'erased' AND kept != '') OR (state != 'erased'"
            " AND first_begun IS NOT NULL AND (holds != '' OR id IN (SELECT request FROM narrowings))))"
            " SELECT id FROM rest UNION SELECT id FROM requests WHERE repeats IN (SELECT id FROM rest)"
        )
        with self.connected() as connection:
            return frozenset(str(name) for (name,) in connection.execute(query))

    def followed_by_a_whole_erasure(self, requests: Iterable[str]) -> frozenset[str]:
        """Of these requests those whose persons were erased completely since then, or by them."""
        query = f"SELECT 1 FROM requests r WHERE r.id = ? AND {WHOLLY_ERASED_SINCE}"  # noqa: S608 (own words)
        with self.connected() as connection:
            return frozenset(name for name in requests if connection.execute(query, (name,)).fetchone())

    def unlike(self, plan: str, keeps: frozenset[str]) -> list[str]:
        """Requests of a plan, no run of which has begun, whose persons ask to keep other data now. keeps: ids of the
        holds of this kind that the plan was made with."""
        with self.connected() as connection:
            return unlike_a_plan(connection, plan, keeps)

    def aliases(self, names: frozenset[str]) -> dict[str, list[str]]:
        """Of these ids those that are of a further receipt, by the id of the request that they were joined to."""
        found: dict[str, list[str]] = {}
        with self.connected() as connection:
            for name in sorted(names):
                row = connection.execute("SELECT request FROM receipts WHERE id = ?", (name,)).fetchone()
                if row and row[0] != name:
                    found.setdefault(row[0], []).append(name)
        return found

    def known(self, names: tuple[str, ...]) -> list[str]:
        """Those of these ids that the store has, of requests or of receipts."""
        with self.connected() as connection:
            return [name for name in names if request_of(connection, name) is not None]

    def plans_of(self, request: str) -> list[str]:
        """The plans that a request was put into, the newest first."""
        query = "SELECT reason FROM changes WHERE request = ? AND state = 'planned' AND who = ? ORDER BY seq DESC"
        with self.connected() as connection:
            told = [str(reason) for (reason,) in connection.execute(query, (request, PROGRAM)).fetchall()]
        return [reason[len(PLANNED_BY) :] for reason in told if reason.startswith(PLANNED_BY)]

    def reference_of(self, request: str) -> str:
        """The keyed reference by which plans and answers know the person of a request. Of one that has ended, whose
        value is gone, the one by which the store knows the person.

        Raises:
            UsageError: there is no such request.
            PlanError: its value does not open with this estate key.
        """
        query = "SELECT kind, person, sealed FROM requests WHERE id = ?"
        with self.connected() as connection:
            kind, person, sealed = connection.execute(query, (one(connection, request).id,)).fetchone()
        return str(person) if sealed is None else self.key.reference(kind, self.key.open_value(sealed, request))

    def key_of(self, request: str) -> str:
        """The value of the subject's key that an open request is about.

        Raises:
            UsageError: the request ended, and its value is gone.
            PlanError: it does not open with this estate key.
        """
        return self.keys_of((request,))[0]

    def keys_of(self, requests: Sequence[str]) -> list[str]:
        """As `key_of`, of many requests, in their order."""
        query = "SELECT sealed FROM requests WHERE id = ?"
        with self.connected() as connection:
            rows = [connection.execute(query, (request,)).fetchone() for request in requests]
        for request, row in zip(requests, rows, strict=True):
            if row is None or row[0] is None:
                raise UsageError(
                    f"the request {request} has ended, and its sealed value was deleted",
                    todo="add the request again with `pii-tracer requests add`",
                )
        return [self.key.open_value(row[0], request) for request, row in zip(requests, rows, strict=True)]


def request_of(connection: Connection, name: str) -> str | None:
    """The id of the request that this is the id of, or that of one of its receipts."""
    row = connection.execute("SELECT id FROM requests WHERE id = ?", (name,)).fetchone()
    row = row or connection.execute("SELECT request FROM receipts WHERE id = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def one(connection: Connection, name: str) -> Stored:
    """A request by its id or that of a receipt. Raises `UsageError` where there is none."""
    request = request_of(connection, name)
    row = connection.execute(f"{_STORED} WHERE id = ?", (request,)).fetchone()
    if row is None:
        raise UsageError(
            "the request store has no request of this id", todo="run `pii-tracer requests list` to see the ids"
        )
    return _stored(row)


def of_plan(connection: Connection, plan: str) -> list[Stored]:
    """The requests that are planned by a plan."""
    query = f"{_STORED} WHERE plan = ? AND state = 'planned' ORDER BY id"
    return [_stored(row) for row in connection.execute(query, (plan,))]


def _stored(row: tuple[Any, ...]) -> Stored:
    name, kind, law, received, due, verified, state, reason, plan, begun, holds, proof, repeats, *more = row
    ground, noticed, extended, kept, first_begun, receipts = more
    return Stored(
        id=name,
        kind=kind,
        law=law,
        received=parse_time(received),
        due=parse_time(due),
        verified=verified,
        state=RequestState(state),
        reason=reason,
        plan=plan,
        begun=parse_time(begun) if begun else None,
        holds=tuple(holds.split(",")) if holds else (),
        proof=proof,
        repeats=repeats,
        ground=Ground(ground),
        noticed=parse_time(noticed) if noticed else None,
        extended=parse_time(extended) if extended else None,
        kept=tuple(kept.split(",")) if kept else (),
        first_begun=parse_time(first_begun) if first_begun else None,
        receipts=receipts,
    )
