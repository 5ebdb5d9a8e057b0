"""Apache Iceberg for the rest of the tool: https://iceberg.apache.org/spec/

What an action does is asked by who checks a proof, too: readers of tables are imported when a table is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pii_tracer.lake.formats.base import CommitLog, NamedBy, ObjectKind, Role, TableFormat, named_as_data
from pii_tracer.lake.formats.iceberg.metadata_json import METADATA_ENDS
from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG,
    ICEBERG_AWAIT_REF,
    ICEBERG_DELETE_ROWS,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_MASK_ROWS,
    ICEBERG_REBUILD,
    ICEBERG_REMOVE_ORPHANS,
    ICEBERG_REWRITE_FILES,
    ICEBERG_REWRITE_HISTORY,
    ICEBERG_REWRITE_MANIFESTS,
    ICEBERG_REWRITE_REF,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import pyarrow as pa

    from pii_tracer.lake.catalogs.glue.table_format_marks import GlueMarks
    from pii_tracer.lake.dataset_paths import EstatePaths
    from pii_tracer.lake.formats.retention_terms import Kept, RefRetention
    from pii_tracer.lake.inventory import TableState
    from pii_tracer.lake.read_result import Found
    from pii_tracer.lake.rows.former_versions import Sought, Version
    from pii_tracer.lake.stores.any_place import AnyPlace
    from pii_tracer.lake.stores.s3.table_look_types import Looked, TablesAsked
    from pii_tracer.lake.stores.table_look_types import FolderAsked
    from pii_tracer.lake.stores.table_look_types import Looked as LookedByFolder
    from pii_tracer.lake.table_descriptions import FileNotes
    from pii_tracer.model.locations import S3Location

_METADATA = (".avro", ".json", ".json.gz", ".puffin", ".stats", ".text")


class IcebergFormat(TableFormat):
    """Iceberg tables, by the metadata file that their catalog points at, else by the newest in their folder."""

    name = ICEBERG
    title = "Iceberg"
    metadata_folders = frozenset({"metadata"})
    footer_entries = frozenset({"iceberg.schema"})
    actions = {
        ICEBERG_DELETE_ROWS: frozenset({Role.ON_ROWS, Role.COUNTS_ROWS}),
        ICEBERG_MASK_ROWS: frozenset({Role.ON_ROWS}),
        ICEBERG_REBUILD: frozenset({Role.ON_ROWS, Role.REBUILDS}),
        ICEBERG_REWRITE_HISTORY: frozenset({Role.ON_ROWS, Role.COUNTS_ROWS, Role.REWRITES_FILES}),
        ICEBERG_REWRITE_REF: frozenset({Role.COUNTS_ROWS}),
        ICEBERG_AWAIT_REF: frozenset({Role.WAITS}),
        ICEBERG_REWRITE_FILES: frozenset({Role.REWRITES_FILES}),
        ICEBERG_REWRITE_MANIFESTS: frozenset({Role.REWRITES_FILES, Role.LISTS_FILES_AGAIN}),
        ICEBERG_EXPIRE_SNAPSHOTS: frozenset({Role.FORGETS_VERSIONS}),
        ICEBERG_REMOVE_ORPHANS: frozenset({Role.REMOVES_FILES}),
    }

    def is_table(self, folder: Path) -> bool:
        from pii_tracer.lake.formats.iceberg.folders import is_iceberg

        return is_iceberg(folder)

    def read_state(self, folder: Path, paths: EstatePaths) -> Found:
        from pii_tracer.lake.formats.iceberg.nessie_references import iceberg_table

        return iceberg_table(folder, paths)

    # -- what discovery, readers of rows and witnesses ask ------------------------------------------------------------

    registered_by_metadata = True
    spares_shared_files = True
    erased_in_s3 = NamedBy.CATALOG
    commit_log = CommitLog(("metadata",), re.compile(r"v?(\d+)(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?"))

    def view_at(self, folder: Path) -> str | None:
        from pii_tracer.lake.formats.iceberg.folders import is_iceberg_view

        return "an Iceberg view" if is_iceberg_view(folder) else None

    def is_in_glue(self, marks: GlueMarks) -> bool:
        return marks.table_type == "iceberg"

    def location_told_by(self, metadata: Path) -> str:
        from pii_tracer.lake.formats.iceberg.folders import location_in

        return location_in(metadata)

    def folders_told_by(self, metadata: bytes, file: S3Location) -> tuple[tuple[S3Location, ...], str | None]:
        from pii_tracer.lake.formats.iceberg.metadata_json import metadata_json
        from pii_tracer.lake.formats.iceberg.s3_folders import iceberg_folders

        return iceberg_folders(metadata_json(metadata), file)

    def tables_in_s3(self, asked: TablesAsked) -> Sequence[Looked]:
        from pii_tracer.lake.formats.iceberg.erasable_s3_table import look_at_iceberg

        return look_at_iceberg(asked.registered, asked.names, asked.folders)

    erased_in = frozenset({"hdfs", "gs", "abfss"})

    def look_in_store(self, asked: FolderAsked) -> LookedByFolder:
        from pii_tracer.lake.formats.iceberg.erasable_store_table import look_at_iceberg

        return look_at_iceberg(asked)

    def object_kind(self, folders: Sequence[str], name: str) -> ObjectKind | None:
        own = folders[-1:] == ["metadata"] and name.endswith(_METADATA)
        return ObjectKind.METADATA if own else None

    def data_files(self, state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
        from pii_tracer.lake.formats.iceberg import rows

        return rows.data_files(state, paths)

    def read_columns(self, state: TableState, columns: Sequence[str], paths: EstatePaths) -> pa.Table:
        from pii_tracer.lake.formats.iceberg import rows

        return rows.current_rows(state, columns, paths)

    def read_file_rows(
        self, state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths
    ) -> Iterator[pa.RecordBatch]:
        from pii_tracer.lake.formats.iceberg import rows

        return rows.file_rows(state, columns, files, paths)

    def field_names(self, state: TableState, paths: EstatePaths) -> Iterable[tuple[str, str]]:
        from pii_tracer.lake.formats.iceberg import rows

        return rows.field_names(state, paths)

    def fields_in_files(self, state: TableState, paths: EstatePaths) -> Iterable[tuple[str, bool]]:
        from pii_tracer.lake.formats.iceberg import rows

        return rows.fields_in_files(state, paths)

    def former_versions(self, state: TableState, sought: Sought, paths: EstatePaths) -> Iterator[Version]:
        from pii_tracer.lake.formats.iceberg import former_rows

        return former_rows.versions(state, sought, paths)

    def unread_history(self, state: TableState) -> str | None:
        return None

    def may_hold_rows(self, path: Path) -> bool:
        return named_as_data(path)

    def own_texts(self, state: TableState, paths: EstatePaths) -> Mapping[str, Any]:
        from pii_tracer.lake.formats.iceberg.lasting_texts import lasting_texts
        from pii_tracer.lake.formats.iceberg.table_state import load_iceberg

        metadata = load_iceberg(paths.place(state.location), state.metadata).metadata
        return lasting_texts(metadata, keeps_history=state.kept_history is not None)

    def notes_of_files(self, state: TableState, paths: EstatePaths) -> Iterator[FileNotes]:
        from pii_tracer.lake.formats.iceberg.lasting_texts import notes_of_files
        from pii_tracer.lake.formats.iceberg.table_state import load_iceberg

        table = load_iceberg(paths.place(state.location), state.metadata)
        return notes_of_files(table, keeps_history=state.kept_history is not None)

    # -- what retention, lineage and the doctor ask ----------------------------------------------------------------

    keeps_history = True
    libraries = ("pyiceberg",)
    table_engines = ("Iceberg",)
    functions_of_paths = frozenset({"iceberg_scan"})
    has_references = True
    needs_catalog = True
    not_swept = None

    def kept_by(self, properties: Mapping[str, str], refs: Sequence[RefRetention]) -> tuple[Kept, ...]:
        from pii_tracer.lake.formats.iceberg import retention

        return tuple(retention.kept_by(properties, refs))

    def setting_for(self, setting: str, days: int) -> str | None:
        from pii_tracer.lake.formats.iceberg import retention

        return retention.value_for(setting, days)

    def keeps_data(self, setting: str) -> bool:
        return "metadata" not in setting

    def reference_retention(self, location: AnyPlace, metadata: str | None) -> tuple[RefRetention, ...]:
        from pii_tracer.lake.formats.iceberg import retention

        return retention.references(location, metadata)

    # -- signs of a table in listings ----------------------------------------------------------------------------

    sign_endings = METADATA_ENDS

    def is_signed(self, names: Iterable[str]) -> bool:
        return any(name == "version-hint.text" or name.endswith(METADATA_ENDS) for name in names)

    def owns_place(self, parts: tuple[str, ...]) -> bool:
        return parts == ("metadata",)
