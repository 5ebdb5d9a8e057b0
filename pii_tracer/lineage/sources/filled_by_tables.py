"""Which statements leave columns to their table, which then fills them (an identity, a serial, a default), or make
values themselves.

A table's definition can be in another file than what writes to it, and be read later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.statement_facts import Told
from pii_tracer.lineage.sql.statement_effects import Effect
from pii_tracer.model.datasets import DatasetId

_Rules = dict[str, set[tuple[str, str]]]
"""What a table fills columns with, by their names in lower case."""


def filled_by_tables(told: Sequence[Told], ledger: Ledger) -> list[Told]:
    """The statements with what their tables fill in for them."""
    rules: dict[DatasetId | str, _Rules] = defaultdict(lambda: defaultdict(set))
    defined: set[DatasetId | str] = set()
    like: list[tuple[DatasetId | str, DatasetId | str]] = []
    for one in told:
        like += [(_output(one, ledger), _called(name, one, ledger)) for name in one.made.filling.like]
        for column, constant in one.made.filling.rules:
            rules[_output(one, ledger)][column.lower()].add((column, constant))
        if one.made.effect is Effect.SCHEMA and one.made.makes:
            defined.add(_output(one, ledger))
    _taken_over(rules, like)
    result = []
    for one in told:
        filling = one.made.filling
        if filling.left or filling.made or (filling.brings and rules):
            output = _output(one, ledger)
            filled = _filled(filling.brings, filling.left, rules.get(output, {}), known=output in defined)
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


def _taken_over(rules: dict[DatasetId | str, _Rules], like: Sequence[tuple[DatasetId | str, DatasetId | str]]) -> None:
    """A table has the rules of those that it was made like, and of those that these were made like."""
    for _ in like:
        for table, origin in like:
            for column, found in list(rules[origin].items()):
                rules[table][column] |= found


def _output(one: Told, ledger: Ledger) -> DatasetId | str:
    return _called(one.made.output or "", one, ledger)


def _called(name: str, one: Told, ledger: Ledger) -> DatasetId | str:
    return one.own.of(name) or ledger.identities.of_rows(name, written=True) or name.lower()
