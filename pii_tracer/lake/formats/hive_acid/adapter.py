"""Hive's transactional (ACID) tables for the rest of the tool: https://orc.apache.org/docs/acid.html

Only a metastore says that a folder is one, and which transactions count. What an action does is asked by who checks a
proof, too: readers of tables are imported when a table is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_tracer.lake.formats.base import Role, TableFormat
from pii_tracer.lake.formats.hive_acid.vocabulary import (
    HIVE_ACID,
    HIVE_ACID_CLEAN,
    HIVE_ACID_COMPACT,
    HIVE_ACID_DELETE_ROWS,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import pyarrow as pa

    from pii_tracer.lake.dataset_paths import EstatePaths
    from pii_tracer.lake.inventory import TableState
    from pii_tracer.lake.stores.any_place import AnyPlace
    from pii_tracer.lake.stores.table_look_types import FolderAsked, Looked


class HiveAcidFormat(TableFormat):
    """Transactional tables of Hive's in HDFS, by their metastore and their base and delta folders."""

    name = HIVE_ACID
    title = "Hive ACID"
    actions = {
        HIVE_ACID_DELETE_ROWS: frozenset({Role.ON_ROWS, Role.COUNTS_ROWS}),
        HIVE_ACID_COMPACT: frozenset({Role.REWRITES_FILES}),
        HIVE_ACID_CLEAN: frozenset({Role.REMOVES_FILES}),
    }

    def is_table(self, folder: Path) -> bool:
        return False  # a folder does not say which of its transactions count

    # -- what discovery and readers of rows ask -----------------------------------------------------------------------

    named_by_catalog = True
    erased_in = frozenset({"hdfs"})

    def look_in_store(self, asked: FolderAsked) -> Looked:
        from pii_tracer.lake.formats.hive_acid.erasable_store_table import look_at_acid

        return look_at_acid(asked)

    def data_files(self, state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
        from pii_tracer.lake.formats.hive_acid import rows

        return rows.data_files(state, paths)

    def read_columns(self, state: TableState, columns: Sequence[str], paths: EstatePaths) -> pa.Table:
        from pii_tracer.lake.formats.hive_acid import rows

        return rows.current_rows(state, columns, paths)

    def read_file_rows(
        self, state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths
    ) -> Iterator[pa.RecordBatch]:
        from pii_tracer.lake.formats.hive_acid import rows

        return rows.file_rows(state, columns, files, paths)

    def own_texts(self, state: TableState, paths: EstatePaths) -> Mapping[str, Any]:
        return {}  # they are the metastore's, which is searched as a catalog

    # -- what retention and signs in listings ask ---------------------------------------------------------------------

    columns_by_path = False
    not_swept = "Hive's own cleaner removes their old files"

    def owns_place(self, parts: tuple[str, ...]) -> bool:
        return not any(part.startswith((".", "_")) for part in parts)
