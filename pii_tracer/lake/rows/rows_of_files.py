"""Reads the current rows that stand in some files of a table, without Spark and a batch at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import guarded
from pii_tracer.lake.rows.row_batches import Batches
from pii_tracer.lake.stores.any_place import AnyPlace


def read_part(state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths) -> Batches:
    """The current rows in these files, of those that `data_files` names, with these top-level columns in this order.

    Deleted rows are left out, as by `read_columns`: Iceberg delete files and vectors, Delta deletion vectors, Hudi log
    files (a base file and its logs are read together). A column that a file does not have is NULL. Of a Delta table
    whose columns are mapped all rows are given.

    Raises:
        EstateError: while reading, as `read_columns`.
    """
    for path in files:
        paths.checked_file(path)
    adapter, wanted, here = format_of(state.format), list(columns), frozenset(files)
    batches = guarded(state, lambda: adapter.read_file_rows(state, wanted, here, paths))
    while (batch := guarded(state, lambda: next(batches, None))) is not None:
        yield batch


def names_in_files(state: TableState, paths: EstatePaths) -> Mapping[str, frozenset[str]]:
    """The columns of the table that a file's column of some name, in lower case, can hold.

    Files keep the names of their time, or ids instead: Iceberg (`schemas` in its metadata) and Delta (PROTOCOL.md,
    "Column Mapping") tell by a field's id, or by a name of its own, which column of now that is.

    Raises:
        EstateError: the table's metadata cannot be read.
    """
    now = {column.name for column in state.columns}
    known = {name: columns & now for name, columns in _fields(state, paths).items()}
    return {name: columns for name, columns in known.items() if columns}


def fields_in_files(state: TableState, paths: EstatePaths) -> Mapping[str, frozenset[bool]]:
    """By the label of a field in files, in lower case, whether the table has the field: both where two had the label.

    Empty for formats whose plan leaves no dropped field in a file.

    Raises:
        EstateError: the table's metadata cannot be read.
    """
    found: dict[str, set[bool]] = {}
    for label, lasts in guarded(state, lambda: format_of(state.format).fields_in_files(state, paths)):
        found.setdefault(label.lower(), set()).add(lasts)
    return {label: frozenset(lasts) for label, lasts in found.items()}


def names_of_one(state: TableState, column: str, paths: EstatePaths) -> tuple[str, ...]:
    """What files call a column, in lower case, of the names that mean it alone, now and in every schema that is kept.

    Raises:
        EstateError: the table's metadata cannot be read.
    """
    return tuple(sorted(name for name, columns in _fields(state, paths).items() if columns == {column}))


def _fields(state: TableState, paths: EstatePaths) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name, current in guarded(state, lambda: format_of(state.format).field_names(state, paths)):
        found.setdefault(name.lower(), set()).add(current)
    return {name: frozenset(columns) for name, columns in found.items()}
