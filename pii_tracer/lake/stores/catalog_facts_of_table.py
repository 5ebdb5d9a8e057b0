"""What catalogs tell of a table in a store, beside its name and format. Pure data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pii_tracer.model.datasets import Frozen

NO_PLAIN_ROWS = (
    "the catalog's table {} is in this place, and its files are not plain rows (gap `unknown_table`). Erase the "
    "person with the table's own engine, then plan again"
)
"""Why a bare folder is not written again in which files of such a table, by its title, lie."""


class NamedTable(Frozen):
    """titles: what catalogs call it, sorted, as people know it. metadata: the file that its catalog points at, of an
    Iceberg table. branched: the catalog has branches. notes: as of `FolderAsked`.
    """

    titles: tuple[str, ...] = ()
    metadata: str | None = None
    branched: bool = False
    notes: str | None = None


class Registered(Protocol):
    """A table of a catalog."""

    @property
    def title(self) -> str: ...
    @property
    def file(self) -> str | None: ...
    @property
    def branched(self) -> bool: ...
    @property
    def notes(self) -> str | None: ...


def named(tables: Iterable[Registered]) -> NamedTable:
    """What is told of one place by all that name it."""
    there = sorted(tables, key=lambda one: one.title)
    return NamedTable(
        titles=tuple(dict.fromkeys(one.title for one in there)),
        metadata=next((one.file for one in there if one.file), None),
        branched=any(one.branched for one in there),
        notes=next((one.notes for one in there if one.notes), None),
    )
