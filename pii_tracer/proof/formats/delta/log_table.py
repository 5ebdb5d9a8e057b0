"""The deletion log as a Delta table."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pii_tracer.proof.deletions.log_table_rows import LogRows


def fill(folder: Path, rows: LogRows) -> None:
    """Bring the table in a folder up to date.

    Raises:
        ProofError: table and log do not agree.
        Exception: the table cannot be read or written.
    """
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    from pii_tracer.proof.deletions.deletion_log_export import schema

    there = DeltaTable(folder).to_pyarrow_table(columns=["seq"]) if DeltaTable.is_deltatable(str(folder)) else None
    begin = rows.lacking(there, folder)
    if begin is None:
        shutil.rmtree(folder)
        there, begin = None, rows.pruned
    if there is None or begin < rows.last:
        batches = (batch for table in rows.beyond(begin) for batch in table.to_batches())
        # Delta's own guard: no writer may remove or change a row
        configuration = {"delta.appendOnly": "true"}
        missing = pa.RecordBatchReader.from_batches(schema(), batches)
        write_deltalake(folder, missing, mode="append", schema_mode="merge", configuration=configuration)
