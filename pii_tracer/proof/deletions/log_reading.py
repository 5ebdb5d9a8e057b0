"""Rows of the deletion log, some at a time: persons and their lists are asked of SQLite, their rows are made here.

So a log of millions of rows, most of which say the same of another person, is never in memory as a whole.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from pii_tracer.model.canonical_json import iso
from pii_tracer.proof.deletions.entries import ALL, OF_DEED, STEP, Cells, Row, Selection
from pii_tracer.proof.deletions.log_schema import Tables, quoted

PAGE = 1_000
"""Answers of one transaction. Nobody else can write while they are read."""
_WAYS_KEPT = 10_000


class Answer(NamedTuple):
    """A row of `answers`, with its person."""

    seq: int
    request_id: str
    subject: str
    list: int


class Listed(NamedTuple):
    """One deed of a list. meets: the selection, as far as the deed decides it."""

    place: int
    cells: Cells
    meets: bool


_Lists = Mapping[int, tuple[Listed, ...]]


@dataclass
class Reading:
    """The rows that a selection chooses, of a log that stays as it was when it was first asked.

    after: only rows with greater numbers. subjects: if any, only those of these persons. end: number of the last row;
    None: of the last that there is.
    """

    tables: Tables
    selection: Selection = ALL
    after: int = 0
    subjects: Sequence[str] = ()
    end: int | None = None
    _from: int | None = None
    _lists: dict[int, tuple[Listed, ...]] = field(default_factory=dict)
    _newest: _Newest = field(default_factory=lambda: _Newest())

    def page(self, connection: sqlite3.Connection) -> Iterator[Row] | None:
        """The next rows, or none of these answers is chosen; None when there are no more. They are made one by one, and
        need no connection."""
        if self.end is None:
            last = connection.execute(self.tables.last_number).fetchone()
            self.end = last[0] if last else 0
        if self._from is None:
            begin = f"SELECT max(seq) FROM {self.tables.answers} WHERE seq <= ?"  # noqa: S608 (a quoted name)
            (found,) = connection.execute(begin, (self.after + 1,)).fetchone()
            self._from = found or 0
        answers = self._answers(connection)
        if not answers:
            return None
        wanted = {answer.list for answer in answers}
        begun = self._begun(connection, answers) if self.selection.newest else {}
        wanted.update(answer.list for theirs in begun.values() for answer in theirs)
        self._load(connection, wanted)
        for request, theirs in begun.items():
            self._newest.add(request, theirs, self._lists)
        self._from = answers[-1].seq + 1
        return self._rows([(answer, self._places(answer)) for answer in answers], self._lists, self.end)

    def _answers(self, connection: sqlite3.Connection) -> list[Answer]:
        t, s = self.tables, self.selection
        of_plan = f"SELECT l.list FROM {t.lists} AS l JOIN {t.deeds} AS d ON d.deed = l.deed WHERE d.plan_id = ?"  # noqa: S608
        asked = (
            ("p.request_id = ?", s.request),
            ("p.subject = ?", s.subject),
            ("p.subject IN (SELECT value FROM json_each(?))", json.dumps(self.subjects) if self.subjects else None),
            (f"+a.list IN ({of_plan})", s.plan),
        )
        given = [(text, value) for text, value in asked if value is not None]
        conditions = " AND ".join(("a.seq >= ?", "a.seq <= ?", *(text for text, _ in given)))
        tables = [f"{t.answers} AS a", f"{t.persons} AS p"]
        if s.request is not None or s.subject is not None or self.subjects:
            tables.reverse()
        query = (
            f"SELECT a.seq, p.request_id, p.subject, a.list FROM {' CROSS JOIN '.join(tables)} "  # noqa: S608
            f"WHERE a.person = p.person AND {conditions} ORDER BY a.seq LIMIT ?"
        )
        values = (self._from, self.end, *(value for _, value in given), PAGE)
        return [Answer(*row) for row in connection.execute(query, values)]

    def _places(self, answer: Answer) -> Collection[int] | None:
        """Of an answer the places that are chosen; None: all."""
        return self._newest.take(answer) if self.selection.newest else None

    def _rows(self, answers: Iterable[tuple[Answer, Collection[int] | None]], lists: _Lists, end: int) -> Iterator[Row]:
        for answer, places in answers:
            for one in lists[answer.list]:
                number = answer.seq + one.place
                if one.meets and self.after < number <= end and (places is None or one.place in places):
                    yield number, (answer.request_id, answer.subject, *one.cells)

    def _load(self, connection: sqlite3.Connection, wanted: set[int]) -> None:
        """The lists of a page. Those of earlier pages go if they are not in this one."""
        self._lists = {number: self._lists[number] for number in wanted if number in self._lists}
        names = ", ".join(f"d.{quoted(name)}" for name in OF_DEED)
        meets, values = _of_deed(self.selection)
        query = (
            f"SELECT l.list, l.place, {meets}, {names} FROM {self.tables.lists} AS l "  # noqa: S608 (quoted names)
            f"JOIN {self.tables.deeds} AS d ON d.deed = l.deed "
            "WHERE l.list IN (SELECT value FROM json_each(?)) ORDER BY l.list, l.place"
        )
        missing = wanted - self._lists.keys()
        self._lists |= dict.fromkeys(missing, ())
        found = connection.execute(query, (*values, json.dumps(sorted(missing))))
        for number, rows in groupby(found, itemgetter(0)):
            self._lists[number] = tuple(Listed(place, tuple(cells), bool(met)) for _, place, met, *cells in rows)

    def _begun(self, connection: sqlite3.Connection, answers: Iterable[Answer]) -> dict[str, list[Answer]]:
        """Everything that stands for the requests that begin with this page, for one subject or several."""
        query = (
            f"SELECT a.seq, p.request_id, p.subject, a.list FROM {self.tables.persons} AS p "  # noqa: S608
            f"CROSS JOIN {self.tables.answers} AS a WHERE a.person = p.person "
            "AND p.request_id IN (SELECT value FROM json_each(?)) AND a.seq <= ? ORDER BY p.request_id, a.seq"
        )
        requests = json.dumps(sorted({answer.request_id for answer in answers} - self._newest.last.keys()))
        rows = (Answer(*row) for row in connection.execute(query, (requests, self.end)))
        return {request: list(theirs) for request, theirs in groupby(rows, itemgetter(1))}


@dataclass
class _Newest:
    """Of requests that are being read the rows that no later one replaces. Each request is asked for once, and is
    forgotten with its last answer.

    last: request -> number of its last answer.
    """

    last: dict[str, int] = field(default_factory=dict)
    _places: dict[int, frozenset[int]] = field(default_factory=dict)
    _ways: dict[tuple[int, ...], tuple[frozenset[int], ...]] = field(default_factory=dict)

    def add(self, request: str, answers: Sequence[Answer], lists: _Lists) -> None:
        """Everything that stands for a request, in its order."""
        self.last[request] = answers[-1].seq
        chosen = self._chosen(tuple(answer.list for answer in answers), lists)
        self._places |= {answer.seq: places for answer, places in zip(answers, chosen, strict=True) if places}

    def take(self, answer: Answer) -> frozenset[int]:
        """The places of an answer's newest rows."""
        if self.last[answer.request_id] == answer.seq:
            del self.last[answer.request_id]
        return self._places.pop(answer.seq, frozenset())

    def _chosen(self, numbers: tuple[int, ...], lists: _Lists) -> tuple[frozenset[int], ...]:
        """Many requests have the same lists one after the other."""
        if numbers not in self._ways:
            if len(self._ways) >= _WAYS_KEPT:
                self._ways.clear()
            last = {
                tuple(one.cells[column] for column in STEP): (index, one.place)
                for index, number in enumerate(numbers)
                for one in lists[number]
            }
            places: list[set[int]] = [set() for _ in numbers]
            for index, place in last.values():
                places[index].add(place)
            self._ways[numbers] = tuple(map(frozenset, places))
        return self._ways[numbers]


def _of_deed(s: Selection) -> tuple[str, list[object]]:
    """The condition on a deed `d`, and its values; without any it is true."""
    asked: list[tuple[str, object]] = [
        ("d.plan_id = ?", s.plan),
        ("d.copy_id = ?", s.copy),
        ("d.dataset GLOB ?", s.dataset),
        ("d.action = ?", s.action),
        ("d.state = ?", s.state),
        ("d.run_at >= ?", iso(s.since) if s.since else None),
        ("d.run_at < ?", iso(s.until) if s.until else None),
    ]
    given = [(text, value) for text, value in asked if value is not None]
    return " AND ".join(text for text, _ in given) or "1", [value for _, value in given]
