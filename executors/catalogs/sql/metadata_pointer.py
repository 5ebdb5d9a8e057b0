"""The metadata file of a table in a SQL catalog: a row that is updated where it still names the old file.

The table and its columns: https://iceberg.apache.org/docs/latest/jdbc/; PyIceberg's `SqlCatalog` has the same.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from executors.engine.local_files import let_in
from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.lake.catalogs.base import secret
from pii_tracer.lake.catalogs.default_table_format import SQL_TABLES
from pii_tracer.lake.catalogs.sql.adapter import sqlite_file
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import placed

_ROW = "catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table"
_READ = f"SELECT metadata_location FROM {SQL_TABLES} WHERE {_ROW}"
_SWAP = (
    f"UPDATE {SQL_TABLES} SET metadata_location = :following, previous_metadata_location = :before"
    f" WHERE {_ROW} AND metadata_location = :before"
)
_NUMBERED = re.compile(r"(\d+)-")


@dataclass(frozen=True)
class SqlPointer:
    """catalog: its key in the estate file; parts: namespace and table; base: folder of the estate file."""

    catalog: str
    uri: str
    base: Path
    parts: tuple[str, ...]

    def current(self) -> str:
        """As `MetadataPointer.current`."""
        rows, _ = self._ask(_READ, {})
        if len(rows) != 1 or not rows[0][0]:
            raise RunError(
                "the catalog has no such table", where=self._title, todo="register the table again, or plan again"
            )
        return str(rows[0][0])

    def successor(self, current: str, unique: UUID) -> str:
        """Numbered on, as writers of such catalogs do."""
        folder, _, name = current.rpartition("/")
        number = _NUMBERED.match(name)
        return f"{folder}/{int(number[1]) + 1 if number else 0:05d}-{unique}.metadata.json"

    def swap(self, current: str, successor: str, data: bytes) -> bool:
        """As `MetadataPointer.swap`."""
        path = placed(successor)
        write_atomic(path, data, mode=0o600)
        let_in(placed(current), path)
        _, changed = self._ask(_SWAP, {"before": current, "following": successor})
        if changed != 1:
            path.unlink(missing_ok=True)
        return changed == 1

    @property
    def _title(self) -> str:
        return ".".join((self.catalog, *self.parts))

    def _ask(self, statement: str, more: Mapping[str, str]) -> tuple[list[Any], int]:
        """The rows of a statement, and how many it changed; in a transaction of its own."""
        values = {"catalog": self.catalog, "namespace": ".".join(self.parts[:-1]), "table": self.parts[-1], **more}
        file = sqlite_file(self.uri, self.base)
        try:
            return _in_sqlite(file, statement, values) if file else self._by_driver(statement, values)
        except Exception as error:  # every driver has errors of its own, whose texts quote rows
            raise RunError(
                f"the catalog's database rejects the statement: {type(error).__name__}",
                where=self._title,
                todo="grant the account the rights to read and write the database, then run `pii-tracer resume`",
            ) from None

    def _by_driver(self, statement: str, values: Mapping[str, str]) -> tuple[list[Any], int]:
        import sqlalchemy

        place = sqlalchemy.make_url(self.uri)
        place = place.set(username=secret(self.catalog, "USER"), password=secret(self.catalog, "PASSWORD"))
        engine = sqlalchemy.create_engine(place)
        try:
            with engine.begin() as connection:
                result = connection.execute(sqlalchemy.text(statement), dict(values))
                return (list(result) if result.returns_rows else []), int(result.rowcount)
        finally:
            engine.dispose()


def _in_sqlite(file: Path, statement: str, values: Mapping[str, str]) -> tuple[list[Any], int]:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=30)) as connection, connection:
        cursor = connection.execute(statement, dict(values))
        return cursor.fetchall(), cursor.rowcount
