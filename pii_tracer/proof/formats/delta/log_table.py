"""The deletion log as a Delta table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.model.errors import ProofError
from pii_tracer.proof.deletions.log_table_rows import made_anew

if TYPE_CHECKING:
    import pyarrow as pa

    from pii_tracer.proof.deletions.log_table_rows import LogRows


def fill(folder: Path, rows: LogRows) -> None:
    """Bring the table in a folder up to date.

    Raises:
        ProofError: table and log do not agree.
        Exception: the table cannot be read or written.
    """
    from deltalake import DeltaTable

    there = DeltaTable(folder).to_pyarrow_table(columns=["seq"]) if DeltaTable.is_deltatable(str(folder)) else None
    begin = rows.lacking(there, folder)
    if begin is None:
        with made_anew(folder):
            _append(folder, rows, rows.pruned)
    elif begin < rows.last:
        _append(folder, rows, begin)


def _append(folder: Path, rows: LogRows, begin: int) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    from pii_tracer.proof.deletions.deletion_log_export import schema

    refused: list[ProofError] = []

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for table in rows.beyond(begin):
                yield from table.to_batches()
        except ProofError as error:  # which the library would put into one of its own
            refused.append(error)
            raise

    # Delta's own guard: no writer may remove or change a row
    configuration = {"delta.appendOnly": "true"}
    missing = pa.RecordBatchReader.from_batches(schema(), batches())
    try:
        write_deltalake(folder, missing, mode="append", schema_mode="merge", configuration=configuration)
    except Exception:
        if refused:
            raise refused[0] from None
        raise
