"""The deletion log: who was erased where, when, how; one view an estate, to which rows are only ever added.

SQLite's triggers refuse changes and removals. A step's later state is a new row; the last one counts. Beside it the
rows can be kept as a Delta or Iceberg table (`proof.log_table`), which is filled from here. The log's own retention
cuts it off at its beginning, and says so in a table (`prune`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

from pii_tracer.model.canonical_json import canonical, iso, parse_time
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.deletions.entries import (
    ALL,
    COLUMNS,
    OF_DEED,
    Deed,
    Entry,
    EntryState,
    Group,
    Pruning,
    Row,
    Selection,
    deed_of,
    entry_of,
)
from pii_tracer.proof.deletions.log_appending import Appending
from pii_tracer.proof.deletions.log_chain import LogChain, has_rows
from pii_tracer.proof.deletions.log_pruning import first_to_stay, remove, still_held
from pii_tracer.proof.deletions.log_reading import Reading
from pii_tracer.proof.deletions.log_schema import Tables, quoted
from pii_tracer.proof.evidence_leaves import lines_digest

FILE = "deletion_log.sqlite"
"""In the state folder."""
_PERSONS_AT_ONCE = 1_000


def log_in(state: Path, estate: str) -> DeletionLog | None:
    """The log in a state folder; None where the estate never had one there.

    Raises:
        ProofError: the log is missing or lacks rows at its end.
    """
    path = state / FILE
    return DeletionLog(path, estate) if path.exists() or has_rows(path, estate) else None


def check_log(path: Path, estate: str, head: str | None) -> None:
    """Compare every row of a log with its chain, and write nothing: whoever checks may not be allowed to. head: one
    that the log had once. Rows that an earlier version wrote have no chain before this version adds others.

    Raises:
        ProofError: as `DeletionLog.check`, or the log is missing or lacks rows at its end.
    """
    if not path.exists():
        raise _missing(path)
    with _connected(path, "ro") as connection:
        connection.execute("BEGIN")
        tables = Tables(estate)
        chained = tables.has_links(connection)
        if not chained and (head or has_rows(path, estate)):
            raise _other(path)
        if chained:
            chain = LogChain(path, estate, tables, connection)
            chain.check_end()
            chain.check()
            if head is not None and not chain.holds(head):
                raise _other(path)


@contextmanager
def _connected(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    where = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        with closing(sqlite3.connect(where, uri=True, isolation_level=None, timeout=120)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            yield connection
    except sqlite3.DatabaseError as error:
        raise ProofError(
            f"the deletion log cannot be used: {error}",
            where=str(path),
            todo="correct the permissions of the file, or restore it from a backup",
        ) from None


def _missing(path: Path) -> ProofError:
    return ProofError("the deletion log is missing", where=str(path), todo="restore the log from its newest copy")


def _other(path: Path) -> ProofError:
    return ProofError(
        "the deletion log was changed: it lacks rows that a run wrote",
        where=str(path),
        todo="restore the log and its end file from their newest copy",
    )


class DeletionLog:
    """The log of one estate in an SQLite file."""

    def __init__(self, path: Path, estate: str) -> None:
        """Open or create. Raises `ProofError` when the file is no log, or is missing, or lacks rows at its end."""
        self.path = path
        self._estate = estate
        self._tables = Tables(estate)
        if not path.exists() and has_rows(path, estate):
            raise _missing(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._writing() as connection:
            made = not self._tables.has_links(connection)
            carried_over = self._tables.open(connection)
            self._chain(connection).begin(made)
        self._keep_end()
        if carried_over:
            with suppress(ProofError):  # the log is whole, and its next pruning tries again
                self._shrink()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing."""
        with _connected(self.path, "rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def _shrink(self) -> None:
        """Give back what the file no longer needs."""
        with _connected(self.path, "rwc") as connection:
            connection.execute("VACUUM")

    def _has_unused(self) -> bool:
        with _connected(self.path, "rwc") as connection:
            (pages,) = connection.execute("PRAGMA freelist_count").fetchone()
        return bool(pages)

    # -- the chain -----------------------------------------------------------------------------------------------

    def _chain(self, connection: sqlite3.Connection) -> LogChain:
        return LogChain(self.path, self._estate, self._tables, connection)

    def _keep_end(self) -> None:
        """After the transaction: a crash between both leaves an end that the log still holds."""
        with self._writing() as connection:
            self._chain(connection).keep()

    @property
    def head(self) -> str:
        """Stands for all rows."""
        with _connected(self.path, "rwc") as connection:
            return self._chain(connection).head

    def check(self, head: str | None = None) -> None:
        """Compare every row with the chain. head: one that the log had once.

        Raises:
            ProofError: a row was changed or removed, or the log never had this head.
        """
        with self._snapshot() as connection:
            chain = self._chain(connection)
            chain.check()
            if head is not None and not chain.holds(head):
                raise _other(self.path)

    # -- adding --------------------------------------------------------------------------------------------------

    def append(self, groups: Iterable[Group]) -> None:
        """Add rows, all or none. A row that is the same in every field as the last one of its person's request, plan,
        copy and step is not added; nor are rows from before the last pruning, which a run that is looked at again would
        bring back.

        The rows before are not read, so that a long log does not make each run slow: no link of theirs is changed.

        Raises:
            ProofError: rows at the end were removed or added by others. Nothing is added then.
        """
        with self._writing() as connection:
            chain = self._chain(connection)
            chain.check_end()
            appending = Appending(connection, self._tables)
            before = appending.last
            for group in groups:
                appending.add(group)
            chain.add(before)
        self._keep_end()

    def count(self) -> int:
        """How many rows there are, without reading them."""
        sizes = f"SELECT list, count(*) AS size FROM {self._tables.lists} GROUP BY list"  # noqa: S608 (quoted names)
        query = f"SELECT coalesce(sum(size), 0) FROM {self._tables.answers} JOIN ({sizes}) USING (list)"  # noqa: S608
        with _connected(self.path, "rwc") as connection:
            (number,) = connection.execute(query).fetchone()
        return int(number)

    # -- reading -------------------------------------------------------------------------------------------------

    def entries(self, selection: Selection = ALL) -> tuple[Entry, ...]:
        """Rows in the order in which they were added."""
        return tuple(entry for _, entry in self.numbered(selection))

    def numbered(self, selection: Selection = ALL) -> Iterator[tuple[int, Entry]]:
        """Rows with their numbers, which count from 1 and go on over a pruning."""
        return ((number, entry_of(cells)) for number, cells in self.rows(selection))

    def rows(self, selection: Selection = ALL, after: int = 0) -> Iterator[Row]:
        """As they are stored, some in memory at a time, as the log is now. after: only those with greater numbers.

        Raises:
            ProofError: the log was pruned meanwhile.
        """
        yield from self._read(Reading(self._tables, selection, after))

    def _read(self, reading: Reading) -> Iterator[Row]:
        pruned: int | None = None
        while True:
            with self._snapshot() as connection:
                stands = self._pruned(connection)
                if pruned not in (None, stands):
                    raise ProofError(
                        "the deletion log was pruned during the read",
                        where=str(self.path),
                        todo="run the command again",
                    )
                pruned = stands
                page = reading.page(connection)
            if page is None:
                return
            yield from page

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """Everything that is read here is of one moment."""
        with _connected(self.path, "rwc") as connection:
            connection.execute("BEGIN")
            yield connection

    def newest_of(self, subjects: Sequence[str]) -> Mapping[str, tuple[Deed, ...]]:
        """What stands for persons (keyed references) now: of each of their requests, plans, copies and steps the last
        row. Who is not in the log is not in the answer."""
        found: dict[str, list[Deed]] = {}
        whose = list(dict.fromkeys(subjects))
        for first in range(0, len(whose), _PERSONS_AT_ONCE):
            some = whose[first : first + _PERSONS_AT_ONCE]
            for _, (_, subject, *cells) in self._read(Reading(self._tables, Selection(newest=True), subjects=some)):
                found.setdefault(str(subject), []).append(deed_of(tuple(cells)))
        return {subject: tuple(deeds) for subject, deeds in found.items()}

    def deeds(self, plan: str) -> tuple[Deed, ...]:
        """What was done for somebody by a plan, each deed once."""
        names = ", ".join(map(quoted, OF_DEED))
        query = f"SELECT {names} FROM {self._tables.deeds} WHERE plan_id = ? ORDER BY deed"  # noqa: S608 (quoted names)
        with _connected(self.path, "rwc") as connection:
            return tuple(map(deed_of, connection.execute(query, (plan,))))

    def has_one_person(self, plan: str) -> bool:
        """Whether a plan did what it did for one person. Not where a pruning may have removed others of the plan."""
        t = self._tables
        query = (
            f"SELECT count(DISTINCT p.subject), min(a.seq) FROM {t.answers} AS a "  # noqa: S608 (quoted names)
            f"JOIN {t.persons} AS p ON p.person = a.person WHERE a.list IN (SELECT l.list FROM {t.lists} AS l "
            f"JOIN {t.deeds} AS d ON d.deed = l.deed WHERE d.plan_id = ?)"
        )
        with self._snapshot() as connection:
            persons, first = connection.execute(query, (plan,)).fetchone()
            pruned = self._pruned(connection)
        return bool(persons == 1 and not (pruned and first == pruned + 1))

    def erased_somebody(self) -> bool:
        """Whether it says of anybody that they were erased from anywhere."""
        query = f"SELECT EXISTS (SELECT 1 FROM {self._tables.deeds} WHERE state = ?)"  # noqa: S608 (a quoted name)
        with _connected(self.path, "rwc") as connection:
            (found,) = connection.execute(query, (EntryState.ERASED,)).fetchone()
        return bool(found)

    def last_erased(self, dataset: str) -> Mapping[str, datetime]:
        """Each person (keyed reference) who was erased from a dataset, and when the last step that says so ran."""
        t = self._tables
        of_lists = (
            f"SELECT l.list AS list, d.run_at AS run_at, max(l.place) AS place FROM {t.lists} AS l "  # noqa: S608
            f"JOIN {t.deeds} AS d ON d.deed = l.deed WHERE d.dataset = ? AND d.state = ? GROUP BY l.list"
        )
        query = (
            f"SELECT p.subject, o.run_at, max(a.seq + o.place) FROM {t.answers} AS a "  # noqa: S608 (quoted names)
            f"JOIN {t.persons} AS p ON p.person = a.person JOIN ({of_lists}) AS o ON o.list = a.list GROUP BY p.subject"
        )
        with _connected(self.path, "rwc") as connection:
            rows = connection.execute(query, (dataset, EntryState.ERASED))
            return {subject: parse_time(at) for subject, at, _ in rows}

    def last_ran(self, until: datetime) -> Iterator[tuple[str, str, datetime]]:
        """Each request and plan, and when its last step before a time ran."""
        t = self._tables
        of_lists = (
            f"SELECT l.list AS list, d.plan_id AS plan_id, max(d.run_at) AS run_at FROM {t.lists} AS l "  # noqa: S608
            f"JOIN {t.deeds} AS d ON d.deed = l.deed WHERE d.run_at < ? GROUP BY l.list, d.plan_id"
        )
        query = (
            f"SELECT p.request_id, o.plan_id, max(o.run_at) FROM {t.answers} AS a "  # noqa: S608 (quoted names)
            f"JOIN {t.persons} AS p ON p.person = a.person JOIN ({of_lists}) AS o ON o.list = a.list "
            "GROUP BY p.request_id, o.plan_id"
        )
        with _connected(self.path, "rwc") as connection:
            rows = connection.execute(query, (iso(until),)).fetchall()
        return ((request, plan, parse_time(at)) for request, plan, at in rows)

    def still_held(self) -> frozenset[str]:
        """Requests of persons of whom a run left something that a hold kept, and that no later plan erased."""
        with _connected(self.path, "rwc") as connection:
            return frozenset(still_held(connection, self._tables))

    @property
    def prunings(self) -> tuple[Pruning, ...]:
        """What the log's retention has removed, the oldest first."""
        query = f"SELECT at, before, last_seq, rows, digest FROM {self._tables.prunings} ORDER BY last_seq"  # noqa: S608
        with _connected(self.path, "rwc") as connection:
            rows = connection.execute(query).fetchall()
        return tuple(
            Pruning(at=parse_time(at), before=parse_time(before), last_seq=last, rows=number, digest=digest)
            for at, before, last, number, digest in rows
        )

    def _pruned(self, connection: sqlite3.Connection) -> int:
        query = f"SELECT coalesce(max(last_seq), 0) FROM {self._tables.prunings}"  # noqa: S608 (a quoted name)
        (last,) = connection.execute(query).fetchone()
        return int(last)

    # -- retention -----------------------------------------------------------------------------------------------

    def prune(self, before: datetime, at: datetime, kept: Collection[str] = ()) -> Pruning | None:
        """Remove the oldest rows up to the first that is of `before` or later, or of a request that is still open, or
        one of those that are kept (ids of requests).

        The bytes go too, also those that an earlier pruning could not give back. Gives what was removed, or None where
        nothing was to be removed.
        """
        done = self._cut_off(before, at, kept)
        self._keep_end()
        if done or self._has_unused():
            self._shrink()
        return done

    def _cut_off(self, before: datetime, at: datetime, kept: Collection[str]) -> Pruning | None:
        with self._writing() as connection:
            chain = self._chain(connection)
            chain.check()
            first = first_to_stay(connection, self._tables, iso(before), kept)
            told = _Lines(Reading(self._tables, end=None if first is None else first - 1), connection)
            digest = lines_digest(told)
            if not told.rows:
                return None
            done = Pruning(at=at, before=before, last_seq=told.last, rows=told.rows, digest=digest)
            remove(connection, self._tables, told.last)
            connection.execute(
                f"INSERT INTO {self._tables.prunings} VALUES (?, ?, ?, ?, ?)",  # noqa: S608 (a quoted name)
                (iso(at), iso(before), done.last_seq, done.rows, done.digest),
            )
            chain.add_pruning()
            return done


class _Lines:
    """The canonical lines of rows, which are counted on the way."""

    def __init__(self, reading: Reading, connection: sqlite3.Connection) -> None:
        self._reading, self._connection = reading, connection
        self.rows = self.last = 0

    def __iter__(self) -> Iterator[bytes]:
        while (page := self._reading.page(self._connection)) is not None:
            for number, cells in page:
                self.rows, self.last = self.rows + 1, number
                yield canonical({"seq": number, **dict(zip(COLUMNS, cells, strict=True))})
