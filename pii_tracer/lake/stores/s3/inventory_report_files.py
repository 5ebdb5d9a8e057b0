"""Data files of S3 Inventory as rows: CSV (packed, keys percent-encoded), ORC and Parquet.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from typing import IO, Any
from urllib.parse import unquote_plus

KINDS = ("CSV", "ORC", "PARQUET")
_BATCH = 10_000


def plain(name: str) -> str:
    """`LastModifiedDate` (CSV) and `last_modified_date` (ORC, Parquet) are one column: `lastmodifieddate`."""
    return name.strip().lower().replace("_", "")


def rows(file: IO[bytes], kind: str, schema: str) -> Iterator[dict[str, Any]]:
    """Rows by plain column names; values are texts in CSV. kind: one of KINDS; schema: the manifest's `fileSchema`."""
    return _csv_rows(file, schema) if kind == "CSV" else _table_rows(file, kind)


def columns(kind: str, schema: str) -> frozenset[str]:
    """Plain names of the columns that a manifest announces."""
    if kind == "CSV":
        return frozenset(plain(name) for name in schema.split(","))
    words = schema.replace("<", " ").replace(",", " ").replace(";", " ").replace(":", " ").split()
    return frozenset(plain(word) for word in words)


def _csv_rows(file: IO[bytes], schema: str) -> Iterator[dict[str, Any]]:
    names = [plain(name) for name in schema.split(",")]
    with gzip.open(file, "rb") as packed, io.TextIOWrapper(packed, "utf-8", newline="") as stream:
        for values in csv.reader(stream):
            row = dict(zip(names, values, strict=True))
            yield row | {"key": unquote_plus(row["key"])}


def _table_rows(file: IO[bytes], kind: str) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq
    from pyarrow import orc

    if kind == "ORC":
        source = orc.ORCFile(file)
        batches: Iterable[Any] = (source.read_stripe(i) for i in range(source.nstripes))
    else:
        batches = pq.ParquetFile(file).iter_batches(batch_size=_BATCH)
    for batch in batches:
        for row in batch.to_pylist():
            yield {plain(name): value for name, value in row.items()}
