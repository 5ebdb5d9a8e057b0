"""Rows of the deletion log for other programs: Arrow, CSV, Parquet. Some of them are in memory at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.common.atomic_files import atomic
from pii_tracer.model.canonical_json import parse_time
from pii_tracer.proof.deletions.entries import COLUMNS, NUMBERS, Row

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 100_000
_RUN_AT = COLUMNS.index("run_at")


def as_csv(rows: Iterable[Row]) -> Iterator[str]:
    """CSV in pieces, with a header. Cells that a spreadsheet would run as a formula get an apostrophe in front."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("seq", *COLUMNS))
    for some in _batches(rows):
        writer.writerows((seq, *map(_inert, cells)) for seq, cells in some)
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue()


def export(rows: Iterable[Row], path: Path) -> None:
    """Write `.csv`, or anything else as Parquet with `run_at` as a UTC timestamp."""
    with atomic(path) as stream:
        if path.suffix == ".csv":
            for piece in as_csv(rows):
                stream.write(piece.encode())
            return
        import pyarrow.parquet as pq

        with pq.ParquetWriter(stream, schema()) as writer:
            for table in arrow(rows):
                writer.write_table(table)


def schema() -> pa.Schema:
    """Of a row with its number in `seq`."""
    import pyarrow as pa

    types = {"run_at": pa.timestamp("us", tz="UTC"), **dict.fromkeys(NUMBERS, pa.int64())}
    return pa.schema([("seq", pa.int64()), *((name, types.get(name, pa.string())) for name in COLUMNS)])


def arrow(rows: Iterable[Row]) -> Iterator[pa.Table]:
    """Arrow tables of at most so many rows."""
    import pyarrow as pa

    time = lru_cache(1024)(parse_time)
    for some in _batches(rows):
        columns = [
            [seq for seq, _ in some],
            *(list(cells) for cells in zip(*(cells for _, cells in some), strict=True)),
        ]
        columns[1 + _RUN_AT] = [time(str(at)) for at in columns[1 + _RUN_AT]]
        yield pa.Table.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns, schema(), strict=True)], schema=schema()
        )


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    left = iter(rows)
    while some := list(islice(left, _AT_ONCE)):
        yield some


def _inert(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
