"""The request store of an estate, and when its requests are due."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from pii_tracer.app.settings import Settings
from pii_tracer.config.laws import Law
from pii_tracer.intake.request_databases.base import Connection, Database
from pii_tracer.intake.request_databases.postgres import PostgresDatabase
from pii_tracer.intake.request_databases.sqlite import FILE, SqliteFile
from pii_tracer.intake.request_intake import Due
from pii_tracer.intake.request_store import RequestStore
from pii_tracer.model.errors import RequestError, UsageError


def store_of(settings: Settings) -> RequestStore:
    """The store, made where it is not there: in the database that the estate file names, or in the state folder.

    Raises:
        RequestError: it cannot be used.
        PlanError: the estate key cannot be.
    """
    key = settings.key(create=settings.estate().environment == "local")
    return RequestStore(_database(settings), key)


def existing_store(settings: Settings) -> RequestStore | None:
    """The store, or None where no request was ever taken in. Raises as `store_of`.

    A database that the estate file names is always asked: whether a request was withdrawn has to be known.
    """
    if settings.estate().request_store or (settings.state / FILE).exists():
        return RequestStore(_database(settings), settings.key())
    return None


@contextmanager
def taking(store: RequestStore) -> Iterator[Connection]:
    """A connection for a list that is taken in parts. Where the store fails in the middle, the error says that the same
    list can be added again.

    Raises:
        RequestError: the store cannot be used.
    """
    try:
        with store.connected() as connection:
            yield connection
    except RequestError as error:
        if error.where != store.where:  # the list itself cannot be read
            raise
        todo = f"{error.todo}; then add the same list again: rows that were added are not added twice"
        raise RequestError(error.what, where=error.where, todo=todo) from None


def _database(settings: Settings) -> Database:
    url = settings.estate().request_store
    return PostgresDatabase(url) if url else SqliteFile(settings.state / FILE)


def due_by(laws: Mapping[str, Law]) -> Due:
    """When a request must be done, by its law; to the second, in UTC. It raises `NotExtended` as `Rules.due`, and
    `UsageError` for a law that the estate file declares no more."""
    from planners.schedule.erasure_requests import in_utc

    def due(law: str, received: datetime, extended: datetime | None = None) -> datetime:
        if law not in laws:
            raise UsageError(
                f"the estate file declares no law `{law}` any more",
                todo="declare the law again under `laws` in the estate file",
            )
        return in_utc(laws[law].at(received).due(received, extended))

    return due
