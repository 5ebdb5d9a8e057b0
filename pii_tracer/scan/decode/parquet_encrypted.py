"""Parquet with modular encryption, read with the estate's keys; without them it is unread, never clean.

Everything goes through the reader: the pages of an encrypted column cannot be told apart from outside
(https://parquet.apache.org/docs/file-format/data-pages/encryption/).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.scan.decode.arrow import search_leaf, search_rows, unused_entries
from pii_tracer.scan.decode.parquet_footer import holds_positions, search_footer
from pii_tracer.scan.decode.table_metadata import Role
from pii_tracer.scan.hit_collector import Collector

_ROWS = 65_536


def decode_encrypted(data: memoryview, collector: Collector, role: Role, where: str) -> None:
    """Search one file of which at least a column is encrypted.

    Raises:
        pa.ArrowException, OSError: the file cannot be read to its end, or a key is missing.
    """
    if collector.patterns.file_keys is None:
        collector.unread("Parquet with modular encryption: no key to read it with")
        return
    with _opened(data, collector) as file:
        positions = holds_positions(file)
        batches = file.iter_batches(batch_size=_ROWS, use_threads=False)
        search_rows(batches, collector, role, where, positions=positions)
        # after the rows: pyarrow ends the process when it is asked for the metadata of a column whose key is missing,
        # and raises when it is asked for its rows
        search_footer(file, collector, role)
        _dictionaries(data, file.metadata, collector)
        collector.rest(data, "raw bytes", packed=_chunks(file.metadata, True), read=_chunks(file.metadata, False))


def _opened(data: memoryview, collector: Collector, **how: Any) -> pq.ParquetFile:
    """A reader, with the estate's keys where it has any; each reader needs properties of its own."""
    keys = collector.patterns.file_keys
    properties = keys.properties() if keys is not None else None
    source = pa.BufferReader(pa.py_buffer(data))
    return pq.ParquetFile(source, pre_buffer=False, decryption_properties=properties, **how)


def _dictionaries(data: memoryview, meta: pq.FileMetaData, collector: Collector) -> None:
    """Entries of dictionary pages that no row uses: writers of filtered encoded columns keep what was filtered out."""
    for group in range(meta.num_row_groups):
        columns = [meta.row_group(group).column(index) for index in range(meta.num_columns)]
        paths = [c.path_in_schema for c in columns if c.has_dictionary_page and c.physical_type == "BYTE_ARRAY"]
        if not paths:
            continue
        with _opened(data, collector, read_dictionary=paths) as file:
            table = file.read_row_group(group, columns=paths, use_threads=False)
        for name, column in zip(table.column_names, table.columns, strict=True):
            for label, entries in unused_entries(column, name):
                search_leaf(entries, collector, "dictionary page", label)


def _chunks(meta: pq.FileMetaData, packed: bool) -> list[range]:
    """Column chunks, compressed or not: the reader has given every value of their pages."""
    found = []
    for group in range(meta.num_row_groups):
        for index in range(meta.num_columns):
            column = meta.row_group(group).column(index)
            starts = [o for o in (column.dictionary_page_offset, column.data_page_offset) if o]
            if starts and (column.compression != "UNCOMPRESSED") is packed:
                found.append(range(min(starts), min(starts) + column.total_compressed_size))
    return found
