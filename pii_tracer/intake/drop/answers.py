"""What became of DROP's work items, and what is answered of each.

Status codes: CalPrivacy, DROP's technical specifications for data brokers, 1.2.0: 2 exempted, 3 deleted, 4 opted out
(several consumers have the identifier, and all were opted out of sale or sharing), 5 not found.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import IntEnum

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.intake.kept_scopes import WHOLLY_ERASED_SINCE
from pii_tracer.intake.request_databases.base import Connection
from pii_tracer.intake.requests import OPEN, RequestState
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.errors import UsageError


class Outcome(StrEnum):
    """What matching a work item came to. shared: several persons of the source have the identifier."""

    MATCHED = "matched"
    NOT_FOUND = "not_found"
    SHARED = "shared"
    REMOVED = "removed"


class Status(IntEnum):
    """What DROP is told."""

    EXEMPTED = 2
    DELETED = 3
    OPTED_OUT = 4
    NOT_FOUND = 5


DECIDED = {"opted-out": Status.OPTED_OUT, "exempted": Status.EXEMPTED}
"""What a person can decide of an identifier that several persons have: never that something was deleted."""
_DECISION = "(SELECT d.status FROM decisions d WHERE d.item = w.id ORDER BY d.seq DESC LIMIT 1)"


def record(connection: Connection, name: str, kind: str, outcome: Outcome) -> None:
    """Write down what became of a work item, in the caller's transaction."""
    connection.execute(
        "INSERT INTO work_items (id, list, outcome) VALUES (?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET outcome = excluded.outcome",
        (name, kind, outcome),
    )


def put_back(connection: Connection, name: str, kind: str, before: Outcome | None) -> None:
    """As it was before a work item was recorded, in the caller's transaction."""
    if before is None:
        connection.execute("DELETE FROM work_items WHERE id = ?", (name,))
    else:
        record(connection, name, kind, before)


def outcome_of(connection: Connection, name: str) -> Outcome | None:
    """What became of a work item; None where it is new."""
    row = connection.execute("SELECT outcome FROM work_items WHERE id = ?", (name,)).fetchone()
    return None if row is None else Outcome(row[0])


def withdrawn_with(connection: Connection, name: str) -> str | None:
    """The open request that nobody asks for any more, now that a work item was removed; None where there is none.

    A request that came in otherwise as well, or by another item, stays.
    """
    states = ", ".join("?" for _ in OPEN)
    query = f"SELECT r.id FROM receipts e JOIN requests r ON r.id = e.request WHERE e.id = ? AND r.state IN ({states})"  # noqa: S608
    row = connection.execute(query, (name, *OPEN)).fetchone()
    if row is None:
        return None
    query = (
        "SELECT count(*) FROM receipts e LEFT JOIN work_items w ON w.id = e.id"
        " WHERE e.request = ? AND (w.outcome IS NULL OR w.outcome != 'removed')"
    )
    (others,) = connection.execute(query, row).fetchone()
    return None if others else str(row[0])


def decide(connection: Connection, name: str, status: Status, at: datetime, who: str, reason: str) -> None:
    """Write down what a person decided of a work item, in the caller's transaction; the last decision counts.

    Raises:
        UsageError: there is no such item, or its identifier is not that of several persons.
    """
    outcome = outcome_of(connection, name)
    if outcome is not Outcome.SHARED:
        what = "there is no work item" if outcome is None else f"a person decides nothing of a work item ({outcome})"
        raise UsageError(
            f"{what}: {name}",
            where="ITEMS",
            todo="run `pii-tracer requests answers OUT.csv --open` to list the items without a decision",
        )
    query = "INSERT INTO decisions (item, at, status, who, reason) VALUES (?, ?, ?, ?, ?)"
    connection.execute(query, (name, iso(at), int(status), who, reason))


def undecided(connection: Connection) -> Iterator[str]:
    """The work items that stay open until a person decides."""
    query = f"SELECT w.id FROM work_items w WHERE w.outcome = 'shared' AND {_DECISION} IS NULL ORDER BY w.id"  # noqa: S608
    for (name,) in connection.stream(query):
        yield str(name)


def answers(connection: Connection) -> Iterator[tuple[str, Status | None]]:
    """Each work item that was not removed, with its status; None while it is open."""
    query = (
        f"SELECT w.id, w.outcome, r.state, r.holds, r.kept != '' AND NOT {WHOLLY_ERASED_SINCE}, {_DECISION}"  # noqa: S608
        " FROM work_items w"
        " LEFT JOIN receipts e ON e.id = w.id"
        " LEFT JOIN requests r ON r.id = e.request WHERE w.outcome != 'removed' ORDER BY w.id"
    )
    for name, outcome, state, holds, kept, decided in connection.stream(query):
        known = RequestState(state) if state else None
        held = bool(holds or (kept and known is RequestState.ERASED))
        yield name, _status(Outcome(outcome), known, held, None if decided is None else Status(decided))


def _status(outcome: Outcome, state: RequestState | None, held: bool, decided: Status | None) -> Status | None:
    if outcome is Outcome.SHARED:
        return decided
    if outcome is Outcome.NOT_FOUND:
        return Status.NOT_FOUND
    if state is RequestState.ERASED:
        return Status.EXEMPTED if held else Status.DELETED
    if state is RequestState.REFUSED or (state is RequestState.CARRIED_OVER and held):
        return Status.EXEMPTED
    return None
