"""Delta Lake for the rest of the tool: https://github.com/delta-io/delta/blob/master/PROTOCOL.md"""

from __future__ import annotations

from pathlib import Path

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.base import Role, TableFormat
from pii_tracer.lake.formats.delta.table_state import delta_state, is_delta
from pii_tracer.lake.formats.delta.vocabulary import (
    DELTA,
    DELTA_CLEAN_LOG,
    DELTA_DELETE_ROWS,
    DELTA_MASK_ROWS,
    DELTA_PURGE,
    DELTA_REBUILD,
    DELTA_VACUUM,
)
from pii_tracer.lake.read_result import Found


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
        return is_delta(folder)

    def read_state(self, folder: Path, paths: EstatePaths) -> Found:
        return delta_state(folder, paths)

    # -- signs of a table in listings ----------------------------------------------------------------------------

    sign_folders = frozenset({"_delta_log"})

    def owns_place(self, parts: tuple[str, ...]) -> bool:
        return "_delta_log" in parts
