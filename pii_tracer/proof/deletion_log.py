"""The deletion log: who was erased where, when, how; one table an estate, to which rows are only ever added.

SQLite's triggers refuse changes and removals. A step's later state is a new row; the last one counts. Beside it the
rows can be kept as a Delta or Iceberg table (`proof.log_table`), which is filled from here. The log's own retention
cuts it off at its beginning, and says so in a second table (`prune`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import canonical, iso, parse_time
from pii_tracer.model.datasets import Format, Frozen
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.evidence_leaves import lines_digest

FILE = "deletion_log.sqlite"
"""In the state folder."""


class EntryState(StrEnum):
    """How a step, or a copy without steps, stands for a request.

    partial: erased but for the columns that a hold keeps. confirmed: a person answers for it, by name.
    """

    ERASED = "erased"
    PARTIAL = "partial"
    DEFERRED = "deferred"
    BLOCKED = "blocked"
    EXEMPT = "exempt"
    CONFIRMED = "confirmed"


class Entry(Frozen):
    """One step of one request, or a copy (or gap) that the plan has no step for: then `step_id` is empty.

    subject: keyed reference, never a value of the person. snapshot_planned, snapshot_before, snapshot_after: the
    format's own ids when the request was planned, before this step and after it (after VACUUM or a clean it is the id
    of that very run). manifest_before, manifest: SHA-256 of the newest file of the table's log (Delta's commit,
    Iceberg's metadata file, Hudi's instant) before and after the step; on the step that verified a copy, `manifest` is
    the digest over path and SHA-256 of each of its files that was searched. run_id: OpenLineage run of the step.
    files_removed, bytes_removed: counted in the storage itself, before against after; None where nobody counted.
    """

    request_id: str
    subject: str
    plan_id: str
    step_id: str
    copy_id: str
    dataset: str
    format: Format | None
    action: Action | None
    state: EntryState
    snapshot_planned: str | None = None
    snapshot_before: str | None = None
    snapshot_after: str | None = None
    manifest_before: str | None = None
    manifest: str | None = None
    run_id: str | None = None
    run_at: datetime
    files_removed: int | None = None
    bytes_removed: int | None = None
    approver: str | None = None
    reason: str | None = None
    tool_version: str
    evidence: str


COLUMNS = tuple(Entry.model_fields)
NUMBERS = frozenset({"files_removed", "bytes_removed"})
_REQUEST, _RUN_AT = COLUMNS.index("request_id"), COLUMNS.index("run_at")
_OPEN = (EntryState.DEFERRED, EntryState.BLOCKED)


@dataclass(frozen=True)
class Selection:
    """Which rows: each field that is given must be met. dataset: with `*` and `?` as in file names.

    since (inclusive), until (exclusive): when the step ran. newest: of each request, plan, copy and step the last row.
    """

    request: str | None = None
    subject: str | None = None
    plan: str | None = None
    copy: str | None = None
    dataset: str | None = None
    action: Action | None = None
    state: EntryState | None = None
    since: datetime | None = None
    until: datetime | None = None
    newest: bool = False


ALL = Selection()


class Pruning(Frozen):
    """Rows that were removed because the log's retention had passed. digest: over their canonical lines."""

    at: datetime
    before: datetime
    last_seq: int
    rows: int
    digest: str


