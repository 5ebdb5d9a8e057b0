"""What became of DROP's work items, and what is answered of each.

Status codes: CalPrivacy, DROP's technical specifications for data brokers, 1.2.0: 2 exempted, 3 deleted, 4 opted out,
5 not found.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.intake.request_databases.base import Connection
from pii_tracer.intake.requests import RequestState


class Outcome(StrEnum):
    """What matching a work item came to. shared: several persons of the source have the identifier."""

    MATCHED = "matched"
    NOT_FOUND = "not_found"
    SHARED = "shared"
    REMOVED = "removed"


class Status(IntEnum):
    """What DROP is told. Nobody is told as opted out: what is not deleted is kept for a reason, or still open."""

    EXEMPTED = 2
    DELETED = 3
    NOT_FOUND = 5


def record(connection: Connection, name: str, kind: str, outcome: Outcome) -> None:
    """Write down what became of a work item, in the caller's transaction."""
    connection.execute(
        "INSERT INTO work_items (id, list, outcome) VALUES (?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET outcome = excluded.outcome",
        (name, kind, outcome),
    )


def outcome_of(connection: Connection, name: str) -> Outcome | None:
    """What became of a work item; None where it is new."""
    row = connection.execute("SELECT outcome FROM work_items WHERE id = ?", (name,)).fetchone()
    return None if row is None else Outcome(row[0])


def withdrawn_with(connection: Connection, name: str) -> str | None:
    """The open request that nobody asks for any more, now that a work item was removed; None where there is none.

    A request that came in otherwise as well, or by another item, stays.
    """
    row = connection.execute("SELECT request FROM receipts WHERE id = ?", (name,)).fetchone()
    if row is None:
        return None
    query = (
        "SELECT count(*) FROM receipts e LEFT JOIN work_items w ON w.id = e.id"
        " WHERE e.request = ? AND (w.outcome IS NULL OR w.outcome != 'removed')"
    )
    (others,) = connection.execute(query, row).fetchone()
    return None if others else str(row[0])


def answers(connection: Connection) -> Iterator[tuple[str, Status | None]]:
    """Each work item that was not removed, with its status; None while it is open."""
    query = (
        "SELECT w.id, w.outcome, r.state, r.holds FROM work_items w LEFT JOIN receipts e ON e.id = w.id"
        " LEFT JOIN requests r ON r.id = e.request WHERE w.outcome != 'removed' ORDER BY w.id"
    )
    for name, outcome, state, holds in connection.stream(query):
        yield name, _status(Outcome(outcome), RequestState(state) if state else None, bool(holds))


def _status(outcome: Outcome, state: RequestState | None, held: bool) -> Status | None:
    if outcome is Outcome.NOT_FOUND:
        return Status.NOT_FOUND
    if state is RequestState.ERASED:
        return Status.DELETED
    if state is RequestState.REFUSED or (state is RequestState.CARRIED_OVER and held):
        return Status.EXEMPTED
    return None
