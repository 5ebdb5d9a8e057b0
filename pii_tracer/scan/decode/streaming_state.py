"""State of Spark's Structured Streaming: keys and aggregates of rows, kept as long as the query's checkpoint.

Files of `CHECKPOINT/state/OPERATOR/PARTITION/` hold pairs of rows as the engine has them in memory (`UnsafeRow`: bits
for nulls, a word of eight bytes for each field, then texts and nested rows, to which words point by offset and size).
Which fields there are stands in no file that every version writes, so each word is read as all that it can be.
Sources: https://github.com/apache/spark, `HDFSBackedStateStoreProvider`, `StateStoreChangelogWriterV1`,
`RocksDBStateEncoder`, `UnsafeRow`. RocksDB's own files (`.sst`, and the `.zip` around its logs) are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import STATE

_SCHEMA = re.compile(r"(?:^|/)state/\d+/\d+/_metadata/schema\Z")
_FILE = re.compile(r"(?:^|/)state/\d+/\d+/(?:[^/]+/)?\d+\.(?:delta|snapshot|changelog)\Z")
_DEPTH = 8
_TELLING = 10_000
"""Halves of words below this are lengths and counts too often."""


class StateError(ValueError):
    """The file does not hold pairs of rows; the message says what is wrong."""


def is_state(name: str) -> bool:
    """Whether a path is that of a state file of a streaming query."""
    return _FILE.search(name) is not None


def is_schema(name: str) -> bool:
    """Whether a path is that of the fields' names and types of a state."""
    return _SCHEMA.search(name) is not None


def decode(data: memoryview, collector: Collector) -> None:
    """Search keys and values of every pair.

    Raises:
        StateError: cut short, or of another layout.
    """
    collector.raw(data, STATE)
    for row in _rows(data):
        # RocksDB's encoder puts one byte, its version, in front of keys and values
        _row(row[1:] if len(row) % 8 == 1 and row[0] == 0 else row, collector, 0)


def _rows(data: memoryview) -> Iterator[memoryview]:
    """Each size is a big-endian integer; -1 for the value that a removed key does not have, and at the end."""
    position, ended = 0, False
    while not ended:
        for is_key in (True, False):
            size = int.from_bytes(data[position : position + 4], "big", signed=True)
            position += 4
            if position > len(data) or size < -1 or position + size > len(data):
                raise StateError("streaming state is truncated, or has an unknown layout")
            if size == -1:
                ended = is_key
                if ended:
                    break
                continue
            yield data[position : position + size]
            position += size
    if position != len(data):
        raise StateError("streaming state with bytes after its last row")


def _row(row: memoryview, collector: Collector, depth: int) -> None:
    if len(row) % 8:
        raise StateError("streaming state with rows of a layout that is not known")
    whole = np.frombuffer(row, "<i8")
    halves = np.frombuffer(row, "<i4")
    numbers = {int(n) for n in whole.tolist()} | {n for n in halves.tolist() if abs(n) >= _TELLING}
    for number in sorted(numbers & collector.patterns.ints.keys()):
        collector.number(number, STATE, None)
    for double in np.frombuffer(row, "<f8").tolist():
        if abs(double) >= 1:  # as doubles, integers are next to nothing
            collector.number(double, STATE, None)
    for word in set(whole.tolist()):
        start, size = word >> 32, word & 0xFFFFFFFF
        if start >= 8 and size and start % 8 == 0 and start + size <= len(row):
            inner = row[start : start + size]
            collector.binary(bytes(inner), STATE, None)
            if size % 8 == 0 and depth < _DEPTH:
                _row(inner, collector, depth + 1)
