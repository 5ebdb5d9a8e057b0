"""The requests in a PostgreSQL database, for several machines. The client library is psycopg 3 (`postgres` extra).

The password is the client library's matter (`PGPASSWORD`, `PGPASSFILE`, `~/.pgpass`): it is never read here. Messages
of the server can quote what stands in a row, so only their kind is told (SQLSTATE).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from pii_tracer.intake.request_databases.base import Values
from pii_tracer.model.errors import RequestError, UsageError

if TYPE_CHECKING:
    import psycopg

_LOCK = 0x70696974  # any number: that of the one lock that everybody who writes requests takes
_ROWS_AT_ONCE = 2_000


class PostgresDatabase:
    """One database; its first schema of the search path has the store's tables."""

    words: Mapping[str, str] = {
        "text": 'TEXT COLLATE "C"',
        "bytes": "BYTEA",
        "counter": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "compact": "",
    }

    def __init__(self, url: str) -> None:
        """url: without a password (`config.estate_file` refuses one)."""
        self._url = url
        self.where = url.partition("?")[0]

    @contextmanager
    def connected(self) -> Iterator[PostgresConnection]:
        """A connection. Raises `RequestError` where the server cannot be reached or refuses."""
        try:
            import psycopg
        except ModuleNotFoundError:
            raise UsageError(
                "the request store is in PostgreSQL, and its client library is not installed",
                where=self.where,
                todo="pip install 'pii-tracer[postgres]'",
            ) from None
        try:
            with closing(psycopg.connect(self._url, autocommit=True, connect_timeout=10)) as connection:
                connection.execute("SET lock_timeout = '120s'")
                yield PostgresConnection(connection)
        except psycopg.Error as error:
            told = f"{type(error).__name__}, SQLSTATE {error.sqlstate}" if error.sqlstate else type(error).__name__
            raise RequestError(
                f"the request store cannot be used: PostgreSQL says {told}",
                where=self.where,
                todo="check that the server runs, and that user, password (PGPASSFILE) and rights are right",
            ) from None


class PostgresConnection:
    """A connection to the server."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, query: str, values: Values = ()) -> psycopg.Cursor[Any]:
        """Run one statement."""
        return self._connection.execute(_marked(query), [_plain(value) for value in values])

    def execute_each(self, query: str, rows: Sequence[Values]) -> None:
        """Run one statement for each row of values, without waiting for each answer."""
        with self._connection.cursor() as cursor:
            cursor.executemany(_marked(query), [[_plain(value) for value in row] for row in rows])

    def stream(self, query: str, values: Values = ()) -> Iterator[Any]:
        """Rows in portions, out of a cursor of the server."""
        with self._connection.transaction(), self._connection.cursor(name="requests") as cursor:
            cursor.itersize = _ROWS_AT_ONCE
            cursor.execute(_marked(query), [_plain(value) for value in values])
            yield from cursor

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. A lock on the schema keeps others from writing meanwhile, as in a file."""
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(current_schema()))", [_LOCK])
            yield

    def version(self) -> int:
        """As a table of its own has it."""
        self._connection.execute("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY)")
        found = self._connection.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchone()
        return int(found[0]) if found else 0

    def set_version(self, number: int) -> None:
        """In a table of its own."""
        self._connection.execute("INSERT INTO migrations VALUES (%s)", [number])


def _marked(query: str) -> Any:
    """The query with the marks that psycopg knows. Values never stand in a query (ADR 4)."""
    return query.replace("?", "%s").encode()


def _plain(value: object) -> object:
    """Enums of words as the words they are."""
    return str(value) if isinstance(value, str) else value
