"""One request taken in, as a program sends it: once, however often it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pii_tracer.app.intake.request_store import due_by, existing_store
from pii_tracer.app.settings import Settings, moment
from pii_tracer.config.laws import laws_of
from pii_tracer.intake.request_databases.sqlite import FILE
from pii_tracer.intake.request_intake import Intake
from pii_tracer.intake.request_store import one
from pii_tracer.intake.requests import Stored, Taken
from pii_tracer.intake.row_rules import Rules
from pii_tracer.model.errors import RequestError, UsageError

_LINE = 1


class IdempotencyConflict(UsageError):
    """What is sent again is another request than the first time."""


def take_request(
    settings: Settings, told: Mapping[str, str], attempt: str, now: datetime | None = None
) -> tuple[Taken, Stored, tuple[str, ...]]:
    """Take one request in. told: the fields of a row. attempt: the same whenever the same request is sent again. The
    datasets are those that the person keeps no more, since she asked for everything.

    Raises:
        NotTaken: it is wrong; the reason holds nothing of it.
        IdempotencyConflict: it was sent before, and was another one.
        RequestError: there is no store, or it cannot be used.
    """
    now = now or moment(None)
    estate = settings.estate()
    laws = laws_of(estate.laws)
    rules = Rules({"received": now.isoformat()}, frozenset(s.name for s in estate.subjects), laws, now)
    row = rules.judge(_LINE, told)
    store = existing_store(settings)
    if store is None:  # nobody who runs for long makes an empty one in the place of one that is gone
        raise RequestError(
            "the request store is missing",
            where=str(settings.state / FILE),
            todo="restore the newest copy of the file; if there was no request store, start the server again",
        )
    digest = store.key.file_digest()
    digest.update(attempt.encode())
    intake = Intake(store.key, digest.hexdigest()[:32], due_by(laws))
    with store.writing() as connection:
        before = intake.taken(connection, row.line)
        if before and not before.fits(store.key, row, dated="received" in told):
            raise IdempotencyConflict(
                "this idempotency key was already used for a different request",
                todo="use a new idempotency key for each request; repeat a key only to repeat its request",
            )
        taken = intake.take(connection, row)
        found = one(connection, intake.request_of(connection, row))
        return taken, found, intake.widened.get(found.id, ())
