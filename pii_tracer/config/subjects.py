"""The estate file's part about persons: where a kind of person is known from."""

from __future__ import annotations

from typing import Any

from pydantic import field_validator, model_validator
from typing_extensions import Self

from pii_tracer.common.plurals import counted
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import Frozen, Said
from pii_tracer.model.errors import ConfigError
from pii_tracer.model.keys_as_text import columns_of_key, joined, key_name


class RowFate(StrEnum):
    """What becomes of a row that names the person in a key column: it is the person's and goes, or somebody else's,
    too, and stays without the person."""

    DELETE = "delete"
    KEEP = "keep"


class OtherKey(Frozen):
    """A further column with the subject's key in rows that can name several persons (`payee_id` beside `payer_id`).

    row: what becomes of a row that names the person here; None where nobody said it. clears: columns that say more of
    whom it names, and become NULL with it where the row stays.
    """

    column: str
    row: RowFate | None = None
    clears: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _of_a_row_that_stays(self) -> OtherKey:
        if self.clears and self.row is not RowFate.KEEP:
            raise ValueError("`clears` applies only to rows that are kept; write `row: keep`, or remove `clears`")
        return self


class Identifier(Frozen):
    """A column that identifies a person by itself, with its data category (`national_id`, `phone`, `email`…)."""

    column: str
    category: str


