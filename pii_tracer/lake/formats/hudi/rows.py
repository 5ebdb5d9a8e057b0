"""Rows of Hudi tables, without Spark: those of now. A base file and its logs are read together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.hudi.table_state import NO_OPTIONS, load_hudi, slice_files
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.batches import Batches, parquet_batches, with_columns
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.locations import is_s3

if TYPE_CHECKING:
    import pyarrow as pa
    from hudi import HudiTable


def data_files(state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
    """Base and log files of the current file slices, sorted. Raises as `load_hudi` and `slice_files`."""
    base, logs = slice_files(open_hudi(state, paths), paths.place(state.location))
    return tuple(sorted((*base, *logs), key=str))


def open_hudi(state: TableState, paths: EstatePaths) -> HudiTable:
    """A Hudi table for its library. Raises as `load_hudi`."""
    return load_hudi(paths.place(state.location), paths.s3_options if is_s3(state.location) else NO_OPTIONS)


def current_rows(state: TableState, paths: EstatePaths) -> pa.Table:
    """All columns of the current rows, and whatever errors the library raises."""
    import pyarrow as pa

    table = open_hudi(state, paths)
    batches = [pa.record_batch(batch) for batch in table.read()]
    return pa.Table.from_batches(batches) if batches else table.get_schema().empty_table()


def file_rows(state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths) -> Batches:
    """The current rows in some files, each with what is read with it."""
    import pyarrow as pa

    location, table = paths.place(state.location), open_hudi(state, paths)
    for part in table.get_file_slices():
        base = part.base_file_relative_path()
        places = {location / name for name in (base, *part.log_files_relative_paths()) if name}
        if places.isdisjoint(files):
            continue
        if base.endswith(".parquet") and len(places) == 1:
            batches: Batches = parquet_batches(location / base, columns)
        else:
            reader = table.create_file_group_reader_with_options()
            batches = iter([pa.record_batch(reader.read_file_slice(part))])
        for batch in batches:
            yield with_columns(batch, columns, {})
