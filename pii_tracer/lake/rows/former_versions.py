"""What reading the retained versions of a table has in common, whatever its format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.rows.current_rows import at_spot
from pii_tracer.lake.rows.historical_columns import Past
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.column_paths import Spot
from pii_tracer.model.errors import EstateError

if TYPE_CHECKING:
    import pyarrow as pa

Parts = frozenset[tuple[str, ...]]
"""What a version's values stand in: each data file with what is deleted from it, and each column's ids."""

Values = dict[str, list[Any]]
Pasts = Mapping[str, tuple[Past, ...]]


@dataclass(frozen=True)
class Sought:
    """What is read of a table: spots by the names they are given, and which of these are the persons' key."""

    spots: Mapping[str, Spot]
    key: tuple[str, ...]


class FilesGoneError(EstateError):
    """A file of the version was removed."""


@dataclass(frozen=True)
class Version:
    """What a version's values stand in, then these, and the files it needs; all raise whatever the libraries do.

    rows: without those that the current version has in the columns of now.
    """

    parts: Callable[[], Parts]
    rows: Callable[[], list[Values]]
    files: Callable[[], Iterable[AnyPlace]]


def values_in(table: pa.Table, pasts: Pasts) -> list[Values]:
    """Twice, where a name means two columns: of each name the first, then the others."""
    return [
        {
            name: at_spot(table.column(p.spot.column), p.spot).to_pylist() if p else [None] * table.num_rows
            for name, p in ((name, at[min(turn, len(at) - 1)] if at else None) for name, at in pasts.items())
        }
        for turn in range(max(len(at) for at in pasts.values()))
    ]


def columns_in(pasts: Pasts) -> list[str]:
    """The top-level columns to read, sorted."""
    return sorted({past.spot.column for at in pasts.values() for past in at})


def parts_of(files: Iterable[tuple[str, ...]], pasts: Pasts) -> Parts:
    """Files, each with what is deleted from it, by every way that leads to a value in them."""
    ids = {past.ids for at in pasts.values() for past in at}
    return frozenset((*file, *way) for file in files for way in ids)


def with_key(pasts: Pasts, key: Sequence[str]) -> Pasts:
    """Raises EstateError: the columns are there, and not the key that tells whose the rows are."""
    missing = [name for name in key if not pasts[name]]
    if missing and any(pasts.values()):
        raise EstateError(
            f"they have no {missing[0]}, or a different column of that name, so nobody knows whose their rows are"
        )
    return pasts
