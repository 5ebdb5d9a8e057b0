"""Where the columns of now stood in a table's former schema: renamed since, or dropped and made anew.

A column keeps its id when it is renamed:
Iceberg's field id (https://iceberg.apache.org/spec/#schema-evolution);
Delta's physical name (https://github.com/delta-io/delta/blob/master/PROTOCOL.md#column-mapping), without a mapping the
name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pii_tracer.model.column_paths import Spot
from pii_tracer.model.datasets import FieldAccess


@dataclass(frozen=True)
class Field:
    """A column, or a field of a struct, with what tells it whatever it is called."""

    name: str
    id: str
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True)
class Past:
    """Where a former schema has what is named now, and by which ids, from the column on."""

    spot: Spot
    ids: tuple[str, ...]


def past_columns(
    spots: Mapping[str, Spot], now: tuple[Field, ...], then: tuple[Field, ...], key: Collection[str]
) -> dict[str, tuple[Past, ...]]:
    """Where a former schema has each of some spots: the same column, and one that had its name and is no more.

    Of the key only the same column counts, since another one may have given the same numbers to other people; but
    where no column is left, the table was replaced as a whole, and the name is all there is.
    """
    replaced = not {field.id for field in now} & {field.id for field in then}
    found = {}
    for name, spot in spots.items():
        ways = [_way(spot, now, then, by_name=False)]
        if name not in key or replaced:
            ways.append(_way(spot, now, then, by_name=True))
        found[name] = tuple(dict.fromkeys(way for way in ways if way))
    return found


def _way(spot: Spot, now: tuple[Field, ...], then: tuple[Field, ...], *, by_name: bool) -> Past | None:
    """by_name: before by its id, a column is taken that has the name then and that no column is now."""
    way = []
    for name in spot.names:
        same = next((field for field in now if field.name == name), None)
        kept = {field.id for field in now}
        found = next((field for field in then if same and field.id == same.id), None)
        if by_name:
            called = (f for f in then if f.name.casefold() == name.casefold() and f.id not in kept)
            found = next(called, found)
        if found is None:
            return None
        way.append(found)
        now, then = same.fields if same else (), found.fields
    steps = tuple(FieldAccess(name=field.name) for field in way[1:])
    return Past(Spot(way[0].name, steps, spot.type), tuple(field.id for field in way))
