"""Deadlines that are extended, once, as far as the law lets them be, if the person was informed in time."""

from __future__ import annotations

from datetime import datetime

from pii_tracer.config.laws import NotExtended
from pii_tracer.intake.request_intake import Due
from pii_tracer.intake.request_store import RequestStore, one
from pii_tracer.intake.requests import Stored
from pii_tracer.intake.state_changes import Said, open_one, refuse_telling
from pii_tracer.model.canonical_json import iso, parse_time
from pii_tracer.model.errors import UsageError


def extend(store: RequestStore, name: str, informed: datetime, due: Due, said: Said) -> Stored:
    """Take the law's longer time for a request, for each receipt of it whose person was informed in time.

    Raises:
        UsageError: there is none, it has ended, the law of the receipt that is due first has no longer time or it is
            taken already, the person was not informed in time, or the text holds the person's key.
    """
    refuse_telling(store, name, said)
    with store.writing() as connection:
        found = open_one(connection, name)
        query = "SELECT law, received, verified FROM receipts WHERE request = ? ORDER BY received, file, line"
        receipts = [(law, parse_time(at), how) for law, at, how in connection.execute(query, (found.id,))]
        query = "SELECT law, received, informed FROM extensions WHERE request = ?"
        known = {(law, parse_time(at)): parse_time(when) for law, at, when in connection.execute(query, (found.id,))}
        first = (found.law, found.received)
        if first in known:
            raise _refused(found, f"the longer time of {found.law} was already used, and can be used only once")
        for law, received in dict.fromkeys((law, received) for law, received, _ in receipts):
            if (law, received) in known:
                continue
            try:
                due(law, received, informed)
            except NotExtended as why:
                if (law, received) == first:
                    raise _refused(found, f"{found.law}: {why}") from None
                continue
            known[law, received] = informed
            row = (found.id, law, iso(received), iso(informed), iso(said.at), said.by, said.reason)
            connection.execute("INSERT INTO extensions VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        dated = [(due(law, at, known.get((law, at))), at, law, how) for law, at, how in receipts]
        end, received, law, verified = min(dated)
        extended = known.get((law, received))
        connection.execute(
            "UPDATE requests SET law = ?, received = ?, due = ?, verified = ?, extended = ? WHERE id = ?",
            (law, iso(received), iso(end), verified, iso(extended) if extended else None, found.id),
        )
        return one(connection, found.id)


def _refused(request: Stored, why: str) -> UsageError:
    return UsageError(
        f"the deadline {request.due:%Y-%m-%d} of the request {request.id} stays: {why}",
        where="--informed",
        todo="`pii-tracer laws` has the rule, `pii-tracer requests show` the receipts",
    )
