"""Reads the current rows of a table without Spark: key resolution and counting at planning time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pii_tracer.common.native_panics import panics_as_errors
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.column_paths import Spot
from pii_tracer.model.errors import EstateError

if TYPE_CHECKING:
    import pyarrow as pa

Read = TypeVar("Read")


class LibraryError(EstateError):
    """What a table's library does not read: its files are broken, or the library lacks a feature that Spark has."""


def data_files(state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
    """Files that the current rows are read from (Hudi: base and log files; Iceberg: data files), sorted.

    Raises:
        EstateError: the table's metadata cannot be read.
    """
    return format_of(state.format).data_files(state, paths)


def read_columns(state: TableState, columns: Sequence[str], paths: EstatePaths) -> pa.Table:
    """The current rows of a table, with these top-level columns (structs whole), in this order.

    Deleted rows are left out: Iceberg delete files and vectors, Delta deletion vectors, Hudi log files.

    Raises:
        EstateError: an unknown column, a file outside the estate, or a feature the reader does not know.
    """
    unknown = sorted(set(columns) - {c.name for c in state.columns})
    if unknown:
        raise EstateError(
            f"no column {', '.join(unknown)}", where=state.table or state.location, todo="correct the column's name"
        )
    for path in data_files(state, paths):
        paths.checked_file(path)
    wanted = list(dict.fromkeys(columns))
    table = guarded(state, lambda: format_of(state.format).read_columns(state, wanted, paths))
    return table.select(wanted)


def read_spots(state: TableState, spots: Mapping[str, Spot], paths: EstatePaths) -> dict[str, list[Any]]:
    """The current values at some spots, row by row, by the names they are given here; None where a struct is NULL.

    Raises:
        EstateError: as `read_columns`, or a file has something else than a struct on the way.
    """
    import pyarrow as pa

    table = read_columns(state, sorted({spot.column for spot in spots.values()}), paths)
    found = guarded(state, lambda: pa.table({name: at_spot(table.column(s.column), s) for name, s in spots.items()}))
    return {name: found.column(name).to_pylist() for name in spots}


def at_spot(column: pa.ChunkedArray, spot: Spot) -> pa.ChunkedArray:
    """What stands at a spot of a column that was read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for step in spot.access:
        if len(column) == 0 or pa.types.is_null(column.type):
            break  # no file has the column, or none a row
        column = pc.struct_field(column, step.name)
    return column


def guarded(state: TableState, read: Callable[[], Read]) -> Read:
    """Errors of the libraries as ours: by class name only, since their texts may quote rows."""
    try:
        with panics_as_errors():
            return read()
    except EstateError:
        raise
    except Exception as error:
        raise LibraryError(
            f"the {state.format} table cannot be read without Spark: {type(error).__name__}",
            where=state.table or state.location,
            todo="compact the table, or turn off the feature that this reader does not support",
        ) from None
