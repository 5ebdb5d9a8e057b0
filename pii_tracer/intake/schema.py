"""The schema of the request store: numbered migrations, each applied once, in order, in one transaction.

Words in braces are the database's own (`databases.base.Database.words`).
"""

from __future__ import annotations

from collections.abc import Mapping

from pii_tracer.intake.request_databases.base import Connection

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE requests (
            id {text} PRIMARY KEY, person {text} NOT NULL, kind {text} NOT NULL, sealed {bytes}, law {text} NOT NULL,
            received {text} NOT NULL, due {text} NOT NULL, verified {text} NOT NULL, state {text} NOT NULL,
            reason {text} NOT NULL DEFAULT '', plan {text}, begun {text}, holds {text} NOT NULL DEFAULT '',
            proof {text}, repeats {text}){compact}""",
        """CREATE UNIQUE INDEX one_open_request_a_person ON requests (person)
            WHERE state IN ('received', 'planned', 'carried_over')""",
        "CREATE INDEX requests_of_a_person ON requests (person)",
        "CREATE INDEX requests_by_due_date ON requests (state, due, id)",
        "CREATE INDEX requests_of_a_plan ON requests (plan) WHERE plan IS NOT NULL",
        """CREATE TABLE receipts (
            file {text} NOT NULL, line INTEGER NOT NULL, request {text} NOT NULL REFERENCES requests (id), id {text},
            law {text} NOT NULL, received {text} NOT NULL, verified {text} NOT NULL,
            PRIMARY KEY (file, line)){compact}""",
        "CREATE INDEX receipts_of_a_request ON receipts (request)",
        "CREATE UNIQUE INDEX receipts_by_id ON receipts (id) WHERE id IS NOT NULL",
        """CREATE TABLE changes (
            seq {counter}, request {text} NOT NULL REFERENCES requests (id), at {text} NOT NULL,
            state {text} NOT NULL, who {text} NOT NULL, reason {text} NOT NULL)""",
        "CREATE INDEX changes_of_a_request ON changes (request)",
        "CREATE TABLE settings (name {text} PRIMARY KEY, value {text} NOT NULL){compact}",
    ),
    ("CREATE TABLE work_items (id {text} PRIMARY KEY, list {text} NOT NULL, outcome {text} NOT NULL){compact}",),
    (
        "ALTER TABLE requests ADD COLUMN ground {text} NOT NULL DEFAULT 'request'",
        "ALTER TABLE requests ADD COLUMN noticed {text}",
        "ALTER TABLE receipts ADD COLUMN ground {text} NOT NULL DEFAULT 'request'",
        "ALTER TABLE receipts ADD COLUMN noticed {text}",
    ),
    (
        "ALTER TABLE requests ADD COLUMN extended {text}",
        """CREATE TABLE extensions (
            request {text} NOT NULL REFERENCES requests (id), law {text} NOT NULL, received {text} NOT NULL,
            informed {text} NOT NULL, at {text} NOT NULL, who {text} NOT NULL, reason {text} NOT NULL,
            PRIMARY KEY (request, law, received)){compact}""",
    ),
    (
        """CREATE TABLE decisions (
            seq {counter}, item {text} NOT NULL REFERENCES work_items (id), at {text} NOT NULL,
            status INTEGER NOT NULL, who {text} NOT NULL, reason {text} NOT NULL)""",
        "CREATE INDEX decisions_of_an_item ON decisions (item)",
    ),
    (
        "ALTER TABLE requests ADD COLUMN kept {text} NOT NULL DEFAULT ''",
        "ALTER TABLE requests ADD COLUMN first_begun {text}",
        # a run may have begun of a plan that was given up before another one was made
        """UPDATE requests SET first_begun = coalesce(begun, (SELECT min(c.at) FROM changes c
            WHERE c.request = requests.id AND c.state = 'carried_over'
            AND EXISTS (SELECT 1 FROM changes b WHERE b.request = c.request AND b.state = 'planned' AND b.seq < c.seq)
            AND EXISTS (SELECT 1 FROM changes n WHERE n.request = c.request AND n.state = 'planned'
                        AND n.seq > c.seq)))""",
        """CREATE TABLE narrowings (
            seq {counter}, request {text} NOT NULL REFERENCES requests (id), dataset {text} NOT NULL,
            keeps INTEGER NOT NULL, asked {text} NOT NULL, at {text} NOT NULL, who {text} NOT NULL,
            reason {text} NOT NULL)""",
        "CREATE INDEX narrowings_of_a_request ON narrowings (request)",
    ),
)
"""By number, from 1. One that was released is never changed: what comes later is a further one."""


class NewerSchema(Exception):
    """A later version of the program made the store."""


def migrate(connection: Connection, words: Mapping[str, str]) -> None:
    """Bring a store to the newest schema. The connection is in a transaction that nobody else writes beside.

    Raises:
        NewerSchema: the store has a schema that is not known here.
    """
    version = connection.version()
    if version > len(MIGRATIONS):
        raise NewerSchema
    for number, statements in enumerate(MIGRATIONS[version:], version + 1):
        for statement in statements:
            connection.execute(statement.format(**words))
        connection.set_version(number)
