"""Apache Iceberg for the rest of the tool: https://iceberg.apache.org/spec/"""

from __future__ import annotations

from pathlib import Path

from pii_tracer.lake.dataset_paths import EstatePaths, is_iceberg
from pii_tracer.lake.formats.base import Role, TableFormat
from pii_tracer.lake.formats.iceberg.metadata_json import METADATA_ENDS
from pii_tracer.lake.formats.iceberg.reference_heads import iceberg_table
from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG,
    ICEBERG_AWAIT_REF,
    ICEBERG_DELETE_ROWS,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_MASK_ROWS,
    ICEBERG_REBUILD,
    ICEBERG_REMOVE_ORPHANS,
    ICEBERG_REWRITE_FILES,
    ICEBERG_REWRITE_MANIFESTS,
    ICEBERG_REWRITE_REF,
)
from pii_tracer.lake.read_result import Found


class IcebergFormat(TableFormat):
    """Iceberg tables, by the metadata file that their catalog points at, else by the newest in their folder."""

    name = ICEBERG
    title = "Iceberg"
    metadata_folders = frozenset({"metadata"})
    actions = {
        ICEBERG_DELETE_ROWS: frozenset({Role.ON_ROWS, Role.COUNTS_ROWS}),
        ICEBERG_MASK_ROWS: frozenset({Role.ON_ROWS}),
        ICEBERG_REBUILD: frozenset({Role.ON_ROWS, Role.REBUILDS}),
        ICEBERG_REWRITE_REF: frozenset({Role.COUNTS_ROWS}),
        ICEBERG_AWAIT_REF: frozenset({Role.WAITS}),
        ICEBERG_REWRITE_FILES: frozenset({Role.REWRITES_FILES}),
        ICEBERG_REWRITE_MANIFESTS: frozenset({Role.REWRITES_FILES, Role.LISTS_FILES_AGAIN}),
        ICEBERG_EXPIRE_SNAPSHOTS: frozenset({Role.FORGETS_VERSIONS}),
        ICEBERG_REMOVE_ORPHANS: frozenset({Role.REMOVES_FILES}),
    }

    def is_table(self, folder: Path) -> bool:
        return is_iceberg(folder)

    def read_state(self, folder: Path, paths: EstatePaths) -> Found:
        return iceberg_table(folder, paths)

    # -- signs of a table in listings ----------------------------------------------------------------------------

    sign_endings = METADATA_ENDS

    def owns_place(self, parts: tuple[str, ...]) -> bool:
        return parts == ("metadata",)
