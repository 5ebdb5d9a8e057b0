"""What Parquet's footer holds of values: key-value metadata and statistics."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.scan.decode.table_metadata import Role, engine_bound
from pii_tracer.scan.decode.table_traces import table_traces
from pii_tracer.scan.hit_collector import Collector


def search_footer(file: pq.ParquetFile, collector: Collector, role: Role) -> None:
    """Key-value metadata and the statistics of every column chunk."""
    meta = file.metadata
    skipped = {"pos"} if holds_positions(file) else set()
    for key, value in (meta.metadata or {}).items():
        collector.text(key, "key-value metadata")
        owner = _column_under(key)
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


def holds_positions(file: pq.ParquetFile) -> bool:
    """Iceberg position deletes (https://iceberg.apache.org/spec/#position-delete-files): `pos` numbers rows."""
    return list(file.schema_arrow.names[:2]) == ["file_path", "pos"]


def label_of(path: str) -> str:
    """Leaf path as the Arrow columns are labelled: without the list's and map's own levels."""
    return path.replace(".list.element", "").replace(".bag.array_element", "").replace(".key_value.", ".")


def _column_under(key: bytes) -> str | None:
    """The column whose value a table format keeps under a key of the footer."""
    return next((traces.footer_columns[key] for traces in table_traces() if key in traces.footer_columns), None)


def _bounds(column: Any, collector: Collector) -> tuple[Any, ...]:
    if not column.is_stats_set:
        return ()
    try:
        statistics = column.statistics
        return (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else ()
    except (NotImplementedError, pa.ArrowException, ValueError):
        collector.unread("statistics of a type that cannot be decoded")
        return ()
