"""The deletion log's tables in SQLite, to which rows are only ever added, and the view of them that people ask.

Many persons are erased by the same steps. So each deed stands once (`deeds`), and so does each person of a request
(`persons`). `lists` has which deeds were logged together, in their order. A row of `answers` says that the deeds of a
list were done for a person: the first has the row's `seq` as its number, and the others have the numbers behind it. The
view `deletions` shows a row for each person and deed.

An earlier version had a table in place of the view. It is carried over when the log is opened, all or nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field

from pii_tracer.proof.deletions.entries import COLUMNS, NUMBERS, OF_DEED, Cells, Person

_REFUSED = "BEGIN SELECT RAISE(ABORT, 'the deletion log is append-only'); END"
_LISTS_KEPT = 10_000
_DEEDS_KEPT = 100_000


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


class Tables:
    """The names of one estate's tables, quoted, and their statements."""

    def __init__(self, estate: str) -> None:
        self._estate = estate
        self.deeds = self._named("deeds")
        self.persons = self._named("persons")
        self.lists = self._named("lists")
        self.answers = self._named("answers")
        self.prunings = self._named("prunings")
        self.links = self._named("links")
        self.view = self._named("deletions")

    def _named(self, words: str) -> str:
        return quoted(f"{words} {self._estate}")

    def has_links(self, connection: sqlite3.Connection) -> bool:
        """Whether the log has a table of links: whether this version or a later one opened it before."""
        return bool(connection.execute(f"PRAGMA table_info({self.links})").fetchone())

    def open(self, connection: sqlite3.Connection) -> bool:
        """Make what is missing. Gives whether a table of an earlier version was carried over."""
        for statement in self._made():
            connection.execute(statement)
        self._add_columns(connection)
        earlier = ("table", f"deletions {self._estate}")
        stands = "SELECT 1 FROM sqlite_master WHERE type = ? AND name = ? COLLATE NOCASE"  # as SQLite compares names
        found = connection.execute(stands, earlier).fetchone()
        if found:
            self._carry_over(connection)
        for statement in (self._shown(), *self.guards(), *self._guards_of_prunings(), *self._guards_of_view()):
            connection.execute(statement)
        return found is not None

    def _made(self) -> Iterator[str]:
        columns = ", ".join(f"{quoted(name)} {_sql_type(name)}" for name in OF_DEED)
        make = "CREATE TABLE IF NOT EXISTS"
        yield f"{make} {self.deeds} (deed INTEGER PRIMARY KEY, {columns})"
        yield f"{make} {self.persons} (person INTEGER PRIMARY KEY, request_id TEXT, subject TEXT)"
        places = "list INTEGER, place INTEGER, deed INTEGER NOT NULL, PRIMARY KEY (list, place)"
        yield f"{make} {self.lists} ({places}) WITHOUT ROWID"
        yield f"{make} {self.answers} (seq INTEGER PRIMARY KEY, person INTEGER NOT NULL, list INTEGER NOT NULL)"
        yield (
            f"{make} {self.prunings} (at TEXT, before TEXT, last_seq INTEGER PRIMARY KEY, rows INTEGER, digest TEXT)"
        )
        yield (
            f"{make} {self.links} (link INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, "
            "rows TEXT NOT NULL, pruning TEXT, digest TEXT NOT NULL)"
        )
        for words, table, keys in (
            ("deeds by step", self.deeds, "plan_id, copy_id, step_id"),
            ("persons by request", self.persons, "request_id, subject"),
            ("persons by subject", self.persons, "subject"),
            ("lists by deed", self.lists, "deed"),
            ("answers by person", self.answers, "person"),
            ("answers by list", self.answers, "list"),
        ):
            name = self._named(f"index of {words}")  # no table of any estate begins like this
            yield f"CREATE INDEX IF NOT EXISTS {name} ON {table} ({keys})"

    def _add_columns(self, connection: sqlite3.Connection) -> None:
        """Those that a log lacks which an earlier version began."""
        stands = {row[1] for row in connection.execute(f"PRAGMA table_info({self.deeds})")}
        missing = [name for name in OF_DEED if name not in stands]
        if missing:
            connection.execute(f"DROP VIEW IF EXISTS {self.view}")
        for name in missing:
            connection.execute(f"ALTER TABLE {self.deeds} ADD COLUMN {quoted(name)} {_sql_type(name)}")

    def _shown(self) -> str:
        deed = ", ".join(f"d.{quoted(name)} AS {quoted(name)}" for name in OF_DEED)
        return (
            f"CREATE VIEW IF NOT EXISTS {self.view} AS "  # noqa: S608 (quoted names)
            f"SELECT CAST(a.seq + l.place AS INTEGER) AS seq, p.request_id AS request_id, p.subject AS subject, {deed} "
            f"FROM {self.answers} AS a JOIN {self.persons} AS p ON p.person = a.person "
            f"JOIN {self.lists} AS l ON l.list = a.list JOIN {self.deeds} AS d ON d.deed = l.deed"
        )

    # -- guards --------------------------------------------------------------------------------------------------

    def guards(self) -> Iterator[str]:
        """Triggers of the tables that hold the log."""
        for word, table, refused in self._added_only():
            yield from self._guards_of(word, table, refused)

    def without_guards(self) -> Iterator[str]:
        """For the log's own retention, in the transaction in which `guards` makes them again."""
        for word, _, _ in self._added_only():
            for act in ("UPDATE", "DELETE", "REPLACE"):
                yield f"DROP TRIGGER {self._named(f'no {word} {act}')}"

    def _added_only(self) -> Iterator[tuple[str, str, str]]:
        """Each table, and when an INSERT would be more than that. INSERT OR REPLACE would remove a row without asking
        the trigger for DELETE; a list that is in use would get longer; numbers would be given twice; a row would name
        what is not there."""
        yield "deeds", self.deeds, f"SELECT 1 FROM {self.deeds} WHERE deed = NEW.deed"  # noqa: S608 (quoted names)
        yield "persons", self.persons, f"SELECT 1 FROM {self.persons} WHERE person = NEW.person"  # noqa: S608
        used = f"SELECT 1 FROM {self.answers} WHERE list = NEW.list"  # noqa: S608
        stands = f"SELECT 1 FROM {self.lists} WHERE list = NEW.list AND place = NEW.place"  # noqa: S608
        yield "lists", self.lists, f"{used} UNION ALL {stands} UNION ALL {_missing(self.deeds, 'deed')}"
        given = f"SELECT 1 WHERE NEW.seq <= ({self.last_number})"
        named = f"{_missing(self.persons, 'person')} UNION ALL {_missing(self.lists, 'list')}"
        yield "answers", self.answers, f"{given} UNION ALL {named}"

    @property
    def last_number(self) -> str:
        """A query of the newest row's number."""
        longest = f"SELECT coalesce(max(place), 0) FROM {self.lists} AS l WHERE l.list = a.list"  # noqa: S608 (quoted names)
        return f"SELECT a.seq + ({longest}) FROM {self.answers} AS a ORDER BY a.seq DESC LIMIT 1"  # noqa: S608

    def _guards_of_prunings(self) -> Iterator[str]:
        stands = f"SELECT 1 FROM {self.prunings} WHERE last_seq = NEW.last_seq"  # noqa: S608 (quoted names)
        yield from self._guards_of("pruning", self.prunings, stands)
        linked = f"SELECT 1 FROM {self.links} WHERE link = NEW.link"  # noqa: S608
        yield from self._guards_of("link", self.links, linked)

    def _guards_of_view(self) -> Iterator[str]:
        for act in ("INSERT", "UPDATE", "DELETE"):
            name = self._named(f"no {act}")
            yield f"CREATE TRIGGER IF NOT EXISTS {name} INSTEAD OF {act} ON {self.view} {_REFUSED}"

    def _guards_of(self, word: str, table: str, refused: str) -> Iterator[str]:
        for act in ("UPDATE", "DELETE"):
            name = self._named(f"no {word} {act}")
            yield f"CREATE TRIGGER IF NOT EXISTS {name} BEFORE {act} ON {table} {_REFUSED}"
        name = self._named(f"no {word} REPLACE")
        yield f"CREATE TRIGGER IF NOT EXISTS {name} BEFORE INSERT ON {table} WHEN EXISTS ({refused}) {_REFUSED}"

    # -- a log of an earlier version -----------------------------------------------------------------------------

    def _carry_over(self, connection: sqlite3.Connection) -> None:
        """Each row with its number, the same in every field; then the old table goes, with its index and triggers."""
        stands = {row[1] for row in connection.execute(f"PRAGMA table_info({self.view})")}
        names = ", ".join(quoted(name) if name in stands else "NULL" for name in COLUMNS)
        query = f"SELECT seq, {names} FROM {self.view} ORDER BY seq"  # noqa: S608 (quoted names)
        adding = Adding(connection, self)
        whose: Person | None = None
        first, deeds = 0, list[int]()
        for number, request, subject, *cells in connection.execute(query):
            if whose != (request, subject) or number != first + len(deeds):
                if whose is not None:
                    adding.answer(first, adding.person(whose), tuple(deeds))
                whose, first, deeds = Person(request, subject), number, []
            deeds.append(adding.deed(tuple(cells)))
        if whose is not None:
            adding.answer(first, adding.person(whose), tuple(deeds))
        connection.execute(f"DROP TABLE {self.view}")


