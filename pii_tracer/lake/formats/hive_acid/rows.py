"""Rows of transactional tables of Hive's, without Hive: those of now.

A file has the rows below `row`, beside the number of each: write id, bucket and row id. Files of the `delete_delta`
folders of the same partition have the numbers of deleted rows (https://orc.apache.org/docs/acid.html).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.hive_acid.folders import partition_values
from pii_tracer.lake.formats.hive_acid.metastore_notes import IN_PROPERTIES, AcidNotes
from pii_tracer.lake.formats.hive_acid.table_files import AcidFile, TableFiles
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.model.errors import EstateError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import orc

    from pii_tracer.lake.rows.row_batches import Batches

NUMBER = ("originalTransaction", "bucket", "rowId")
ROW = "row"
_INSERT = 0


def notes_in(state: TableState) -> AcidNotes:
    """What the metastore said of a table when it was looked at."""
    return AcidNotes.model_validate_json(state.properties[IN_PROPERTIES])


def opened(file: AcidFile) -> orc.ORCFile:
    """A file for its reader. Raises `OSError`, and errors of Arrow's where it is none."""
    from pyarrow import orc

    return orc.ORCFile(file.place.seekable())


def data_files(state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
    """Files that the current rows are read from, sorted."""
    files = _files(state, paths)
    return tuple(sorted((file.place for file in files if file.folder.has_rows), key=str))


def current_rows(state: TableState, columns: Sequence[str], paths: EstatePaths) -> pa.Table:
    """These columns of the current rows."""
    import pyarrow as pa

    files = _files(state, paths)
    batches = list(_rows(files, columns, notes_in(state), None))
    if batches:
        return pa.concat_tables([pa.Table.from_batches([one]) for one in batches], promote_options="default")
    return pa.table({name: pa.nulls(0) for name in columns})


def file_rows(state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths) -> Batches:
    """The current rows in some files."""
    return _rows(_files(state, paths), columns, notes_in(state), frozenset(files))


def _files(state: TableState, paths: EstatePaths) -> list[AcidFile]:
    place = paths.place(state.location)
    if not isinstance(place, HdfsPath):
        raise EstateError("only tables in HDFS are read", where=state.location, todo="plan again")
    files = TableFiles.of(place)
    if why := files.obstacle(notes_in(state)):
        raise EstateError(why, where=state.location, todo="plan again")
    return list(files.live())


def _rows(
    files: Sequence[AcidFile], columns: Sequence[str], notes: AcidNotes, wanted: frozenset[AnyPlace] | None
) -> Batches:
    import pyarrow as pa
    import pyarrow.compute as pc

    for partition in sorted({file.partition for file in files}):
        mine = [file for file in files if file.partition == partition]
        gone = [_numbers(opened(file).read(columns=list(NUMBER))) for file in mine if not file.folder.has_rows]
        deleted = pa.concat_tables(gone) if gone else None
        told = dict(partition_values(partition))
        for file in mine:
            if not file.folder.has_rows or (wanted is not None and file.place not in wanted):
                continue
            table = opened(file).read(columns=["operation", *NUMBER, ROW])
            table = table.filter(pc.equal(table.column("operation"), _INSERT))
            if deleted is not None:
                table = table.take(_left(table, deleted))
            yield from _as_rows(table, columns, told).to_batches()


def _numbers(table: pa.Table) -> pa.Table:
    return table.select(list(NUMBER))


def _left(table: pa.Table, deleted: pa.Table) -> pa.Array:
    """Where the rows stand that are not deleted, in their order."""
    import pyarrow as pa

    numbered = _numbers(table).append_column("at", pa.array(range(table.num_rows), pa.int64()))
    left = numbered.join(deleted, list(NUMBER), join_type="left anti")
    return left.sort_by("at").column("at")


def _as_rows(table: pa.Table, columns: Sequence[str], told: dict[str, Any]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = table.column(ROW)
    names = {field.name.lower(): number for number, field in enumerate(rows.type)}
    found = {}
    for name in columns:
        if name in told:
            found[name] = pa.repeat(pa.scalar(told[name], pa.string()), table.num_rows)
        elif (at := names.get(name.lower())) is not None:
            found[name] = pc.struct_field(rows, at)
        else:  # a column that was added later
            found[name] = pa.nulls(table.num_rows)
    return pa.table(found)
