"""Rows of Delta tables, without Spark: those of now, and of any version."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.delta.transaction_log import LiveFile, log_of
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import LibraryError
from pii_tracer.lake.rows.row_batches import Batches, parquet_batches, with_columns
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.locations import (
    hdfs_location,
    is_hdfs,
    is_object_place,
    is_remote,
    is_s3,
    local_path,
    object_location,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable


def data_files(state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
    """Data files of the current version, as the log has them.

    Raises:
        EstateError: the log cannot be read.
    """
    return tuple(file.path for file in log_of(paths.place(state.location)).files)


def field_names(state: TableState, paths: EstatePaths) -> list[tuple[str, str]]:
    """Names in files and names of now, which differ where columns are mapped (PROTOCOL.md, "Column Mapping")."""
    if not _mapped(state):
        return [(column.name, column.name) for column in state.columns]
    told = log_of(paths.place(state.location)).schema["fields"]
    return [(field["metadata"]["delta.columnMapping.physicalName"], field["name"]) for field in told]


def _mapped(state: TableState) -> bool:
    return state.properties.get("delta.columnMapping.mode", "none") != "none"


def delta_rows(state: TableState, columns: Sequence[str], version: int, paths: EstatePaths) -> pa.Table:
    """Some columns of a Delta table's version, and whatever errors its library raises.

    Raises:
        LibraryError: the library would read another folder.
    """
    return _delta_reader(state, columns, version, paths).read_all()


def delta_batches(
    state: TableState, columns: Sequence[str], version: int, paths: EstatePaths
) -> Iterator[pa.RecordBatch]:
    """As `delta_rows`, a batch at a time."""
    yield from _delta_reader(state, columns, version, paths)


def _delta_reader(state: TableState, columns: Sequence[str], version: int, paths: EstatePaths) -> pa.RecordBatchReader:
    """A reader of pyarrow's: the library's own one lets no other thread of Python work while it waits for a store."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    table = open_delta(state, version, paths)
    rows = QueryBuilder().register("current", table).execute(f'SELECT {quoted} FROM "current"')  # noqa: S608 (quoted)
    return pa.RecordBatchReader.from_stream(rows)


def open_delta(state: TableState, version: int, paths: EstatePaths) -> DeltaTable:
    """A version of a Delta table for its library, and whatever errors that raises.

    Raises:
        LibraryError: the library would read another folder.
    """
    from deltalake import DeltaTable

    remote = is_remote(state.location)
    if unquote(state.location) != state.location or (remote and re.search(r"[?#]", state.location)):
        # delta-rs decodes the path once too often and would read the folder of the decoded name
        raise LibraryError(
            "the Delta reader confuses folders with percent escapes in their names"
            + (", `?` or `#`" if remote else ""),
            where=state.location,
            todo="rename the folder, because only Spark can read this name",
        )
    if is_s3(state.location):
        return DeltaTable(state.location, version=version, storage_options=paths.s3_options)
    if is_hdfs(state.location):  # as the user that HADOOP_USER_NAME names, or who runs this
        address, options = paths.hdfs_reader(state.location)
        return DeltaTable(address, version=version, storage_options=options)
    if is_object_place(state.location):
        return DeltaTable(state.location, version=version, storage_options=paths.object_options(state.location))
    return DeltaTable(Path(state.location), version=version)


def file_rows(state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths) -> Batches:
    """The current rows in some files; all rows of a table whose columns are mapped."""
    if _mapped(state):  # the library knows how deep names are to be told otherwise
        for batch in delta_batches(state, columns, int(state.snapshot), paths):
            yield with_columns(batch, columns, {})
        return
    wanted = [file for file in log_of(paths.place(state.location)).files if file.path in files]
    deleted = _deleted(state, paths) if any(file.deletion_vector for file in wanted) else {}
    for file in wanted:
        yield from _live(file, columns, deleted.get(str(file.path.resolve())))


def _deleted(state: TableState, paths: EstatePaths) -> Mapping[str, pa.BooleanArray]:
    """By file with a deletion vector: which of its rows are kept."""
    import pyarrow as pa

    masks = pa.RecordBatchReader.from_stream(
        open_delta(state, int(state.snapshot), paths).deletion_vectors()
    ).read_all()
    names, kept = masks.column("filepath"), masks.column("selection_vector")
    return {_real(n.as_py()): k.values for n, k in zip(names, kept, strict=True)}


def _real(path: str) -> str:
    """A file as the library names it."""
    return stored_name(path) or str(local_path(path).resolve())


def stored_name(uri: str) -> str | None:
    """A file in a store as listings there name it, of its library's name for it; None of one of this machine."""
    if is_object_place(uri):
        return str(object_location(uri))
    return str(hdfs_location(uri)) if is_hdfs(uri) else uri if is_s3(uri) else None


def _live(file: LiveFile[Any], columns: Sequence[str], kept: pa.BooleanArray | None) -> Batches:
    import pyarrow as pa

    if file.deletion_vector and kept is None:
        raise ValueError("a deletion vector that the library does not read")
    done = 0
    for rows in parquet_batches(file.path, columns):
        batch = with_columns(rows, columns, file.partition)
        if kept is not None:  # rows behind the vector's end are kept
            stay = kept.slice(done, batch.num_rows)
            done += batch.num_rows
            batch = batch.filter(pa.concat_arrays([stay, pa.array([True] * (batch.num_rows - len(stay)), pa.bool_())]))
        yield batch