@dataclass
class Adding:
    """Adds rows to the tables in one transaction, each deed, list and person once."""

    connection: sqlite3.Connection
    tables: Tables
    _deeds: dict[Cells, int] = field(default_factory=dict)
    _lists: dict[tuple[int, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        marks = ", ".join("?" for _ in OF_DEED)
        names = ", ".join(map(quoted, OF_DEED))
        tables = self.tables
        self._add_deed = f"INSERT INTO {tables.deeds} ({names}) VALUES ({marks})"  # noqa: S608 (quoted names)
        same = " AND ".join(f"{quoted(name)} IS ?" for name in OF_DEED)
        self._find_deed = f"SELECT min(deed) FROM {tables.deeds} WHERE {same}"  # noqa: S608
        self._add_place = f"INSERT INTO {tables.lists} VALUES (?, ?, ?)"  # noqa: S608
        self._find_person = f"SELECT person FROM {tables.persons} WHERE request_id = ? AND subject = ?"  # noqa: S608
        self._add_person = f"INSERT INTO {tables.persons} (request_id, subject) VALUES (?, ?)"  # noqa: S608
        self._add_answer = f"INSERT INTO {tables.answers} VALUES (?, ?, ?)"  # noqa: S608
        last = f"SELECT coalesce(max(list), 0) FROM {tables.lists}"  # noqa: S608
        (self._last_list,) = self.connection.execute(last).fetchone()

    def deed(self, cells: Cells) -> int:
        """The key of a deed, which is added where it does not stand yet, the same in every field."""
        if cells not in self._deeds:
            if len(self._deeds) >= _DEEDS_KEPT:
                self._deeds.clear()
            (found,) = self.connection.execute(self._find_deed, cells).fetchone()
            self._deeds[cells] = found or _key(self.connection.execute(self._add_deed, cells))
        return self._deeds[cells]

    def list_of(self, deeds: tuple[int, ...]) -> int:
        """The key of a list of these deeds."""
        if deeds not in self._lists:
            if len(self._lists) >= _LISTS_KEPT:
                self._lists.clear()
            self._last_list += 1
            rows = ((self._last_list, place, deed) for place, deed in enumerate(deeds))
            self.connection.executemany(self._add_place, rows)
            self._lists[deeds] = self._last_list
        return self._lists[deeds]

    def person(self, whose: Person) -> int:
        """The key of a person, who is added if need be."""
        found = self.connection.execute(self._find_person, whose).fetchone()
        return int(found[0]) if found else _key(self.connection.execute(self._add_person, whose))

    def answer(self, number: int, person: int, deeds: tuple[int, ...]) -> None:
        """Rows with numbers from this one on."""
        self.connection.execute(self._add_answer, (number, person, self.list_of(deeds)))


def _key(cursor: sqlite3.Cursor) -> int:
    """Of the row that was just inserted."""
    if cursor.lastrowid is None:
        raise sqlite3.DatabaseError("a row was not added")
    return cursor.lastrowid


def _missing(table: str, key: str) -> str:
    """A query that has a row if a table lacks what a new row names."""
    return f"SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM {table} WHERE {key} = NEW.{key})"  # noqa: S608 (quoted names)


def _sql_type(name: str) -> str:
    return "INTEGER" if name in NUMBERS else "TEXT"
