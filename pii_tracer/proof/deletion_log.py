"""The deletion log: who was erased where, when, how; one table an estate, to which rows are only ever added.

SQLite's triggers refuse changes and removals. A step's later state is a new row; the last one counts.
"""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime
from pathlib import Path

from pii_tracer.enums import StrEnum
from pii_tracer.errors import ProofError
from pii_tracer.files import write_atomic
from pii_tracer.journal import iso, parse_time
from pii_tracer.model import Format, Frozen
from pii_tracer.plan import Action


class EntryState(StrEnum):
    """How a step ended for a request."""

    ERASED = "erased"
    DEFERRED = "deferred"
    BLOCKED = "blocked"
    EXEMPT = "exempt"
    CONFIRMED = "confirmed"


class Entry(Frozen):
    """One step of one request. subject: keyed reference, never a value of the person."""

    request_id: str
    subject: str
    plan_id: str
    step_id: str
    copy_id: str
    dataset: str
    format: Format
    action: Action
    state: EntryState
    snapshot_before: str | None = None
    snapshot_after: str | None = None
    run_at: datetime
    files_removed: int | None = None
    bytes_removed: int | None = None
    approver: str | None = None
    tool_version: str
    evidence: str


_COLUMNS = tuple(Entry.model_fields)


class DeletionLog:
    """The log of one estate in an SQLite file."""

    def __init__(self, path: Path, estate: str) -> None:
        """Open or create. Raises `ProofError` when the file is no log."""
        self.path = path
        self._table = _quoted(f"deletions {estate}")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(self._connect()) as connection, connection:
                for statement in self._schema(estate):
                    connection.execute(statement)
        except sqlite3.DatabaseError as error:
            raise self._error(error) from None

    def _schema(self, estate: str) -> Iterable[str]:
        columns = ", ".join(f"{_quoted(name)} {_sql_type(name)}" for name in _COLUMNS)
        yield f"CREATE TABLE IF NOT EXISTS {self._table} (seq INTEGER PRIMARY KEY, {columns})"
        for act in ("UPDATE", "DELETE"):
            yield (
                f"CREATE TRIGGER IF NOT EXISTS {_quoted(f'no {act} {estate}')} BEFORE {act} ON {self._table} "
                "BEGIN SELECT RAISE(ABORT, 'the deletion log is append-only'); END"
            )
        # INSERT OR REPLACE would remove a row without asking the trigger for DELETE
        stands = f"SELECT 1 FROM {self._table} WHERE seq = NEW.seq"  # noqa: S608 (a quoted name)
        yield (
            f"CREATE TRIGGER IF NOT EXISTS {_quoted(f'no REPLACE {estate}')} BEFORE INSERT ON {self._table} "
            f"WHEN EXISTS ({stands}) BEGIN SELECT RAISE(ABORT, 'the deletion log is append-only'); END"
        )

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path)
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _error(self, error: sqlite3.Error) -> ProofError:
        return ProofError(f"the deletion log cannot be used: {error}", where=str(self.path), todo="check the file")

    def append(self, entries: Iterable[Entry]) -> None:
        """Add rows, all or none. Rows that stand there already, the same in every field, are not added again."""
        marks = ", ".join("?" for _ in _COLUMNS)
        names = ", ".join(_quoted(name) for name in _COLUMNS)
        same = " AND ".join(f"{_quoted(name)} IS ?" for name in _COLUMNS)
        statement = (
            f"INSERT INTO {self._table} ({names}) SELECT {marks} "  # noqa: S608 (quoted names, bound values)
            f"WHERE NOT EXISTS (SELECT 1 FROM {self._table} WHERE {same})"
        )
        try:
            with closing(self._connect()) as connection, connection:
                connection.executemany(statement, [_row(e) * 2 for e in entries])
        except sqlite3.DatabaseError as error:
            raise self._error(error) from None

    def entries(self) -> tuple[Entry, ...]:
        """All rows in the order in which they were added."""
        names = ", ".join(_quoted(name) for name in _COLUMNS)
        query = f"SELECT {names} FROM {self._table} ORDER BY seq"  # noqa: S608 (quoted names)
        with closing(self._connect()) as connection:
            rows = connection.execute(query).fetchall()
        return tuple(_entry(row) for row in rows)

    def export_csv(self, path: Path) -> None:
        """All rows as CSV. Cells that a spreadsheet would run as a formula get an apostrophe in front."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for entry in self.entries():
            writer.writerow(_inert(cell) for cell in _row(entry))
        write_atomic(path, text.getvalue().encode())

    def export_parquet(self, path: Path) -> None:
        """All rows as Parquet, `run_at` as a UTC timestamp."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        types = {"run_at": pa.timestamp("us", tz="UTC"), "files_removed": pa.int64(), "bytes_removed": pa.int64()}
        schema = pa.schema([(name, types.get(name, pa.string())) for name in _COLUMNS])
        rows = [{**e.model_dump(mode="json"), "run_at": e.run_at} for e in self.entries()]
        buffer = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), buffer)
        write_atomic(path, buffer.getvalue())


def _sql_type(name: str) -> str:
    return "INTEGER" if name in ("files_removed", "bytes_removed") else "TEXT"


def _row(entry: Entry) -> tuple[object, ...]:
    return tuple({**entry.model_dump(mode="json"), "run_at": iso(entry.run_at)}.values())


def _entry(row: tuple[object, ...]) -> Entry:
    values = dict(zip(_COLUMNS, row, strict=True))
    return Entry.model_validate({**values, "run_at": parse_time(str(values["run_at"]))})


def _inert(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
