"""What Parquet's footer holds of values: key-value metadata and statistics, and where it says them of one column.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.common.thrift import PlacedThrift, Thrift, ThriftError
from pii_tracer.scan.cells_left_out import Apart
from pii_tracer.scan.decode.cells import cell_search
from pii_tracer.scan.decode.cells.opaque_bytes import is_opaque
from pii_tracer.scan.decode.table_metadata import Role, engine_bound, no_keys_in
from pii_tracer.scan.decode.table_traces import table_traces
from pii_tracer.scan.false_cell_hits import gaps
from pii_tracer.scan.hit_collector import Collector

_ROW_GROUPS, _COLUMNS, _COLUMN_META, _PATH, _STATISTICS = 4, 1, 3, 3, 12
_INDEX_OFFSET, _INDEX_LENGTH = 6, 7
_BOUNDS = (1, 2, 5, 6)
_PAGE_BOUNDS = (2, 3)


def search_footer(file: pq.ParquetFile, collector: Collector, role: Role) -> None:
    """Key-value metadata and the statistics of every column chunk."""
    meta = file.metadata
    skipped = {"pos"} if holds_positions(file) else set()
    for key, value in (meta.metadata or {}).items():
        collector.text(key, "key-value metadata")
        search_entry(value, collector, _column_under(key))
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


def search_entry(value: bytes, collector: Collector, owner: str | None = None) -> None:
    """An entry of the key-value metadata. owner: the column whose value a table format keeps there."""
    no_keys = Counter(collector.left.text(value.decode("utf-8", "replace"), "key-value metadata", owner))
    whole = collector.patterns.key_columns.of_cell(owner)
    collector.text(value, "key-value metadata", owner, whole=whole, left=no_keys)
    cell_search.search_cell(value, "key-value metadata", owner, collector)


def holds_positions(file: pq.ParquetFile) -> bool:
    """Iceberg position deletes (https://iceberg.apache.org/spec/#position-delete-files): `pos` numbers rows."""
    return list(file.schema_arrow.names[:2]) == ["file_path", "pos"]


def label_of(path: str) -> str:
    """Leaf path as the Arrow columns are labelled: without the list's and map's own levels, as writers call them."""
    for level in (".list.element", ".list.item", ".bag.array_element"):
        path = path.replace(level, "")
    return path.replace(".key_value.", ".")


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


def columns_apart(data: memoryview, collector: Collector, role: Role, pages: Iterable[tuple[str, range]]) -> Apart:
    """Bytes of columns that hold another system's numbers, of which all was read: pages, and bounds that are a key.

    pages: by path, column chunks of which the pages are told apart and given by the reader. What cannot be read as the
    format says is nobody's, so that whatever stands there counts.
    """
    keys = collector.patterns.key_columns
    if not keys.not_keys:
        return ()

    def no_keys(label: str) -> frozenset[str]:
        return keys.no_keys_in(label) if role is Role.DATA else no_keys_in(label, collector)

    apart = [(extent, names) for path, extent in pages if (names := no_keys(label_of(path)))]
    try:
        for label, at, bound in _texts_placed(data):
            names = no_keys(label).intersection(collector.patterns.of_cell(bound))
            if names:
                apart.append((range(at, at + len(bound.encode())), names))
    except (ThriftError, KeyError, TypeError, AttributeError, ValueError):
        return ()
    return apart


def search_gap(data: memoryview, gap: range, collector: Collector) -> None:
    """What stands in a file where no column chunk does. Bits of bloom filters look random."""
    part = bytes(data[gap.start : gap.stop])
    if is_opaque(part):
        filters = sorted((one for one in _bloom_filters(data) if one.start in gap), key=lambda one: one.start)
        part = b"".join(bytes(data[rest.start : rest.stop]) for rest in gaps(filters, gap))
    cell_search.search_unexplained(part, "raw bytes", collector)


def _bloom_filters(data: memoryview) -> tuple[range, ...]:
    """Where they lie (https://parquet.apache.org/docs/file-format/bloomfilter/)."""
    end = len(data) - 8
    start = end - int.from_bytes(data[end : end + 4], "little")
    try:
        groups = Thrift(bytes(data[start:end])).struct()[_ROW_GROUPS]
        metas = [chunk[_COLUMN_META] for group in groups for chunk in group[_COLUMNS]]
        return tuple(range(m[14], m[14] + m[15]) for m in metas if 14 in m and 15 in m)
    except (ThriftError, KeyError, TypeError):
        return ()


def _texts_placed(data: memoryview) -> Iterator[tuple[str, int, str]]:
    """Every bound of text: the column's label, where it stands, and what it is."""
    end = len(data) - 8
    start = end - int.from_bytes(data[end : end + 4], "little")
    for group in PlacedThrift(bytes(data[start:end]), start).struct()[_ROW_GROUPS]:
        for chunk in group[_COLUMNS]:
            meta = chunk[_COLUMN_META]
            label = label_of(".".join(part.decode() for part in meta[_PATH]))
            yield from _placed(label, (meta.get(_STATISTICS, {}).get(number) for number in _BOUNDS))
            if _INDEX_OFFSET in chunk:
                first = chunk[_INDEX_OFFSET]
                index = PlacedThrift(bytes(data[first : first + chunk[_INDEX_LENGTH]]), first).struct()
                yield from _placed(label, (bound for number in _PAGE_BOUNDS for bound in index.get(number, ())))


def _placed(label: str, bounds: Iterable[Any]) -> Iterator[tuple[str, int, str]]:
    for bound in bounds:
        if bound is not None:
            yield label, bound.at, bound.decode("utf-8", "replace")
