"""The schema of the request store: numbered migrations, each applied once, in order, in one transaction."""

from __future__ import annotations

import sqlite3

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE requests (
            id TEXT PRIMARY KEY, person TEXT NOT NULL, kind TEXT NOT NULL, sealed BLOB, law TEXT NOT NULL,
            received TEXT NOT NULL, due TEXT NOT NULL, verified TEXT NOT NULL, state TEXT NOT NULL,
            reason TEXT NOT NULL DEFAULT '', plan TEXT, begun TEXT, holds TEXT NOT NULL DEFAULT '', proof TEXT,
            repeats TEXT) WITHOUT ROWID""",
        """CREATE UNIQUE INDEX one_open_request_a_person ON requests (person)
            WHERE state IN ('received', 'planned', 'carried_over')""",
        "CREATE INDEX requests_of_a_person ON requests (person)",
        "CREATE INDEX requests_by_due_date ON requests (state, due, id)",
        "CREATE INDEX requests_of_a_plan ON requests (plan) WHERE plan IS NOT NULL",
        """CREATE TABLE receipts (
            file TEXT NOT NULL, line INTEGER NOT NULL, request TEXT NOT NULL REFERENCES requests (id), id TEXT,
            law TEXT NOT NULL, received TEXT NOT NULL, verified TEXT NOT NULL, PRIMARY KEY (file, line))
            WITHOUT ROWID""",
        "CREATE INDEX receipts_of_a_request ON receipts (request)",
        "CREATE UNIQUE INDEX receipts_by_id ON receipts (id) WHERE id IS NOT NULL",
        """CREATE TABLE changes (
            seq INTEGER PRIMARY KEY, request TEXT NOT NULL REFERENCES requests (id), at TEXT NOT NULL,
            state TEXT NOT NULL, who TEXT NOT NULL, reason TEXT NOT NULL)""",
        "CREATE INDEX changes_of_a_request ON changes (request)",
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    ),
    ("CREATE TABLE work_items (id TEXT PRIMARY KEY, list TEXT NOT NULL, outcome TEXT NOT NULL) WITHOUT ROWID",),
    (
        "ALTER TABLE requests ADD COLUMN ground TEXT NOT NULL DEFAULT 'request'",
        "ALTER TABLE requests ADD COLUMN noticed TEXT",
        "ALTER TABLE receipts ADD COLUMN ground TEXT NOT NULL DEFAULT 'request'",
        "ALTER TABLE receipts ADD COLUMN noticed TEXT",
    ),
)
"""By number, from 1. One that was released is never changed: what comes later is a further one."""


class NewerSchema(Exception):
    """A later version of the program made the store."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a store to the newest schema. The connection is in a transaction that nobody else writes beside.

    Raises:
        NewerSchema: the store has a schema that is not known here.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise NewerSchema
    for number, statements in enumerate(MIGRATIONS[version:], version + 1):
        for statement in statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number}")
