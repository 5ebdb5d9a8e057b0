"""Key sets: the persons' values of a source column, put through an expression that lineage recorded over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product

from pii_tracer.model.datasets import KeySet
from pii_tracer.model.keys_as_text import joined, split
from pii_tracer.model.number_keys import is_short_number, same_numbers, without_fraction
from planners.copies.match_key_resolution import Keys, lookalikes
from planners.locate.composite_key_lineage import each_of
from planners.locate.foreign.possible_results import essence, is_cut, possible
from planners.locate.sql.spark_functions import (
    INPUT,
    compiled,
    is_plain,
)
from planners.locate.sql.whole_numbers import NotComputable

Evaluated = Callable[[str], str | None]
"""What an expression makes of a value."""
Possible = Callable[[str], frozenset[str]]
"""All that it may make of a value of somebody else."""


@dataclass(frozen=True)
class Derived:
    """A key set, and what of the persons is not in it.

    shared: how many values are not, since they belong to other people too: they cannot tell whose a row is.
    unsure: persons for whom what the expression gives is not certain; why: the first reason, without any value.
    left: former values that are not in the key set, since the expression makes somebody else's the same.
    shared_of, unsure_of, left_of: references of the persons with such values.
    """

    keys: KeySet
    shared: int
    unsure: int = 0
    why: str = ""
    left: frozenset[str] = field(default=frozenset(), repr=False)
    shared_of: frozenset[str] = frozenset()
    unsure_of: frozenset[str] = frozenset()
    left_of: frozenset[str] = frozenset()

    @property
    def blind(self) -> bool:
        """Whether nobody of the persons could be found by it."""
        return bool(self.unsure or self.shared) and not self.keys.values


def derive(keys: Keys, column: str, expression: str) -> Derived:
    """The key set for a source column put through a recorded expression.

    Values that another person of the source has too, after the expression, are left out: a phone of a family, or an
    expression that throws too much away.

    Raises:
        NotComputable: the expression does not parse.
    """
    several = keys.subject.several_columns if column == keys.subject.key else ()
    evaluated = _compiled(keys, column, expression)
    core = expression if several else essence(expression)
    kernel = None if core == INPUT else _possible(keys, column, core)
    values: set[tuple[str, str]] = set()
    inputs: set[str] = set()
    unsure: dict[str, str] = {}
    former = keys.former.get(column, frozenset())
    # keys in two texts are a gap of their own; what an expression makes of other keys is not
    equal = _equal if column == keys.subject.key and kernel is None else _equal_numbers
    left = equal({value for _, value in former}, keys.others[column], kernel)
    pairs = {pair for pair in keys.base[column] if pair not in former or pair[1] not in left}
    if keys.unseen and (is_cut(expression) or not (several or is_plain(expression))):
        unsure = {
            reference: "its source cannot be read: other persons may have the same value" for reference, _ in pairs
        }
        pairs = set()
    for reference, value in sorted(pairs):
        try:
            result = evaluated(value)
        except NotComputable as error:
            unsure.setdefault(reference, error.what)
            continue
        if result:
            values.add((reference, result))
            inputs.add(value)
    # `007` is another text once it was a number
    plain = (bool(several) or is_plain(expression)) and values == pairs
    shared = frozenset(filter(None, map(evaluated, equal(inputs, keys.others[column], kernel))))
    of_others = _possible(keys, column, expression)
    alike = _alike({value for _, value in values}, keys.alike.get(column, frozenset()), of_others)
    shared_of = frozenset(reference for reference, value in values if value in shared)
    values = {pair for pair in values if pair[1] not in shared}
    if not several:  # the number is hers as well, where a job made one of the text
        values |= {(reference, without_fraction(value)) for reference, value in values}
    mine = {value for _, value in values}
    weak = any(map(is_short_number, mine))
    key_set = KeySet(
        name=column if plain else f"{column}|{expression}",
        origin=column,
        expression=None if plain else expression,
        weak=weak,
        values=tuple(sorted(values)),
        others=alike,
        columns=several,
    )
    return Derived(
        keys=key_set,
        shared=len(shared),
        unsure=len(unsure),
        why=min(unsure.values(), default=""),
        left=left,
        shared_of=shared_of,
        unsure_of=frozenset(unsure),
        left_of=frozenset(reference for reference, value in former if value in left),
    )


def _alike(mine: set[str], alike: frozenset[str], possible_of: Possible) -> tuple[str, ...]:
    """What the expression gives for others' keys, where a search takes that, too, for the persons'."""
    return tuple(sorted(lookalikes(mine, _results(alike, possible_of)) - mine))


def everybodys(keys: Keys, column: str, expression: str) -> frozenset[str]:
    """The values of everybody, the persons included, of now and of former versions, after an expression."""
    values = keys.others[column] | {value for _, value in keys.base[column]}
    if expression == INPUT:
        return values
    return _results(values, _possible(keys, column, expression))


def _compiled(keys: Keys, column: str, expression: str) -> Evaluated:
    """An expression over a source column; over the subject's key where that has several columns, over each of them."""
    number = len(keys.subject.several_columns)
    if not number or column != keys.subject.key or expression == INPUT:
        return compiled(expression)
    each = [compiled(part) for part in each_of(expression, number)]
    return lambda text: joined([part(value) for part, value in zip(each, split(text), strict=True)])


def _possible(keys: Keys, column: str, expression: str) -> Possible:
    """As `_compiled`, for values of others."""
    number = len(keys.subject.several_columns)
    if not number or column != keys.subject.key or expression == INPUT:
        return possible(expression)
    each = [possible(part) for part in each_of(expression, number)]

    def results(text: str) -> frozenset[str]:
        parts = product(*(part(value) for part, value in zip(each, split(text), strict=True)))
        return frozenset(key for values in parts if (key := joined(values)) is not None)

    return results


def _equal(mine: set[str], others: frozenset[str], kernel: Possible | None) -> frozenset[str]:
    """Those of the persons' values that somebody else's value may equal after the expression; None for none.

    kernel: the expression without what tells any two inputs apart, in which equal results are sought.
    """
    if not mine or kernel is None:
        return frozenset(mine & others)
    results = _results(others, kernel)
    return frozenset(value for value in mine if not results.isdisjoint(kernel(value)))


def _equal_numbers(mine: set[str], others: frozenset[str], kernel: Possible | None) -> frozenset[str]:
    """As `_equal`, where another text of the same whole number is equal, too: rows are found by both."""
    if not mine or kernel is None:
        return same_numbers(mine, others)
    results = _results(others, kernel)
    return frozenset(v for v in mine if same_numbers(kernel(v), results))


def _results(values: Iterable[str], kernel: Possible) -> frozenset[str]:
    """What the expression may give for these values. A malformed phone may be not computable: it matches nothing."""
    return frozenset(result for value in values for result in kernel(value))
