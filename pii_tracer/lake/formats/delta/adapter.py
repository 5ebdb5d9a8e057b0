"""Delta Lake for the rest of the tool: https://github.com/delta-io/delta/blob/master/PROTOCOL.md"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.base import Role, TableFormat
from pii_tracer.lake.formats.delta import retention
from pii_tracer.lake.formats.delta.s3_log import delta_tables
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
from pii_tracer.lake.formats.kept_settings import Kept, RefRetention
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.s3.object_versions import ClientFactory


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

    keeps_history = True
    takes_over_folders = True
    libraries = ("delta-spark", "deltalake")
    table_engines = ("DeltaLake",)
    functions_of_tables = frozenset({"delta_table_changes"})
    functions_of_paths = frozenset({"delta_scan"})
    caseless_properties = (retention.FILES, retention.LOG)
    not_swept = None
    sweeps_partitions = True
    sweeps_beside_strange_files = True

    def kept_by(self, properties: Mapping[str, str], refs: Sequence[RefRetention]) -> tuple[Kept, ...]:
        return tuple(retention.kept_by(properties))

    def setting_for(self, setting: str, days: int) -> str | None:
        return retention.value_for(setting, days)

    def keeps_data(self, setting: str) -> bool:
        return setting != retention.LOG

    def tables_of_sweeps_in_s3(
        self, tables: Sequence[RemoteTable], clients: ClientFactory
    ) -> tuple[Sequence[Found], Sequence[InventoryGap]]:
        return delta_tables(tables, clients)
