"""Parquet objects with wide columns, of which a search for another person needs a part."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.scan.folder_scan import scan_object
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.incremental_search import KeptShapes
from pii_tracer.scan.scan_ledger import ScanLedger
from pii_tracer.scan.shapes import objects_read_before, partial_object_reads
from pii_tracer.scan.shapes.partial_object_reads import search_in_parts, search_whole
from pii_tracer.scan.value_forms import Patterns
from tests.scan import drawn_cells

HIM, HER = "rahul.menon@mail.example", "ipsita.nayak@mail.example"
ROWS = 800
LARGE = 2_800
"""Rows of an object of which a part is read in earnest."""
KEY = "t/part-0.parquet"
_PARTS = [f"{first}{then}" for first in "bdfglmnprst" for then in "aeiou"]


def patterns_of(value: str) -> Patterns:
    return drawn_cells.patterns_of((value, False))


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """For this test, parts are read of small objects, too."""
    monkeypatch.setattr(partial_object_reads, "LEAST", 1 << 17)
    monkeypatch.setattr(objects_read_before, "_HOLE", 1 << 13)


def columns(rows: int = ROWS, **changed: dict[int, str]) -> dict[str, Any]:
    """Two wide texts and small columns. changed: cells of a column."""
    made = {name: list(cells) if isinstance(cells, list) else cells for name, cells in _columns(rows).items()}
    for name, cells in changed.items():
        for row, text in cells.items():
            made[name][row] = text
    return made


@cache
def _columns(rows: int) -> dict[str, Any]:
    drawn = Random(7)
    return {
        "id": pa.array(range(10**6, 10**6 + rows), pa.int64()),
        "at": pa.array([n * 10**9 for n in range(rows)], pa.timestamp("us")),
        "mail": [f"x{n}@mail.example" for n in range(rows)],
        **{name: [_words(drawn) for _ in range(rows)] for name in ("first", "second")},
    }


def _words(drawn: Random) -> str:
    return " ".join("".join(drawn.choices(_PARTS, k=drawn.randint(1, 3))) for _ in range(55))


def parquet(made: dict[str, Any] | None = None, **how: Any) -> bytes:
    out, table = io.BytesIO(), pa.table(made or columns())
    how = {"row_group_size": table.num_rows // 2, "use_dictionary": False, "compression": "snappy"} | how
    pq.write_table(table, out, **how)
    return out.getvalue()


@dataclass
class Stored:
    """A version in memory. read: what parts were asked for. data: what the store has now."""

    data: bytes
    told: str = "place\0identity"
    read: list[range] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.data)

    def part(self, first: int, at_most: int) -> bytes:
        self.read.append(range(first, first + at_most))
        return self.data[first : first + at_most]

    @property
    def bytes_read(self) -> int:
        return sum(map(len, self.read))


class Known:
    """A ledger of shapes."""

    def __init__(self, base: Path) -> None:
        self.told: list[str] = []
        now = datetime(2026, 11, 20, 8, tzinfo=timezone.utc)
        self.file = base / "ledger.sqlite"
        self.ledger = ScanLedger(self.file, b"k" * 32, lambda: now, self.told.append, with_shapes=True)

    def keeper(self) -> KeptShapes:
        return KeptShapes(self.ledger)

    def read_whole(self, stored: Stored, value: str = HIM) -> FileScan:
        """As the first search reads it."""
        return search_whole(KEY, memoryview(stored.data), stored.told, patterns_of(value), None, self.keeper())

    def read(self, stored: Stored, value: str = HER) -> FileScan | None:
        """As the next search, of somebody else, reads it."""
        return search_in_parts(KEY, stored, patterns_of(value), None, self.keeper())


def plain(data: bytes, value: str = HER) -> FileScan:
    """What all bytes show without anything known."""
    return scan_object(KEY, data, patterns_of(value))
