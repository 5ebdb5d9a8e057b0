"""Parquet's footer: key-value metadata, statistics, and whether anything in the file is encrypted."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.scan.decode.table_metadata import Role, engine_bound
from pii_tracer.scan.decode.thrift import Thrift, ThriftError
from pii_tracer.scan.hit_collector import Collector

_ENCRYPTION_ALGORITHM = 8


def is_encrypted(data: memoryview) -> bool:
    """Whether a column or the footer is encrypted: a footer that is ends in `PARE`, one that is not names the algorithm
    (https://parquet.apache.org/docs/file-format/data-pages/encryption/).
    """
    if bytes(data[-4:]) == b"PARE":
        return True
    length = int.from_bytes(data[-8:-4], "little")
    try:
        return _ENCRYPTION_ALGORITHM in Thrift(bytes(data[max(0, len(data) - 8 - length) : -8])).numbers()
    except ThriftError:
        return False  # then it is no footer either, and the reader says so


def is_encrypted_file(path: Path) -> bool:
    """The same of a file on disk.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        if not stream.seek(0, os.SEEK_END):
            return False
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as data:
            return is_encrypted(data)


def search_footer(file: pq.ParquetFile, collector: Collector, role: Role) -> None:
    """Key-value metadata and the statistics of every column chunk."""
    meta = file.metadata
    skipped = {"pos"} if holds_positions(file) else set()
    for key, value in (meta.metadata or {}).items():
        collector.text(key, "key-value metadata")
        owner = _hudi_key_column(key)
        collector.text(value, "key-value metadata", owner, whole=collector.patterns.key_columns.of_cell(owner))
    collector.text(meta.created_by or "", "key-value metadata")
    for group in range(meta.num_row_groups):
        for index in range(meta.num_columns):
            column = meta.row_group(group).column(index)
            label = label_of(column.path_in_schema)
            for value in () if label in skipped else _bounds(column, collector):
                if role is Role.DATA:
                    collector.bound(value, "statistics", label)
                elif isinstance(value, str):
                    engine_bound(value, collector, label)


def other_files(meta: pq.FileMetaData) -> bool:
    """Whether any row group lies in another file, as all of a folder's do in its summary `_metadata`
    (`ColumnChunk.file_path`, https://parquet.apache.org/docs/file-format/metadata/).
    """
    groups = (meta.row_group(number) for number in range(meta.num_row_groups))
    return any(group.column(index).file_path for group in groups for index in range(group.num_columns))


def holds_positions(file: pq.ParquetFile) -> bool:
    """Iceberg position deletes (https://iceberg.apache.org/spec/#position-delete-files): `pos` numbers rows."""
    return list(file.schema_arrow.names[:2]) == ["file_path", "pos"]


def label_of(path: str) -> str:
    """Leaf path as the Arrow columns are labelled: without the list's and map's own levels."""
    return path.replace(".list.element", "").replace(".bag.array_element", "").replace(".key_value.", ".")


def _hudi_key_column(key: bytes) -> str | None:
    """Hudi base files keep their smallest and largest record key in the footer."""
    return "_hoodie_record_key" if key in (b"hoodie_min_record_key", b"hoodie_max_record_key") else None


def _bounds(column: Any, collector: Collector) -> tuple[Any, ...]:
    if not column.is_stats_set:
        return ()
    try:
        statistics = column.statistics
        return (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else ()
    except (NotImplementedError, pa.ArrowException, ValueError):
        collector.unread("statistics of a type that cannot be decoded")
        return ()
