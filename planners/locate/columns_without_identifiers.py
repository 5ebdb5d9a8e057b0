"""Columns of a copy in which lineage shows no identifier of the persons."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate

from pii_tracer.model.column_paths import elements_of, key_and_value, struct_fields
from pii_tracer.model.datasets import Column, ElementAccess, FieldAccess, place_of
from planners.locate.identifier_traces import ColumnCarriage
from planners.locate.key_location import Carriage


def other_key_columns(carriage: Carriage, columns: Iterable[Column]) -> tuple[str, ...]:
    """Columns that lineage shows to hold no identifier of the source: a same number there means something else.

    Of a column that holds identifiers in known places inside, its other fields, and the values of its map. They are
    called as the search of files calls them.
    """
    known = {name: column for name, column in carriage.columns.items() if column}
    others = {column.name for column in columns}.difference(known)
    nested = {name for name, column in known.items() if _in_places(column)}
    for column in columns if nested else ():
        if column.name in nested:
            there = {place_of(column.name, t.access).lower() for t in known[column.name].traces}
            others.update(_others(column.name, column.type, there))
    # a name with a dot of its own reads like a member of another column
    held = {place_of(n, t.access) for n, c in carriage.columns.items() for t in c.traces} | set(carriage.columns)
    return tuple(sorted(others.difference(*(_upto(name) for name in held))))


def _upto(name: str) -> Iterator[str]:
    """`a`, `a.b`, `a.b.c` of `a.b.c`."""
    return accumulate(name.split("."), "{}.{}".format)


def _in_places(column: ColumnCarriage) -> bool:
    """Whether identifiers stand in fields, elements or keys alone, and in which ones is known."""
    inside = all(t.access and isinstance(t.access[0], (FieldAccess, ElementAccess)) for t in column.traces)
    return bool(column.traces) and inside and not column.lost and not column.ended


def _others(place: str, kind: str, held: Collection[str]) -> Iterator[str]:
    """What is in a place of some type, but for some places with identifiers, and what these are in."""
    at = place.lower()
    if at in held:
        return
    on_the_way = any(told.startswith(f"{at}.") for told in held)
    element, both = elements_of(kind), key_and_value(kind)
    if (fields := struct_fields(kind)) is not None:
        for name, inner in fields:
            yield from _others(f"{place}.{name}", inner, held)
    elif on_the_way and element is not None:
        yield from _others(place, element, held)
    elif on_the_way and both is not None:
        for name, inner in zip(("key", "value"), both, strict=True):
            yield from _others(f"{place}.{name}", inner, held)
    elif not on_the_way:
        yield place
