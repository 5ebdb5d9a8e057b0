"""Rows of Hudi tables, without Spark: those of now. A base file and its logs are read together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.hudi.store_copy import StoreCopy, copied
from pii_tracer.lake.formats.hudi.table_state import NO_OPTIONS, load_hudi, slice_files
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import LibraryError
from pii_tracer.lake.rows.row_batches import Batches, parquet_batches, with_columns
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.locations import is_s3

if TYPE_CHECKING:
    import pyarrow as pa
    from hudi import HudiFileSlice, HudiTable


@dataclass(frozen=True)
class _Opened:
    """place: the table's folder. copy: what hudi-rs is shown of a table in a store that it does not reach."""

    table: HudiTable
    place: AnyPlace
    copy: StoreCopy | None = None

    def slices(self) -> Iterator[tuple[HudiFileSlice, list[str]]]:
        """The current file slices, each with the names of its files, the base file first."""
        for part in self.table.get_file_slices():
            names = (part.base_file_relative_path(), *part.log_files_relative_paths())
            yield part, [name for name in names if name]

    def fetched(self, names: Iterable[str]) -> AbstractContextManager[None]:
        """Inside, hudi-rs can read these files."""
        return self.copy.fetched(names) if self.copy else nullcontext()


def data_files(state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
    """Base and log files of the current file slices, sorted. Raises as `load_hudi` and `slice_files`."""
    with _opened(state, paths) as now:
        base, logs = slice_files(now.table, now.place)
    return tuple(sorted((*base, *logs), key=str))


@contextmanager
def _opened(state: TableState, paths: EstatePaths) -> Iterator[_Opened]:
    """A Hudi table for its library. Raises as `load_hudi`, and LibraryError: its store refuses."""
    place = paths.place(state.location)
    if isinstance(place, Path | S3Path):
        yield _Opened(load_hudi(place, paths.s3_options if is_s3(state.location) else NO_OPTIONS), place)
        return
    try:
        with copied(place) as copy:
            yield _Opened(load_hudi(copy.folder, shown=str(place)), place, copy)
    except OSError as error:
        raise LibraryError(
            f"the Hudi table cannot be read: {type(error).__name__}",
            where=str(place),
            todo="repair the files of its folder, or their permissions",
        ) from None


def current_rows(state: TableState, columns: Sequence[str], paths: EstatePaths) -> pa.Table:
    """At least some columns of the current rows, and whatever errors the library raises."""
    import pyarrow as pa

    with _opened(state, paths) as now:
        if now.copy is None:
            batches = [pa.record_batch(batch) for batch in now.table.read()]
        else:
            batches = [batch for part, names in now.slices() for batch in _rows_of(now, part, names, columns)]
        tables = [pa.Table.from_batches([batch]) for batch in batches]
        return pa.concat_tables(tables, promote_options="default") if tables else now.table.get_schema().empty_table()


def file_rows(state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths) -> Batches:
    """The current rows in some files, each with what is read with it."""
    with _opened(state, paths) as now:
        for part, names in now.slices():
            if not {now.place / name for name in names}.isdisjoint(files):
                yield from _rows_of(now, part, names, columns)


def _rows_of(now: _Opened, part: HudiFileSlice, names: Sequence[str], columns: Sequence[str]) -> Batches:
    """The rows of a file slice. names: of its files."""
    import pyarrow as pa

    if len(names) == 1 and names[0].endswith(".parquet"):
        batches: Batches = parquet_batches(now.place / names[0], columns)
    else:
        with now.fetched(names):
            reader = now.table.create_file_group_reader_with_options()
            batches = iter([pa.record_batch(reader.read_file_slice(part))])
    for batch in batches:
        yield with_columns(batch, columns, {})
