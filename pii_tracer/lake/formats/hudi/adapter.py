"""Apache Hudi for the rest of the tool: https://hudi.apache.org/tech-specs/

What an action does is asked by who checks a proof, too: readers of tables are imported when a table is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.base import CommitLog, NamedBy, Role, TableFormat, named_as_data
from pii_tracer.lake.formats.hudi.vocabulary import (
    HUDI,
    HUDI_CLEAN,
    HUDI_COMPACT,
    HUDI_DELETE_ROWS,
    HUDI_DELETE_SAVEPOINTS,
    HUDI_MASK_ROWS,
    HUDI_REBUILD,
    HUDI_REBUILD_METADATA,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pii_tracer.lake.catalogs.glue.table_format_marks import GlueMarks
    from pii_tracer.lake.dataset_paths import EstatePaths
    from pii_tracer.lake.formats.retention_terms import Kept, RefRetention
    from pii_tracer.lake.inventory import TableState
    from pii_tracer.lake.read_result import Found
    from pii_tracer.lake.stores.any_place import AnyPlace
    from pii_tracer.lake.stores.s3.table_look_types import Looked, TablesAsked
    from pii_tracer.lake.stores.table_look_types import FolderAsked
    from pii_tracer.lake.stores.table_look_types import Looked as LookedByFolder


class HudiFormat(TableFormat):
    """Hudi tables, by their timeline and file slices."""

    name = HUDI
    title = "Hudi"
    metadata_folders = frozenset({".hoodie"})
    footer_entries = frozenset({"hoodie_min_record_key", "org.apache.hudi.bloomfilter"})
    actions = {
        HUDI_DELETE_SAVEPOINTS: frozenset(),
        HUDI_DELETE_ROWS: frozenset({Role.ON_ROWS, Role.COUNTS_ROWS}),
        HUDI_MASK_ROWS: frozenset({Role.ON_ROWS}),
        HUDI_REBUILD: frozenset({Role.ON_ROWS, Role.REBUILDS}),
        HUDI_COMPACT: frozenset({Role.REWRITES_FILES}),
        HUDI_CLEAN: frozenset(),
        HUDI_REBUILD_METADATA: frozenset(),
    }

    def is_table(self, folder: Path) -> bool:
        from pii_tracer.lake.formats.hudi.table_state import is_hudi

        return is_hudi(folder)

    def read_state(self, folder: Path, paths: EstatePaths) -> Found:
        from pii_tracer.lake.formats.hudi.table_state import hudi_state

        return hudi_state(folder, paths)

    # -- what discovery, readers of rows and witnesses ask ------------------------------------------------------------

    erased_in_s3 = NamedBy.ESTATE_FILE
    added_columns = "_hoodie_"
    changes_rows_by = ("_hoodie_partition_path", "_hoodie_record_key")
    # instants; before table version 8 in the second folder
    commit_log = CommitLog((".hoodie/timeline", ".hoodie"), re.compile(r"(\d{17}(?:_\d{17})?)\.\w+"))

    def is_in_glue(self, marks: GlueMarks) -> bool:
        return "hudi" in marks.words or "org.apache.hudi" in marks.reader

    def tables_in_s3(self, asked: TablesAsked) -> Sequence[Looked]:
        from pii_tracer.lake.formats.hudi.erasable_s3_table import look_at_hudi

        return look_at_hudi(asked.by_place, asked.folders, asked.options)

    erased_in = frozenset({"hdfs", "gs", "abfss"})

    def look_in_store(self, asked: FolderAsked) -> LookedByFolder:
        from pii_tracer.lake.formats.hudi.erasable_store_table import look_at_hudi

        return look_at_hudi(asked)

    def data_files(self, state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
        from pii_tracer.lake.formats.hudi import rows

        return rows.data_files(state, paths)

    def read_columns(self, state: TableState, columns: Sequence[str], paths: EstatePaths) -> pa.Table:
        from pii_tracer.lake.formats.hudi import rows

        return rows.current_rows(state, columns, paths)

    def read_file_rows(
        self, state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths
    ) -> Iterator[pa.RecordBatch]:
        from pii_tracer.lake.formats.hudi import rows

        return rows.file_rows(state, columns, files, paths)

    def unread_history(self, state: TableState) -> str | None:
        if state.versions <= 1:
            return None
        name = state.table or state.location
        return (
            f"{name} has {counted(state.versions, 'commit')} on its timeline, but the tool does not read former rows "
            "of Hudi tables"
        )

    def may_hold_rows(self, path: Path) -> bool:
        return named_as_data(path) and not path.name.startswith(".hoodie")

    # -- what retention, lineage and the doctor ask ----------------------------------------------------------------

    keeps_history = True
    libraries = ("hudi",)
    table_engines = ("Hudi",)
    functions_of_tables = frozenset({"hudi_table_changes"})
    where_not_stored = "the writing jobs configure the cleaner: set hoodie.clean.policy and its hours in these jobs"
    not_swept = "their writers run the cleaner"

    def kept_by(self, properties: Mapping[str, str], refs: Sequence[RefRetention]) -> tuple[Kept, ...]:
        from pii_tracer.lake.formats.hudi import retention

        return tuple(retention.kept_by(properties))

    # -- signs of a table in listings ----------------------------------------------------------------------------

    sign_folders = frozenset({".hoodie"})

    def owns_place(self, parts: tuple[str, ...]) -> bool:
        return parts[:1] == (".hoodie",)  # its metadata is a table of its own in there
