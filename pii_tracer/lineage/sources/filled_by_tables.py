"""Which statements leave columns to their table, which then fills them (an identity, a serial, a default), or make
values themselves.

A table's definition can be in another file than what writes to it, and be read later. So can a statement that leaves
a column empty in the table or view that rows come from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pii_tracer.lineage.graph.edges import EdgeType, Subtype
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.statement_facts import Told
from pii_tracer.lineage.sources.transitive_closure import reached
from pii_tracer.lineage.sources.writes_through_views import Views
from pii_tracer.lineage.sql.statement_effects import Effect, StatementLineage
from pii_tracer.model.datasets import DatasetId

_Table = DatasetId | str
_Column = tuple[_Table, str]
"""A column in lower case."""
_Rules = dict[str, set[tuple[str, str]]]
"""What a table fills columns with, by their names in lower case."""


def filled_by_tables(told: Sequence[Told], views: Views, ledger: Ledger) -> list[Told]:
    """The statements with what their tables fill in for them, also behind the views that they write to."""
    rules: dict[_Table, _Rules] = defaultdict(lambda: defaultdict(set))
    defined: set[_Table] = set()
    named: set[_Table] = set()
    like: dict[_Table, set[_Table]] = defaultdict(set)
    renamed: dict[_Table, set[tuple[str, str]]] = defaultdict(set)
    for one in told:
        output = _output(one, ledger)
        like[output].update(_called(name, one, ledger) for name in one.made.filling.like)
        if one.made.emptied:
            renamed[output].update(_renamed(one.made))
        for column, constant in one.made.filling.rules:
            rules[output][column.lower()].add((column, constant))
        if one.made.makes:
            (defined if one.made.effect is Effect.SCHEMA else named).add(output)
    for view, several in views.items():
        like[view].update(*(one.same for one in several))
    _taken_over(rules, like, renamed, views)
    counted = any(one.made.filling.counts and one.made.filling.brings for one in told)
    nulls = _nulls(told, rules, ledger) if rules and counted else frozenset[_Column]()
    result = []
    for one in told:
        filling = one.made.filling
        if filling.left or filling.made or (filling.brings and rules):
            output = _output(one, ledger)
            empty = _copied(one, nulls, ledger) if filling.counts and nulls else set()
            brings = [[column for column in way if column not in empty] for way in filling.brings]
            known = bool(filling.left) and _known(output, defined, named, like)
            filled = _filled(brings, filling.left, rules.get(output, {}), known=known)
            one = replace(one, filled=tuple(sorted(filled.union(filling.made))))
        result.append(one)
    return result


def _filled(
    brings: Iterable[Sequence[str]], left: Iterable[str], rules: _Rules, *, known: bool
) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for columns in brings:
        found |= {one for name in rules.keys() - set(columns) for one in rules[name]}
    for column in left:  # the word DEFAULT, of a table that nobody defines, can mean anything
        found |= rules.get(column.lower(), set() if known else {(column, "")})
    return found


def _nulls(told: Iterable[Told], rules: Mapping[_Table, _Rules], ledger: Ledger) -> frozenset[_Column]:
    """Columns that statements leave empty in some rows: by NULL, by an outer join, or by leaving them out."""
    columns: dict[_Table, set[str]] = defaultdict(set)
    into: dict[_Column, set[_Column]] = defaultdict(set)
    found: set[_Column] = set()
    written = [(one.made, _output(one, ledger), one) for one in told if one.made.output]
    for made, output, one in written:
        columns[output].update(name.lower() for name in made.columns)
        found.update((output, name) for name in made.filling.nulls)
        for edge in made.edges:
            if edge.type is EdgeType.DIRECT:
                source = _called(edge.source[0], one, ledger), edge.source[1].lower()
                into[source].add((output, edge.target[1].lower()))
    for made, output, _ in written:
        told_elsewhere = ledger.columns.get(output, ()) if isinstance(output, DatasetId) else ()
        known = columns[output].union(column.name.lower() for column in told_elsewhere)
        for way in made.filling.brings:
            found.update((output, name) for name in known - set(way) - rules.get(output, {}).keys())
    waiting = list(found)
    while waiting:
        fresh = into[waiting.pop()] - found
        found |= fresh
        waiting += fresh
    return frozenset(found)


def _copied(one: Told, nulls: frozenset[_Column], ledger: Ledger) -> set[str]:
    """The columns into which a statement writes those that may be empty."""
    return {
        edge.target[1].lower()
        for edge in one.made.edges
        if edge.type is EdgeType.DIRECT and (_called(edge.source[0], one, ledger), edge.source[1].lower()) in nulls
    }


def _renamed(made: StatementLineage) -> Iterator[tuple[str, str]]:
    """Former names, in lower case, and new ones of the columns that a statement renames."""
    for edge in made.edges:
        (table, old), (_, new) = edge.source, edge.target
        if table == made.output and old.lower() in made.emptied and edge.subtype is Subtype.IDENTITY:
            yield old.lower(), new


def _taken_over(
    rules: dict[_Table, _Rules],
    like: Mapping[_Table, set[_Table]],
    renamed: Mapping[_Table, set[tuple[str, str]]],
    views: Views,
) -> None:
    """A table has the rules of those that it was made like or took the name of, and so on; a column those of its former
    names, and one of a view those of what it shows.
    """
    grows = bool(rules)
    while grows:
        found = [
            (table, column, rule)
            for table, origins in like.items()
            for origin in origins & rules.keys()
            for column, ruled in rules[origin].items()
            for rule in ruled
        ]
        found += [
            (table, new.lower(), (new, constant))
            for table in renamed.keys() & rules.keys()
            for old, new in renamed[table]
            for _, constant in rules[table].get(old, ())
        ]
        found += [
            (view, name, (one.names[name], constant))
            for view, several in views.items()
            for one in several
            for name, shown in one.shows.items()
            for column in shown
            for _, constant in rules.get(column.dataset, {}).get(column.column.lower(), ())
        ]
        fresh = [(table, column, rule) for table, column, rule in found if rule not in rules[table][column]]
        for table, column, rule in fresh:
            rules[table][column].add(rule)
        grows = bool(fresh)


def _known(table: _Table, defined: set[_Table], named: set[_Table], like: Mapping[_Table, set[_Table]]) -> bool:
    """Whether the definitions of a table are all read: also of those that it was made like or took the name of.

    named: tables that came about by that alone, which is no definition where names go round in a circle.
    """
    return all(
        one in defined or (one in named and like.get(one) and one not in reached(one, like))
        for one in {table, *reached(table, like)}
    )


def _output(one: Told, ledger: Ledger) -> _Table:
    return _called(one.made.output or "", one, ledger)


def _called(name: str, one: Told, ledger: Ledger) -> _Table:
    return one.own.of(name) or ledger.identities.of_rows(name, written=True) or name.lower()
