"""Tables whose partitions their folders do not tell: some lie elsewhere, or their values are in the catalog alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from pii_tracer.model.datasets import DatasetId, Frozen
from pii_tracer.model.locations import names_place
from pii_tracer.model.waivers import MarkKey

Names: TypeAlias = tuple[str, ...]


class PartitionedTable(Frozen):
    """A table of a catalog. title: as people know it. location: its folder, and dataset: what lineage calls that, if it
    can be told.

    keys: its partition columns. untold: those of them of which names of folders in it do not have the values of all
    partitions in it. elsewhere: places of partitions outside of its folder, sorted. left: those that are a gap of the
    table, each as often as it is named, and "" for a partition without a place; sorted.
    """

    title: str
    location: str
    dataset: DatasetId | None
    keys: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def __hash__(self) -> int:  # there may be very many places
        return hash((self.title, self.location))

    @property
    def names(self) -> tuple[str, ...]:
        """What people call it."""
        return (self.title, self.location, *((self.dataset.name,) if self.dataset else ()))

    def is_named(self, name: str) -> bool:
        """Whether people who write `name` mean this table."""
        return names_place(name, *self.names)


def place_of(dataset: DatasetId) -> str:
    """Where a dataset of an inventory lies, as places of partitions are written."""
    if "://" not in dataset.namespace:
        return dataset.name
    return f"{dataset.namespace}/{dataset.name.lstrip('/')}"


def by_names(tables: Iterable[PartitionedTable], shown: Callable[[str], str]) -> dict[Names, list[PartitionedTable]]:
    """Tables that people call the same, such as one that two catalogs name. shown: a name as a plan may show it."""
    found: dict[Names, list[PartitionedTable]] = {}
    for table in tables:
        found.setdefault(tuple(map(shown, table.names)), []).append(table)
    return found


def left_of(tables: Iterable[PartitionedTable], names: Names, marks: MarkKey) -> str | None:
    """Keyed digest of the places that are a gap of some tables of the same names; None where there are none."""
    left = sorted(place for table in tables for place in table.left)
    return marks.of_places("\0".join(names), left) if left else None


class PlacesOfPartitions:
    """Tables by the places of their partitions. Each look takes as long as the path is deep, however many there are."""

    def __init__(self, tables: Iterable[PartitionedTable]) -> None:
        self._tables = tuple(tables)

    def near(self, location: str) -> tuple[PartitionedTable, ...]:
        """The tables of which partitions lie at a place, in it, or around it outside of the table's own folder."""
        at, inside = self._places
        found = set(inside.get(location.rstrip("/"), ()))
        for place in _up(location):
            found |= at.get(place, set())
        return tuple(self._tables[number] for number in sorted(found))

    def of_others(self, location: str) -> tuple[PartitionedTable, ...]:
        """The tables of which partitions lie at a folder, in it or around it that is not their own."""
        here = location.rstrip("/")
        return tuple(table for table in self.near(location) if table.location.rstrip("/") != here)

    def untold(self, location: str) -> tuple[tuple[PartitionedTable, frozenset[str]], ...]:
        """The tables with rows at a place of which the catalog alone has values, and the columns of these, in lower
        case: of a partition outside of its table's folder, all that the table is partitioned by."""
        found = {table: table.untold for table in self._own.get(location.rstrip("/"), ())}
        found |= {table: table.keys for table in self.near(location)}
        return tuple((table, frozenset(map(str.lower, columns))) for table, columns in found.items() if columns)

    @cached_property
    def _own(self) -> dict[str, list[PartitionedTable]]:
        found: dict[str, list[PartitionedTable]] = {}
        for table in self._tables:
            found.setdefault(table.location.rstrip("/"), []).append(table)
        return found

    @cached_property
    def _places(self) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
        """Numbers of tables, by the place of a partition, and by each folder around it."""
        at, inside = dict[str, set[int]](), dict[str, set[int]]()
        for number, table in enumerate(self._tables):
            for place in table.elsewhere:
                here, *around = _up(place)
                at.setdefault(here, set()).add(number)
                for folder in around:
                    inside.setdefault(folder, set()).add(number)
        return at, inside


def _up(location: str) -> Iterator[str]:
    """A place and all folders around it, the innermost first."""
    scheme, mark, path = location.rpartition("://")
    path = path.rstrip("/")
    yield f"{scheme}{mark}{path}"
    while "/" in path:
        path = path.rpartition("/")[0]
        yield f"{scheme}{mark}{path}"
