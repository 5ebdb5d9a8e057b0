"""Small Parquet files, and footers that say something else."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from executors.formats.plain_files.row_removal import Kept
from pii_tracer.common.thrift import Fields, Thrift, written
from pii_tracer.model.datasets import Format, Match, MatchTerm
from tests.executors.formats.plain_files.alone import drop_rows

PERSON = "ravi.kumar@example.in"
MATCH = Match(terms=(MatchTerm(column="mail", key_set="mail", type="string"),))
KEYS = {"mail": frozenset({PERSON})}


def table(groups: int = 4, rows: int = 5) -> pa.Table:
    """The person has one row, in the second group."""
    count = groups * rows
    mails = [f"other{n}@example.in" for n in range(count)]
    mails[rows] = PERSON
    return pa.table({"mail": mails, "n": list(range(count)), "note": [f"note {n}" for n in range(count)]})


def parquet(data: pa.Table | None = None, **options: Any) -> bytes:
    sink = io.BytesIO()
    shape = {"row_group_size": 5, "compression": "none", "write_page_index": True} | options
    pq.write_table(table() if data is None else data, sink, **shape)
    return sink.getvalue()


def edited(data: bytes, edit: Callable[[Fields], None], junk: bytes = b"") -> bytes:
    """The file with another footer, and with bytes in front of it that nothing names."""
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = Thrift(data[start:-8]).fields()
    edit(footer)
    raw = written(footer)
    return data[:start] + junk + raw + len(raw).to_bytes(4, "little") + b"PAR1"


def group(footer: Fields, number: int) -> Fields:
    found: Fields = footer[4][1][1][number]
    return found


def chunk(footer: Fields, number: int, column: int = 0) -> Fields:
    found: Fields = group(footer, number)[1][1][1][column]
    return found


def meta(footer: Fields, number: int, column: int = 0) -> Fields:
    found: Fields = chunk(footer, number, column)[3][1]
    return found


def put(fields: Fields, number: int, value: Any, kind: int = 6) -> None:
    """Set a field, of its old kind where it is there."""
    fields[number] = (fields.get(number, (kind, None))[0], value)


def erased(data: bytes) -> Kept:
    return drop_rows(data, Format.PARQUET, MATCH, KEYS, KEYS["mail"])


def rows(data: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist()
    return found
