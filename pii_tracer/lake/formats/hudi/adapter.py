"""Apache Hudi for the rest of the tool: https://hudi.apache.org/tech-specs/"""

from __future__ import annotations

from pathlib import Path

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.base import Role, TableFormat
from pii_tracer.lake.formats.hudi.table_state import hudi_state, is_hudi
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
from pii_tracer.lake.read_result import Found


class HudiFormat(TableFormat):
    """Hudi tables, by their timeline and file slices."""

    name = HUDI
    title = "Hudi"
    metadata_folders = frozenset({".hoodie"})
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
        return is_hudi(folder)

    def read_state(self, folder: Path, paths: EstatePaths) -> Found:
        return hudi_state(folder, paths)

    # -- signs of a table in listings ----------------------------------------------------------------------------

    sign_folders = frozenset({".hoodie"})

    def owns_place(self, parts: tuple[str, ...]) -> bool:
        return parts[:1] == (".hoodie",)  # its metadata is a table of its own in there
