"""Folders of data files without a table format ("bare folders"): each counts as one table."""

from __future__ import annotations

from pathlib import Path

from pii_tracer.lake.formats.base import Role, TableFormat
from pii_tracer.model.actions import Action
from pii_tracer.model.identities import Format


class PlainFiles(TableFormat):
    """What folders of Parquet, ORC, Avro, CSV and JSON have in common. The walk finds them by their files."""

    actions = {
        Action.FILES_REWRITE: frozenset({Role.ON_ROWS, Role.COUNTS_ROWS, Role.REMOVES_FILES}),
        Action.FILES_MASK_ROWS: frozenset({Role.ON_ROWS, Role.REMOVES_FILES}),
        Action.FILES_REBUILD: frozenset({Role.ON_ROWS, Role.REBUILDS}),
    }

    def is_table(self, folder: Path) -> bool:
        return False  # no marker: data files anywhere make a folder one

    not_swept = "bare folders keep no history"


class ParquetFiles(PlainFiles):
    """Folders of Parquet files."""

    name = Format.PARQUET
    title = "Parquet"


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
    """Folders of JSON lines."""

    name = Format.JSON
    title = "JSON"
    columns_by_path = False
