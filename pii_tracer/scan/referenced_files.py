"""Which files the metadata of a table names, by their whole locations: they may lie beyond the table's folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.lake.formats.delta.log_paths import (
    FILE_ACTIONS,
    LOG,
    decoded,
    written_by,
)
from pii_tracer.scan.decode.avro_container import open_container

_BATCH = 10_000
_MANIFEST = re.compile(r"(?:\Asnap-.*|\Aoptimized-m-.*|-m\d+)\.avro\Z")
"""As Iceberg names them, wherever `write.metadata.path` leads."""


def named_files(key: str, data: memoryview) -> Iterator[str]:
    """Locations that a file of metadata names: Iceberg's manifests and lists of them, Delta's commits and checkpoints.

    Names that are told from the table's own folder are left out. key: the file's place; other files name none.
    Iceberg table spec, "Manifests"; https://github.com/delta-io/delta/blob/master/PROTOCOL.md#add-file-and-remove-file

    Raises:
        Exception: of many kinds, where the file is not what its place says; the scan says so of it, too.
    """
    *folders, name = key.split("/")
    if _MANIFEST.search(name) or (folders[-1:] == ["metadata"] and name.endswith(".avro")):
        for record in open_container(data).records():
            path = record.get("manifest_path") or (record.get("data_file") or {}).get("file_path")
            if path:
                yield str(path)
    elif folders[-1:] == [LOG] and name.endswith(".json"):
        yield from _named(json.loads(line) for line in bytes(data).splitlines() if line.strip())
    elif LOG in folders and name.endswith(".parquet"):
        with pq.ParquetFile(pa.BufferReader(pa.py_buffer(data))) as file:
            wanted = [column for column in FILE_ACTIONS if column in file.schema_arrow.names]
            for batch in file.iter_batches(columns=wanted, batch_size=_BATCH):
                yield from _named(batch.to_pylist())


def _named(actions: Iterable[Any]) -> Iterator[str]:
    for action in actions:
        for told in filter(None, map(action.get, FILE_ACTIONS)):
            paths = map(decoded, written_by(told))
            yield from (path for path, whole in paths if whole)
