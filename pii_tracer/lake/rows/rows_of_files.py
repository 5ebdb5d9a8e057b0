"""Reads the current rows that stand in some files of a table, without Spark and a batch at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.dataset_paths import EstatePaths, local_path
from pii_tracer.lake.formats.delta.transaction_log import LiveFile, log_of
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.formats.plain_files.data_files import StoredFile, partition_values
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import (
    delta_batches,
    folder_files,
    folder_of,
    guarded,
    open_delta,
    open_hudi,
    rows_of_file,
)
from pii_tracer.lake.spark_types import without_views
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.identities import Format
from pii_tracer.model.locations import is_s3

if TYPE_CHECKING:
    import pyarrow as pa

Batches = Iterator["pa.RecordBatch"]


def read_part(
    state: TableState, columns: Sequence[str], files: Collection[Path | S3Path], paths: EstatePaths
) -> Batches:
    """The current rows in these files, of those that `data_files` names, with these top-level columns in this order.

    Deleted rows are left out, as by `read_columns`: Iceberg delete files and vectors, Delta deletion vectors, Hudi log
    files (a base file and its logs are read together). A column that a file does not have is NULL. Of a Delta table
    whose columns are mapped all rows are given.

    Raises:
        EstateError: while reading, as `read_columns`.
    """
    for path in files:
        paths.checked_file(path)
    if state.format is DELTA:
        batches = _delta(state, list(columns), frozenset(files), paths)
    elif state.format is ICEBERG:
        batches = _iceberg(state, list(columns), frozenset(files), paths)
    else:
        here = frozenset(files)
        batches = (
            _hudi(state, list(columns), here, paths)
            if state.format is HUDI
            else _folder(state, list(columns), here, paths)
        )
    while (batch := guarded(state, lambda: next(batches, None))) is not None:
        yield batch


def names_in_files(state: TableState, paths: EstatePaths) -> Mapping[str, frozenset[str]]:
    """The columns of the table that a file's column of some name, in lower case, can hold.

    Files keep the names of their time, or ids instead: Iceberg (`schemas` in its metadata) and Delta (PROTOCOL.md,
    "Column Mapping") tell by a field's id, or by a name of its own, which column of now that is.

    Raises:
        EstateError: the table's metadata cannot be read.
    """
    found: dict[str, set[str]] = {}
    now = {column.name for column in state.columns}
    for name, current in guarded(state, lambda: _told_names(state, paths)):
        if current in now:
            found.setdefault(name.lower(), set()).add(current)
    return {name: frozenset(columns) for name, columns in found.items()}


def _told_names(state: TableState, paths: EstatePaths) -> list[tuple[str, str]]:
    if state.format is ICEBERG:
        table = load_iceberg(paths.place(state.location), state.metadata)
        named = {field.field_id: field.name for field in table.schema().fields}
        fields = [field for schema in table.schemas().values() for field in schema.fields]
        return [(field.name, named[field.field_id]) for field in fields if field.field_id in named]
    if _mapped(state):
        told = log_of(paths.place(state.location)).schema["fields"]
        return [(field["metadata"]["delta.columnMapping.physicalName"], field["name"]) for field in told]
    return [(column.name, column.name) for column in state.columns]


def _mapped(state: TableState) -> bool:
    return state.format is DELTA and state.properties.get("delta.columnMapping.mode", "none") != "none"


def _iceberg(state: TableState, columns: list[str], files: Collection[Path | S3Path], paths: EstatePaths) -> Batches:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    table = load_iceberg(paths.place(state.location), state.metadata)
    scan = ArrowScan(table.metadata, table.io, table.schema().select(*columns), AlwaysTrue())
    for task in table.scan().plan_files():
        if paths.place(task.file.file_path) in files:
            for batch in scan.to_record_batches([task]):  # one at a time: it holds all rows of what it is given
                yield _with(batch, columns, {})


def _delta(state: TableState, columns: list[str], files: Collection[Path | S3Path], paths: EstatePaths) -> Batches:
    if _mapped(state):  # the library knows how deep names are to be told otherwise
        for batch in delta_batches(state, columns, int(state.snapshot), paths):
            yield _with(batch, columns, {})
        return
    wanted = [file for file in log_of(paths.place(state.location)).files if file.path in files]
    deleted = _deleted(state, paths) if any(file.deletion_vector for file in wanted) else {}
    for file in wanted:
        yield from _live(file, columns, deleted.get(str(file.path.resolve())))


def _deleted(state: TableState, paths: EstatePaths) -> Mapping[str, pa.BooleanArray]:
    """By file with a deletion vector: which of its rows are kept."""
    import pyarrow as pa

    masks = pa.table(open_delta(state, int(state.snapshot), paths).deletion_vectors().read_all())
    names, kept = masks.column("filepath"), masks.column("selection_vector")
    return {_real(n.as_py()): k.values for n, k in zip(names, kept, strict=True)}


def _real(path: str) -> str:
    """A file as the library names it."""
    return path if is_s3(path) else str(local_path(path).resolve())


def _live(file: LiveFile[Any], columns: list[str], kept: pa.BooleanArray | None) -> Batches:
    import pyarrow as pa

    if file.deletion_vector and kept is None:
        raise ValueError("a deletion vector that the library does not tell")
    done = 0
    for rows in _parquet(file.path, columns):
        batch = _with(rows, columns, file.partition)
        if kept is not None:  # rows behind the vector's end are kept
            stay = kept.slice(done, batch.num_rows)
            done += batch.num_rows
            batch = batch.filter(pa.concat_arrays([stay, pa.array([True] * (batch.num_rows - len(stay)), pa.bool_())]))
        yield batch


def _hudi(state: TableState, columns: list[str], files: Collection[Path | S3Path], paths: EstatePaths) -> Batches:
    import pyarrow as pa

    location, table = paths.place(state.location), open_hudi(state, paths)
    for part in table.get_file_slices():
        base = part.base_file_relative_path()
        places = {location / name for name in (base, *part.log_files_relative_paths()) if name}
        if places.isdisjoint(files):
            continue
        if base.endswith(".parquet") and len(places) == 1:
            batches: Batches = _parquet(location / base, columns)
        else:
            reader = table.create_file_group_reader_with_options()
            batches = iter([pa.record_batch(reader.read_file_slice(part))])
        for batch in batches:
            yield _with(batch, columns, {})


def _folder(state: TableState, columns: list[str], files: Collection[Path | S3Path], paths: EstatePaths) -> Batches:
    for file in folder_files(state, paths):
        if file.path in files:
            partition = partition_values(folder_of(state, file), file.path)
            for batch in _of_file(file, columns):
                yield _with(batch, columns, partition)


def _of_file(file: StoredFile, columns: list[str]) -> Batches:
    if file.format is Format.PARQUET:
        return _parquet(file.path, columns)
    return iter(rows_of_file(file, columns).to_batches())


def _parquet(path: Path | S3Path, columns: list[str]) -> Batches:
    import pyarrow.parquet as pq

    with path.open("rb") as stream, pq.ParquetFile(stream) as file:
        there = [name for name in columns if name in file.schema_arrow.names]
        yield from file.iter_batches(columns=there)


def _with(batch: pa.RecordBatch, columns: list[str], partition: Mapping[str, Any]) -> pa.RecordBatch:
    """These columns of a batch: what stands in the folder's name goes before what the file has."""
    import pyarrow as pa

    found = []
    for name in columns:
        if name not in partition and name in batch.schema.names:
            column = batch.column(name)
            kind = without_views(column.type)
            found.append(column if kind == column.type else column.cast(kind))
        else:
            value = partition.get(name)
            kind = pa.null() if value is None else pa.string()
            found.append(pa.array([value] * batch.num_rows, kind))
    return pa.record_batch(found, names=columns)
