"""Batches of rows as readers of every format give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.spark_types import without_views
from pii_tracer.lake.stores.any_place import AnyPlace

if TYPE_CHECKING:
    import pyarrow as pa

    from pii_tracer.lake.stores.remote_path import RemoteFile

Batches = Iterator["pa.RecordBatch"]


def parquet_batches(path: AnyPlace | RemoteFile, columns: Sequence[str]) -> Batches:
    """The rows of a Parquet file, a batch at a time, with those of some columns that it has."""
    import pyarrow.parquet as pq

    with path.open("rb") as stream, pq.ParquetFile(stream) as file:
        there = [name for name in columns if name in file.schema_arrow.names]
        yield from file.iter_batches(columns=there)


def with_columns(batch: pa.RecordBatch, columns: Sequence[str], partition: Mapping[str, Any]) -> pa.RecordBatch:
    """These columns of a batch: what stands in the folder's name goes before what the file has."""
    import pyarrow as pa

    found = []
    for name in columns:
        if name not in partition and name in batch.schema.names:
            column = batch.column(name)
            kind = without_views(column.type)
            found.append(column if kind == column.type else column.cast(kind))
        else:
            value = partition.get(name)
            kind = pa.null() if value is None else pa.string()
            found.append(pa.array([value] * batch.num_rows, kind))
    return pa.record_batch(found, names=list(columns))
