"""The chain of the deletion log: a change of a row that was logged, and a row that was removed, are noticed.

Whenever rows are added, a link is added with them: it names their numbers, has a digest over them, and continues the
digest of the link before it. A pruning adds a link, too: it names the rows that are left of those that it cut. Links
are never removed. The last link's digest, the head, stands for the whole log. It is kept beside the log (`.end`) and in
the result of each run, so that a tail that was cut off is noticed as well. An end is kept
before the first link is there, too: an end file that is missing was removed.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.deletions.entries import OF_DEED
from pii_tracer.proof.deletions.log_schema import Tables, quoted
from pii_tracer.proof.evidence_leaves import lines_digest

GENESIS = "sha256:" + "0" * 64
_RESTORE = (
    "do not rely on this log, and prune nothing: restore the log and its end file from their newest copy, and compare "
    "the rows with the evidence of the runs"
)


class _Link(NamedTuple):
    """Rows that are there since: from `first` to `last`. pruning: digest over the pruning that the link tells of."""

    number: int
    first: int
    last: int
    rows: str
    pruning: str | None
    digest: str

    def after(self, prev: str) -> str:
        """What its digest has to be."""
        told = {"first": self.first, "last": self.last, "prev": prev, "pruning": self.pruning, "rows": self.rows}
        return "sha256:" + hashlib.sha256(canonical(told)).hexdigest()


def end_file(log: Path) -> Path:
    """Where the heads of a log are kept, by estate."""
    return log.with_name(log.name + ".end")


def has_rows(log: Path, estate: str) -> bool:
    """Whether the end that is kept beside a log says that the estate has rows in it.

    Raises:
        ProofError: the file is there and cannot be read.
    """
    return _heads(log).get(_name(estate), GENESIS) != GENESIS


def _heads(log: Path) -> dict[str, str]:
    path = end_file(log)
    try:
        raw = json.loads(path.read_bytes())
        if not isinstance(raw, dict) or not all(isinstance(head, str) for head in raw.values()):
            raise ValueError
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        raise ProofError(
            "the file that says where the deletion log ends cannot be read", where=str(path), todo=_RESTORE
        ) from None
    return raw


def _name(estate: str) -> str:
    return "".join(sign.lower() if sign.isascii() else sign for sign in estate)  # as SQLite compares names of tables


@dataclass
class LogChain:
    """The links of one estate, in a connection that the caller has opened."""

    log: Path
    estate: str
    tables: Tables
    connection: sqlite3.Connection

    def begin(self, made: bool) -> None:
        """To be called when the log is opened. made: its table of links was not there before.

        Raises:
            ProofError: as `check_end`.
        """
        self._check_kept()
        kept = _heads(self.log).get(_name(self.estate))
        if kept is None:
            self._keep(GENESIS)
        if made and kept in (None, GENESIS):  # the log of an earlier version, if it has rows
            if self._prunings():
                self.add_pruning()
            else:
                self.add(0)
        self.check_end()

    def check_end(self) -> None:
        """What is known without reading the rows.

        Raises:
            ProofError: the chain was removed, it ends before the head that was kept, or the rows end elsewhere.
        """
        self._check_kept()
        query = f"SELECT coalesce(max(last), 0) FROM {self.tables.links}"  # noqa: S608 (a quoted name)
        (last,) = self.connection.execute(query).fetchone()
        pruned = max((until for until, _ in self._prunings()), default=0)
        if max(pruned, self._last_number()) != last:
            raise self._broken("its last row is not the last one that its chain names")

    def _check_kept(self) -> None:
        kept = _heads(self.log).get(_name(self.estate))
        if kept is None and self.head != GENESIS:
            raise self._broken("the file that says where the log ends is missing, or it does not name this estate")
        if kept is not None and not self.holds(kept):
            raise self._broken("rows at its end are missing")

    def keep(self) -> None:
        """Keep the head beside the log, in a transaction in which nobody else can write. Raises `ProofError`."""
        self._keep(self.head)

    def _keep(self, head: str) -> None:
        heads = _heads(self.log)
        if head == heads.get(_name(self.estate)):
            return
        text = json.dumps({**heads, _name(self.estate): head}, sort_keys=True) + "\n"
        try:
            write_atomic(end_file(self.log), text.encode(), mode=0o600)
        except OSError as error:
            raise ProofError(
                f"the end of the deletion log cannot be written: {error.strerror or type(error).__name__}",
                where=str(end_file(self.log)),
                todo="check the disk and the permissions, then run the command again",
            ) from None

    @property
    def head(self) -> str:
        """Digest of the last link."""
        query = f"SELECT digest FROM {self.tables.links} ORDER BY link DESC LIMIT 1"  # noqa: S608 (a quoted name)
        found = self.connection.execute(query).fetchone()
        return str(found[0]) if found else GENESIS

    def holds(self, head: str) -> bool:
        """Whether some link has this digest: whether the log that had this head is this one."""
        query = f"SELECT EXISTS (SELECT 1 FROM {self.tables.links} WHERE digest = ?)"  # noqa: S608 (a quoted name)
        (found,) = self.connection.execute(query, (head,)).fetchone()
        return head == GENESIS or bool(found)

    def add(self, before: int) -> None:
        """Link the rows with greater numbers, if there are any."""
        last = self._last_number()
        if last > before:
            self._add(before + 1, last, None)

    def add_pruning(self) -> None:
        """Link the newest pruning, and what it left of the rows that it cut."""
        until, digest = self._prunings()[-1]
        query = f"SELECT max(last) FROM {self.tables.links} WHERE first <= ?"  # noqa: S608 (a quoted name)
        (last,) = self.connection.execute(query, (until,)).fetchone()
        self._add(until + 1, max(until, self._last_number() if last is None else last), digest)

    def _add(self, first: int, last: int, pruning: str | None) -> None:
        link = _Link(0, first, last, self._digest(first, last), pruning, "")
        self.connection.execute(
            f"INSERT INTO {self.tables.links} (first, last, rows, pruning, digest) VALUES (?, ?, ?, ?, ?)",  # noqa: S608
            (first, last, link.rows, pruning, link.after(self.head)),
        )

    def check(self) -> None:
        """Compare every row with the chain.

        Raises:
            ProofError: says which rows differ.
        """
        links = self._links()
        prev = GENESIS
        for link in links:
            if link.digest != link.after(prev):
                raise self._broken(f"link {link.number} of its chain does not follow from the one before it")
            prev = link.digest
        pruned = self._check_prunings(links)
        expected = pruned + 1
        for link in _standing(links):
            if link.first != expected:
                raise self._broken(f"its chain does not name row {expected:,}")
            if link.rows != self._digest(link.first, link.last):
                raise self._broken(f"rows {link.first:,} to {link.last:,} are not those that were written")
            expected = link.last + 1
        (first,) = self.connection.execute(f"SELECT min(seq) FROM {self.tables.answers}").fetchone()  # noqa: S608
        if max(pruned, self._last_number()) != expected - 1 or (first is not None and first <= pruned):
            raise self._broken("it has rows that its chain does not name")

    def _check_prunings(self, links: Sequence[_Link]) -> int:
        """The last number that was removed. Only those of an earlier version stand without a link."""
        told = [(link.first - 1, link.pruning) for link in links if link.pruning is not None]
        stand = self._prunings()
        earlier = len(stand) - len(told) if links and links[0].pruning is not None else 0
        if told != stand[earlier:]:
            raise self._broken("its prunings are not those that were written")
        return told[-1][0] if told else 0

    def _prunings(self) -> list[tuple[int, str]]:
        """The last number that each removed, and a digest over all that is told of it."""
        query = f"SELECT last_seq, at, before, rows, digest FROM {self.tables.prunings} ORDER BY last_seq"  # noqa: S608
        return [(last, lines_digest([canonical([last, *told])])) for last, *told in self.connection.execute(query)]

    def _links(self) -> tuple[_Link, ...]:
        query = f"SELECT link, first, last, rows, pruning, digest FROM {self.tables.links} ORDER BY link"  # noqa: S608
        return tuple(_Link(*row) for row in self.connection.execute(query))

    def _last_number(self) -> int:
        last = self.connection.execute(self.tables.last_number).fetchone()
        return int(last[0]) if last else 0

    def _digest(self, first: int, last: int) -> str:
        return lines_digest(self._lines(first, last))

    def _lines(self, first: int, last: int) -> Iterator[bytes]:
        """A line for each answer: many of them share a list, which is digested once."""
        lists: dict[int, str] = {}
        query = (
            f"SELECT a.seq, p.request_id, p.subject, a.list FROM {self.tables.answers} AS a "  # noqa: S608 (quoted names)
            f"LEFT JOIN {self.tables.persons} AS p ON p.person = a.person WHERE a.seq BETWEEN ? AND ? ORDER BY a.seq"
        )
        for seq, request, subject, number in self.connection.execute(query, (first, last)):
            if number not in lists:
                lists[number] = lines_digest(self._lines_of(number))
            yield canonical([seq, request, subject, lists[number]])

    def _lines_of(self, number: int) -> Iterator[bytes]:
        """A line for each deed of a list. A column that a later version adds is empty, and changes none."""
        names = ", ".join(f"d.{quoted(name)}" for name in OF_DEED)
        query = (
            f"SELECT l.place, {names} FROM {self.tables.lists} AS l "  # noqa: S608 (quoted names)
            f"LEFT JOIN {self.tables.deeds} AS d ON d.deed = l.deed WHERE l.list = ? ORDER BY l.place"
        )
        for place, *cells in self.connection.execute(query, (number,)):
            told = {name: cell for name, cell in zip(OF_DEED, cells, strict=True) if cell is not None}
            yield canonical([place, told])

    def _broken(self, what: str) -> ProofError:
        return ProofError(f"the deletion log was changed: {what}", where=str(self.log), todo=_RESTORE)


def _standing(links: Sequence[_Link]) -> Iterator[_Link]:
    """The links whose rows have to be there, in the order of the rows. What a pruning names replaces what it cut."""
    cut = next((link for link in reversed(links) if link.pruning is not None), None)
    if cut is not None:
        yield cut
    yield from (link for link in links if link.pruning is None and (cut is None or link.first > cut.last))
