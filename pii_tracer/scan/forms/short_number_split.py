"""A key set in two, its short numbers and its other values: one short number makes no other value weak."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pii_tracer.model.datasets import KeySet
from pii_tracer.model.number_keys import is_short_number
from pii_tracer.scan.hits import name_for_short


def parts_of(key_set: KeySet) -> Iterator[KeySet]:
    """The parts of a key set that are searched for: each has short numbers only, or none."""
    short: list[tuple[str, str]] = []
    rest: list[tuple[str, str]] = []
    for pair in key_set.values:
        (short if key_set.weak and is_short_number(pair[1].strip()) else rest).append(pair)
    if rest:
        yield key_set.model_copy(update={"weak": False, "values": tuple(rest)})
    if short:
        name = name_for_short(key_set.name) if rest else key_set.name
        yield key_set.model_copy(update={"name": name, "values": tuple(short)})


def named_parts(
    columns: Mapping[str, Collection[str]], parts: Mapping[str, Collection[str]]
) -> dict[str, frozenset[str]]:
    """The key sets of columns, by the names of their parts. parts: these names, by key set, where it has several."""
    return {
        label: frozenset(part for name in names for part in parts.get(name, (name,)))
        for label, names in columns.items()
    }
