"""Lineage of one shape of statements, and which of its literals it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
from sqlglot import exp

from pii_tracer.lineage.sources.query_log.statement_shapes import MARKER, dates, markers, unread_place
from pii_tracer.lineage.sources.table_candidates import Columns, Tables
from pii_tracer.lineage.sql.sql_lineage import Script
from pii_tracer.lineage.sql.statement_effects import Effect, StatementLineage
from pii_tracer.lineage.sql.text.table_names import Names
from pii_tracer.model.errors import LineageError


@dataclass(frozen=True, order=True)
class Query:
    """A text with markers, as it is parsed. database: where unqualified names are looked up, or empty."""

    text: str
    dialect: str
    database: str


@dataclass(frozen=True)
class Reading:
    """What a text says. error: why it cannot be cut into statements. used: markers whose literals its lineage may
    depend on, so that it is not that of other texts of its shape.
    """

    statements: tuple[StatementLineage, ...] = ()
    error: str = ""
    used: tuple[int, ...] = ()


Parser = Callable[[Sequence[Query], Tables], Iterator[Reading]]
"""A reading for each text, in order."""


def parse_here(queries: Sequence[Query], tables: Tables) -> Iterator[Reading]:
    """Parse in this process."""
    return (parse_one(query, tables.of(query.text)) for query in queries)


def parse_one(query: Query, known: Mapping[str, Columns]) -> Reading:
    """Parse one text for itself."""
    catalog, _, schema = query.database.rpartition(".")
    unread: dict[int, bool] = {}

    def look(tree: exp.Expression) -> None:
        for literal in tree.find_all(exp.Literal, exp.HexString):
            for number in markers(literal.name):
                anywhere = number in of_dates and literal.name == f"piislot{number}de"
                unread[number] = unread.get(number, True) and (anywhere or unread_place(literal))

    there = markers(query.text)
    of_dates = dates(query.text)
    script = Script(Names(known, catalog or None, schema or None), query.dialect, look=look if there else None)
    try:
        made = tuple(_needed(one) for one in script.run(query.text))
    except LineageError as error:
        return Reading(error=error.what, used=tuple(sorted(there)))
    if not there:
        return Reading(made)
    shown = markers(msgspec.json.encode([replace(one, sql="", views=()) for one in made]).decode())
    rows = {int(found[5]) for found in MARKER.finditer(query.text) if found[5]}
    used = {number for number in there - rows if number in shown or not unread.get(number, False)} | (shown & rows)
    return Reading(made, used=tuple(sorted(used | rows if used else used)))


def _needed(made: StatementLineage) -> StatementLineage:
    """Without what a harvest does not ask: a query alone writes nothing."""
    if made.effect is not Effect.QUERY:
        return made
    return replace(made, read=(), edges=(), indirect=(), columns=(), assumed=(), views=())
