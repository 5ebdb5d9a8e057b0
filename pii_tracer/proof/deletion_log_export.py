"""Rows of the deletion log for other programs: Arrow, CSV, Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.canonical_json import iso
from pii_tracer.proof.deletion_log import COLUMNS, NUMBERS, Entry

if TYPE_CHECKING:
    import pyarrow as pa

Numbered = Sequence[tuple[int, Entry]]


def as_csv(rows: Numbered) -> str:
    """CSV with a header. Cells that a spreadsheet would run as a formula get an apostrophe in front."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("seq", *COLUMNS))
    for seq, entry in rows:
        cells = {**entry.model_dump(mode="json"), "run_at": iso(entry.run_at)}
        writer.writerow((seq, *map(_inert, cells.values())))
    return text.getvalue()


def export(rows: Numbered, path: Path) -> None:
    """Write `.csv`, or anything else as Parquet with `run_at` as a UTC timestamp."""
    if path.suffix == ".csv":
        write_atomic(path, as_csv(rows).encode())
        return
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(arrow(rows), buffer)
    write_atomic(path, buffer.getvalue())


def arrow(rows: Numbered) -> pa.Table:
    """An Arrow table with the rows' numbers in `seq`."""
    import pyarrow as pa

    types = {"run_at": pa.timestamp("us", tz="UTC"), **dict.fromkeys(NUMBERS, pa.int64())}
    schema = pa.schema([("seq", pa.int64()), *((name, types.get(name, pa.string())) for name in COLUMNS)])
    dumped = [{"seq": seq, **entry.model_dump(mode="json"), "run_at": entry.run_at} for seq, entry in rows]
    return pa.Table.from_pylist(dumped, schema=schema)


def _inert(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