class Named(Frozen):
    """What is named of one table that knows the persons: a column, or `column.field` in a struct.

    `pii_tracer.model.column_paths` finds it in the table's type.

    key: the subject's key by its name: its column, or of `key: [tenant_id, user_id]` what `key_name` makes of these
    columns, which are then `several_columns`. record_keys: columns unique to one row of one person (bridges).
    other_keys: further columns with the key, of rows that can name several persons.
    """

    key: str
    identifiers: tuple[Identifier, ...] = ()
    record_keys: tuple[str, ...] = ()
    other_keys: tuple[OtherKey, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_several_columns(cls, told: Any) -> Any:
        key = told.get("key") if isinstance(told, dict) else None
        if not isinstance(key, list | tuple):
            return told
        names = [name for name in key if isinstance(name, str) and name]
        if len(names) < len(key) or len(names) < 2 or len({name.lower() for name in names}) < len(names):
            raise ValueError(
                "`key: [tenant_id, user_id]` needs at least two different columns; write one column without brackets"
            )
        if any(sign in name for name in names for sign in ",()"):
            raise ValueError("columns of a key of several columns must not have a comma or bracket in their names")
        return {**told, "key": key_name(names)}

    @model_validator(mode="after")
    def _one_key_a_row(self) -> Self:
        if self.several_columns and self.other_keys:
            raise ValueError(
                f"`other_keys` beside a key of several columns ({self.key}) is not supported: in a row that stays, one"
                " column cannot say who else it names"
            )
        return self

    @property
    def categories(self) -> dict[str, str]:
        """By column of an identifier, its data category."""
        return {identifier.column: identifier.category for identifier in self.identifiers}

    @property
    def several_columns(self) -> tuple[str, ...]:
        """The columns of a key of several, in its order; empty for a key of one."""
        return columns_of_key(self.key)

    @property
    def key_parts(self) -> tuple[str, ...]:
        """The columns of the key, in its order: only all of them together name a person."""
        return self.several_columns or (self.key,)

    @property
    def keyed_by(self) -> str | None:
        """The identifier of the source that stands in the key columns; None where it is the subject's key."""
        return None

    @property
    def key_columns(self) -> tuple[OtherKey, ...]:
        """Every column with the key, and what becomes of a row that names the person there."""
        return (OtherKey(column=self.key, row=RowFate.DELETE), *self.other_keys)

    @property
    def key_names(self) -> tuple[str, ...]:
        """Every column of a key."""
        return (*self.key_parts, *(key.column for key in self.other_keys))

    @property
    def owners(self) -> tuple[str, ...]:
        """The columns whose person a row is of."""
        return tuple(key.column for key in self.key_columns if key.row is RowFate.DELETE)

    @property
    def personal(self) -> tuple[str, ...]:
        """What identifies persons: the key wherever it stands, and the identifiers."""
        return (*self.key_names, *(i.column for i in self.identifiers))

    def origin(self, column: str) -> str:
        """What a column is called as the origin of values."""
        return column

    @property
    def origins(self) -> dict[str, str]:
        """By identifier and record key: what its values' origin is called."""
        return {name: self.origin(name) for name in (*(i.column for i in self.identifiers), *self.record_keys)}

    @property
    def named(self) -> tuple[str, ...]:
        """Everything that is named of the table, but for what goes along with a key."""
        return (*self.personal, *self.record_keys)

    @model_validator(mode="after")
    def _named_once(self) -> Named:
        cleared = [column for key in self.key_columns for column in key.clears]
        names = [name.lower() for name in (*self.named, *cleared)]
        new = {name.lower() for name in (*cleared, *self.several_columns, *(key.column for key in self.other_keys))}
        twice = sorted(name for name in new if names.count(name) > 1)
        if twice:
            raise ValueError(
                f"{', '.join(twice)} must appear only once in `key`, `other_keys`, `clears` and the other columns"
            )
        return self


class NotKeys(Frozen):
    """A column of a table that holds another system's numbers, which may happen to equal a key of the subject.

    owner: who answers for it, by name. reason: what the numbers are.
    """

    table: str
    column: str
    reason: Said
    owner: Said


class SubjectTable(Named):
    """A further table that holds rows of the persons under the same key, as an ingestion filled it from elsewhere.

    key: its column with the subject's key. of: the identifier of the source whose values stand there instead, and in
    `other_keys`; None for the subject's key. identifiers, record_keys: as of the source, looked up in its rows.
    row, clears: of the key, as of `other_keys`; the row of a table with one key column is the person's, unless it is
    said otherwise.
    """

    table: str
    of: str | None = None
    row: RowFate | None = None
    clears: tuple[str, ...] = ()

    @property
    def keyed_by(self) -> str | None:
        """As `of`."""
        return self.of

    @property
    def key_columns(self) -> tuple[OtherKey, ...]:
        """Every column with the key. Of several, none is anybody's own for certain before somebody says so."""
        row = self.row or (None if self.other_keys else RowFate.DELETE)
        return (OtherKey(column=self.key, row=row, clears=self.clears), *self.other_keys)

    @property
    def several(self) -> bool:
        """Whether a row can name several persons, or is not the person's whom it names."""
        return bool(self.other_keys) or self.row is RowFate.KEEP

    @model_validator(mode="after")
    def _whose_rows(self) -> SubjectTable:
        said = all(key.row is not None for key in self.key_columns)
        if (self.row is RowFate.KEEP and self.identifiers) or (said and not self.owners and self.record_keys):
            raise ValueError(
                f"rows of {self.table} stay, so `identifiers` and `record_keys` find none to erase: name columns"
                " that describe the person of a key under its `clears`"
            )
        return self

    def origin(self, column: str) -> str:
        """As of the source, with the table's name: columns of several tables may have one name."""
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
    not_keys: columns whose numbers are no keys of it, whatever they are.
    """

    name: str
    source: str
    key_category: str = "account_id"
    tables: tuple[SubjectTable, ...] = ()
    not_keys: tuple[NotKeys, ...] = ()

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
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"{', '.join(twice)}: twice among the source and the further `tables` of {self.name}. Name a table"
                " once, and its further key columns under `other_keys`"
            )
        if any(key.row is RowFate.DELETE for key in self.other_keys):
            raise ValueError(
                f"rows of the source {self.source} belong to the person in `{self.key}`, so its `other_keys` need"
                " `row: keep`"
            )
        for table in self.tables:
            if table.of is None and len(table.key_parts) != len(self.key_parts):
                raise ValueError(
                    f"the key of {table.table} has {counted(len(table.key_parts), 'column')},"
                    f" and the key of {self.source} has"
                    f" {len(self.key_parts)}: name the same columns in the same order, or `of` with an"
                    " identifier of the source"
                )
            if table.several_columns and (table.of is not None or table.row is RowFate.KEEP):
                raise ValueError(f"the key of {table.table} has several columns: `of` and `row: keep` take one")
        identifiers = {i.column for i in self.identifiers}
        unknown = sorted({t.of for t in self.tables if t.of is not None and t.of not in identifiers})
        if unknown:
            raise ValueError(
                f"`of: {unknown[0]}` is not an identifier of the source {self.source}: name the column there under"
                " `identifiers`, with its category; a table with the subject's own key needs no `of`"
            )
        named = {(table, name.lower()) for table, told in self.by_table for name in told.named}
        both = sorted(f"{n.table}.{n.column}" for n in self.not_keys if (n.table, n.column.lower()) in named)
        if both:
            raise ValueError(f"{', '.join(both)} cannot identify the persons and be under `not_keys`, too")
        return self


class SubjectRef(Frozen):
    """Whom a request is about: the kind of subject, and the value of its key; of one of several columns by column."""

    type: str
    key: str | dict[str, str]

    @field_validator("key", mode="before")
    @classmethod
    def _written_as_text(cls, key: object) -> object:
        for value in key.values() if isinstance(key, dict) else (key,):
            if isinstance(value, int | float):
                raise ValueError("put the key in quotes: YAML reads a bare number, and 007 is not 7")
            if not isinstance(value, str) or not value:
                raise ValueError(
                    "a key must be text; a key of several columns needs its column"
                    " names: `{tenant_id: '4', user_id: '17'}`"
                )
        return key

    def of(self, subject: Subject, request: str) -> str:
        """The key as one text.

        Raises:
            ConfigError: it has not exactly the columns of the subject's key.
        """
        columns = subject.key_parts
        given = self.key if isinstance(self.key, dict) else {subject.key: self.key}
        if len(columns) == 1 and isinstance(self.key, str):
            return self.key
        if set(given) != set(columns):
            missing = [name for name in columns if name not in given] if isinstance(self.key, dict) else columns
            more = sorted(set(given) - set(columns)) if isinstance(self.key, dict) else ()
            raise ConfigError(
                f"the key of `{subject.name}` is {subject.key}, and the request"
                + (
                    f" leaves out {', '.join(missing)}"
                    if missing
                    else f" names {counted(len(more), 'column that does', 'columns that do')} not belong to it"
                ),
                where=f"request {request}",
                todo="write `key: {" + ", ".join(f"{name}: '…'" for name in columns) + "}`"
                if len(columns) > 1
                else "write `key: '…'`",
            )
        return joined([given[name] for name in columns]) or ""
