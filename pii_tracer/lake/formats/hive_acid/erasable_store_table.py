"""Transactional tables of Hive's in HDFS that steps can erase: a metastore names them, and Hive deletes their rows."""

from __future__ import annotations

from pii_tracer.common.parallel_map import several
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.hive_acid.key_folder_check import unusable
from pii_tracer.lake.formats.hive_acid.metastore_notes import IN_PROPERTIES, AcidNotes
from pii_tracer.lake.formats.hive_acid.rows import NUMBER, ROW, opened
from pii_tracer.lake.formats.hive_acid.table_files import AcidFile, TableFiles
from pii_tracer.lake.formats.hive_acid.vocabulary import HIVE_ACID
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.table_look_types import FolderAsked, Looked
from pii_tracer.model.errors import EstateError

_UNNAMED = "no metastore with a `hiveserver2` in the estate file contains this table: add `hiveserver2` to its catalog"


def look_at_acid(asked: FolderAsked) -> Looked:
    """A transactional table, or why nothing is erased in it.

    Raises:
        EstateError: one of its files cannot be read.
        OSError: the store refuses.
    """
    place = asked.place
    if asked.notes is None or not isinstance(place, HdfsPath):
        return Looked(f"{_UNNAMED}; then plan again")
    notes = AcidNotes.model_validate_json(asked.notes)
    if why := _unready(asked.estate, notes):
        return Looked(f"{why}; then plan again")
    files = TableFiles.of(place)
    if why := files.obstacle(notes):
        return Looked(why)
    live = list(files.live())
    read = list(several(lambda file: _rows_in(file, notes), live))
    if odd := next((one for one in read if isinstance(one, str)), None):
        return Looked(odd)
    with_rows = [file for file in live if file.folder.has_rows]
    state = TableState(
        dataset=place.location.dataset,
        table=asked.name,
        location=str(place),
        format=HIVE_ACID,
        snapshot=files.snapshot,
        columns=(*notes.columns, *notes.partition_columns),
        partition_columns=tuple(column.name for column in notes.partition_columns),
        rows=sum(one for one in read if isinstance(one, int)) if len(with_rows) == len(live) else None,
        files=len(with_rows),
        bytes=sum(file.place.length() for file in with_rows),
        properties={IN_PROPERTIES: asked.notes},
    )
    return Looked(Found(state))


def _unready(estate: Estate, notes: AcidNotes) -> str | None:
    """Why a run could not give Hive the persons' keys."""
    catalog = estate.catalogs.get(notes.catalog)
    if catalog is None or catalog.hiveserver2 is None:
        return _UNNAMED
    return unusable(estate, catalog.hiveserver2.scratch)


def _rows_in(file: AcidFile, notes: AcidNotes) -> int | str:
    """How many rows are in a file; or why its columns are not the table's.

    Raises:
        EstateError: it is no file of a transactional table.
    """
    try:
        found = opened(file)
        schema = found.schema
        beside = {"operation", *NUMBER, ROW}.issubset(schema.names)
        names = [field.name.lower() for field in schema.field(ROW).type] if beside else []
        rows = int(found.nrows)
    except Exception as error:  # Arrow's errors are of many kinds, and may quote
        raise EstateError(
            f"a file of the table cannot be read: {type(error).__name__}",
            where=str(file.place),
            todo="repair the file, then plan again",
        ) from None
    wanted = [column.name.lower() for column in notes.columns]
    if not beside or names != wanted[: len(names)]:
        return (
            "its files have other columns than the metastore says, as after a rename. Ask its owner to rewrite the "
            "table (INSERT OVERWRITE), then plan again"
        )
    return rows
