"""Rows of one file of a format without a log, as Python values, read without an engine."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.common.parquet_file_checks import is_encrypted
from pii_tracer.model.datasets import Format
from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.scan.decode.compression import unpack
from pii_tracer.scan.rows.json_documents import json_values
from pii_tracer.scan.rows.text_records import rows_of as text_rows

Row = Mapping[str, Any]
Choose = Callable[[Sequence[str]], list[str]]
"""Which of the columns of a file are read."""


def rows_of(
    kind: Format,
    name: str,
    data: bytes | memoryview,
    choose: Choose | None = None,
    text: FileText | None = None,
) -> Iterator[Row]:
    """The rows of a file. name: by whose ending a codec without a mark of its own is known.

    choose: columns that are needed; others may be there. All of them where it chooses none. Bytes of CSV that are no
    UTF-8 are kept as surrogates. text: the columns of a file of text, where a catalog says them.

    Raises:
        Exception: whatever the libraries raise; what they say can quote the data.
    """
    if not len(data):
        return
    if kind is Format.PARQUET:
        if is_encrypted(memoryview(data)):  # Arrow ends the process at such a column
            raise ValueError("encrypted columns")
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)))
        for batch in file.iter_batches(columns=_chosen(choose, file.schema_arrow.names)):
            yield from batch.to_pylist()
    elif kind is Format.ORC:
        from pyarrow import orc

        stored = orc.ORCFile(pa.BufferReader(pa.py_buffer(data)))
        yield from stored.read(columns=_chosen(choose, stored.schema.names)).to_pylist()
    elif kind is Format.AVRO:
        import fastavro

        for record in fastavro.reader(io.BytesIO(data)):
            yield record if isinstance(record, Mapping) else {"value": record}
    else:
        unpacked = unpack(name, memoryview(data))
        plain = bytes(unpacked[2] if unpacked else data)
        if text is not None:
            names = _chosen(choose, [column.name for column in text.columns])
            for row in text_rows(io.BytesIO(plain), text, names):
                yield dict(zip(names or (column.name for column in text.columns), row, strict=True))
            return
        yield from _lines(plain) if kind is Format.JSON else _records(plain, choose)


def _chosen(choose: Choose | None, names: Sequence[str]) -> list[str] | None:
    return (choose(names) or None) if choose else None


def _records(plain: bytes, choose: Choose | None) -> Iterator[Row]:
    text = io.StringIO(plain.decode("utf-8-sig", "surrogateescape"), newline="")
    rows = csv.DictReader(text, strict=True, restkey="(more)")
    names = [name.lower() for name in choose(rows.fieldnames or ())] if choose else []
    if len(set(names)) < len(names):
        raise ValueError("a column twice")
    yield from rows


def _lines(plain: bytes) -> Iterator[Row]:
    lines = (line.decode("utf-8-sig") for line in plain.splitlines(keepends=True))
    for row in json_values(lines, json.JSONDecoder()):
        yield row if isinstance(row, Mapping) else {"value": row}
