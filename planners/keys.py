"""Match keys of the persons, resolved from the source before anything is deleted.

A request names a person by one key. The source table knows the person's other identifiers (phone, national id) and the
keys of their rows (payment ids). From these and the recorded expressions come the key sets that copies are searched
and erased with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pii_tracer.config import Subject
from pii_tracer.errors import PlanError
from pii_tracer.model import KeySet
from planners.expressions import INPUT, NotComputable, compute, is_plain

WEAK_DIGITS = 10
"""A number of fewer digits than this is likely to mean something else elsewhere (an id of another table)."""


@dataclass(frozen=True)
class SourceRows:
    """The identifying columns of a source table as text, row by row; None for NULL. Lives in memory only."""

    columns: Mapping[str, Sequence[str | None]]

    def __repr__(self) -> str:
        return f"SourceRows({', '.join(self.columns)})"


@dataclass(frozen=True)
class Wanted:
    """A person of a request: keyed reference, and the value of the subject's key."""

    request: str
    reference: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class Keys:
    """What was resolved for the persons of one kind of subject.

    base: per source column, the (reference, value) pairs. others: per source column, the values of everybody else,
    against which a match is checked before it may delete anything.
    """

    subject: Subject
    base: Mapping[str, tuple[tuple[str, str], ...]] = field(repr=False)
    others: Mapping[str, frozenset[str]] = field(repr=False)

    def weak(self, column: str) -> bool:
        """True when any of the column's values is a short number."""
        return any(value.isdigit() and len(value) < WEAK_DIGITS for _, value in self.base[column])


def resolve(subject: Subject, rows: SourceRows, wanted: Sequence[Wanted]) -> Keys:
    """Find the persons' identifiers and row keys in the source.

    Raises:
        PlanError: a request's key is not in the source (the message names the request, never the key).
    """
    by_key = {person.key: person.reference for person in wanted}
    owners = [by_key.get(key or "") for key in rows.columns[subject.key]]
    present = set(owners)
    for person in wanted:
        if person.reference not in present:
            raise PlanError(
                f"the person of request {person.request} is not in {subject.source}: no row has this {subject.key}",
                where=f"request {person.request}",
                todo="check the key in the request; if the source was already erased, use the plan made before that",
            )
    base: dict[str, tuple[tuple[str, str], ...]] = {}
    others: dict[str, frozenset[str]] = {}
    for column, values in rows.columns.items():
        mine = {(owner, value) for owner, value in zip(owners, values, strict=True) if owner and value}
        base[column] = tuple(sorted(mine))
        others[column] = frozenset(v for owner, v in zip(owners, values, strict=True) if owner is None and v)
    return Keys(subject=subject, base=base, others=others)


def set_name(column: str, expression: str) -> str:
    """Name of the key set for a source column put through an expression."""
    return column if expression == INPUT or is_plain(expression) else f"{column}|{expression}"


@dataclass(frozen=True)
class Derived:
    """A key set and whether its values also belong to other people (then it cannot tell rows apart)."""

    keys: KeySet
    shared: int


def derive(keys: Keys, column: str, expression: str) -> Derived:
    """The key set for a source column put through a recorded expression.

    shared counts the values that another person of the source has too, after the expression: a phone of a family, or
    an expression that throws too much away.

    Raises:
        NotComputable: the expression cannot be evaluated for certain.
    """
    plain = is_plain(expression)
    values: set[tuple[str, str]] = set()
    for reference, value in keys.base[column]:
        result = value if plain else compute(expression, value)
        if result:
            values.add((reference, result))
    mine = {value for _, value in values}
    if plain:
        shared = len(mine & keys.others[column])
    else:
        shared = len({r for v in keys.others[column] if (r := _quiet(expression, v)) is not None} & mine)
    weak = any(value.isdigit() and len(value) < WEAK_DIGITS for value in mine)
    key_set = KeySet(
        name=set_name(column, expression),
        origin=column,
        expression=None if plain else expression,
        weak=weak,
        values=tuple(sorted(values)),
    )
    return Derived(keys=key_set, shared=shared)


def _quiet(expression: str, value: str) -> str | None:
    """Another person's value may not be computable (a malformed phone): it then matches nothing."""
    try:
        return compute(expression, value)
    except NotComputable:
        return None
