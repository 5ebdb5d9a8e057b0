"""What the request store asks of a database: few words of SQL, transactions that exclude each other, a version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Values = Sequence[object]


class Rows(Protocol):
    """What a query found."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """One connection. Queries mark each value by `?`, and hold no other question mark and no percent sign."""

    def execute(self, query: str, values: Values = ()) -> Rows:
        """Run one statement."""
        ...

    def execute_each(self, query: str, rows: Sequence[Values]) -> None:
        """Run one statement for each of some rows of values, inside of a transaction."""
        ...

    def stream(self, query: str, values: Values = ()) -> Iterator[Any]:
        """The rows of a query one by one, however many; outside of a transaction."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Everything that is written inside, or nothing; nobody else writes meanwhile."""
        ...

    def version(self) -> int:
        """The number of the last migration, in a transaction; 0 before the first one."""
        ...

    def set_version(self, number: int) -> None:
        """Write down which migration was the last one."""
        ...


class Database(Protocol):
    """Where the requests of an estate are. where: for messages, without credentials. words: of the schema, which each
    database has of its own: `text`, `bytes`, `counter` and `compact`."""

    where: str
    words: Mapping[str, str]

    def connected(self) -> AbstractContextManager[Connection]:
        """A connection. Raises `RequestError` where the database cannot be used, without anything that stands in it."""
        ...