class DeletionLog:
    """The log of one estate in an SQLite file."""

    def __init__(self, path: Path, estate: str) -> None:
        """Open or create. Raises `ProofError` when the file is no log."""
        self.path = path
        self._table = _quoted(f"deletions {estate}")
        self._prunings = _quoted(f"prunings {estate}")
        self._estate = estate
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._writing() as connection:
            for statement in self._schema():
                connection.execute(statement)
            stands = {row[1] for row in connection.execute(f"PRAGMA table_info({self._table})")}
            for name in COLUMNS:
                if name not in stands:  # a log that an earlier version began
                    connection.execute(f"ALTER TABLE {self._table} ADD COLUMN {_quoted(name)} {_sql_type(name)}")

    def _schema(self) -> Iterator[str]:
        columns = ", ".join(f"{_quoted(name)} {_sql_type(name)}" for name in COLUMNS)
        yield f"CREATE TABLE IF NOT EXISTS {self._table} (seq INTEGER PRIMARY KEY, {columns})"
        yield (
            f"CREATE TABLE IF NOT EXISTS {self._prunings} "
            "(at TEXT, before TEXT, last_seq INTEGER PRIMARY KEY, rows INTEGER, digest TEXT)"
        )
        index = _quoted(f"request_id {self._estate}")
        yield f"CREATE INDEX IF NOT EXISTS {index} ON {self._table} (request_id)"
        yield f"DROP INDEX IF EXISTS {_quoted(f'evidence {self._estate}')}"  # of an earlier version; nobody asked it
        for table, key, word in ((self._table, "seq", ""), (self._prunings, "last_seq", "pruning ")):
            yield from self._guards(table, key, word)

    def _guards(self, table: str, key: str, word: str) -> Iterator[str]:
        abort = "BEGIN SELECT RAISE(ABORT, 'the deletion log is append-only'); END"
        for act in ("UPDATE", "DELETE"):
            name = _quoted(f"no {word}{act} {self._estate}")
            yield f"CREATE TRIGGER IF NOT EXISTS {name} BEFORE {act} ON {table} {abort}"
        # INSERT OR REPLACE would remove a row without asking the trigger for DELETE
        stands = f"SELECT 1 FROM {table} WHERE {key} = NEW.{key}"  # noqa: S608 (quoted names)
        name = _quoted(f"no {word}REPLACE {self._estate}")
        yield f"CREATE TRIGGER IF NOT EXISTS {name} BEFORE INSERT ON {table} WHEN EXISTS ({stands}) {abort}"

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, isolation_level=None, timeout=120)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA secure_delete = ON")
                yield connection
        except sqlite3.DatabaseError as error:
            raise ProofError(
                f"the deletion log cannot be used: {error}",
                where=str(self.path),
                todo="correct the permissions of the file, or restore it from a backup",
            ) from None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    # -- adding --------------------------------------------------------------------------------------------------

    def append(self, entries: Iterable[Entry]) -> None:
        """Add rows, all or none. Rows that stand there already, the same in every field, are not added again; nor are
        rows from before the last pruning, which a run that is looked at again would bring back."""
        names = ", ".join(_quoted(name) for name in COLUMNS)
        known = f"SELECT {names} FROM {self._table} WHERE request_id = ?"  # noqa: S608 (quoted names)
        insert = f"INSERT INTO {self._table} (seq, {names}) VALUES (?, {', '.join('?' for _ in COLUMNS)})"  # noqa: S608
        with self._writing() as connection:
            pruned, until = connection.execute(
                f"SELECT coalesce(max(last_seq), 0), coalesce(max(before), '') FROM {self._prunings}"  # noqa: S608
            ).fetchone()
            (last,) = connection.execute(f"SELECT coalesce(max(seq), 0) FROM {self._table}").fetchone()  # noqa: S608
            last = max(last, pruned)
            for request, rows in groupby(map(_row, entries), itemgetter(_REQUEST)):
                there = set(connection.execute(known, (request,)))
                new = [row for row in dict.fromkeys(rows) if row not in there and row[_RUN_AT] >= until]
                connection.executemany(insert, ((seq, *row) for seq, row in enumerate(new, last + 1)))
                last += len(new)

    def count(self) -> int:
        """How many rows there are, without reading them."""
        with self._connected() as connection:
            (number,) = connection.execute(f"SELECT count(*) FROM {self._table}").fetchone()  # noqa: S608 (a quoted name)
        return int(number)

    # -- reading -------------------------------------------------------------------------------------------------

    def entries(self, selection: Selection = ALL) -> tuple[Entry, ...]:
        """Rows in the order in which they were added."""
        return tuple(entry for _, entry in self.numbered(selection))

    def numbered(self, selection: Selection = ALL) -> tuple[tuple[int, Entry], ...]:
        """Rows with their numbers, which count from 1 and go on over a pruning."""
        where, values = self._where(selection)
        names = ", ".join(("seq", *(_quoted(name) for name in COLUMNS)))
        query = f"SELECT {names} FROM {self._table}{where} ORDER BY seq"  # noqa: S608 (quoted names, bound values)
        with self._connected() as connection:
            rows = connection.execute(query, values).fetchall()
        return tuple((row[0], _entry(row[1:])) for row in rows)

    def _where(self, selection: Selection) -> tuple[str, list[object]]:
        asked: list[tuple[str, object]] = [
            ("request_id = ?", selection.request),
            ("subject = ?", selection.subject),
            ("plan_id = ?", selection.plan),
            ("copy_id = ?", selection.copy),
            ("dataset GLOB ?", selection.dataset),
            ("action = ?", selection.action),
            ("state = ?", selection.state),
            ("run_at >= ?", iso(selection.since) if selection.since else None),
            ("run_at < ?", iso(selection.until) if selection.until else None),
        ]
        given = [(text, value) for text, value in asked if value is not None]
        conditions = [text for text, _ in given]
        if selection.newest:
            conditions.append(f"seq IN ({self._newest('request_id, plan_id, copy_id, step_id')})")
        return " WHERE " + " AND ".join(conditions) if conditions else "", [value for _, value in given]

    def _newest(self, key: str) -> str:
        return f"SELECT max(seq) FROM {self._table} GROUP BY {key}"  # noqa: S608 (quoted names)

    @property
    def prunings(self) -> tuple[Pruning, ...]:
        """What the log's retention has removed, the oldest first."""
        query = f"SELECT at, before, last_seq, rows, digest FROM {self._prunings} ORDER BY last_seq"  # noqa: S608
        with self._connected() as connection:
            rows = connection.execute(query).fetchall()
        return tuple(
            Pruning(at=parse_time(at), before=parse_time(before), last_seq=last, rows=number, digest=digest)
            for at, before, last, number, digest in rows
        )

    # -- retention -----------------------------------------------------------------------------------------------

    def prune(self, before: datetime, at: datetime, kept: Collection[str] = ()) -> Pruning | None:
        """Remove the oldest rows up to the first that is of `before` or later, or of a request that is still open, or
        one of those that are kept (ids of requests).

        The bytes go too. Gives what was removed, or None where nothing was to be removed.
        """
        with self._writing() as connection:
            rows = self._prunable(connection, before, kept)
            if not rows:
                return None
            last = rows[-1][0]
            lines = [canonical(dict(zip(("seq", *COLUMNS), row, strict=True))) for row in rows]
            done = Pruning(at=at, before=before, last_seq=last, rows=len(rows), digest=lines_digest(lines))
            guard = _quoted(f"no DELETE {self._estate}")
            connection.execute(f"DROP TRIGGER {guard}")
            connection.execute(f"DELETE FROM {self._table} WHERE seq <= ?", (last,))  # noqa: S608 (a quoted name)
            for statement in self._guards(self._table, "seq", ""):
                connection.execute(statement)
            connection.execute(
                f"INSERT INTO {self._prunings} VALUES (?, ?, ?, ?, ?)",  # noqa: S608 (a quoted name)
                (iso(at), iso(before), last, done.rows, done.digest),
            )
        with self._connected() as connection:
            connection.execute("VACUUM")
        return done

    def _prunable(
        self, connection: sqlite3.Connection, before: datetime, kept: Collection[str]
    ) -> Sequence[tuple[object, ...]]:
        marks = ", ".join("?" for _ in _OPEN)
        newest = self._newest("request_id, copy_id, step_id")
        still_open = f"SELECT request_id FROM {self._table} WHERE seq IN ({newest}) AND state IN ({marks})"  # noqa: S608
        named = "SELECT value FROM json_each(?)"
        first = (
            f"SELECT min(seq) FROM {self._table} WHERE run_at >= ?"  # noqa: S608 (quoted names)
            f" OR request_id IN ({still_open}) OR request_id IN ({named})"
        )
        names = ", ".join(("seq", *(_quoted(name) for name in COLUMNS)))
        query = f"SELECT {names} FROM {self._table} WHERE seq < coalesce(({first}), 9e18) ORDER BY seq"  # noqa: S608
        return connection.execute(query, (iso(before), *_OPEN, json.dumps(sorted(kept)))).fetchall()


def _sql_type(name: str) -> str:
    return "INTEGER" if name in NUMBERS else "TEXT"


def _row(entry: Entry) -> tuple[Any, ...]:
    values = vars(entry)
    return tuple(_plain(values[name]) for name in COLUMNS)


def _plain(value: Any) -> str | int | None:
    if value is None or isinstance(value, int):
        return value
    return _iso(value) if isinstance(value, datetime) else str(value)


_iso = lru_cache(1024)(iso)
"""A run of many requests has few times."""


def _entry(row: Sequence[object]) -> Entry:
    values = dict(zip(COLUMNS, row, strict=True))
    return Entry.model_validate({**values, "run_at": parse_time(str(values["run_at"]))})


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
