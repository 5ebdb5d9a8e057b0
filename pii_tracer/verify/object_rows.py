"""Rows of one object or file that no engine reads: how many are the persons', and a sum over everybody else's.

Whose a row is comes from the scan (any of the person's values in it, or all columns of a key of several), not from the
executor's comparison.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from pii_tracer.model.errors import ScanError
from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.model.plan import Copy
from pii_tracer.scan.decode.arrow import search_batch
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.rows.file_rows import rows_of
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.byte_search import judge
from pii_tracer.verify.verdicts import StateBaseline

_MODULUS = 1 << 256
_TOGETHER = 2_048
"""So many rows are searched together, as columns. Where they may hold a value, so is each half of them."""
_APART = 16
"""So few rows are searched one by one."""


@dataclass(frozen=True)
class Rows:
    """Rows of one object. sum: of a hash of each row that is not the persons'."""

    persons: int
    others: int
    sum: int


def counted(copy: Copy, name: str, data: bytes | memoryview, patterns: Patterns, text: FileText | None = None) -> Rows:
    """The rows of an object of a copy. name: by whose ending a codec without a mark of its own is known. text: of text
    by columns, how it is read.

    Raises:
        ScanError: its rows cannot be read.
    """
    persons = others = total = 0
    read = rows_of(copy.format, name, data, text=text)
    try:
        while rows := list(islice(read, _TOGETHER)):
            mine = {n for n in _suspects(rows, range(len(rows)), patterns) if _is_persons(copy, rows[n], patterns)}
            persons += len(mine)
            others += len(rows) - len(mine)
            for number, row in enumerate(rows):
                if number not in mine:
                    told = json.dumps(row, sort_keys=True, default=str).encode()
                    total += int.from_bytes(hashlib.sha256(told).digest(), "big")
    except Exception as error:  # the libraries' messages can quote what they could not read
        raise ScanError(
            f"the rows of an object cannot be read: {type(error).__name__}",
            where=copy.location,
            todo="is the format that the estate file declares the right one?",
        ) from None
    return Rows(persons, others, total)


def state_of(name: str, parts: Iterable[Rows]) -> StateBaseline:
    """What several objects hold together."""
    parts = tuple(parts)
    persons, others = sum(r.persons for r in parts), sum(r.others for r in parts)
    checksum = f"{sum(r.sum for r in parts) % _MODULUS:064x}"
    return StateBaseline(state=name, rows_total=persons + others, rows_person=persons, checksum=checksum)


def _suspects(rows: Sequence[Mapping[str, Any]], among: range, patterns: Patterns) -> Iterator[int]:
    """The rows that may be the persons'. Columns are searched in a fraction of the time of their cells."""
    if patterns.key_columns.rows is not None or len(among) <= _APART:
        yield from among
        return
    try:
        names = dict.fromkeys(name for number in among for name in rows[number])
        cells = [pa.array([rows[number].get(name) for number in among]) for name in names]
    except (pa.ArrowException, ValueError, TypeError, OverflowError):  # no columns of one type: each row by itself
        yield from among
        return
    found = Collector(patterns)
    search_batch(pa.RecordBatch.from_arrays(cells, names=[*names]), found, "data")
    if found.hits() or found.reasons:
        middle = len(among) // 2
        yield from _suspects(rows, among[:middle], patterns)
        yield from _suspects(rows, among[middle:], patterns)


def _is_persons(copy: Copy, row: Mapping[str, Any], patterns: Patterns) -> bool:
    keys = patterns.key_columns.rows
    if keys is not None and keys.found_in(row, patterns.whole_keys):
        return True
    found = Collector(patterns)
    for column, value in row.items():
        found.cell(value, "data", column)
    one = FileScan(path="", size=0, sha256="", decoded_as="", hits=found.hits())
    return bool(judge(copy, "", (one,), frozenset(copy.other_keys)).residue)
