"""Parquet: all pages through the reader, statistics, key-value metadata, and the bytes between.

Page indexes and footers are never compressed (https://parquet.apache.org/docs/file-format/), so text in them is met by
the raw search. Bloom filters and page indexes hold nothing that is not in the rows of the same file.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.scan.collect import Collector
from pii_tracer.scan.decode.arrow import search_batch
from pii_tracer.scan.decode.metadata import Role, walk

ROWS = 65_536


def is_encrypted(data: memoryview) -> bool:
    """An encrypted footer ends in `PARE` (https://parquet.apache.org/docs/file-format/data-pages/encryption/)."""
    return bytes(data[-4:]) == b"PARE"


def decode(data: memoryview, collector: Collector, role: Role, where: str = "data") -> None:
    """Search one Parquet file held in memory (or mapped).

    Raises:
        pa.ArrowException, OSError: the file cannot be read to its end.
    """
    if is_encrypted(data):
        collector.unread("Parquet with modular encryption: no key to read it with")
        return
    collector.raw(data, "raw bytes")
    with pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)), pre_buffer=False) as file:
        _metadata(file, collector, role)
        positions = _holds_positions(file)
        for batch in file.iter_batches(batch_size=ROWS, use_threads=False):
            if positions:
                batch = batch.drop_columns(["pos"])
            if role is Role.DATA:
                search_batch(batch, collector, where)
            else:
                for row in batch.to_pylist():
                    walk(row, collector, where)


def _metadata(file: pq.ParquetFile, collector: Collector, role: Role) -> None:
    meta = file.metadata
    skipped = {"pos"} if _holds_positions(file) else set()
    for key, value in (meta.metadata or {}).items():
        collector.text(key, "key-value metadata")
        collector.text(value, "key-value metadata", _hudi_key_column(key))
    collector.text(meta.created_by or "", "key-value metadata")
    for group in range(meta.num_row_groups):
        for index in range(meta.num_columns):
            column = meta.row_group(group).column(index)
            label = _label(column.path_in_schema)
            for value in () if label in skipped else _bounds(column, collector):
                if role is Role.DATA:
                    collector.bound(value, "statistics", label)
                elif isinstance(value, str):
                    collector.raw(value.encode(), "statistics", label)


def _holds_positions(file: pq.ParquetFile) -> bool:
    """Iceberg position deletes (https://iceberg.apache.org/spec/#position-delete-files): `pos` numbers rows."""
    return list(file.schema_arrow.names[:2]) == ["file_path", "pos"]


def _label(path: str) -> str:
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
