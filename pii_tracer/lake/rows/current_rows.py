"""Reads the current rows of a table without Spark: key resolution and counting at planning time."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.delta.transaction_log import log_of
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.table_state import NO_OPTIONS, load_hudi, slice_files
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.formats.plain_files.data_files import (
    DataFile,
    StoredFile,
    csv_header,
    data_file,
    decompressed,
    objects_below,
    partition_values,
)
from pii_tracer.lake.formats.plain_files.json_types import Shape
from pii_tracer.lake.formats.plain_files.json_types import rows as json_rows
from pii_tracer.lake.inventory import ENCODING, TableState
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.column_paths import Spot
from pii_tracer.model.errors import EstateError
from pii_tracer.model.identities import Format

if TYPE_CHECKING:
    import pyarrow as pa
    from arro3.core import RecordBatchReader
    from deltalake import DeltaTable
    from hudi import HudiTable

Read = TypeVar("Read")


def data_files(state: TableState, paths: EstatePaths) -> tuple[Path | S3Path, ...]:
    """Files that the current rows are read from (Hudi: base and log files; Iceberg: data files), sorted.

    Raises:
        EstateError: the table's metadata cannot be read.
    """
    if state.format is DELTA:
        return tuple(file.path for file in log_of(paths.place(state.location)).files)
    if state.format is ICEBERG:
        table = load_iceberg(paths.place(state.location), state.metadata)
        tasks = guarded(state, lambda: list(table.scan().plan_files()))
        return tuple(sorted((paths.place(task.file.file_path) for task in tasks), key=str))
    if state.format is HUDI:
        base, logs = slice_files(open_hudi(state, paths), paths.place(state.location))
        return tuple(sorted((*base, *logs), key=str))
    return tuple(f.path for f in folder_files(state, paths))


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
    readers: dict[Format, Callable[[TableState, list[str]], pa.Table]] = {
        ICEBERG: lambda state, wanted: _iceberg(state, wanted, paths),
        DELTA: lambda state, wanted: delta_rows(state, wanted, int(state.snapshot), paths),
        HUDI: lambda state, _: _hudi(state, paths),
    }
    wanted = list(dict.fromkeys(columns))
    read = readers.get(state.format)
    table = guarded(state, lambda: read(state, wanted) if read else _folder(state, wanted, paths))
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
        return read()
    except EstateError:
        raise
    except Exception as error:
        raise EstateError(
            f"the {state.format} table cannot be read without Spark: {type(error).__name__}",
            where=state.table or state.location,
            todo="compact the table, or turn off the feature that this reader does not know",
        ) from None


def _iceberg(state: TableState, columns: list[str], paths: EstatePaths) -> pa.Table:
    table = load_iceberg(paths.place(state.location), state.metadata)
    return table.scan(selected_fields=tuple(columns)).to_arrow()


def delta_rows(state: TableState, columns: Sequence[str], version: int, paths: EstatePaths) -> pa.Table:
    """Some columns of a Delta table's version, and whatever errors its library raises.

    Raises:
        EstateError: the library would read another folder.
    """
    import pyarrow as pa

    return pa.table(_delta_reader(state, columns, version, paths).read_all())


def delta_batches(
    state: TableState, columns: Sequence[str], version: int, paths: EstatePaths
) -> Iterator[pa.RecordBatch]:
    """As `delta_rows`, a batch at a time."""
    import pyarrow as pa

    for batch in _delta_reader(state, columns, version, paths):
        yield pa.record_batch(batch)


def _delta_reader(state: TableState, columns: Sequence[str], version: int, paths: EstatePaths) -> RecordBatchReader:
    from deltalake import QueryBuilder

    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    table = open_delta(state, version, paths)
    return QueryBuilder().register("current", table).execute(f'SELECT {quoted} FROM "current"')  # noqa: S608 (quoted names)


def open_delta(state: TableState, version: int, paths: EstatePaths) -> DeltaTable:
    """A version of a Delta table for its library, and whatever errors that raises.

    Raises:
        EstateError: the library would read another folder.
    """
    from deltalake import DeltaTable

    remote = state.remote
    if unquote(state.location) != state.location or (remote and re.search(r"[?#]", state.location)):
        # delta-rs decodes the path once too often and would read the folder of the decoded name
        raise EstateError(
            "the Delta reader confuses folders whose names hold percent escapes" + (", `?` or `#`" if remote else ""),
            where=state.location,
            todo="rename the folder; only Spark can read it as it is",
        )
    if remote:
        return DeltaTable(state.location, version=version, storage_options=paths.s3_options)
    return DeltaTable(Path(state.location), version=version)


def open_hudi(state: TableState, paths: EstatePaths) -> HudiTable:
    """A Hudi table for its library. Raises as `load_hudi`."""
    return load_hudi(paths.place(state.location), paths.s3_options if state.remote else NO_OPTIONS)


def _hudi(state: TableState, paths: EstatePaths) -> pa.Table:
    import pyarrow as pa

    table = open_hudi(state, paths)
    batches = [pa.record_batch(batch) for batch in table.read()]
    return pa.Table.from_batches(batches) if batches else table.get_schema().empty_table()


def folder_files(state: TableState, paths: EstatePaths) -> Sequence[StoredFile]:
    """Data files of a bare folder as engines read it: hidden ones and tables of their own are left out.

    Raises:
        EstateError, OSError: it lies in S3, which refuses.
    """
    place = paths.place(state.location) if state.remote else None
    found: Iterable[StoredFile] = (
        objects_below(place, place.walk())[0] if isinstance(place, S3Path) else _files_here(state)
    )
    mine = (replace(f, encoding=state.properties.get(ENCODING)) for f in found if f.format is state.format)
    return sorted(mine, key=lambda f: str(f.path))


def _files_here(state: TableState) -> list[DataFile]:
    found = []
    for current, folders, names in os.walk(state.location):
        here = Path(current)
        deeper = here != Path(state.location)
        folders[:] = sorted(n for n in folders if not n.startswith((".", "_")) and "=" in n)
        if deeper and "=" not in here.name:
            continue
        for name in sorted(names):
            path = here / name
            if not name.startswith((".", "_")) and not path.is_dir() and (file := data_file(path)):
                found.append(file)
    return found


def folder_of(state: TableState, file: StoredFile) -> Path | S3Path:
    """The folder of a table of such files."""
    return file.path.placed(state.location) if isinstance(file.path, S3Path) else Path(state.location)


def _folder(state: TableState, columns: list[str], paths: EstatePaths) -> pa.Table:
    import pyarrow as pa

    files = folder_files(state, paths)
    try:
        return _tables(state, files, columns, rows_of_file)
    except pa.ArrowException:
        if state.format is not Format.JSON:
            raise
    shape = Shape()  # a column has another type in another file
    for file in files:
        with decompressed(file) as stream:
            shape.read(stream)

    def read(file: StoredFile, wanted: list[str]) -> pa.Table:
        with decompressed(file) as stream:
            return json_rows(stream, wanted, shape.types)

    return _tables(state, files, columns, read)


def _tables(
    state: TableState,
    files: Sequence[StoredFile],
    columns: list[str],
    read: Callable[[StoredFile, list[str]], pa.Table],
) -> pa.Table:
    import pyarrow as pa

    tables = []
    for file in files:
        partition = partition_values(folder_of(state, file), file.path)
        table = read(file, [c for c in columns if c not in partition])
        for name in columns:
            if name not in table.schema.names:  # a partition column, or one that came with later files
                value = partition.get(name)
                kind = pa.null() if value is None else pa.string()
                table = table.append_column(name, pa.array([value] * table.num_rows, kind))
        tables.append(table.select(columns))
    if not tables:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    return pa.concat_tables(tables, promote_options="permissive")


def rows_of_file(file: StoredFile, columns: list[str]) -> pa.Table:
    """The rows of one file of a bare folder, whole; only Parquet is read by columns, those of these that it has."""
    import pyarrow as pa

    if file.format is Format.PARQUET:
        import pyarrow.parquet as pq

        with pq.ParquetFile(file.source) as opened:
            table = opened.read(columns=[c for c in columns if c in opened.schema_arrow.names])
            # a table without columns has lost how many rows it had
            return table if table.num_columns else pa.table({"": pa.nulls(opened.metadata.num_rows)})
    if file.format is Format.ORC:
        from pyarrow import orc

        return orc.ORCFile(file.source).read()
    if file.format is Format.AVRO:
        import fastavro

        with file.path.open("rb") as stream:
            return pa.Table.from_pylist(list(fastavro.reader(stream)))
    if file.format is Format.CSV:
        return _csv(file)
    return _json(file, columns)


def _json(file: StoredFile, columns: list[str]) -> pa.Table:
    """By Arrow, where all lines have the same types."""
    import pyarrow as pa
    from pyarrow import json

    try:
        with decompressed(file) as stream:
            return json.read_json(stream)
    except pa.ArrowInvalid:
        shape = Shape()
        with decompressed(file) as stream:
            shape.read(stream)
        with decompressed(file) as stream:
            return json_rows(stream, columns, shape.types)


def _csv(file: StoredFile) -> pa.Table:
    """All columns as text, as Spark reads CSV without a schema; empty fields are null."""
    import pyarrow as pa
    from pyarrow import csv

    names, header = csv_header(file)
    with decompressed(file) as stream:
        return csv.read_csv(
            stream,
            read_options=csv.ReadOptions(
                column_names=list(names), skip_rows=1 if header else 0, encoding=file.encoding or "utf8"
            ),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
            ),
        )
