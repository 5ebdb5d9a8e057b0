"""A deletion log as version 0.3 wrote it: one wide table an estate, a row for each request and step."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE "deletions {0}" (seq INTEGER PRIMARY KEY, "request_id" TEXT, "subject" TEXT, "plan_id" TEXT,
    "step_id" TEXT, "copy_id" TEXT, "dataset" TEXT, "format" TEXT, "action" TEXT, "state" TEXT,
    "snapshot_planned" TEXT, "snapshot_before" TEXT, "snapshot_after" TEXT, "manifest_before" TEXT, "manifest" TEXT,
    "run_id" TEXT, "run_at" TEXT, "files_removed" INTEGER, "bytes_removed" INTEGER, "approver" TEXT, "reason" TEXT,
    "tool_version" TEXT, "evidence" TEXT);
CREATE TABLE "prunings {0}" (at TEXT, before TEXT, last_seq INTEGER PRIMARY KEY, rows INTEGER, digest TEXT);
CREATE INDEX "request_id {0}" ON "deletions {0}" (request_id);
CREATE TRIGGER "no UPDATE {0}" BEFORE UPDATE ON "deletions {0}"
    BEGIN SELECT RAISE(ABORT, 'the deletion log is append-only'); END;
CREATE TRIGGER "no DELETE {0}" BEFORE DELETE ON "deletions {0}"
    BEGIN SELECT RAISE(ABORT, 'the deletion log is append-only'); END;
CREATE TRIGGER "no REPLACE {0}" BEFORE INSERT ON "deletions {0}"
    WHEN EXISTS (SELECT 1 FROM "deletions {0}" WHERE seq = NEW.seq)
    BEGIN SELECT RAISE(ABORT, 'the deletion log is append-only'); END;
CREATE TRIGGER "no pruning UPDATE {0}" BEFORE UPDATE ON "prunings {0}"
    BEGIN SELECT RAISE(ABORT, 'the deletion log is append-only'); END;
CREATE TRIGGER "no pruning DELETE {0}" BEFORE DELETE ON "prunings {0}"
    BEGIN SELECT RAISE(ABORT, 'the deletion log is append-only'); END;
CREATE TRIGGER "no pruning REPLACE {0}" BEFORE INSERT ON "prunings {0}"
    WHEN EXISTS (SELECT 1 FROM "prunings {0}" WHERE last_seq = NEW.last_seq)
    BEGIN SELECT RAISE(ABORT, 'the deletion log is append-only'); END;
"""
COLUMNS = 23


def write(path: Path, estate: str, rows: Iterable[tuple[Any, ...]], prunings: Iterable[tuple[Any, ...]] = ()) -> None:
    """A new file. rows: each with its number; prunings: as their table has them."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(SCHEMA.format(estate))
        connection.execute("BEGIN")
        connection.executemany(f'INSERT INTO "deletions {estate}" VALUES ({", ".join("?" * COLUMNS)})', rows)
        connection.executemany(f'INSERT INTO "prunings {estate}" VALUES (?, ?, ?, ?, ?)', prunings)
        connection.execute("COMMIT")


def stored(path: Path, estate: str) -> list[tuple[Any, ...]]:
    """What `SELECT *` gives people, with the type of each cell as SQLite stores it."""
    with closing(sqlite3.connect(path)) as connection:
        names = [row[1] for row in connection.execute(f'PRAGMA table_info("deletions {estate}")')]
        types = ", ".join(f"typeof({name})" for name in names)
        query = f'SELECT *, {types} FROM "deletions {estate}" ORDER BY seq'
        return [tuple(names), *connection.execute(query)]
