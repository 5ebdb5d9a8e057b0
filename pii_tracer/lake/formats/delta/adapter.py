"""Delta Lake for the rest of the tool: https://github.com/delta-io/delta/blob/master/PROTOCOL.md

What an action does is asked by who checks a proof, too: readers of tables are imported when a table is read.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pii_tracer.lake.formats.base import CommitLog, NamedBy, ObjectKind, Role, TableFormat, named_as_data
from pii_tracer.lake.formats.delta.log_paths import COMMIT, LOG
from pii_tracer.lake.formats.delta.retention import FILES
from pii_tracer.lake.formats.delta.retention import LOG as LOGS
from pii_tracer.lake.formats.delta.vocabulary import (
    DELTA,
    DELTA_CLEAN_LOG,
    DELTA_DELETE_ROWS,
    DELTA_MASK_ROWS,
    DELTA_PURGE,
    DELTA_REBUILD,
    DELTA_VACUUM,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import pyarrow as pa

    from pii_tracer.lake.catalogs.glue.table_format_marks import GlueMarks
    from pii_tracer.lake.catalogs.registered_tables import RemoteTable
    from pii_tracer.lake.dataset_paths import EstatePaths
    from pii_tracer.lake.formats.retention_terms import Kept, RefRetention
    from pii_tracer.lake.inventory import InventoryGap, TableState
    from pii_tracer.lake.read_result import Found
    from pii_tracer.lake.rows.former_versions import Sought, Version
    from pii_tracer.lake.stores.any_place import AnyPlace
    from pii_tracer.lake.stores.s3.object_versions import ClientFactory
    from pii_tracer.lake.stores.s3.table_look_types import Looked, TablesAsked
    from pii_tracer.lake.stores.table_look_types import FolderAsked
    from pii_tracer.lake.stores.table_look_types import Looked as LookedByFolder
    from pii_tracer.lake.table_descriptions import FileNotes


class DeltaFormat(TableFormat):
    """Delta tables, by their transaction log."""

    name = DELTA
    title = "Delta"
    metadata_folders = frozenset({"_delta_log"})
    actions = {
        DELTA_DELETE_ROWS: frozenset({Role.ON_ROWS, Role.COUNTS_ROWS}),
        DELTA_MASK_ROWS: frozenset({Role.ON_ROWS}),
        DELTA_REBUILD: frozenset({Role.ON_ROWS, Role.REBUILDS}),
        DELTA_PURGE: frozenset({Role.REWRITES_FILES}),
        DELTA_VACUUM: frozenset(),
        DELTA_CLEAN_LOG: frozenset(),
    }

    def is_table(self, folder: Path) -> bool:
        from pii_tracer.lake.formats.delta.table_state import is_delta

        return is_delta(folder)

    def read_state(self, folder: Path, paths: EstatePaths) -> Found:
        from pii_tracer.lake.formats.delta.table_state import delta_state

        return delta_state(folder, paths)

    # -- what discovery, readers of rows and witnesses ask ------------------------------------------------------------

    purges_dropped = True  # REORG TABLE … APPLY (PURGE)

    erased_in_s3 = NamedBy.ESTATE_FILE
    commit_log = CommitLog((LOG,), COMMIT)

    def is_in_glue(self, marks: GlueMarks) -> bool:
        return "delta" in marks.words

    def tables_in_s3(self, asked: TablesAsked) -> Sequence[Looked]:
        from pii_tracer.lake.formats.delta.erasable_s3_table import look_at_delta

        return look_at_delta(asked.by_place, asked.folders)

    erased_in = frozenset({"hdfs", "gs", "abfss"})

    def look_in_store(self, asked: FolderAsked) -> LookedByFolder:
        from pii_tracer.lake.formats.delta.erasable_store_table import look_at_delta

        return look_at_delta(asked.place, asked.name)

    def object_kind(self, folders: Sequence[str], name: str) -> ObjectKind | None:
        return ObjectKind.LOG if LOG in folders else None

    def data_files(self, state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
        from pii_tracer.lake.formats.delta import rows

        return rows.data_files(state, paths)

    def read_columns(self, state: TableState, columns: Sequence[str], paths: EstatePaths) -> pa.Table:
        from pii_tracer.lake.formats.delta import rows

        return rows.delta_rows(state, columns, int(state.snapshot), paths)

    def read_file_rows(
        self, state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths
    ) -> Iterator[pa.RecordBatch]:
        from pii_tracer.lake.formats.delta import rows

        return rows.file_rows(state, columns, files, paths)

    def field_names(self, state: TableState, paths: EstatePaths) -> Iterable[tuple[str, str]]:
        from pii_tracer.lake.formats.delta import rows

        return rows.field_names(state, paths)

    def former_versions(self, state: TableState, sought: Sought, paths: EstatePaths) -> Iterator[Version]:
        from pii_tracer.lake.formats.delta import former_rows

        return former_rows.versions(state, sought, paths)

    def unread_history(self, state: TableState) -> str | None:
        return None

    def may_hold_rows(self, path: Path) -> bool:
        return named_as_data(path)

    def own_texts(self, state: TableState, paths: EstatePaths) -> Mapping[str, Any]:
        from pii_tracer.lake.formats.delta.checkpoint_texts import checkpoint_texts
        from pii_tracer.lake.formats.delta.transaction_log import log_of

        return checkpoint_texts(log_of(paths.place(state.location)), time.time_ns() // 1_000_000)

    def notes_of_files(self, state: TableState, paths: EstatePaths) -> Iterator[FileNotes]:
        from pii_tracer.lake.formats.delta.checkpoint_texts import notes_of_files

        return notes_of_files(paths.place(state.location))

    # -- what retention, lineage and the doctor ask ----------------------------------------------------------------

    keeps_history = True
    takes_over_folders = True
    libraries = ("delta-spark", "deltalake")
    table_engines = ("DeltaLake",)
    functions_of_tables = frozenset({"delta_table_changes"})
    functions_of_paths = frozenset({"delta_scan"})
    caseless_properties = (FILES, LOGS)
    not_swept = None
    sweeps_partitions = True
    sweeps_beside_strange_files = True

    def kept_by(self, properties: Mapping[str, str], refs: Sequence[RefRetention]) -> tuple[Kept, ...]:
        from pii_tracer.lake.formats.delta import retention

        return tuple(retention.kept_by(properties))

    def setting_for(self, setting: str, days: int) -> str | None:
        from pii_tracer.lake.formats.delta import retention

        return retention.value_for(setting, days)

    def keeps_data(self, setting: str) -> bool:
        return setting != LOGS

    def tables_of_sweeps_in_s3(
        self, tables: Sequence[RemoteTable], clients: ClientFactory
    ) -> tuple[Sequence[Found], Sequence[InventoryGap]]:
        from pii_tracer.lake.formats.delta.s3_log import delta_tables

        return delta_tables(tables, clients)

    # -- signs of a table in listings ----------------------------------------------------------------------------

    sign_folders = frozenset({"_delta_log"})

    def owns_place(self, parts: tuple[str, ...]) -> bool:
        return "_delta_log" in parts
