"""Requests that are narrowed: their persons keep some of their data, until they ask for everything again."""

from __future__ import annotations

from datetime import datetime

from pii_tracer.intake.kept_scopes import Scope, narrowings_of
from pii_tracer.intake.request_databases.base import Connection
from pii_tracer.intake.request_store import RequestStore, one
from pii_tracer.intake.requests import RequestState, Stored
from pii_tracer.intake.state_changes import Said, open_one, refuse_telling
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.errors import UsageError


def narrow(store: RequestStore, name: str, scope: Scope, asked: datetime, said: Said) -> Stored:
    """Keep what a person asked to keep. asked: when; the same wish of the same time once more changes nothing.

    Raises:
        UsageError: there is none, it has ended, it is in a plan, its erasure has begun, the person asked for everything
            later than that, or a text holds the person's key.
    """
    refuse_telling(store, name, said, (*scope.datasets, *scope.columns, *scope.categories))
    if scope.ended(max(asked, said.at)):
        raise UsageError("what is to be kept has ended already", where="--until", todo="name a later time, or none")
    with store.writing() as connection:
        found = open_one(connection, name)
        known = [n.asked for n in narrowings_of(connection, found.id) if n.scope == scope and n.in_force(said.at)]
        if not known:
            _refuse_late(found)
            _refuse_unasked(connection, found, asked)
        elif asked <= max(known):
            return found
        row = (found.id, scope.hold, scope.model_dump_json(), iso(asked), iso(said.at), said.by, said.reason)
        query = "INSERT INTO narrowings (request, hold, scope, asked, at, who, reason) VALUES (?, ?, ?, ?, ?, ?, ?)"
        connection.execute(query, row)
        return one(connection, found.id)


def _refuse_late(found: Stored) -> None:
    if found.begun is not None:
        raise UsageError(
            f"the erasure of the request {found.id} has begun, and may have erased what is to be kept",
            where=found.plan,
            todo="to keep what is left, declare a hold with `requests` in the estate file, and plan again",
        )
    if found.state is RequestState.PLANNED:
        raise UsageError(
            f"the request {found.id} is in a plan, which would erase what is to be kept",
            where=found.plan,
            todo=f"`pii-tracer requests release {found.plan}`, narrow the request, then plan again",
        )


def _refuse_unasked(connection: Connection, found: Stored, asked: datetime) -> None:
    query = "SELECT min(received), max(received) FROM receipts WHERE request = ?"
    first, last = connection.execute(query, (found.id,)).fetchone()
    if iso(asked) < first:
        raise UsageError(
            f"the request {found.id} came in later than that", where="--asked", todo="name when the person narrowed it"
        )
    if last > iso(asked):
        raise UsageError(
            f"the person of the request {found.id} asked again after that, for everything",
            where="--asked",
            todo="ask the person which of the two counts; if it is the narrower one, name the time of that answer",
        )
