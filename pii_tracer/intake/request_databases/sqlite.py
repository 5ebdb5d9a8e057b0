"""The requests in one SQLite file of the state folder."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from pii_tracer.intake.request_databases.base import Values
from pii_tracer.model.errors import RequestError

FILE = "requests.sqlite"
"""In the state folder."""


class SqliteFile:
    """The file."""

    words: Mapping[str, str] = {
        "text": "TEXT",
        "bytes": "BLOB",
        "counter": "INTEGER PRIMARY KEY",
        "compact": " WITHOUT ROWID",
    }

    def __init__(self, path: Path) -> None:
        """Open, or make (mode 0600). Raises `RequestError` where it cannot be, or others can read it."""
        self.path, self.where = path, str(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        except OSError as error:
            raise RequestError(
                f"the request store cannot be opened: {error.strerror or type(error).__name__}",
                where=self.where,
                todo="check the state folder and its permissions",
            ) from None
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise RequestError(
                "other users of this machine can read the request store", where=self.where, todo=f"chmod 600 {path}"
            )

    @contextmanager
    def connected(self) -> Iterator[SqliteConnection]:
        """A connection. Raises `RequestError` where the file is no store, is damaged or locked, or is another one at
        the end: SQLite goes on with a file that was removed, and what it writes there is lost.
        """
        there = f"{self.path.absolute().as_uri()}?mode=rw"  # one that is gone is not made again, empty
        try:
            with closing(sqlite3.connect(there, uri=True, isolation_level=None, timeout=120)) as connection:
                began = self._file()
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA secure_delete = ON")
                connection.execute("PRAGMA cache_size = -65536")
                yield SqliteConnection(connection)
        except sqlite3.Error as error:  # its messages name tables and columns, never what stands in them
            raise RequestError(
                f"the request store cannot be used: {error}",
                where=self.where,
                todo="repair the file system, or restore the file from a backup",
            ) from None
        if self._file() != began:
            raise RequestError(
                "the request store was moved, removed or replaced while it was used",
                where=self.where,
                todo="restore the newest copy of the request store",
            )

    def _file(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


class SqliteConnection:
    """A connection to the file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.execute = connection.execute

    def execute_each(self, query: str, rows: Sequence[Values]) -> None:
        """Run one statement for each row of values."""
        self._connection.executemany(query, rows)

    def stream(self, query: str, values: Values = ()) -> Iterator[Any]:
        """Rows as they are read."""
        return self._connection.execute(query, tuple(values))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; the file is locked for others who write."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def version(self) -> int:
        """As the file's header has it."""
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    def set_version(self, number: int) -> None:
        """In the file's header."""
        self._connection.execute(f"PRAGMA user_version = {number}")
