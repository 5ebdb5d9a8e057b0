"""What Delta leaves in files beside the rows: commits and checkpoints in the table's log.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.lake.formats.delta.log_paths import FILE_ACTIONS, LOG, decoded, written_by
from pii_tracer.scan.decode.table_traces import TableTraces

_BATCH = 10_000


class DeltaTraces(TableTraces):
    """The log; its paths are percent-encoded, and mostly told from the table's folder."""

    format = "delta"

    def is_metadata(self, parts: Sequence[str]) -> bool:
        return LOG in parts[:-1]

    def names_files(self, parts: Sequence[str]) -> bool:
        return self.is_metadata(parts)

    def named_files(self, parts: Sequence[str], data: memoryview) -> Iterator[str]:
        *folders, name = parts
        if folders[-1:] == [LOG] and name.endswith(".json"):
            yield from _named(json.loads(line) for line in bytes(data).splitlines() if line.strip())
        elif LOG in folders and name.endswith(".parquet"):
            with pq.ParquetFile(pa.BufferReader(pa.py_buffer(data))) as file:
                wanted = [column for column in FILE_ACTIONS if column in file.schema_arrow.names]
                for batch in file.iter_batches(columns=wanted, batch_size=_BATCH):
                    yield from _named(batch.to_pylist())

    def told_path(self, text: str, parts: Sequence[str]) -> tuple[str, Sequence[str] | None] | None:
        if LOG not in parts:
            return None
        plain, whole = decoded(text)
        return plain, None if whole else parts[: parts.index(LOG)]


def _named(actions: Iterable[Any]) -> Iterator[str]:
    for action in actions:
        for told in filter(None, map(action.get, FILE_ACTIONS)):
            paths = map(decoded, written_by(told))
            yield from (path for path, whole in paths if whole)


TRACES = DeltaTraces()
