"""The estate file's part about persons: where a kind of person is known from."""

from __future__ import annotations

from pydantic import model_validator

from pii_tracer.model import Frozen


class Identifier(Frozen):
    """A column that identifies a person by itself, with its data category (`national_id`, `phone`, `email`…)."""

    column: str
    category: str


class Named(Frozen):
    """What is named of one table that knows the persons: a column, or `column.field` in a struct (`pii_tracer.spots`).

    key: the subject's key. record_keys: columns unique to one row of one person (bridges).
    """

    key: str
    identifiers: tuple[Identifier, ...] = ()
    record_keys: tuple[str, ...] = ()

    @property
    def personal(self) -> tuple[str, ...]:
        """What identifies persons: the key, and the identifiers."""
        return (self.key, *(i.column for i in self.identifiers))

    @property
    def named(self) -> tuple[str, ...]:
        """Everything that is named of the table."""
        return (*self.personal, *self.record_keys)


class SubjectTable(Named):
    """A further table that holds rows of the persons under the same key, as an ingestion filled it from elsewhere.

    key: its column with the subject's key. identifiers, record_keys: as of the source, looked up in its rows.
    """

    table: str

    def origin(self, column: str) -> str:
        """What a column is called as the origin of values: columns of several tables may have one name."""
        return f"{self.table}.{column}"

    @property
    def row_keys(self) -> frozenset[str]:
        """The origins of its record keys."""
        return frozenset(self.origin(column) for column in self.record_keys)


class Subject(Named):
    """Where a kind of person is known from.

    source: the table that holds key and identifiers together.
    key: the column a request names the person by.
    tables: further ones with the key, which no lineage brings there from the source.
    """

    name: str
    source: str
    key_category: str = "account_id"
    tables: tuple[SubjectTable, ...] = ()

    @property
    def by_table(self) -> tuple[tuple[str, Named], ...]:
        """What is named of the source and of each further table, by the tables' names."""
        return ((self.source, self), *((table.table, table) for table in self.tables))

    @property
    def row_keys(self) -> frozenset[str]:
        """The record keys of the source and, by their `origin`, of the further tables."""
        return frozenset(self.record_keys).union(*(t.row_keys for t in self.tables))

    @model_validator(mode="after")
    def _apart(self) -> Subject:
        names = [name for name, _ in self.by_table]
        if len(set(names)) != len(names):
            raise ValueError("a table stands twice among the source and the further `tables`")
        return self
