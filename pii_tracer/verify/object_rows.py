"""Rows of one object or file that no engine reads: how many are the persons', and a sum over everybody else's.

Whose a row is comes from the scan (any of the person's values in it, or all columns of a key of several), not from the
executor's comparison.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pii_tracer.model.errors import ScanError
from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.model.plan import Copy
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.rows.file_rows import rows_of
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.byte_search import judge
from pii_tracer.verify.verdicts import StateBaseline

_MODULUS = 1 << 256


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
    try:
        for row in rows_of(copy.format, name, data, text=text):
            if _is_persons(copy, row, patterns):
                persons += 1
            else:
                others += 1
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


def _is_persons(copy: Copy, row: Mapping[str, Any], patterns: Patterns) -> bool:
    keys = patterns.key_columns.rows
    if keys is not None and keys.found_in(row, patterns.whole_keys):
        return True
    found = Collector(patterns)
    for column, value in row.items():
        found.cell(value, "data", column)
    one = FileScan(path="", size=0, sha256="", decoded_as="", hits=found.hits())
    return bool(judge(copy, "", (one,), frozenset(copy.other_keys)).residue)
