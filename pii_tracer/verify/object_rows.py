"""Rows of one object or file that no engine reads: how many are the persons', and a sum over everybody else's.

Whose a row is comes from the scan (any of the person's values in it, or all columns of a key of several), not from the
executor's comparison.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa

from pii_tracer.model.errors import ScanError
from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.model.plan import Copy
from pii_tracer.scan.decode.arrow import search_leaf
from pii_tracer.scan.decode.cells import variant
from pii_tracer.scan.decode.cells.json_members import member
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
_TOLD = frozenset({str, int, float, Decimal, bytes})
"""Types of which cells are searched as they are; any other is searched as its text."""


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
            todo="check the format that the estate file declares",
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
    alone = patterns.key_columns.rows is not None or len(among) <= _APART
    found = None if alone else _may_hold(rows, among, patterns)
    if found is None:
        yield from among
    elif found:
        middle = len(among) // 2
        yield from _suspects(rows, among[:middle], patterns)
        yield from _suspects(rows, among[middle:], patterns)


def _may_hold(rows: Sequence[Mapping[str, Any]], among: range, patterns: Patterns) -> bool | None:
    """Whether a cell of these rows may hold a value; None where they have to be searched one by one."""
    cells: dict[tuple[str, type], list[Any]] = {}
    found = Collector(patterns)
    try:
        for number in among:
            for name, value in rows[number].items():
                for label, leaf in _leaves(value, name):
                    kind, told = (type(leaf), leaf) if type(leaf) in _TOLD else (str, str(leaf))
                    cells.setdefault((label, kind), []).append(told)
        for (label, _), leaves in cells.items():
            search_leaf(pa.array(leaves), found, "data", label)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None
    return bool(found.hits() or found.reasons)


def _leaves(value: Any, label: str) -> Iterator[tuple[str, Any]]:
    """The scalars of a cell with their columns, as `Collector.cell` takes them apart.

    Raises:
        TypeError: a VARIANT, or a column without a name.
    """
    if not isinstance(label, str) or (isinstance(value, dict) and variant.is_row(value)):
        raise TypeError
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{label}.key", key
            yield from _leaves(item, f"{label}.{member(key)}" if label else member(key))
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _leaves(item, label)
        if value and all(type(item) is int and -128 <= item <= 255 for item in value):
            yield label, bytes(item & 255 for item in value)
    elif value is not None and not isinstance(value, bool):
        yield label, bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def _is_persons(copy: Copy, row: Mapping[str, Any], patterns: Patterns) -> bool:
    keys = patterns.key_columns.rows
    if keys is not None and keys.found_in(row, patterns.whole_keys):
        return True
    found = Collector(patterns)
    for column, value in row.items():
        found.cell(value, "data", column)
    one = FileScan(path="", size=0, sha256="", decoded_as="", hits=found.hits())
    return bool(judge(copy, "", (one,), frozenset(copy.other_keys)).residue)
