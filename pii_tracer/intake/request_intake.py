"""Taking requests in: each row once, each person once while a request of theirs is open."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from pii_tracer.config.laws import Ground
from pii_tracer.intake.kept_scopes import keep_on, narrowings_of
from pii_tracer.intake.request_databases.base import Connection
from pii_tracer.intake.requests import OPEN, Incoming, NotTaken, RequestState, Taken
from pii_tracer.model.canonical_json import iso
from pii_tracer.review.sealed_person_values import EstateKey

_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_OPEN = ", ".join(f"'{state}'" for state in OPEN)


class Due(Protocol):
    """The due date of a request by its law and the time of its receipt.

    extended: when the person was informed of the law's longer time.
    """

    def __call__(self, law: str, received: datetime, extended: datetime | None = None, /) -> datetime: ...


@dataclass(frozen=True)
class TakenRow:
    """A row as its receipt knows it. person: keyed reference."""

    person: str
    law: str
    received: str
    id: str | None

    def fits(self, key: EstateKey, row: Incoming, *, dated: bool) -> bool:
        """Whether this row is the same. dated: it says itself when it came in."""
        told = key.requester(row.kind, row.key), row.law, row.id
        return told == (self.person, self.law, self.id) and (not dated or iso(row.received) == self.received)


@dataclass(frozen=True)
class Intake:
    """Takes the rows of one file. file: its keyed digest, the same whenever the same file is read. widened: by request,
    the datasets that its person keeps no more, since she asked for everything."""

    key: EstateKey
    file: str
    due: Due
    widened: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def take(self, connection: Connection, row: Incoming) -> Taken:
        """Take one row, in the caller's transaction.

        A row that was taken is known by file and line, by its id, or by person, law and time of receipt.

        Raises:
            NotTaken: its id is another request's, or the same request was withdrawn or refused.
        """
        here = (self.file, row.line)
        if connection.execute("SELECT 1 FROM receipts WHERE file = ? AND line = ?", here).fetchone():
            return Taken.KNOWN
        person, received = self.key.requester(row.kind, row.key), iso(row.received)
        if row.id is not None and _is_there(connection, row.id, (person, row.law, received)):
            return Taken.KNOWN
        query = f"SELECT id, due FROM requests WHERE person = ? AND state IN ({_OPEN})"  # noqa: S608 (own words)
        found = connection.execute(query, (person,)).fetchone()
        if row.id is None and self._came_before(connection, (person, row.law, received), is_open=bool(found)):
            return Taken.KNOWN
        due = iso(self.due(row.law, row.received))
        if found:
            return self._join(connection, row, received, due, *found)
        return self._begin(connection, row, person, received, due)

    def taken(self, connection: Connection, line: int) -> TakenRow | None:
        """What was taken of this line before; None where nothing was."""
        query = (
            "SELECT r.person, e.law, e.received, e.id FROM receipts e JOIN requests r ON r.id = e.request"
            " WHERE e.file = ? AND e.line = ?"
        )
        found = connection.execute(query, (self.file, line)).fetchone()
        return TakenRow(*found) if found else None

    def request_of(self, connection: Connection, row: Incoming) -> str:
        """The id of the request that a row which was taken belongs to."""
        here = connection.execute(
            "SELECT request FROM receipts WHERE file = ? AND line = ?", (self.file, row.line)
        ).fetchone()
        if here is None and row.id is not None:
            here = connection.execute("SELECT request FROM receipts WHERE id = ?", (row.id,)).fetchone() or (row.id,)
        if here is None:
            query = (
                "SELECT r.id FROM requests r JOIN receipts e ON e.request = r.id"
                " WHERE r.person = ? AND e.law = ? AND e.received = ?"
            )
            person = self.key.requester(row.kind, row.key)
            here = connection.execute(query, (person, row.law, iso(row.received))).fetchone()
        return str(here[0])

    def _came_before(self, connection: Connection, same: tuple[str, str, str], *, is_open: bool) -> bool:
        """Whether the person asked under this law at this very time. Raises `NotTaken` where that came to nothing: who
        was left in peace is not erased because of an old line, and who asks again is not passed over."""
        query = (
            "SELECT r.state FROM requests r JOIN receipts e ON e.request = r.id"
            " WHERE r.person = ? AND e.law = ? AND e.received = ?"
        )
        states = {RequestState(state) for (state,) in connection.execute(query, same)}
        if states & {*OPEN, RequestState.ERASED}:
            return True
        if states and not is_open:
            raise NotTaken(
                "the person's request of the same law and time was withdrawn or refused; a new one needs an `id`, or"
                " its own time in `received`"
            )
        return False

    def _join(
        self, connection: Connection, row: Incoming, received: str, due: str, request: str, known_due: str
    ) -> Taken:
        kept = {one.dataset for one in narrowings_of(connection, request) if one.in_force}
        self._receipt(connection, row, received, request)
        kept -= {one.dataset for one in narrowings_of(connection, request) if one.in_force}
        if kept:
            self.widened[request] = tuple(sorted({*kept, *self.widened.get(request, ())}))
        if due < known_due:
            change = "UPDATE requests SET law = ?, received = ?, due = ?, verified = ?, extended = NULL WHERE id = ?"
            connection.execute(change, (row.law, received, due, row.verified, request))
        if row.ground is Ground.REQUEST:  # who asks for it is not told of it first
            connection.execute("UPDATE requests SET ground = ?, noticed = NULL WHERE id = ?", (row.ground, request))
        return Taken.JOINED

    def _begin(self, connection: Connection, row: Incoming, person: str, received: str, due: str) -> Taken:
        name = request_name(row.id, self.file, row.line)
        query = "SELECT id, state FROM requests WHERE person = ? ORDER BY received DESC, id DESC"
        known = connection.execute(query, (person,)).fetchall()
        before = next((request for request, state in known if state == RequestState.ERASED), None)
        sealed = self.key.seal_value(row.key, name)
        connection.execute(
            "INSERT INTO requests (id, person, kind, sealed, law, received, due, verified, state, repeats,"
            " ground, noticed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'received', ?, ?, ?)",
            (
                *(name, person, row.kind, sealed, row.law, received, due, row.verified),
                *(before, row.ground, _text(row.noticed)),
            ),
        )
        self._receipt(connection, row, received, name)
        if known:
            keep_on(connection, person, name)
        return Taken.REPEATED if before else Taken.ADDED

    def _receipt(self, connection: Connection, row: Incoming, received: str, request: str) -> None:
        connection.execute(
            "INSERT INTO receipts (file, line, request, id, law, received, verified, ground, noticed)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(self.file, row.line, request, row.id, row.law, received, row.verified),
                *(row.ground, _text(row.noticed)),
            ),
        )


def request_name(name: str | None, file: str, line: int) -> str:
    """The id of a request that a receipt begins: its own, or one made of the file's keyed digest and the line, in
    letters alone: a number in it could be somebody's key."""
    return name or "r-" + f"{file[:16]}{line:x}".translate(_LETTERS)


def _text(moment: datetime | None) -> str | None:
    return iso(moment) if moment else None


def _is_there(connection: Connection, name: str, same: tuple[str, str, str]) -> bool:
    """Whether a receipt with this id is there. Raises `NotTaken` where it is another person's, law's or time's."""
    query = "SELECT r.person, e.law, e.received FROM receipts e JOIN requests r ON r.id = e.request WHERE e.id = ?"
    found = connection.execute(query, (name,)).fetchone()
    if found is None and connection.execute("SELECT 1 FROM requests WHERE id = ?", (name,)).fetchone() is None:
        return False
    if found != same:
        raise NotTaken(
            "its id belongs to a different request, or to this request with a different law or time of "
            "receipt; correct the id"
        )
    return True
