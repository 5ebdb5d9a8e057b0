"""Up to where the deletion log's own retention cuts it off, and what goes with that."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from pii_tracer.proof.deletions.entries import HELD, OPEN, EntryState
from pii_tracer.proof.deletions.log_schema import Adding, Tables

_SEARCH = ("", "")
"""Copy and step of a row about a run whose plan had nothing to erase: it searched everything."""


def first_to_stay(connection: sqlite3.Connection, tables: Tables, before: str, kept: Iterable[str]) -> int | None:
    """Number of the first row that ran then or later, or that is of a request that is still open or kept; None where
    there is none."""
    lists = _Lists(connection, tables)
    stay = {*kept, *_still_open(connection, tables, lists)}
    query = (
        f"SELECT a.seq, p.request_id, a.list FROM {tables.answers} AS a "  # noqa: S608 (quoted names)
        f"JOIN {tables.persons} AS p ON p.person = a.person ORDER BY a.seq"
    )
    for seq, request, number in connection.execute(query):
        if request in stay:
            return int(seq)
        late = next((place for place, one in enumerate(lists[number]) if one.run_at >= before), None)
        if late is not None:
            return int(seq) + late
    return None


class _Stands(NamedTuple):
    """What a deed decides about its row's stay."""

    plan: str
    step: tuple[str, str]
    state: str
    run_at: str


class _Lists(dict[int, tuple[_Stands, ...]]):
    """Lists by number; each is asked for once."""

    def __init__(self, connection: sqlite3.Connection, tables: Tables) -> None:
        super().__init__()
        self._connection = connection
        self._query = (
            f"SELECT d.plan_id, d.copy_id, d.step_id, d.state, d.run_at FROM {tables.lists} AS l "  # noqa: S608 (quoted names)
            f"JOIN {tables.deeds} AS d ON d.deed = l.deed WHERE l.list = ? ORDER BY l.place"
        )

    def __missing__(self, number: int) -> tuple[_Stands, ...]:
        rows = self._connection.execute(self._query, (number,))
        self[number] = tuple(_Stands(plan, (copy, step), state, at) for plan, copy, step, state, at in rows)
        return self[number]


def _still_open(connection: sqlite3.Connection, tables: Tables, lists: _Lists) -> Iterator[str]:
    """Requests of which the last row of some step says that it is not done."""
    query = (
        f"SELECT p.request_id, a.list FROM {tables.persons} AS p "  # noqa: S608 (quoted names)
        f"JOIN {tables.answers} AS a ON a.person = p.person ORDER BY p.request_id, a.seq"
    )
    known: dict[tuple[int, ...], bool] = {}
    for request, rows in groupby(connection.execute(query), itemgetter(0)):
        theirs = tuple(number for _, number in rows)
        if theirs not in known:
            known[theirs] = _is_open(one for number in theirs for one in lists[number])
        if known[theirs]:
            yield request


def _is_open(deeds: Iterable[_Stands]) -> bool:
    """Whether some step is not done. What a search of everything left open is the matter of the plan after it: of one
    whose first row is later, and not of an older one that is looked at again."""
    plans: dict[str, None] = {}
    last: dict[tuple[str, str], _Stands] = {}
    searched: dict[str, _Stands] = {}
    for one in deeds:
        plans.setdefault(one.plan)
        if one.step == _SEARCH:
            searched[one.plan] = one
        else:
            last[one.step] = one
    newest = searched.get(next(reversed(plans)))
    return any(one.state in OPEN for one in (*last.values(), *([newest] if newest else [])))


def still_held(connection: sqlite3.Connection, tables: Tables) -> Iterator[str]:
    """Requests of persons of whom a run left something that a hold kept, and that no later plan erased."""
    lists = _Lists(connection, tables)
    query = (
        f"SELECT p.subject, p.request_id, a.list FROM {tables.answers} AS a "  # noqa: S608 (quoted names)
        f"JOIN {tables.persons} AS p ON p.person = a.person ORDER BY p.subject, a.seq"
    )
    known: dict[tuple[int, ...], bool] = {}
    for _, rows in groupby(connection.execute(query), itemgetter(0)):
        requests, theirs = zip(*((request, number) for _, request, number in rows), strict=True)
        if theirs not in known:
            known[theirs] = _holds([one for number in theirs for one in lists[number]])
        if known[theirs]:
            yield from {*requests}


def _holds(deeds: Iterable[_Stands]) -> bool:
    """Whether something is held of a person, by what was last said of each step. A plan that masks a copy erases and
    keeps there. A search ends what was kept if it left nothing out: no gap that somebody answers for, or chose."""
    said: dict[tuple[str, tuple[str, str]], _Stands] = {}
    for one in deeds:
        said.pop((one.plan, one.step), None)
        said[one.plan, one.step] = one
    with_gaps = {plan for plan, step in said if step != _SEARCH}
    held: dict[str, str] = {}
    for one in said.values():
        copy = one.step[0]
        if one.state in HELD:
            held[copy] = one.plan
        elif one.state == EntryState.ERASED and one.step == _SEARCH:
            if one.plan not in with_gaps:
                held.clear()
        elif one.state == EntryState.ERASED and held.get(copy, one.plan) != one.plan:
            del held[copy]
    return bool(held)


def remove(connection: sqlite3.Connection, tables: Tables, last: int) -> None:
    """Remove the rows up to this number, and the deeds, lists and persons that no row names any more."""
    for statement in tables.without_guards():
        connection.execute(statement)
    cut = f"SELECT seq, person, list FROM {tables.answers} WHERE seq <= ? ORDER BY seq DESC LIMIT 1"  # noqa: S608
    seq, person, number = connection.execute(cut, (last,)).fetchone()
    rest = f"SELECT deed FROM {tables.lists} WHERE list = ? AND place > ? ORDER BY place"  # noqa: S608
    deeds = tuple(deed for (deed,) in connection.execute(rest, (number, last - seq)))
    connection.execute(f"DELETE FROM {tables.answers} WHERE seq <= ?", (last,))  # noqa: S608
    if deeds:  # those of a list whose first rows go
        Adding(connection, tables).answer(last + 1, person, deeds)
    for table, key, user in (
        (tables.lists, "list", tables.answers),
        (tables.deeds, "deed", tables.lists),
        (tables.persons, "person", tables.answers),
    ):
        used = f"SELECT 1 FROM {user} AS u WHERE u.{key} = {table}.{key}"  # noqa: S608 (quoted names)
        connection.execute(f"DELETE FROM {table} WHERE NOT EXISTS ({used})")  # noqa: S608
    for statement in tables.guards():
        connection.execute(statement)
