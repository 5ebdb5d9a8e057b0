"""Which statements leave columns to their table, which then fills them (an identity, a serial, a default), or make
values themselves.

A table's definition can be in another file than what writes to it, and be read later. So can a statement that leaves
a column empty in the table or view that rows come from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pii_tracer.lineage.graph.edges import EdgeType
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.statement_facts import Told
from pii_tracer.lineage.sql.statement_effects import Effect
from pii_tracer.model.datasets import DatasetId

_Table = DatasetId | str
_Column = tuple[_Table, str]
"""A column in lower case."""
_Rules = dict[str, set[tuple[str, str]]]
"""What a table fills columns with, by their names in lower case."""


def filled_by_tables(told: Sequence[Told], ledger: Ledger) -> list[Told]:
    """The statements with what their tables fill in for them."""
    rules: dict[_Table, _Rules] = defaultdict(lambda: defaultdict(set))
    defined: set[_Table] = set()
    like: list[tuple[_Table, _Table]] = []
    for one in told:
        like += [(_output(one, ledger), _called(name, one, ledger)) for name in one.made.filling.like]
        for column, constant in one.made.filling.rules:
            rules[_output(one, ledger)][column.lower()].add((column, constant))
        if one.made.effect is Effect.SCHEMA and one.made.makes:
            defined.add(_output(one, ledger))
    _taken_over(rules, like)
    counted = any(one.made.filling.counts and one.made.filling.brings for one in told)
    nulls = _nulls(told, rules, ledger) if rules and counted else frozenset[_Column]()
    result = []
    for one in told:
        filling = one.made.filling
        if filling.left or filling.made or (filling.brings and rules):
            output = _output(one, ledger)
            empty = _copied(one, nulls, ledger) if filling.counts and nulls else set()
            brings = [[column for column in way if column not in empty] for way in filling.brings]
            filled = _filled(brings, filling.left, rules.get(output, {}), known=output in defined)
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


def _taken_over(rules: dict[_Table, _Rules], like: Sequence[tuple[_Table, _Table]]) -> None:
    """A table has the rules of those that it was made like, and of those that these were made like."""
    for _ in like:
        for table, origin in like:
            for column, found in list(rules[origin].items()):
                rules[table][column] |= found


def _output(one: Told, ledger: Ledger) -> _Table:
    return _called(one.made.output or "", one, ledger)


def _called(name: str, one: Told, ledger: Ledger) -> _Table:
    return one.own.of(name) or ledger.identities.of_rows(name, written=True) or name.lower()
