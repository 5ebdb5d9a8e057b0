"""Rows of Iceberg tables, without Spark: those of now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import guarded
from pii_tracer.lake.rows.row_batches import Batches, with_columns
from pii_tracer.lake.stores.any_place import AnyPlace

if TYPE_CHECKING:
    import pyarrow as pa


def data_files(state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
    """Data files of the current snapshot, sorted.

    Raises:
        EstateError: metadata or manifests cannot be read.
    """
    table = load_iceberg(paths.place(state.location), state.metadata)
    tasks = guarded(state, lambda: list(table.scan().plan_files()))
    return tuple(sorted((paths.place(task.file.file_path) for task in tasks), key=str))


def current_rows(state: TableState, columns: Sequence[str], paths: EstatePaths) -> pa.Table:
    """Some columns of the current rows, and whatever errors the library raises."""
    table = load_iceberg(paths.place(state.location), state.metadata)
    return table.scan(selected_fields=tuple(columns)).to_arrow()


def field_names(state: TableState, paths: EstatePaths) -> list[tuple[str, str]]:
    """Names that columns have, or had, in any schema of the metadata, each with its name of now, by the field's id; an
    empty one where the column is no more."""
    table = load_iceberg(paths.place(state.location), state.metadata)
    named = {field.field_id: field.name for field in table.schema().fields}
    fields = [field for schema in table.schemas().values() for field in schema.fields]
    return [(field.name, named.get(field.field_id, "")) for field in fields]


def fields_in_files(state: TableState, paths: EstatePaths) -> list[tuple[str, bool]]:
    """Dotted names of the fields of every schema in the metadata, and whether the field's id is in the one of now.

    Fields of a list's elements have the list's name before theirs (`items.note`), those of a map's values the map's
    and `value`.
    """
    from pyiceberg.schema import index_by_name

    table = load_iceberg(paths.place(state.location), state.metadata)
    now = frozenset(index_by_name(table.schema()).values())
    named = [item for schema in table.schemas().values() for item in index_by_name(schema).items()]
    return [(name, field_id in now) for name, field_id in named]


def file_rows(state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths) -> Batches:
    """The current rows in some files."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    table = load_iceberg(paths.place(state.location), state.metadata)
    scan = ArrowScan(table.metadata, table.io, table.schema().select(*columns), AlwaysTrue())
    for task in table.scan().plan_files():
        if paths.place(task.file.file_path) in files:
            for batch in scan.to_record_batches([task]):  # one at a time: it holds all rows of what it is given
                yield with_columns(batch, columns, {})
