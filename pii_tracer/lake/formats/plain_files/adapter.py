"""Folders of data files without a table format ("bare folders"): each counts as one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_tracer.lake.formats.base import NamedBy, Role, TableFormat
from pii_tracer.lake.formats.stray_file_marks import MARKS
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import pyarrow as pa

    from pii_tracer.lake.dataset_paths import EstatePaths
    from pii_tracer.lake.inventory import TableState
    from pii_tracer.lake.stores.any_place import AnyPlace
    from pii_tracer.lake.stores.s3.table_look_types import Looked, TablesAsked


class PlainFiles(TableFormat):
    """What folders of Parquet, ORC, Avro, CSV and JSON have in common. The walk finds them by their files."""

    actions = {
        Action.FILES_REWRITE: frozenset({Role.ON_ROWS, Role.COUNTS_ROWS, Role.REMOVES_FILES}),
        Action.FILES_MASK_ROWS: frozenset({Role.ON_ROWS, Role.REMOVES_FILES}),
        Action.FILES_REBUILD: frozenset({Role.ON_ROWS, Role.REBUILDS}),
    }

    def is_table(self, folder: Path) -> bool:
        return False  # no marker: data files anywhere make a folder one

    # -- what discovery and readers of rows ask -----------------------------------------------------------------------

    spares_shared_files = True
    erased_in_s3 = NamedBy.ESTATE_FILE

    def tables_in_s3(self, asked: TablesAsked) -> Sequence[Looked]:
        from pii_tracer.lake.formats.plain_files.erasable_s3_table import look_at_bare

        return look_at_bare(self.name, asked.by_place, asked.sources, asked.folders)

    def data_files(self, state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
        from pii_tracer.lake.formats.plain_files import rows
        from pii_tracer.lake.stores.any_place import AnyPlace

        return tuple(f.path for f in rows.folder_files(state, paths) if isinstance(f.path, AnyPlace))

    def read_columns(self, state: TableState, columns: Sequence[str], paths: EstatePaths) -> pa.Table:
        from pii_tracer.lake.formats.plain_files import rows

        return rows.current_rows(state, columns, paths)

    def read_file_rows(
        self, state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths
    ) -> Iterator[pa.RecordBatch]:
        from pii_tracer.lake.formats.plain_files import rows

        return rows.file_rows(state, columns, files, paths)

    def may_hold_rows(self, path: Path) -> bool:
        return not MARKS.match(path.name)

    def own_texts(self, state: TableState, paths: EstatePaths) -> Mapping[str, Any]:
        return {}

    not_swept = "bare folders keep no history"


class ParquetFiles(PlainFiles):
    """Folders of Parquet files."""

    name = Format.PARQUET
    title = "Parquet"

    def own_texts(self, state: TableState, paths: EstatePaths) -> Mapping[str, Any]:
        from pii_tracer.lake.formats.plain_files import rows
        from pii_tracer.lake.table_descriptions import FOOTERS

        return {FOOTERS: rows.footer_texts(state, paths)}


class OrcFiles(PlainFiles):
    """Folders of ORC files."""

    name = Format.ORC
    title = "ORC"


class AvroFiles(PlainFiles):
    """Folders of Avro container files."""

    name = Format.AVRO
    title = "Avro"
    columns_by_path = False


class CsvFiles(PlainFiles):
    """Folders of CSV files."""

    name = Format.CSV
    title = "CSV"
    columns_by_path = False


class JsonFiles(PlainFiles):
    """Folders of JSON files."""

    name = Format.JSON
    title = "JSON"
    columns_by_path = False
