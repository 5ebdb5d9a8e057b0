"""Which rows the deletion log lacks of what it is told, and their numbers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from pii_tracer.proof.deletions.entries import OF_DEED, STEP, Cell, Group, Person, cells_of
from pii_tracer.proof.deletions.log_schema import Adding, Tables

_RUN_AT = OF_DEED.index("run_at")


class Appending:
    """Adds what groups lack, in one transaction."""

    def __init__(self, connection: sqlite3.Connection, tables: Tables) -> None:
        self._connection = connection
        self._adding = Adding(connection, tables)
        pruned, self._until = connection.execute(
            f"SELECT coalesce(max(last_seq), 0), coalesce(max(before), '') FROM {tables.prunings}"  # noqa: S608
        ).fetchone()
        last = connection.execute(tables.last_number).fetchone()
        self.last = max(pruned, last[0] if last else 0)
        self._find = (
            f"SELECT p.person, a.list FROM {tables.persons} AS p "  # noqa: S608 (quoted names)
            f"LEFT JOIN {tables.answers} AS a ON a.person = p.person WHERE p.request_id = ? AND p.subject = ? "
            "ORDER BY a.seq"
        )
        self._of_list = (
            f"SELECT d.deed, d.plan_id, d.copy_id, d.step_id FROM {tables.lists} AS l "  # noqa: S608 (quoted names)
            f"JOIN {tables.deeds} AS d ON d.deed = l.deed WHERE l.list = ? ORDER BY l.place"
        )

    def add(self, group: Group) -> None:
        """Number what is new of the deeds, for each person of a group."""
        if not group.persons:
            return
        late = (cells for cells in map(cells_of, group.deeds) if str(cells[_RUN_AT]) >= self._until)
        wanted = tuple((self._adding.deed(cells), tuple(cells[column] for column in STEP)) for cells in late)
        missing: dict[tuple[int, ...], tuple[int, ...]] = {}
        for person in group.persons:
            found = self._connection.execute(self._find, person).fetchall()
            lists = tuple(number for _, number in found if number is not None)
            if lists not in missing:
                missing[lists] = self._beyond(lists, wanted)
            if missing[lists]:
                key = found[0][0] if found else self._adding.person(Person(*person))
                self._adding.answer(self.last + 1, key, missing[lists])
                self.last += len(missing[lists])

    def _beyond(self, lists: tuple[int, ...], wanted: Iterable[tuple[int, tuple[Cell, ...]]]) -> tuple[int, ...]:
        """The deeds that the last row of their plan, copy and step does not say already."""
        last: dict[tuple[Cell, ...], int] = {}
        for number in lists:
            last |= {tuple(step): deed for deed, *step in self._connection.execute(self._of_list, (number,))}
        beyond = []
        for deed, step in wanted:
            if last.get(step) != deed:
                beyond.append(deed)
                last[step] = deed
        return tuple(beyond)
